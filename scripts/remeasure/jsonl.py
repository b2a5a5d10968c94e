"""The only reader and writer of JSON and JSONL: typed, streaming, errors with file and line."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from remeasure.errors import RemeasureError
from remeasure.files import atomic_open, open_regular

T = TypeVar("T")


def unreadable(path: Path, error: OSError) -> RemeasureError:
    """Return the one-line error for a file that cannot be opened or read."""
    return RemeasureError(f"{path}: cannot be read ({error.strerror}); make it or correct the path")


def encode(value: Any) -> bytes:
    """Return the canonical JSON bytes of a record: UTF-8, keys sorted, no spaces."""
    return msgspec.json.encode(value, order="sorted")


def read(path: Path, kind: type[T], digest: Any = None) -> Iterator[T]:
    """Yield the records of a JSONL file, one per line, checked against ``kind``.

    Args:
        path: the file.
        kind: what each line is.
        digest: a hash of ``hashlib`` that is told the bytes of every line: at the end it is that of the file.

    Raises:
        RemeasureError: the file is missing or a line is not a valid record; names file, line and field.
    """
    for _, record in read_placed(path, kind, digest):
        yield record


def read_placed(path: Path, kind: type[T], digest: Any = None) -> Iterator[tuple[int, T]]:
    """Yield records as ``read`` does, each with the position of its line's first byte."""
    decoder = msgspec.json.Decoder(kind)
    try:
        stream = open_regular(path)
    except OSError as error:
        raise unreadable(path, error) from None
    place = 0
    with stream:
        for number, line in enumerate(stream, start=1):
            if digest is not None:
                digest.update(line)
            try:
                record = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise RemeasureError(
                    f"{path} line {number}: not a valid {getattr(kind, '__name__', kind)} record: {error}; "
                    "correct the line, or delete the file and rerun the target that writes it"
                ) from None
            yield place, record
            place += len(line)


def count(path: Path) -> int:
    """Return how many lines a file has, without looking into them; errors as in ``read``."""
    try:
        with open_regular(path) as stream:
            return sum(1 for _ in stream)
    except OSError as error:
        raise unreadable(path, error) from None


def write(path: Path, records: Iterable[Any]) -> int:
    """Write records as JSONL, whole or not at all, streaming. Returns the number of lines."""
    count = 0
    with atomic_open(path, "wb") as stream:
        for record in records:
            stream.write(encode(record) + b"\n")
            count += 1
    return count


def read_json(path: Path, kind: type[T] = dict) -> T:
    """Read one JSON document checked against ``kind``; errors as in ``read``."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind)
    except OSError as error:
        raise unreadable(path, error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemeasureError(f"{path}: not a valid {getattr(kind, '__name__', kind)}: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document, indented and with sorted keys, whole or not at all."""
    with atomic_open(path, "wb") as stream:
        stream.write(msgspec.json.format(encode(value), indent=2) + b"\n")


def unique(records: Iterable[T], key: str, path: Path) -> Iterator[T]:
    """Pass records through; stop at the second record with the same ``key`` field.

    Raises:
        RemeasureError: names the file, the id and both positions.
    """
    seen: dict[str, int] = {}
    for number, record in enumerate(records, start=1):
        value = getattr(record, key)
        if value in seen:
            raise RemeasureError(
                f"{path} line {number}: {key} {value!r} stands already in line {seen[value]}; "
                "ids must be unique: rename or remove one"
            )
        seen[value] = number
        yield record
