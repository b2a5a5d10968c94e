"""Loaders of datasets by name: each turns files from outside into documents and questions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remeasure.records import Document, Question


class Loaded(NamedTuple):
    """What a loader found; both are read once."""

    documents: Any
    """Iterable of ``Document``."""
    questions: Any
    """Iterable of ``Question``."""
    counts: dict[str, int]
    """What was counted on the way, complete when both have been read; compared with ``expected``."""


Loader = Callable[[Mapping[str, Path], Mapping[str, Any]], Loaded]
"""Takes the files by name and the options of a dataset."""

LOADERS: dict[str, Loader] = {}

__all__ = ["LOADERS", "Document", "Loaded", "Loader", "Question"]
