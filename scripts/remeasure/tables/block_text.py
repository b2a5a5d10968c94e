"""A block of a table as texts, for every page that shows it."""

from remeasure.records import Record


class BlockText(Record, kw_only=True):
    """Header and rows, and what helps to read them."""

    title: str
    header: tuple[str, ...]
    n_text: int
    """So many columns at the left are words; the others are numbers."""
    rows: tuple[tuple[str, ...], ...]
    common: str = ""
    """What all rows share of why they are not comparable; stands above them."""
    anchors: tuple[str, ...] = ()
    """A sentence for each."""
