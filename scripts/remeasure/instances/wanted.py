"""Which members of archives are wanted: a published list of paths, or the plan of a training set."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.image_tree import printable
from remeasure.instances import gldv2

# A million paths are about 50 MB.
_MAX_BYTES = 1_000_000_000
_MAX_NAME_BYTES = 500


class Wanted:
    """Names of photographs in canonical order.

    Args:
        names: paths in archives, each once.
        landmark_id: int32 [n], their classes; null where they have none.
        place: of what they are from, for errors.

    Raises:
        RemeasureError: none, one stands twice, or one is no path.
    """

    def __init__(self, names: Sequence[str], landmark_id: np.ndarray | None, place: Path) -> None:
        self.names, self.landmark_id = names, landmark_id
        self._rows = {name: row for row, name in enumerate(names)}
        if not self._rows:
            raise RemeasureError(f"{place}: names no photograph; give the published list")
        if len(self._rows) != len(names):
            twice = next(name for row, name in enumerate(names) if self._rows[name] != row)
            raise RemeasureError(f"{place}: {printable(twice)!r} stands in it twice; correct it")
        _check(names, place)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, path: str) -> int | None:
        """Return the row of a member of an archive; null where it is not wanted.

        Edges:
            A leading ``./`` is passed over, and so is one folder that everything lies in.
        """
        path = path.removeprefix("./")
        row = self._rows.get(path)
        return row if row is not None else self._rows.get(path.partition("/")[2])


def _check(names: Iterable[str], place: Path) -> None:
    for number, name in enumerate(names, start=1):
        parts = name.split("/")
        if {"", ".", ".."} & set(parts) or "\\" in name or not name.isprintable():
            raise RemeasureError(
                f"{place} line {number}: {printable(name)!r} is no path below a folder; expected one per "
                "line, with its ending"
            )
        if len(name.encode()) > _MAX_NAME_BYTES:
            raise RemeasureError(
                f"{place} line {number}: a path of {len(name.encode())} bytes, at most {_MAX_NAME_BYTES} "
                "are taken"
            )


def read_list(path: Path) -> Wanted:
    """Read a list of one path per line, in canonical order.

    Raises:
        RemeasureError: it is missing, is no text in UTF-8, or as of ``Wanted``.
    """
    try:
        with open_regular(path) as stream:
            text = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RemeasureError(
            f"{path}: cannot be read ({error.strerror}); put the published list there"
        ) from None
    if len(text) > _MAX_BYTES:
        raise RemeasureError(f"{path}: more than {_MAX_BYTES} bytes; it is no list of photographs")
    try:
        lines = re.split(r"\r?\n", text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RemeasureError(f"{path}: no text in UTF-8 ({error}); fetch it again") from None
    while lines and not lines[-1]:
        lines.pop()
    return Wanted(lines, None, path)


def read_plan(path: Path) -> Wanted:
    """Read the photographs of a training set from its plan; errors as of ``gldv2.read_plan``."""
    plan = gldv2.read_plan(path, ("image_id", "landmark_id"))
    return Wanted([gldv2.member_of(one) for one in plan["image_id"]], plan["landmark_id"], path)
