"""Stub: extract_locals is not written yet."""

raise SystemExit("error: extract_locals.py is not written yet")
