"""Pieces of a reply that know where they stand in it, through cuts and trimming; a list of such pieces."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import Struct

MOST = 10
"""Diagnoses asked for; later ones do not count."""


class Span(Struct, frozen=True):
    """A piece of a reply."""

    text: str
    start: int
    end: int
    """Characters of the reply as it came, the end excluded; ``text`` lacks what was cut out between them."""


@dataclass(frozen=True)
class Kept:
    """What is left of a reply after stretches of it were cut out.

    Args:
        text: what is left, in one string.
        begins: place in ``text`` where each piece that was kept begins, ascending.
        origins: the place of each in the reply.
    """

    text: str
    begins: tuple[int, ...]
    origins: tuple[int, ...]

    @classmethod
    def of(cls, reply: str, stretches: Iterable[tuple[int, int]]) -> "Kept":
        """Keep the stretches of a reply (start, end), ascending; empty ones are nothing."""
        pieces, begins, origins, length = [], [], [], 0
        for start, end in stretches:
            if start < end:
                pieces.append(reply[start:end])
                begins.append(length)
                origins.append(start)
                length += end - start
        return cls("".join(pieces), tuple(begins), tuple(origins))

    def stripped(self) -> "Kept":
        """Return it without white space at both ends."""
        n_left = len(self.text) - len(self.text.lstrip())
        return Kept(self.text.strip(), tuple(place - n_left for place in self.begins), self.origins)

    def _origin(self, place: int) -> int:
        piece = bisect_right(self.begins, place) - 1
        return self.origins[piece] + place - self.begins[piece]

    def span(self, start: int, end: int, trimmed: str | None = None) -> Span:
        """Return the piece ``text[start:end]`` without the characters of ``trimmed`` at its ends.

        Args:
            start: first character.
            end: behind the last.
            trimmed: as of ``str.strip``; null: white space.

        Edges:
            Nothing left: an empty text at the place 0.
        """
        piece = self.text[start:end]
        start += len(piece) - len(piece.lstrip(trimmed))
        piece = piece.strip(trimmed)
        if not piece:
            return Span("", 0, 0)
        return Span(piece, self._origin(start), self._origin(start + len(piece) - 1) + 1)

    def lines(self) -> Iterator[tuple[int, int]]:
        """Yield where every line of ``str.splitlines`` begins and ends, its end of line excluded."""
        start = 0
        for whole in self.text.splitlines(keepends=True):
            (line,) = whole.splitlines()
            yield start, start + len(line)
            start += len(whole)


class Parsed(Struct, frozen=True):
    """What a parser makes of a reply."""

    found: tuple[Span, ...]
    """Candidates, the most likely first, at most ten; none: the reply is no list."""
    step: str
    """Which rule took them out of the reply, or why there are none."""
    n_doubled: int = 0
    """Candidates that repeat an earlier one and are dropped."""
    n_beyond: int = 0
    """Candidates after the tenth."""

    @property
    def candidates(self) -> list[str]:
        """Their texts."""
        return [span.text for span in self.found]


def chosen(found: list[Span], forms: list[str], step: str) -> Parsed:
    """Return the first ten of which no earlier one has the same form."""
    first: dict[str, Span] = {}
    for span, form in zip(found, forms, strict=True):
        first.setdefault(form, span)
    distinct = tuple(first.values())
    return Parsed(
        found=distinct[:MOST],
        step=step if distinct else "nothing left to read",
        n_doubled=len(found) - len(distinct),
        n_beyond=max(0, len(distinct) - MOST),
    )
