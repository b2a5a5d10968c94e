"""Stub: order_photos is not written yet."""

raise SystemExit("error: order_photos.py is not written yet")
