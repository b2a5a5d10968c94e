"""Whether a table may be compared with the paper, in one sentence that every page of it shows."""

from collections.abc import Mapping

from remeasure.tables import cells as cell_rows
from remeasure.tables.inputs import Cell
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, TableSettings


def comparability(
    cells: Mapping[CellKey, Cell], published: Mapping[NumberKey, Published], settings: TableSettings
) -> tuple[str, str]:
    """Say in one sentence whether the table may be compared with the paper.

    Returns:
        What is to be seen first, and what follows it; the second may be empty.
    """
    fields = sorted(
        {
            field
            for key, there in published.items()
            if key.cell in cells
            for field in cell_rows.differing(cells[key.cell].score, there, settings)
        }
    )
    there = "published values" if settings.blocks else "paper"
    if settings.not_comparable:
        differs = ", ".join(fields or sorted(settings.not_comparable))
        return f"Not comparable with the {there}: {settings.run_title}", f"(differs in {differs})."
    if not published:
        return "There is no published value to compare with.", ""
    if fields:
        return f"Some cells are not comparable with the {there}; they differ in {', '.join(fields)}.", ""
    return f"The protocol fields on record are those of the {there}.", ""
