"""Loaders of datasets by name: each turns files from outside into documents and questions.

A further dataset is one module with a ``LOADER`` and a line in ``LOADERS``. A loader says what is special
about its files; what must hold of every dataset is checked in ``loading``.
"""

from remeasure.datasets import clapnq_mini, number_problems
from remeasure.datasets.base import Loaded, Loader

LOADERS: dict[str, Loader] = {
    "clapnq_mini": clapnq_mini.LOADER,
    "number_problems": number_problems.LOADER,
}

__all__ = ["LOADERS", "Loaded", "Loader"]
