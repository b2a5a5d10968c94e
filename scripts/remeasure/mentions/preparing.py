"""A caption as words and barriers, with the way back to its characters; names written as in captions."""

import re
import unicodedata

BARRIER = "|"
# Both begin with what they look for, so that the search is fast, and look back afterwards.
_POSSESSIVE = re.compile(r"'s(?<=[^\W_]'s)(?![^\W_])")
_LONE_HYPHEN = re.compile(r"-(?<=\s-)(?=\s)")
_TOKEN = re.compile(r"[^ |]+|\|")
_BARRIERS = '.,;:!?()[]"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\u2012\u2013\u2014\u2015'
_PLAIN_SIGNS = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201b": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"}
    | {"ς": "σ"}  # whose lower case depends on what stands around it
)
# Nothing composes with an ASCII character before it has begun, so text may be cut before each of them.
_CHUNKS = re.compile(r"[\x00-\x7f][^\x00-\x7f]*|[^\x00-\x7f]+")
_KEPT_SIGNS = 10_000


def _stands_for(sign: str) -> str:
    return BARRIER if sign in _BARRIERS else sign if sign.isalnum() else " "


class _Signs(dict[int, str]):
    """Character to what separates words there: itself, a space, or a barrier."""

    def __missing__(self, code: int) -> str:
        if len(self) > _KEPT_SIGNS:
            self.clear()
        self[code] = found = _stands_for(chr(code))
        return found


# A table of ASCII alone keeps to the fast way of `translate`.
_ASCII = {code: _stands_for(chr(code)) for code in range(128)}
_ALL = _Signs()


class Prepared:
    """A caption as tokens, and where they stand in the raw caption.

    A token is a word, which is a run of letters and digits in lower case, or a barrier, ``|``. Barriers are
    ``. , ; : ! ? ( ) [ ] "``, line breaks, dashes, the ellipsis and a hyphen between white space. All else
    separates words: other hyphens, the underscore, the slash, and the possessive ``'s``.

    Edges:
        No letters and digits at all: no words.

    Source:
        TOSC card, section 4.4, steps 1 and 2. The possessive becomes two spaces instead of nothing: the words
        are the same, and all characters stay where they are.
    """

    __slots__ = ("raw", "tokens", "_text", "_plain", "_origin", "_bounds")

    def __init__(self, raw: str):
        """Cut ``raw`` into tokens; time is linear in its length."""
        if raw.isascii():
            text, self._origin = raw.lower(), None
        else:
            text, self._origin = _normalised(raw)
        if "'" in text:
            text = _POSSESSIVE.sub("  ", text)
        if "-" in text:
            text = _LONE_HYPHEN.sub("\n", text)
        self.raw, self._text = raw, text
        self._plain = text.translate(_ASCII if text.isascii() else _ALL)
        self.tokens: list[str] = self._plain.replace("|", " | ").split()
        self._bounds: list[tuple[int, int]] | None = None

    @property
    def words(self) -> list[str]:
        """All words, barriers left out."""
        return [token for token in self.tokens if token != BARRIER]

    def _characters(self, index: int) -> tuple[int, int]:
        if self._bounds is None:
            self._bounds = [found.span() for found in _TOKEN.finditer(self._plain)]
        return self._bounds[index]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return where the tokens from ``start`` to before ``stop`` stand in the raw caption."""
        low, high = self._characters(start)[0], self._characters(stop - 1)[1]
        if self._origin is None:
            return low, high
        return self._origin[low][0], self._origin[high - 1][1]

    def hyphen_behind(self, index: int) -> bool:
        """Return whether one hyphen, and nothing else, joins a token to the next one."""
        end, following = self._characters(index)[1], self._characters(index + 1)[0]
        return self._text[end:following] == "-"


def canonical_name(raw: str) -> str:
    """Return an object's name in lower case, with single spaces for ``_``, ``-`` and white space.

    Source:
        TOSC card, section 1.1.
    """
    plain = unicodedata.normalize("NFC", raw).lower().replace("_", " ").replace("-", " ")
    return " ".join(plain.split())


def _normalised(raw: str) -> tuple[str, list[tuple[int, int]] | None]:
    """Return the caption in NFKC and lower case, with plain apostrophes and hyphens.

    Returns:
        The text, and the raw span of each of its characters; None where all stand where they stood.
    """
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
