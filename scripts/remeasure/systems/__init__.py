"""Systems under test: what answers with documents of its own, driven through one contract (``contract``)."""
