"""Stub: plan_photos is not written yet."""

raise SystemExit("error: plan_photos.py is not written yet")
