"""Stub: score_pairs is not written yet."""

raise SystemExit("error: score_pairs.py is not written yet")
