"""Evidence points of a case: who says that an answer states them, and what becomes of it."""
