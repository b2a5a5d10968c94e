"""Adapter of haiku.rag, run by the Python of its own environment (``systems.contract``)."""
