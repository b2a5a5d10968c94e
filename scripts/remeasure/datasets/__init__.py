"""Loaders of datasets by name: each turns files from outside into documents and questions.

A further dataset is one module with a ``LOADER`` and a line in ``LOADERS``. A loader says what is special
about its files; what must hold of every dataset is checked in ``loading``.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from remeasure.datasets import (
    clapnq,
    clapnq_mini,
    hotpotqa,
    number_problems,
    open_rag_bench,
    t2_finqa,
)
from remeasure.datasets.base import Loaded, Loader
from remeasure.errors import RemeasureError, did_you_mean

LOADERS: dict[str, Loader] = {
    "clapnq": clapnq.LOADER,
    "clapnq_mini": clapnq_mini.LOADER,
    "hotpotqa": hotpotqa.LOADER,
    "number_problems": number_problems.LOADER,
    "open_rag_bench": open_rag_bench.LOADER,
    "t2_finqa": t2_finqa.LOADER,
}

__all__ = ["LOADERS", "Loaded", "Loader", "chosen"]


def chosen(name: str, files: Iterable[str], options: dict[str, Any]) -> tuple[Loader, Any]:
    """Return a loader by name, and its options decoded.

    Args:
        name: of the loader.
        files: names of the files that it is given.
        options: as the run has them.

    Raises:
        RemeasureError: there is no such loader, it reads other files, or an option is unknown, missing or of
            another type.
    """
    if name not in LOADERS:
        raise RemeasureError(
            f"loader {name!r} is not known{did_you_mean(name, LOADERS)} ({', '.join(LOADERS)}); correct "
            "`loader` in the run's `datasets`"
        )
    loader = LOADERS[name]
    if sorted(files) != sorted(loader.files):
        raise RemeasureError(
            f"loader {name!r} reads {', '.join(loader.files)}, and is given {', '.join(files)}; correct "
            "`files` in the run's `datasets`"
        )
    try:
        return loader, msgspec.convert(options, loader.options)
    except msgspec.ValidationError as error:
        raise RemeasureError(f"loader {name!r}: {error}; correct `options` in the run's `datasets`") from None
