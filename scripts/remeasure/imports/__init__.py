"""Formats of answers that other systems have written, by name; each is read as a stream of ``Imported``."""

from collections.abc import Callable, Iterator
from pathlib import Path

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.imports import haiku, pixelrag, tosc, vlmevalkit
from remeasure.imports.reading import Imported, check

Format = Callable[[Path], Iterator[Imported]]

FORMATS: dict[str, Format] = {
    "haiku": haiku.read,
    "pixelrag": pixelrag.read,
    "tosc": tosc.read,
    "vlmevalkit": vlmevalkit.read,
}

__all__ = ["FORMATS", "Imported", "by_name", "check"]


def by_name(name: str) -> Format:
    """Return the reader of a format.

    Raises:
        RemeasureError: there is none of that name.
    """
    if name not in FORMATS:
        raise RemeasureError(
            f"format {name!r} is not known{did_you_mean(name, FORMATS)}; formats are {', '.join(FORMATS)}: "
            "correct `imported.format` of the model"
        )
    return FORMATS[name]
