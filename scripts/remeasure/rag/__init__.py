"""Measures of retrieval and of answers with citations."""
