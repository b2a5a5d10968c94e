"""One letter out of five."""

import re

from remeasure.graders.base import Case, Grader, no_answer, reading
from remeasure.records import Reading

LETTERS = "ABCDE"
_BEFORE = r"[\s*_`\"'(\[]*"
_AFTER = r"[*_`\"')\]]*"
_ALONE = re.compile(rf"{_BEFORE}([A-Ea-e])[\s*_`\"')\].:]*")
_LABELLED = re.compile(
    rf"{_BEFORE}(?i:(?:the\s+)?(?:correct\s+|final\s+|exact\s+)?(?:answer|option|choice)(?:\s+is)?){_AFTER}:?{_BEFORE}"
    rf"([A-Ea-e]){_AFTER}(?:\s*|\s*[.,:;].*|\s*\n.*)",
    re.DOTALL,
)
_WITH_TEXT = re.compile(rf"{_BEFORE}([A-E]){_AFTER}[.:)]\s*\S.*", re.DOTALL)


def extract_published(text: str) -> str:
    """Return the original's prediction: one character, or the empty string for an empty reply.

    The first character if it is A to E, else the alphabetically first of A to E anywhere in the reply, else
    the first character. "Answer: C" gives A, "None of Above" gives A, "c" gives "c".

    Source:
        PixelRAG, LiveVQA driver.
    """
    text = text.strip()
    if text[:1] and text[0] in LETTERS:
        return text[0]
    return next((letter for letter in LETTERS if letter in text), text[:1])


def extract_strict(text: str) -> str | None:
    """Return the letter that the reply clearly chooses, or None.

    Read are a letter alone ("C", "(c)", "**C**."), a letter with its option's text ("C. Paris") and a
    labelled letter ("The answer is C"). A sentence that merely begins with "A" is no choice.
    """
    for pattern in (_ALONE, _LABELLED, _WITH_TEXT):
        match = pattern.fullmatch(text.strip())
        if match:
            return match.group(1).upper()
    return None


def published(case: Case) -> Reading:
    """Compare the original's prediction with the gold letter; a missing reply is wrong.

    Source:
        PixelRAG, LiveVQA driver. Thinking is not stripped there; a null reply aborts its run, here it is
        graded like the rows whose ``error`` is set: prediction empty, wrong.
    """
    letter = extract_published(case.response.text or "")
    if letter == case.references[0]:
        return reading("correct", "letter equals the gold letter")
    if not letter:
        return reading("incorrect", "empty answer")
    return reading("incorrect", "another letter" if letter in LETTERS else "not a letter of the options")


def strict(case: Case) -> Reading:
    """Compare the clearly chosen letter; a reply without one is wrong and counted as unreadable."""
    missing = no_answer(case)
    if missing:
        return missing
    letter = extract_strict(case.strict_answer)
    if letter is None:
        return reading("unreadable", "no clear letter" if case.strict_answer.strip() else "empty answer")
    if letter == case.references[0].strip().upper():
        return reading("correct", "letter equals the gold letter")
    return reading("incorrect", "another letter")


MCQ_LETTER = Grader(name="mcq_letter", version=1, judged=False, published=published, strict=strict)
