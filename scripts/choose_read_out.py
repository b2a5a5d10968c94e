"""Stub: choose_read_out is not written yet."""

raise SystemExit("error: choose_read_out.py is not written yet")
