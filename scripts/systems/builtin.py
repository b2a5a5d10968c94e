"""Adapter of the built-in system: LanceDB hybrid search, a model that calls tools (``systems.contract``)."""
