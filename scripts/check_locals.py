"""Stub: check_locals is not written yet."""

raise SystemExit("error: check_locals.py is not written yet")
