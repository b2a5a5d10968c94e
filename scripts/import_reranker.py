"""Stub: import_reranker is not written yet."""

raise SystemExit("error: import_reranker.py is not written yet")
