"""What every loader of a dataset takes and gives."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remeasure.records import Document, Question


class Loaded(NamedTuple):
    """What a loader found. Documents are read first, then questions, each once."""

    documents: Iterable[Document]
    questions: Iterable[Question]
    counts: Mapping[str, int] = {}
    """What the loader counts itself (exclusions, missing files), complete when both have been read."""
    absent: Collection[str] = ()
    """Uris of documents that are listed and not there, and may be missing; filled while documents are read.
    Labels may name them: such a question can only be answered without its document."""


class Loader(NamedTuple):
    """A way to read a dataset."""

    load: Callable[[Mapping[str, Path], Any], Loaded]
    """Takes the files by name and the decoded options."""
    files: tuple[str, ...]
    """Names of the files or folders that it reads, all of them needed."""
    options: type[Any]
    """Record of its options."""
