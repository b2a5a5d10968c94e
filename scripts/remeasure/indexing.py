"""What the index module of a study is shown and what it gives: files about a collection of images.

Such a module has ``Settings`` (the options of its index), ``check(settings)`` (raises for settings that no
index can be made with, before anything is looked at), ``wanted(paths, settings)`` (which of the listed files
are images to look at), and ``index(listing, seen, settings)``, which gives an ``Index``. All are pure
functions; the stage lists, decodes and writes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from remeasure import jsonl
from remeasure.errors import RemeasureError


class Index(NamedTuple):
    """What a study makes of a collection."""

    files: tuple[Any, ...]
    """Contents in the order of the study's `index.files`: a list becomes JSONL, a record JSON."""
    counts: dict[str, int]
    """For the record and the end of the log."""
    problems: tuple[str, ...]
    """One line each, for the log."""
    summary: str
    """The last line of the log."""
    error: str | None = None
    """Why there must be no index; the problems are logged all the same."""


def write(index: Index, outs: Sequence[Path]) -> None:
    """Write the files of an index.

    Raises:
        RemeasureError: the study makes another number of files than its settings name.
    """
    if len(index.files) != len(outs):
        raise RemeasureError(
            f"{len(outs)} index files are named, the study makes {len(index.files)}; correct `index.files`"
        )
    for content, out in zip(index.files, outs, strict=True):
        if isinstance(content, list):
            jsonl.write(out, content)
        else:
            jsonl.write_json(out, content)
