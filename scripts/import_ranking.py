"""Stub: import_ranking is not written yet."""

raise SystemExit("error: import_ranking.py is not written yet")
