"""Adapter of the built-in system: LanceDB hybrid search and a model that calls tools (``systems.contract``)."""
