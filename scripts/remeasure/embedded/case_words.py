"""How the case judge compares words: stems, clauses, what is denied, what points the other way."""

import re

from remeasure.text import SENTENCE_ENDS

_WORD = re.compile(r"[a-z0-9]+")
_CLAUSE = re.compile(r"[,;:()]|\bbut\b|\bwhereas\b|\bhowever\b")
_IMAGE = re.compile(r"\bimage\s*#?\s*(\d+)", re.IGNORECASE)
_LABEL = re.compile(r"[\s*#>•-]*image\s*#?\s*(\d+)\b", re.IGNORECASE)
STOP = frozenset(
    "a an the and or of in on at to with by for from as is are was were be been it its this that "
    "these those there here which who whom also both each all any some one two three he she his her "
    "their they has have had can may seen shown shows show visible present noted found finding "
    "findings image images picture".split()
)
_BEFORE = frozenset("no not without never neither nor denies denied lacks lack absence cannot".split())
_AFTER = frozenset("absent normal unremarkable negative excluded".split())
# Pairs that say the contrary of each other; the first of a pair stands for all that mean it.
_UP = frozenset("increas elevat high hyper raise rais prolong larg enlarg long tall thick".split())
_DOWN = frozenset("decreas reduc low hypo short small thin deficien diminish shorten".split())
_ENDINGS = ("ities", "ity", "ing", "ed", "ies", "es", "al", "ic", "s", "y", "e")


def words(text: str) -> list[str]:
    """Return the words of a text, small, letters and digits only."""
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """Return a word without the first known ending that leaves four letters, before "s" three."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending == "s"):
            return word[: -len(ending)]
    return word


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that carry meaning."""
    return frozenset(stem(word) for word in words(text) if word not in STOP)


def sentences(text: str) -> list[tuple[str, frozenset[int]]]:
    """Return the sentences of an answer, each with the numbers of the images that it is about.

    A sentence is about the images that it names; one that names none belongs to the last label before it,
    until a blank line.
    """
    found: list[tuple[str, frozenset[int]]] = []
    for block in re.split(r"\n\s*\n", text):
        last: frozenset[int] = frozenset()
        for sentence in SENTENCE_ENDS.split(block):
            if not words(sentence):
                continue
            label = _LABEL.match(sentence)
            named = frozenset(int(number[:9]) for number in _IMAGE.findall(sentence))
            last = frozenset({int(label[1][:9])}) if label else last
            found.append((sentence, named or last))
    return found


def asserted(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems that a sentence states and those that it denies, clause by clause."""
    states: set[str] = set()
    denies: set[str] = set()
    for clause in _CLAUSE.split(sentence.lower()):
        said = words(clause)
        is_denied = bool(_AFTER & {*said})
        for word in said:
            if word in _BEFORE:
                is_denied = True
            elif word not in STOP and word not in _AFTER:
                (denies if is_denied else states).add(stem(word))
    return frozenset(states), frozenset(denies)


def direction(found: frozenset[str]) -> int:
    """Return 1 where stems say more or longer, -1 where they say less or shorter, 0 where neither or both."""
    up = any(one.startswith(tuple(_UP)) for one in found)
    down = any(one.startswith(tuple(_DOWN)) for one in found)
    return up - down
