"""Projections of backbone vectors that are trained to tell places apart."""
