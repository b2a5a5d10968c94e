"""What systems and judges are shown in the RAG benchmarks."""
