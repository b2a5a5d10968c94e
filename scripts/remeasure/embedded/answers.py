"""From what a small language model writes to the short answer that was asked for."""

import re
import string

from remeasure.embedded.lines import value_of
from remeasure.embedded.prompt import Option

MAX_VALUE_WORDS = 14
_JOINING = frozenset("is are was were called named has have of to as in at on by".split())
_FILLERS = frozenset("the a an it its this that there answer exact value s".split())
_WORD = re.compile(r"\w+(?:[.,]\d+)*")


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

    The first line, without quotes, closing full stop and words that repeat the question. Where it agrees with
    the value of a row that the model was shown, that value is taken as it stands there.

    Args:
        written: the model's text.
        question: what it was asked.
        lines: what it was shown, best first; empty without evidence.

    Edges:
        Empty text gives an empty answer.
    """
    answer = _tidy(written.strip().split("\n")[0])
    for line in lines:
        value = value_of(line)
        if value is not None and answer.startswith(line[: len(line) - len(value)]):
            answer = _tidy(answer[len(line) - len(value) :])
    values = [value for value in map(value_of, lines) if value and len(value.split()) <= MAX_VALUE_WORDS]
    for value in values:
        if contains(answer, value):
            return value.strip()
    answer = _without_question(answer, question)
    for value in values:
        if contains(value, answer):
            return value.strip()
    return answer


def _tidy(text: str) -> str:
    """Strip blanks, a pair of quotes and the closing full stop of a sentence."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1].strip()
    if text.endswith(".") and not re.search(r"(?:^|\W)(?:\w\.)+$", text):
        text = text[:-1].rstrip()
    return text


def _without_question(answer: str, question: str) -> str:
    """Drop leading words that only repeat the question, up to the verb that joins them to the answer."""
    asked = {word.lower() for word in _WORD.findall(question)}
    begin = 0
    for word in _WORD.finditer(answer):
        text = word.group().lower()
        if text in _JOINING:
            begin = word.end()
        elif text not in asked and text not in _FILLERS:
            break
    rest = answer[begin:].lstrip(" :,")
    return rest or answer


def containing_option(answer: str, options: tuple[Option, ...]) -> Option | None:
    """Return the option that stands in the answer, or else the one that holds it; None unless it is one."""
    inside = [option for option in options if contains(answer, option.text)]
    if inside:
        longest = max(len(normalise(option.text)) for option in inside)
        inside = [option for option in inside if len(normalise(option.text)) == longest]
    around = inside or [option for option in options if contains(option.text, answer)]
    return around[0] if len(around) == 1 else None
