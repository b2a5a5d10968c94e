"""The training set of Google Landmarks v2: its lists of classes and categories, and the plan made of them.

Source:
    The published ``train_clean.csv`` (``landmark_id``, ``images``: ids between spaces) and
    ``train_label_to_category.csv`` (``landmark_id``, ``category``). Photograph ``abcdef…`` lies at
    ``a/b/c/abcdef….jpg`` of one of 500 archives; no list says of which.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path, open_regular
from remeasure.image_tree import printable

_ID = re.compile(r"[0-9A-Za-z_-]{3,64}")
_CLASS = re.compile(r"[0-9]{1,9}")
# The largest class has some thousand photographs, of which each takes 17 letters.
_MAX_FIELD = 1 << 24
COLUMNS = ("image_id", "landmark_id", "tar", "leak", "class_size")


class Clean(NamedTuple):
    """Photographs with their classes, one row per photograph, sorted by id."""

    image_id: np.ndarray
    """Bytes [n]."""
    landmark_id: np.ndarray
    """int32 [n]."""


def member_of(image_id: str) -> str:
    """Return where a photograph lies in an archive."""
    return f"{image_id[0]}/{image_id[1]}/{image_id[2]}/{image_id}.jpg"


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and the wanted fields of a CSV file.

    Raises:
        RemeasureError: it is missing, is no CSV in UTF-8, or lacks a column.
    """
    before = csv.field_size_limit(_MAX_FIELD)
    try:
        with open_regular(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            head = next(reader, [])
            lacking = [name for name in columns if name not in head]
            if lacking:
                raise RemeasureError(
                    f"{path}: lacks column {lacking[0]!r}, has {printable(', '.join(head)) or 'no line'}; "
                    "give the published list"
                )
            places = [head.index(name) for name in columns]
            for row in reader:
                if len(row) != len(head):
                    raise RemeasureError(
                        f"{path} line {reader.line_num}: {len(row)} fields, expected {len(head)}; fetch it "
                        "again"
                    )
                yield reader.line_num, [row[place] for place in places]
    except OSError as error:
        raise RemeasureError(
            f"{path}: cannot be read ({error.strerror}); put the published list there"
        ) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise RemeasureError(f"{path}: no CSV in UTF-8 ({error}); fetch it again") from None
    finally:
        csv.field_size_limit(before)


def _class_of(text: str, path: Path, line: int) -> int:
    if not _CLASS.fullmatch(text):
        raise RemeasureError(
            f"{path} line {line}: landmark_id {printable(text)!r}, expected a whole number below 10^9; "
            "correct it"
        )
    return int(text)


def read_clean(path: Path) -> Clean:
    """Read the list of classes with their photographs.

    Raises:
        RemeasureError: it is missing or damaged, a photograph stands in it twice, or it names none.
    """
    ids: list[bytes] = []
    classes: list[int] = []
    seen: set[int] = set()
    for line, (label, images) in _rows(path, ("landmark_id", "images")):
        landmark_id = _class_of(label, path, line)
        if landmark_id in seen:
            raise RemeasureError(f"{path} line {line}: class {landmark_id} stands in it twice; correct it")
        seen.add(landmark_id)
        for image_id in images.split():
            if not _ID.fullmatch(image_id):
                raise RemeasureError(
                    f"{path} line {line}: {printable(image_id)!r} is no id of a photograph; expected "
                    "letters and digits"
                )
            ids.append(image_id.encode())
            classes.append(landmark_id)
    if not ids:
        raise RemeasureError(f"{path}: names no photograph; give the published list")
    names = np.array(ids)
    order = np.argsort(names, kind="stable")
    names = names[order]
    twice = np.flatnonzero(names[1:] == names[:-1])
    if len(twice):
        raise RemeasureError(
            f"{path}: photograph {names[twice[0]].decode()} stands in it twice ({len(twice)} such in all); "
            "correct it"
        )
    return Clean(names, np.array(classes, dtype=np.int32)[order])


def read_categories(path: Path) -> dict[int, str]:
    """Read the category of every class, by id.

    Raises:
        RemeasureError: it is missing or damaged, or gives a class two categories.
    """
    found: dict[int, str] = {}
    for line, (label, category) in _rows(path, ("landmark_id", "category")):
        landmark_id = _class_of(label, path, line)
        if found.setdefault(landmark_id, category) != category:
            raise RemeasureError(f"{path} line {line}: class {landmark_id} has two categories; correct it")
    return found


def class_sizes(landmark_id: np.ndarray) -> dict[int, int]:
    """Return how many photographs each class has, by id, ascending."""
    ids, counts = np.unique(landmark_id, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def dropped(sizes: Mapping[int, int], leaking: set[int], floor: int) -> dict[str, dict[str, int]]:
    """Return what is left out of training because its class is small, after classes that leak are masked.

    Args:
        sizes: photographs of each class.
        leaking: classes that the decontaminated protocol masks first.
        floor: the least photographs that a class must have.

    Returns:
        For both protocols: classes and photographs that are dropped, and those that are left.
    """
    told = {}
    for protocol, masked in (("standard", set()), ("decontaminated", leaking)):
        left = [size for landmark_id, size in sizes.items() if landmark_id not in masked]
        kept = [size for size in left if size >= floor]
        told[protocol] = {
            "dropped_classes": len(left) - len(kept),
            "dropped_photos": sum(left) - sum(kept),
            "classes": len(kept),
            "photos": sum(kept),
        }
    return told


def write_plan(path: Path, clean: Clean, sizes: Mapping[int, int], leaking: set[int]) -> None:
    """Write a row for every photograph, sorted by archive and id.

    The archive is null: no list says which it is.
    """
    import pyarrow as pa
    from pyarrow import parquet

    n = len(clean.image_id)
    ids = np.fromiter(sizes, np.int32, len(sizes))
    counts = np.fromiter(sizes.values(), np.int32, len(sizes))
    leaks = np.isin(ids, np.fromiter(sorted(leaking), np.int32, len(leaking)))
    row = np.searchsorted(ids, clean.landmark_id)
    table = pa.table(
        {
            "image_id": pa.array(clean.image_id.astype(str), pa.string()),
            "landmark_id": pa.array(clean.landmark_id, pa.int32()),
            "tar": pa.nulls(n, pa.int16()),
            "leak": pa.array(leaks[row], pa.bool_()),
            "class_size": pa.array(counts[row], pa.int32()),
        }
    )
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def read_plan(path: Path, columns: Sequence[str] = COLUMNS) -> dict[str, Any]:
    """Read columns of a plan as numpy arrays; ``image_id`` as Python texts.

    Raises:
        RemeasureError: it is missing, damaged or no plan.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_regular(path) as stream:
            table = parquet.read_table(stream, columns=list(columns), use_threads=False)
    except OSError as error:
        raise RemeasureError(
            f"{path}: cannot be read ({error.strerror or error}); delete it and rerun"
        ) from None
    except pa.ArrowException as error:
        raise RemeasureError(
            f"{path}: no plan of photographs ({str(error).splitlines()[0]}); delete it and rerun"
        ) from None
    lacking = [name for name in columns if name not in table.column_names]
    if lacking:
        raise RemeasureError(f"{path}: lacks column {lacking[0]}; delete it and rerun what makes it")
    return {
        name: table[name].to_pylist()
        if name in ("image_id", "tar")
        else table[name].to_numpy(zero_copy_only=False)
        for name in columns
    }
