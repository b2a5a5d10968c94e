"""Stub: train_reranker is not written yet."""

raise SystemExit("error: train_reranker.py is not written yet")
