"""Stub: rank_first is not written yet."""

raise SystemExit("error: rank_first.py is not written yet")
