"""Which models and servers answered a cell: a number that rests on two of them belongs to neither."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from remeasure.tables.chain import CellChain, Records
from remeasure.tables.settings import CellKey, TableSettings


class Servers(Struct, frozen=True):
    """Who answered and who judged, each as ``name on server: how many``."""

    answered_by: tuple[str, ...] = ()
    judged_by: tuple[str, ...] = ()

    @property
    def is_mixed(self) -> bool:
        """Whether two models or servers share one role."""
        return len(self.answered_by) > 1 or len(self.judged_by) > 1


def of_cell(cell: CellChain, records: Records) -> Servers:
    """Return who answered a cell, from the records of the stages that collected its responses."""
    found: dict[bool, tuple[str, ...]] = {}
    folder = Path(cell.score).parent
    for link in cell.chain:
        if link.record is None or link.path == link.record:
            continue
        facts = records.stages[link.record].facts
        if "answered_by" in facts:
            found[Path(link.path).parent == folder] = tuple(
                f"{one['model'] or 'unnamed'} on {one['server'] or 'unknown'}: {one['n']}"
                for one in facts["answered_by"]
            )
    return Servers(answered_by=found.get(True, ()), judged_by=found.get(False, ()))


def of_cells(cells: Iterable[CellChain], records: Records) -> dict[CellKey, Servers]:
    """Return who answered each cell."""
    return {CellKey(cell.bench, cell.arm, cell.model): of_cell(cell, records) for cell in cells}


def warning(servers: Mapping[CellKey, Servers], settings: TableSettings) -> str:
    """Return a line that names the mixed cells, or an empty text."""
    mixed = [settings.name(key) for key, one in servers.items() if one.is_mixed]
    if not mixed:
        return ""
    return (
        f"**Mixed: the answers of {', '.join(mixed)} come from more than one model or server** (columns "
        "`answered_by` and `judged_by` of the cells file); delete these cells' folders to ask them again.\n"
    )
