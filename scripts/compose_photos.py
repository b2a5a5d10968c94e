"""Stub: compose_photos is not written yet."""

raise SystemExit("error: compose_photos.py is not written yet")
