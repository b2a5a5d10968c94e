"""The page of a table: its units one by one, with pictures, answers, what decided, and the verdicts."""
