"""Published values: what a paper prints, under which protocol, with which doubts."""

from pathlib import Path

from msgspec import Struct

from remeasure.errors import RemeasureError
from remeasure.tables import csv_text

COLUMNS = (
    "table",
    "row",
    "column",
    "metric",
    "value",
    "unit",
    "source",
    "grader",
    "n",
    "reader",
    "noise",
    "note",
)


class Published(Struct, frozen=True, kw_only=True):
    """One printed number."""

    value: float
    unit: str
    source: str
    grader: str | None
    """Name of the grader, without version."""
    n: int | None
    reader: str | None
    noise: float | None
    """How far two runs of the authors lie apart, in ``unit``."""
    note: str


def _row(path: Path, number: int, row: dict[str, str]) -> Published:
    try:
        return Published(
            value=float(row["value"]),
            unit=row["unit"],
            source=row["source"],
            grader=row["grader"] or None,
            n=int(row["n"]) if row["n"] else None,
            reader=row["reader"] or None,
            noise=float(row["noise"]) if row["noise"] else None,
            note=row["note"],
        )
    except ValueError as error:
        raise RemeasureError(
            f"{path} row {number}: {error}; value and noise are numbers, n is whole"
        ) from None


def load(path: Path, table: str, metric: str = "accuracy") -> dict[tuple[str, str], Published]:
    """Read the published values of one table.

    Returns:
        (row, column) to value, for example ("nq", "base").

    Raises:
        RemeasureError: the file is damaged, or a cell stands there twice.
    """
    found: dict[tuple[str, str], Published] = {}
    for number, row in enumerate(csv_text.read(path, COLUMNS), start=2):
        if (row["table"], row["metric"]) != (table, metric):
            continue
        key = (row["row"], row["column"])
        if key in found:
            raise RemeasureError(
                f"{path} row {number}: {table} {key[0]} {key[1]} stands there twice; remove one"
            )
        found[key] = _row(path, number, row)
    return found
