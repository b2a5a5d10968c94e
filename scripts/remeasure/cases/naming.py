"""Names of diseases: which can be asked for, how else they are written, which words would give them away."""

import re

from remeasure.phenotypes.phrases import words_of

# Words of names that say nothing about which disease it is; the request for a diagnosis has some of them too.
GENERIC = frozenset(
    "disease diseases syndrome syndromes disorder disorders type types form forms with without from "
    "that have this other rare familial hereditary inherited congenital acquired primary secondary "
    "idiopathic isolated early late onset adult juvenile infantile neonatal childhood linked "
    "autosomal dominant recessive associated related variant classic classical group subtype "
    "unspecified".split()
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9' ,/-]*[A-Za-z0-9]")
_LONGEST_NAME = 60


def answer_words(names: list[str]) -> frozenset[str]:
    """Return the words of at least four letters in the names of a disease that could give it away."""
    return frozenset(w for name in names for w in words_of(name) if len(w) >= 4 and w not in GENERIC)


def gives_away(text: str, answers: frozenset[str]) -> list[str]:
    """Return the words of a text that are, or begin like, a word of the answer.

    Two words begin alike where one is the beginning of the other, or their first five letters are the same.
    """
    return [word for word in words_of(text) if any(_alike(word, answer) for answer in answers)]


def _alike(word: str, answer: str) -> bool:
    short, long = sorted((word, answer), key=len)
    return (len(short) >= 4 and long.startswith(short)) or (len(short) >= 5 and word[:5] == answer[:5])


def aliases(name: str) -> list[str]:
    """Return other spellings of a name: hyphens as spaces, Arabic numbers of types as Roman ones."""
    roman = {str(n): text for n, text in enumerate("I II III IV V VI VII VIII IX X".split(), start=1)}
    plain = name.replace("-", " ")
    found = [plain, re.sub(r"\b(type )(10|[1-9])\b", lambda m: m[1] + roman[m[2]], plain)]
    return [text for text in dict.fromkeys(found) if text != name]


def is_plain(name: str, names: list[frozenset[str]]) -> bool:
    """Return whether a name can be asked for: plain letters, no full stop, and no other that resembles it.

    Two names resemble each other where half of all their words are in both.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or not answer_words([name]):
        return False
    own = frozenset(words_of(name))
    return sum(len(own & other) * 2 >= len(own | other) for other in names) == 1
