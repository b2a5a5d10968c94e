"""Stub: remap_tokens is not written yet."""

raise SystemExit("error: remap_tokens.py is not written yet")
