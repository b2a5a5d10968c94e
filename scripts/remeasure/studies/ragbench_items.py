"""Items of the RAG benchmarks: the questions of a dataset that a bench searches for or asks."""
