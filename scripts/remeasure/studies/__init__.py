"""What is special about each study: questions, messages, verdicts, as pure functions."""
