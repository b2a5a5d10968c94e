"""The blocks of a table above its units: ours beside the published values, as HTML."""

from collections.abc import Sequence

from remeasure.page.escaping import visible
from remeasure.tables.block_text import BlockText

AIDS = "Reading aids, measured on other questions and compared with nothing:"


def tables(blocks: Sequence[BlockText]) -> list[str]:
    """Return a section per block."""
    return [_table(block) for block in blocks]


def _cell(field: str, is_number: bool) -> str:
    """Return a field; of a number what stands behind a semicolon has a line of its own."""
    first, *rest = field.split("; ") if is_number else [field]
    below = "".join(f"<br><small>{visible(part)}</small>" for part in rest)
    return f"<td>{visible(first)}{below}</td>"


def _table(block: BlockText) -> str:
    head = "".join(f"<th>{visible(name)}</th>" for name in block.header)
    rows = "".join(
        f"<tr>{''.join(_cell(field, place >= block.n_text) for place, field in enumerate(row))}</tr>"
        for row in block.rows
    )
    common = f'<p class="faint">{visible(block.common)}</p>' if block.common else ""
    aids = ""
    if block.anchors:
        lines = "".join(f"<li>{visible(line)}</li>" for line in block.anchors)
        aids = f'<p class="faint">{AIDS}</p><ul class="faint">{lines}</ul>'
    return (
        f'<section class="numbers"><h3>{visible(block.title)}</h3>{common}'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{aids}</section>"
    )
