"""A caption as words and gaps, with the way back to its characters."""

import re
import unicodedata
from itertools import accumulate

# A possessive 's belongs to the gap; letters and digits only, so the underscore is a gap.
_PIECES = re.compile(r"[^\W_]+|(?:(?<=[^\W_])'s(?![^\W_]))+[\W_]*|[\W_]+")
_LETTER = re.compile(r"[^\W_]")
_BARRIER = re.compile(r"[.,;:!?()\[\]\"\n\r\v\f\x1c-\x1e\x85\u2028\u2029\u2012-\u2015]|(?<=\s)-(?=\s)")
_PLAIN_SIGNS = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201b": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"}
)
# Nothing composes with an ASCII character before it has begun, so text may be cut before each of them.
_CHUNKS = re.compile(r"[\x00-\x7f][^\x00-\x7f]*|[^\x00-\x7f]+")


class Prepared:
    """Words of a caption in lower case, what stands between them, and where they stand in the raw caption.

    A word is a run of letters and digits. Between two words stands a gap; it is a barrier where it holds one
    of ``. , ; : ! ? ( ) [ ] "``, a line break, a dash, an ellipsis, or a hyphen between white space. Other
    hyphens, the underscore, the slash and the possessive ``'s`` only separate words.

    Edges:
        No letters and digits at all: no words.

    Source:
        TOSC card, section 4.4, steps 1 and 2. The possessive is not deleted but counted to the gap, which
        gives the same words and leaves all characters where they are.
    """

    __slots__ = ("raw", "words", "_pieces", "_first", "_offsets", "_origin")

    def __init__(self, raw: str):
        """Cut ``raw`` into words and gaps; time is linear in its length."""
        text, self._origin = _plain(raw)
        pieces = _PIECES.findall(text)
        first = 0 if pieces and _LETTER.match(pieces[0]) else 1
        self.raw = raw
        self.words: list[str] = pieces[first::2]
        self._pieces, self._first = pieces, first
        self._offsets: list[int] | None = None

    def gap(self, index: int) -> str:
        """Return what stands behind the word at ``index``, "" where nothing does."""
        place = self._first + 2 * index + 1
        return self._pieces[place] if 0 <= place < len(self._pieces) else ""

    def barrier(self, index: int) -> bool:
        """Return whether a barrier stands behind the word at ``index``."""
        gap = self.gap(index)
        return gap != " " and _BARRIER.search(gap) is not None

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return where the words from ``start`` to before ``stop`` stand in the raw caption."""
        if self._offsets is None:
            self._offsets = list(accumulate(map(len, self._pieces), initial=0))
        low = self._offsets[self._first + 2 * start]
        high = self._offsets[self._first + 2 * stop - 1]
        if self._origin is None:
            return low, high
        return self._origin[low][0], self._origin[high - 1][1]


def _plain(raw: str) -> tuple[str, list[tuple[int, int]] | None]:
    """Return the caption in NFKC and lower case, with plain apostrophes and hyphens.

    Returns:
        The text, and the raw span of each of its characters; None where all stand where they stood.
    """
    if raw.isascii():
        return raw.lower(), None
    if unicodedata.is_normalized("NFKC", raw):
        lower = raw.lower()
        if len(lower) == len(raw):
            return lower.translate(_PLAIN_SIGNS), None
    text: list[str] = []
    origin: list[tuple[int, int]] = []
    for chunk in _CHUNKS.finditer(raw):
        for start, stop in _clusters(chunk.group(), chunk.start()):
            piece = unicodedata.normalize("NFKC", raw[start:stop]).lower()
            text.append(piece)
            origin.extend([(start, stop)] * len(piece))
    return "".join(text).translate(_PLAIN_SIGNS), origin


def _clusters(chunk: str, offset: int) -> list[tuple[int, int]]:
    """Return the smallest parts of a chunk that normalise on their own to what the chunk normalises to."""
    cuts = [i for i, sign in enumerate(chunk) if i and not unicodedata.combining(sign)]
    bounds = [0, *cuts, len(chunk)]
    parts = list(zip(bounds, bounds[1:], strict=False))
    if len(parts) > 1:
        alone = "".join(unicodedata.normalize("NFKC", chunk[low:high]) for low, high in parts)
        if alone != unicodedata.normalize("NFKC", chunk):
            parts = [(0, len(chunk))]
    return [(offset + low, offset + high) for low, high in parts]
