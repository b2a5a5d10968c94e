"""Stub: audit_photos is not written yet."""

raise SystemExit("error: audit_photos.py is not written yet")
