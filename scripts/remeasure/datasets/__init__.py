"""Loaders of datasets by name: each turns files from outside into documents and questions.

A further dataset is one module with a ``LOADER`` and a line in ``LOADERS``. A loader says what is special
about its files; what must hold of every dataset is checked in ``loading``.
"""

from remeasure.datasets import (
    clapnq,
    clapnq_mini,
    hotpotqa,
    number_problems,
    open_rag_bench,
    t2_finqa,
)
from remeasure.datasets.base import Loaded, Loader

LOADERS: dict[str, Loader] = {
    "clapnq": clapnq.LOADER,
    "clapnq_mini": clapnq_mini.LOADER,
    "hotpotqa": hotpotqa.LOADER,
    "number_problems": number_problems.LOADER,
    "open_rag_bench": open_rag_bench.LOADER,
    "t2_finqa": t2_finqa.LOADER,
}

__all__ = ["LOADERS", "Loaded", "Loader"]
