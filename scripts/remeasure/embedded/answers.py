"""From what a small language model writes to the short answer that was asked for."""

import re
import string

from remeasure.embedded.lines import title_of, value_of
from remeasure.embedded.prompt import Option

MAX_VALUE_WORDS = 14
_JOINING = frozenset("is are was were called named has have of to as in at on by listed titled known".split())
_FILLERS = frozenset("the a an it its this that there answer exact value question s".split())
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_NUMBER = re.compile(r"[-$]?\d[\d.,]*\d%?|\d%")
_SAYS = re.compile(r"^.*\b(?:is|are|was|were|called|named|to)\s+(?:listed as\s+)?(\S.{0,50})$")
_STEM = 5


def normalise(text: str) -> str:
    """Lower case, punctuation and articles removed, blanks joined: for comparing, never for showing."""
    text = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(word for word in text.split() if word not in ("a", "an", "the"))


def contains(text: str, part: str) -> bool:
    """Whether ``part`` stands in ``text`` as whole words, both normalised; the empty text stands nowhere."""
    wanted = normalise(part)
    return bool(wanted) and f" {wanted} " in f" {normalise(text)} "


def short_answer(written: str, question: str, lines: list[str]) -> str:
    """Return the answer in what a model wrote.

    The first line, without quotes, closing full stop and words that repeat the question. With evidence the
    answer must stand in it: where it agrees with a row, the row's value is taken in full; what agrees with
    running text in part is cut to that part; what stands nowhere gives way to the value of the best line. A
    small model often writes around the value that it was asked to copy.

    Args:
        written: the model's text.
        question: what it was asked.
        lines: what it was shown, best first; empty without evidence.

    Edges:
        Empty text gives the value of the best line, without evidence an empty answer.
    """
    answer = _tidy(written.strip().split("\n")[0])
    targets = [_target(line, question) for line in lines]
    for target in targets:
        if target and (contains(answer, _head(target)) or _same_number(answer, target)):
            return target
    answer = _without_question(answer, question)
    for line, target in zip(lines, targets, strict=True):
        if target and contains(target, answer):
            return target
        if contains(_beyond_title(line, target), answer) and not contains(question, answer):
            return _end_of_sentence(answer)
    return _in_part(answer, question, lines) if lines else answer


def _in_part(answer: str, question: str, lines: list[str]) -> str:
    """Return what the line that shares most with an answer has to say; of equals the better line."""
    asked = _stems(question)
    best, length = _target(lines[0], question) or answer, 0
    for line in lines:
        target = _target(line, question)
        silent = asked if target else asked | _stems(title_of(line) or line.partition(": ")[0])
        shared, n_words = _shared(answer, target or line, silent)
        if n_words > length:
            best, length = target or shared, n_words
    return best


def _stem(word: str) -> str:
    return word.lower().rstrip("s")[:_STEM]


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text)}


def _shared(answer: str, text: str, silent: set[str]) -> tuple[str, int]:
    """Return the piece of ``text`` that an answer shares: without words at its ends that say nothing new.

    Returns:
        The piece, and how many of its words are new, neither silent nor fillers; ("", 0) without any.
    """
    ours = [word.lower() for word in _WORD.findall(answer)]
    theirs = list(_WORD.finditer(text))
    best, most = "", 0
    for i in range(len(ours)):
        for j in range(len(theirs)):
            n = 0
            while i + n < len(ours) and j + n < len(theirs) and ours[i + n] == theirs[j + n].group().lower():
                n += 1
            run = theirs[j : j + n]
            new = [_says_something(word.group(), silent) for word in run]
            if sum(new) > most:
                while _is_filler(run[-1].group()):
                    run.pop()
                best, most = text[run[new.index(True)].start() : run[-1].end()], sum(new)
    return best, most


def _is_filler(word: str) -> bool:
    return word.lower() in _FILLERS | _JOINING


def _says_something(word: str, silent: set[str]) -> bool:
    return not _is_filler(word) and _stem(word) not in silent


def _target(line: str, question: str) -> str | None:
    """Return what a row offers as an answer: its value, or its title when the question holds the value."""
    value = value_of(line)
    if value is None or len(value.split()) > MAX_VALUE_WORDS:
        return None
    return title_of(line) if contains(question, _name(value)) else value


def _beyond_title(line: str, target: str | None) -> str:
    """Return the part of a line that can hold an answer: of a row that offers a value, not its title."""
    title = title_of(line)
    return line[len(title) :] if title and target and target != title else line


def _head(value: str) -> str:
    """Return a value without its first remark in brackets and what follows: "3 km (2020)" is "3 km"."""
    head = value.split(" (")[0]
    return head if normalise(head) else value


def _name(value: str) -> str:
    """Return the words of a value before its first number, or else its head: "Moco 2,620 m" is "Moco"."""
    name = re.split(r"[\s,(]+(?=[-$(]?\d)", _head(value))[0]
    return name if any(letter.isalpha() for letter in name) else _head(value)


def _same_number(answer: str, target: str) -> bool:
    """Whether the number that a value begins with is the first one in the answer."""
    wanted, found = _NUMBER.match(target), _NUMBER.search(answer)
    return bool(wanted and found) and wanted.group().rstrip("%") == found.group().rstrip("%")


def _tidy(text: str) -> str:
    """Strip blanks, a pair of quotes and the closing full stop of a sentence."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1].strip()
    if text.endswith(".") and not re.search(r"(?:^|\W)(?:[^\W\d]\.)+$", text):
        text = text[:-1].rstrip()
    return text


def _without_question(answer: str, question: str) -> str:
    """Drop leading words that repeat the question, up to the word or colon that joins them to the rest."""
    asked = _stems(question)
    begin = 0
    for word in _WORD.finditer(answer):
        text = word.group().lower()
        if text in _JOINING or answer[word.end() : word.end() + 2] == ": ":
            begin = word.end()
        elif _stem(text) not in asked and text not in _FILLERS:
            break
    return _tidy(answer[begin:].lstrip(" :,")) or answer


def _end_of_sentence(sentence: str) -> str:
    """Return what a copied sentence says about its subject, if that is short: "The X of Y is Z" gives Z."""
    found = _SAYS.match(sentence)
    return _tidy(found.group(1)) if found else sentence


def containing_option(answer: str, options: tuple[Option, ...]) -> Option | None:
    """Return the option that stands in the answer, or else the one that holds it; None unless it is one."""
    inside = [option for option in options if contains(answer, option.text)]
    if inside:
        longest = max(len(normalise(option.text)) for option in inside)
        inside = [option for option in inside if len(normalise(option.text)) == longest]
    around = inside or [option for option in options if contains(option.text, answer)]
    return around[0] if len(around) == 1 else None
