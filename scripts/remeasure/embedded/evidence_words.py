"""How the evidence reader handles words: what a question leans on, what is searched for, sentences."""

import re

from remeasure.embedded.case_words import stem, words
from remeasure.text import SENTENCE_ENDS

# What says nothing about the subject of a question.
STOP = frozenset(
    "a about all also am an and any are as at be been being both but by can could did do does doing done "
    "for from get give had has have having he her here hers him his how i if in into is it its just know "
    "let like make many may me mean more most much my no not of on one or other our out over please s say "
    "she should so some such t tell than that the their them then there these they think this those to "
    "too up us use very want was way we well were what when where which who whom whose why will with "
    "would yes you your".split()
)
# A question with one of these is about something that was said before.
_LEANING = frozenset(
    "it its he him his she her hers they them their theirs this that these those there one ones "
    "another other others else also same such former latter more".split()
)
_CARRIES_ON = re.compile(
    r"^\W*(?:and|but|so|then|no|yes|ok|okay|what about|how about|i mean|i meant)\b", re.IGNORECASE
)
# A question with fewer words of meaning than this does not stand alone.
FEW_WORDS = 3
MAX_SENTENCES = 400


def content(text: str) -> list[str]:
    """Return the words of a text that carry meaning, in order, each once."""
    return list(dict.fromkeys(word for word in words(text) if word not in STOP))


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that carry meaning."""
    return frozenset(stem(word) for word in content(text))


def leans(question: str) -> bool:
    """Whether a question cannot be understood without what was said before it."""
    said = words(question)
    return len(content(question)) < FEW_WORDS or bool(_LEANING & {*said}) or bool(_CARRIES_ON.match(question))


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without empty ones, at most 400."""
    found = (sentence.strip() for sentence in SENTENCE_ENDS.split(text))
    return [sentence for sentence in found if words(sentence)][:MAX_SENTENCES]


def queries(question: str, asked_before: list[str]) -> list[str]:
    """Return what is searched for, best first: one query for a question that stands alone, else two.

    Args:
        question: the question.
        asked_before: earlier questions of the user, oldest first.

    A question that leans on what was said before gets the words of the first question, which names the
    subject, and of the last one; then the question as it is.
    """
    if not asked_before or not leans(question):
        return [question]
    known = {*content(question)}
    subject = [word for word in content(f"{asked_before[0]} {asked_before[-1]}") if word not in known]
    return [" ".join([*subject, question]), question] if subject else [question]
