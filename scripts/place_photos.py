"""Stub: place_photos is not written yet."""

raise SystemExit("error: place_photos.py is not written yet")
