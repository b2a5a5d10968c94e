"""Files of datasets as they come from outside: typed, bounded, with errors that name the place."""

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import open_regular

T = TypeVar("T")

MAX_LINE_BYTES = 16_000_000
"""The longest line of the datasets that are read here has less than 0.1 MB."""
MAX_JSON_BYTES = 256_000_000
"""The largest document that is decoded in one piece, OpenRAG Bench's answers, has about 2 MB."""
MAX_UNPACKED_BYTES = 4_000_000_000
"""The passages of ClapNQ, the largest member of an archive, have about 0.3 GB."""
MAX_RATIO = 200
"""Text packs 3 to 20 times; a member that packs better is no text."""


def wrong(where: str | Path, said: str) -> RemeasureError:
    """Return the error for a file of a dataset that is not as it should be."""
    return RemeasureError(
        f"{where}: {said}; take the file that the run's `datasets` section means, or correct it"
    )


def records(stream: Iterable[bytes], kind: type[T], where: str | Path) -> Iterator[tuple[int, T]]:
    """Yield the records of JSON lines with their line numbers; empty lines are passed over.

    Args:
        stream: lines, or anything with ``readline`` that is asked for bounded pieces.
        kind: what each line is.
        where: what the file is called in errors.

    Raises:
        RemeasureError: a line is no such record, or longer than any real one; names line and field.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(_bounded(stream, where), start=1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise wrong(f"{where} line {number}", f"not a valid record ({error})") from None


def _bounded(stream: IO[bytes], where: str | Path) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise wrong(
                f"{where} line {number}", f"has more than {MAX_LINE_BYTES} bytes, too long for a record"
            )
        yield line


def read_records(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield the records of a JSONL file with their line numbers; errors as ``records``."""
    with _opened(path) as stream:
        yield from records(stream, kind, path)


def read_json(path: Path, kind: type[T]) -> T:
    """Read one JSON document.

    Raises:
        RemeasureError: it is missing, too large, or not what is expected.
    """
    with _opened(path) as stream:
        data = stream.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise wrong(path, f"has more than {MAX_JSON_BYTES} bytes, too long for one document")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise wrong(path, f"not what is expected ({error})") from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        stream = open_regular(path)
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    with stream:
        yield stream


def read_labels(path: Path) -> dict[str, tuple[str, ...]]:
    """Read gold labels: a header, then query id, document id and grade with tabs between.

    Returns:
        Document ids by query id, in the order of the file.

    Raises:
        RemeasureError: another header, a line with other fields, a grade that is not 1, or a label twice;
            names the line.
    """
    with _opened(path) as stream:
        lines = [line.decode("utf-8", "replace").rstrip("\r\n") for line in _bounded(stream, path)]
    if not lines or lines[0].split("\t") != ["query-id", "corpus-id", "score"]:
        raise wrong(path, "has no header line `query-id corpus-id score` with tabs")
    found: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not all(fields) or fields[2] != "1":
            raise wrong(
                f"{path} line {number}", f"is {line[:80]!r}, expected query, document and the grade 1"
            )
        labels = found.setdefault(fields[0], {})
        if fields[1] in labels:
            raise wrong(f"{path} line {number}", f"names {fields[1]!r} twice for query {fields[0]!r}")
        labels[fields[1]] = None
    return {query: tuple(labels) for query, labels in found.items()}


@contextmanager
def zipped(path: Path, suffix: str) -> Iterator[tuple[IO[bytes], str]]:
    """Open the one member of an archive whose name ends in ``suffix``.

    Yields:
        The member and what it is called in errors.

    Raises:
        RemeasureError: no zip, not one such member, encrypted, or unpacked much larger than text can be.
    """
    with _opened(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                member = _member(archive, path, suffix)
                where = f"{path}:{member.filename}"
                with archive.open(member) as unpacked:
                    yield unpacked, where
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
            raise wrong(path, f"no zip archive that can be read ({error})") from None


def _member(archive: zipfile.ZipFile, path: Path, suffix: str) -> zipfile.ZipInfo:
    found = [
        one
        for one in archive.infolist()
        if one.filename.endswith(suffix) and not one.filename.startswith("__MACOSX/")
    ]
    if len(found) != 1:
        raise wrong(path, f"has {len(found)} members that end in {suffix}, expected one")
    size, packed = found[0].file_size, max(found[0].compress_size, 1)
    if size > MAX_UNPACKED_BYTES or size > MAX_RATIO * packed:
        raise wrong(path, f"its member says to have {size} bytes unpacked, {packed} packed: no text does")
    return found[0]
