"""Stub: read_out is not written yet."""

raise SystemExit("error: read_out.py is not written yet")
