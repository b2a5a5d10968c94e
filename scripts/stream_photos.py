"""Stub: stream_photos is not written yet."""

raise SystemExit("error: stream_photos.py is not written yet")
