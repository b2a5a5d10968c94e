"""Numbers of others that help to read a block: measured on something else, so compared with nothing."""

from pathlib import Path

from remeasure.errors import RemeasureError
from remeasure.tables import csv_text
from remeasure.tables.settings import Anchor

COLUMNS = ("table", "bench", "label", "scope", "metric", "value", "source")


def load(path: Path, table: str) -> list[Anchor]:
    """Read the anchors of one table, a row per number.

    Returns:
        One per bench and label, in order of first sight.

    Raises:
        RemeasureError: the file is damaged, says nothing of what was measured, or has a number twice.
    """
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for number, row in enumerate(csv_text.read(path, COLUMNS), start=2):
        if row["table"] != table:
            continue
        if not row["scope"].strip():
            raise RemeasureError(f"{path} row {number}: scope is empty; say what the number was measured on")
        values = found.setdefault(tuple(row[name] for name in ("bench", "label", "scope", "source")), {})
        if row["metric"] in values:
            raise RemeasureError(
                f"{path} row {number}: {row['label']} {row['metric']} stands there twice; remove one"
            )
        try:
            value = float(row["value"])
        except ValueError:
            raise RemeasureError(f"{path} row {number}: value {row['value']!r} is no number") from None
        if not 0 <= value <= 1:
            raise RemeasureError(f"{path} row {number}: value {value:g} is no share of 0 to 1; correct it")
        values[row["metric"]] = value
    return [
        Anchor(bench=bench, label=label, scope=scope, source=source, values=values)
        for (bench, label, scope, source), values in found.items()
    ]
