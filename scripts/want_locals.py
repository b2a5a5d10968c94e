"""Stub: want_locals is not written yet."""

raise SystemExit("error: want_locals.py is not written yet")
