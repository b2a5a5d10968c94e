"""Stub: extract_cls is not written yet."""

raise SystemExit("error: extract_cls.py is not written yet")
