"""Stub: train_head is not written yet."""

raise SystemExit("error: train_head.py is not written yet")
