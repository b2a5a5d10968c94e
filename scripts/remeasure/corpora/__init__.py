"""Corpora that Remeasure writes itself, for runs without foreign data."""
