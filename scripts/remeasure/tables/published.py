"""Published values: what a paper prints, under which protocol, with which doubts."""

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct, structs

from remeasure.errors import RemeasureError
from remeasure.tables import csv_text
from remeasure.tables.settings import NumberKey, Place, TableSettings

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

    metric: str
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
    stands_in: str | None = None
    """The model whose value this is, where it stands beside another one."""


def _row(path: Path, number: int, row: dict[str, str]) -> Published:
    try:
        return Published(
            metric=row["metric"],
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


def load(
    path: Path, table: str, metrics: Collection[str] = ("accuracy",)
) -> dict[tuple[str, str], Published]:
    """Read the published values of one table.

    Args:
        path: the file.
        table: name of the table.
        metrics: the metrics that it has; lines of others are passed over.

    Returns:
        (row, column) to value as the wide table names them, for example ("nq", "base"); several axes of a row
        are joined by "/", of a column by ".".

    Raises:
        RemeasureError: the file is damaged, or a number stands there twice.
    """
    found: dict[tuple[str, str], Published] = {}
    for number, row in enumerate(csv_text.read(path, COLUMNS), start=2):
        if row["table"] != table or row["metric"] not in metrics:
            continue
        key = (row["row"], row["column"])
        if key in found:
            raise RemeasureError(
                f"{path} row {number}: {table} {key[0]} {key[1]} stands there twice; remove one"
            )
        found[key] = _row(path, number, row)
    return found


def _places(row: Place, column: Place, settings: TableSettings) -> Iterator[tuple[str | None, Place, Place]]:
    """Yield where the published value of a number may stand: at its own place, then at those of stand-ins.

    Yields:
        The stand-in, null for none, and the row and the column.
    """
    yield None, row, column
    for name in settings.stands_for.get((settings.fixed | row.at | column.at)["model"], ()):
        there = {"model": name}
        yield (
            name,
            *(
                structs.replace(place, at=place.at | there) if "model" in place.at else place
                for place in (row, column)
            ),
        )


def of_numbers(path: Path, settings: TableSettings) -> dict[NumberKey, Published]:
    """Return the published values of a table's places; places that the paper does not have are left out.

    A value of a stand-in (``stands_for`` of the run) is that of another reader, and says so.

    Raises:
        RemeasureError: as ``load``, or a value stands at a place of another metric.
    """
    printed = load(path, settings.table, {metric.name for metric in settings.metrics})
    found = {}
    for row in settings.rows:
        for column in settings.columns:
            key = settings.number_at(row, column)
            for other, *places in _places(row, column, settings):
                names = (settings.row_name(places[0]), settings.column_name(places[1]))
                if names not in printed:
                    continue
                there = printed[names]
                if there.metric != key.metric:
                    raise RemeasureError(
                        f"{path}: {settings.table} {names[0]} {names[1]} is of metric {there.metric!r}, "
                        f"expected {key.metric!r}; correct the line"
                    )
                if other is not None:
                    there = structs.replace(there, stands_in=other, reader=there.reader or other)
                found[key] = there
                break
    return found
