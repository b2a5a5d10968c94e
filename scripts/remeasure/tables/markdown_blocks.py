"""The blocks of a table as text, and which readers are left out."""

from collections.abc import Sequence

from remeasure import environments, showing
from remeasure.tables.block_text import BlockText
from remeasure.tables.markdown_text import grid
from remeasure.tables.settings import TableSettings

EXPLAINED = (
    "Published reading. *published*: the page's value, then ours minus it; *at least*: what that would be "
    "with every case that it leaves out counted as wrong. *Scored*: what is in the headline's denominator, "
    "of all that was asked."
)
AIDS = "Reading aids, measured on other questions and compared with nothing:"


def blocks(found: Sequence[BlockText]) -> list[str]:
    """Return a section per block: its rows, then what helps to read them."""
    parts = [EXPLAINED + "\n"]
    for block in found:
        parts.append(f"## {showing.markdown(block.title)}\n")
        parts += [showing.markdown(block.common) + "\n"] if block.common else []
        parts.append(grid(block.header, block.rows, block.n_text, 1))
        if block.anchors:
            lines = [f"- {showing.markdown(line)}" for line in block.anchors]
            parts.append("\n".join([AIDS, "", *lines]) + "\n")
    return parts


def left_out_sentence(settings: TableSettings) -> str:
    """Say which readers this computer cannot run; empty where there are none."""
    if not settings.left_out:
        return ""
    names = ", ".join(settings.left_out)
    verb, whose = ("is", "its") if len(settings.left_out) == 1 else ("are", "their")
    return (
        f"Left out: {names} {verb} not in this table, since no Python that {whose} environment needs was "
        f"found on this computer; install one, or name it in {environments.HAND}, and make the table again."
    )


def left_out_line(settings: TableSettings) -> list[str]:
    """Return that as a paragraph of a page; nothing where there is nothing to say."""
    said = left_out_sentence(settings)
    return [f"**{showing.markdown(said)}**\n"] if said else []
