"""The strict normal form of a disease name: what is the same name, written differently, becomes equal."""

import re
import unicodedata
from functools import lru_cache

DESIGNATING = frozenset(("type", "types", "subtype", "stage", "group", "grade", "class", "factor"))
"""Words behind which a letter or a number tells one disease from another."""
LONGEST_CACHED = 200
CACHED = 1 << 13
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4`\uff07", "'"))
# Characters that are not seen: a name with one of them in it is the same name.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
# Letters that do not decompose, and Greek ones that names spell out.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
    | {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda"}
)
_POSSESSIVE = re.compile(r"(?<=\w)'s\b", re.IGNORECASE)
_DELETED = str.maketrans("", "", "'.")
_ARTICLES = frozenset(("a", "an", "the"))
_NO_WORD = re.compile(r"[\W_]+")
_ROMAN = {word: str(n) for n, word in enumerate("i ii iii iv v vi vii viii ix".split(), start=1)}


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name in strict normal form.

    Letters without accents and without case; apostrophes, possessive s, full stops deleted; every other
    character that is neither a letter nor a digit, hyphen and slash among them, parts words. Articles go, but
    a letter A stays where it tells diseases apart: at the end, behind a word such as "type", and as a capital
    inside a name. A Roman number behind such a word becomes Arabic.

    Source:
        MRareBench card, section 5, STRICT; possessive s, Greek letters, capital A and Roman numbers are ours.
    """
    return _short_words(text) if len(text) <= LONGEST_CACHED else _words(text)


def form(text: str) -> str:
    """Return the words as one string."""
    return " ".join(words(text))


def _words(text: str) -> tuple[str, ...]:
    parted = _NO_WORD.sub(" ", _POSSESSIVE.sub("", _folded(text)).translate(_DELETED))
    cased = parted.split()
    low = parted.casefold()
    lowered = (low if low.isascii() else low.translate(_LETTERS)).split()
    last = len(cased) - 1
    found: list[str] = []
    for place, (word, one) in enumerate(zip(cased, lowered, strict=True)):
        behind = found[-1] if found else ""
        if one in _ARTICLES and place < last and _is_article(word, one, behind):
            continue
        found.append(_ROMAN.get(one, one) if behind in DESIGNATING else one)
    return tuple(found)


def designators(found: tuple[str, ...]) -> frozenset[str]:
    """Return the words that tell diseases of one name apart: letters, numbers, what is behind "type".

    "hepatitis c": c; "gaucher disease type 3b": 3b; "trisomy 18": 18; "mucopolysaccharidosis ii": 2.
    """
    behind = {word for before, word in zip(found, found[1:], strict=False) if before in DESIGNATING}
    alone = {word for word in found if len(word) == 1 or word in _ROMAN or (len(word) < 3 and word.isdigit())}
    return frozenset(_ROMAN.get(word, word) for word in behind | alone)


_short_words = lru_cache(maxsize=CACHED)(_words)


def _folded(text: str) -> str:
    """Make apostrophes alike, drop what is not seen, take the accents off."""
    if text.isascii():
        return text.replace("`", "'")
    composed = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)  # NFKC would break the acute accent
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", composed))
    parts = unicodedata.normalize("NFKD", plain)
    return "".join(character for character in parts if not unicodedata.combining(character))


def _is_article(word: str, low: str, behind: str) -> bool:
    """Say whether a word that is not the last is one."""
    return low != "a" or (behind not in DESIGNATING and (word == "a" or not behind))
