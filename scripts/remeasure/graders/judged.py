"""Graders that read a judge's reply: SimpleQA letters, WorldVQA labels, their uses for lists of answers."""

import re
from collections.abc import Callable
from functools import partial

from remeasure.graders.base import Case, Grader, no_answer, reading
from remeasure.records import Reading

_LETTERS = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
_WORDS = {"correct": "correct", "incorrect": "incorrect", "unattempted": "not_attempted"}
_ONE_LETTER = re.compile(r"[\s*_`\"'(\[]*([ABC])[\s*_`\"')\].]*")
_LABEL_PUBLISHED = re.compile(r"Label:\s*(Correct|Incorrect|Unattempted)", re.IGNORECASE)
_LABEL_STRICT = re.compile(
    r"\blabel[*_`\s]*:[*_`\"'\s\[(]*(correct|incorrect|unattempted)(?![a-z])", re.IGNORECASE
)
_ONE_WORD = re.compile(r"[\s*_`\"'(\[]*(correct|incorrect|unattempted)[\s*_`\"')\].]*", re.IGNORECASE)

Parse = Callable[[str], Reading]


def letter_published(reply: str) -> Reading:
    """Take the first character among A, B, C anywhere in the reply; without one: not attempted.

    "CORRECT" and "INCORRECT" give C, "NOT_ATTEMPTED" gives A, which means correct.

    Source:
        PixelRAG, SimpleQA grading.
    """
    letter = next((character for character in reply if character in _LETTERS), None)
    if letter is None:
        return reading("not_attempted", "judge names no letter")
    exact = _ONE_LETTER.fullmatch(reply)
    return reading(_LETTERS[letter], "judge's letter" if exact else "letter inside a longer reply")


def letter_strict(reply: str) -> Reading:
    """Take a reply that is one letter, markup and full stop aside; anything else is unreadable."""
    match = _ONE_LETTER.fullmatch(reply)
    if not match:
        return reading("judge_unreadable", "judge's reply is not one letter")
    return reading(_LETTERS[match.group(1)], "judge's letter")


def label_published(reply: str) -> Reading:
    """Take the first plain label, else a word in the order incorrect, unattempted, correct, else incorrect.

    An empty reply is an error of the judge. A bold label is not matched: the fallback then finds "incorrect"
    in the explanation before the verdict "Correct".

    Source:
        PixelRAG, WorldVQA grading.
    """
    if not reply.strip():
        return reading("judge_failed", "judge's reply is empty")
    match = _LABEL_PUBLISHED.search(reply)
    if match:
        return reading(_WORDS[match.group(1).lower()], "judge's label")
    lowered = reply.lower()
    for word in ("incorrect", "unattempted", "correct"):
        if word in lowered:
            return reading(_WORDS[word], "fallback: word in the judge's reply")
    return reading("incorrect", "fallback: no word in the judge's reply")


def label_strict(reply: str) -> Reading:
    """Take the last label, markup allowed; fall back only to a reply that is one verdict word."""
    labels = _LABEL_STRICT.findall(reply)
    if labels:
        return reading(_WORDS[labels[-1].lower()], "judge's label")
    match = _ONE_WORD.fullmatch(reply)
    if match:
        return reading(_WORDS[match.group(1).lower()], "fallback: the judge's reply is one word")
    return reading("judge_unreadable", "judge's reply has no label")


def _published(case: Case, parse: Parse, skips_empty: bool) -> Reading:
    """Read as the original does.

    Args:
        case: the item.
        parse: the original's parser.
        skips_empty: the older script left failed and empty rows out of the denominator; the newer one sends
            the empty string to the judge, which does not call it correct.
    """
    if skips_empty and not case.answer.strip():
        return reading("ungraded", "empty answer, left out as in the original")
    if case.judge is None:
        return reading("not_attempted", "no answer; an empty one is not attempted to the judge")
    if case.judge.text is None:
        return reading("judge_failed", f"judge {case.judge.status}")
    return parse(case.judge.text)


def _strict(case: Case, parse: Parse) -> Reading:
    missing = no_answer(case)
    if missing:
        return missing
    if not case.strict_answer.strip():
        return reading("not_attempted", "empty answer")
    if case.judge is None or case.judge.text is None:
        return reading("judge_failed", f"judge {case.judge.status if case.judge else 'not_sent'}")
    return parse(case.judge.text)


def _grader(name: str, published: Parse, strict: Parse, *, skips_empty: bool) -> Grader:
    return Grader(
        name=name,
        version=1,
        judged=True,
        published=partial(_published, parse=published, skips_empty=skips_empty),
        strict=partial(_strict, parse=strict),
    )


JUDGE_SIMPLEQA = _grader("judge_simpleqa", letter_published, letter_strict, skips_empty=False)
JUDGE_WORLDVQA = _grader("judge_worldvqa", label_published, label_strict, skips_empty=False)
# The paper's NQ rows: SimpleQA prompt, first ten references joined by OR, older script.
JUDGE_OR10 = _grader("judge_or10", letter_published, letter_strict, skips_empty=True)
# NQ at the repository's head: WorldVQA prompt, "Any of" and all references.
JUDGE_ANYOF = _grader("judge_anyof", label_published, label_strict, skips_empty=False)
