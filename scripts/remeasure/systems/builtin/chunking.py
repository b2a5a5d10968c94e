"""Cutting a document into chunks: whole sentences as far as they fit, never more than so many tokens.

A token is a run of letters and digits or one other visible character: what a reader can count. A piece that
ends a sentence, a line or a table row is kept together; a longer piece is cut between tokens.
"""

import re

TOKEN = re.compile(r"\w+|[^\w\s]")
# Behind a full stop, question or exclamation mark and the quotes or brackets that close with it, and behind a
# line's end.
_PIECE = re.compile(r".*?(?:[.!?][\"')\]’”]*(?=\s)|\n|\Z)\s*", re.DOTALL)


def n_tokens(text: str) -> int:
    """Return how many tokens a text has."""
    return sum(1 for _ in TOKEN.finditer(text))


def chunks(title: str, text: str, most: int) -> list[str]:
    """Return the chunks of a document.

    Args:
        title: stands in front of every chunk that does not begin with it, so that a chunk says what it is
            about; it takes at most half of the tokens.
        text: of the document.
        most: tokens of a chunk with its title.

    Edges:
        A text without a token has no chunks.
    """
    head = _cut(title, most // 2)[0].strip() if TOKEN.search(title) else ""
    room = most - n_tokens(head)
    bodies = _packed([part for piece in _pieces(text) for part in _cut(piece, room)], room)
    return [body if not head or body.startswith(head) else f"{head}\n{body}" for body in bodies]


def _pieces(text: str) -> list[str]:
    """Return sentences and lines with the white space behind them."""
    return [match[0] for match in _PIECE.finditer(text) if TOKEN.search(match[0])]


def _cut(piece: str, room: int) -> list[str]:
    """Return a piece in parts of at most ``room`` tokens."""
    starts = [match.start() for match in TOKEN.finditer(piece)][::room]
    return [piece[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _packed(parts: list[str], room: int) -> list[str]:
    """Join neighbours as long as they fit."""
    packed: list[str] = []
    held, n_held = "", 0
    for part in parts:
        n = n_tokens(part)
        if held and n_held + n > room:
            packed.append(held.strip())
            held, n_held = "", 0
        held, n_held = held + part, n_held + n
    return [*packed, held.strip()] if held else packed
