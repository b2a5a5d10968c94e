"""Documents that are PDF files in a folder: each is there and a PDF, or is listed as missing.

Source:
    RAG card, section 1.2: the original skips what it could not fetch without a word, and its questions remain
    and count as misses. Here this is an error, or a count where the run allows it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from remeasure.datasets.reading import wrong
from remeasure.errors import RemeasureError
from remeasure.files import open_regular, sha256_file
from remeasure.records import Document

# No hidden name, no way up, nothing that another system takes for a separator.
_NAME = re.compile(r"[^./\\\0\s][^/\\\0\r\n]{0,199}\Z")
_BEGINS = b"%PDF-"
# A PDF may have other bytes before its first line.
_LOOKED_AT_BYTES = 1024
_SHOWN = 3


class Listed(Struct, frozen=True):
    """A document as a dataset lists it."""

    uri: str
    title: str
    name: str
    """Of its file below the folder; parts with slashes between."""
    metadata: dict[str, str]


def documents(
    listed: Iterable[Listed], folder: Path, allow_missing: bool, absent: set[str], counts: Counter
) -> Iterator[Document]:
    """Yield the documents whose files are there.

    Args:
        listed: all documents of the dataset.
        folder: where their files are.
        allow_missing: whether files may be missing; their uris are added to ``absent`` and counted.
        absent: uris of what is missing.
        counts: ``missing_files`` is counted.

    Raises:
        RemeasureError: a name that leads out of the folder; files that are missing or no PDF, where that is
            not allowed (all are counted before it is said).
    """
    missing: list[str] = []
    counts["missing_files"] = 0
    for one in listed:
        parts = one.name.split("/")
        if not all(_NAME.match(part) for part in parts):
            raise wrong(f"{folder}: document {one.uri[:80]!r}", f"file name {one.name[:80]!r} is not allowed")
        path = folder.joinpath(*parts)
        if not _is_pdf(path):
            missing.append(str(path))
            absent.add(one.uri)
            counts["missing_files"] += 1
            continue
        yield Document(
            uri=one.uri,
            title=one.title,
            path=str(path),
            sha256=sha256_file(path),
            format="pdf",
            metadata=one.metadata,
        )
    if missing and not allow_missing:
        raise RemeasureError(
            f"{folder}: {len(missing)} files are missing or no PDF, as {', '.join(missing[:_SHOWN])}; put "
            "them there, or set `options.allow_missing` of the dataset: their questions count as misses"
        )


def _is_pdf(path: Path) -> bool:
    try:
        with open_regular(os.fspath(path)) as stream:
            return _BEGINS in stream.read(_LOOKED_AT_BYTES)
    except OSError:
        return False
