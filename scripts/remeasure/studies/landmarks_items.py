"""Items of the landmarks study: one per query photograph."""
