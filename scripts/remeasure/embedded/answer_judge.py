"""The embedded judge of answers: compares an answer with a reference, or says whether it declines.

It is no language model: it reads the tagged sections of the last user message, and neither instructions nor
rubrics reach it, here or inside an answer. Which question is asked shows in the sections: with
``ExpectedOutput`` whether the output says what is expected, without it whether the output declines to answer.
Its reply is the JSON object that the prompt asks for: ``reason``, ``pass``, ``score``.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from remeasure.embedded import evidence_words
from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, texts_of
from remeasure.embedded.judge import CrossEncoder

SECTIONS = ("Input", "Output", "ExpectedOutput", "Rubric")
# All expected words in the answer are worth as much as so many points of the cross-encoder.
WORDS_WEIGHT = 20.0
MAX_EXPECTED = 5
MAX_PAIRS = 40
# How a sentence says that something is not known: a verb denied, something that is missing, or a word.
_NOT = r"(?:do|does|did|could|can|was|were|is|are|have|has)(?:n['’]?t| not)|cannot|unable to"
_KNOWN = (
    r"know|find|found|say|tell|state|mention|contain|include|provide|specify|cover|address|available|enough"
    r"|sufficient|answer|determine|have (?:\w+ ){0,3}?(?:information|knowledge|data|details|answer)|able to"
)
_NOTHING = (
    r"(?:no|not enough|insufficient|lack of|lacks?) (?:\w+ ){0,2}?"
    r"(?:information|knowledge|details|data|mention)"
)
_UNKNOWN = r"unknown|unclear|not (?:known|clear|specified|available|mentioned|stated)"
_DECLINES = re.compile(
    rf"\b(?:(?:{_NOT}) (?:\w+ ){{0,3}}?(?:{_KNOWN})|{_NOTHING}|{_UNKNOWN})\b", re.IGNORECASE
)
# Words of meaning that an answer may have beside the sentences that decline.
MAX_BESIDE = 12


@dataclass(frozen=True)
class Case:
    """What is to be judged."""

    question: str
    output: str
    expected: str | None
    """Null where it is asked whether the output declines."""


def read_case(request: ChatRequest) -> Case:
    """Return what stands in the sections of the last user message.

    Raises:
        BadRequest: no user message, or it lacks a section.
    """
    users = [message for message in request.messages if message.role == "user"]
    text = "\n".join(texts_of(users[-1])) if users else ""
    found = {name: _section(text, name) for name in SECTIONS}
    missing = [name for name in ("Output", "Rubric") if found[name] is None]
    if missing:
        raise BadRequest(
            f"messages: the last user message has no section <{missing[0]}>…</{missing[0]}>; expected Input, "
            "Output, ExpectedOutput and Rubric, or Output and Rubric"
        )
    lines = (found["Input"] or "").rstrip().split("\n")
    return Case(lines[-1].removeprefix("user: "), found["Output"] or "", found["ExpectedOutput"])


def _section(text: str, name: str) -> str | None:
    """Return what stands between the first opening and the last closing tag of a section."""
    start, end = text.find(f"<{name}>"), text.rfind(f"</{name}>")
    return text[start + len(name) + 2 : end].strip() if 0 <= start < end else None


def declines(answer: str) -> bool:
    """Whether an answer says that it does not know, and little else."""
    sentences = evidence_words.sentences(answer)
    if not sentences:
        return True
    declining = [sentence for sentence in sentences if _DECLINES.search(sentence)]
    beside = [sentence for sentence in sentences if sentence not in declining]
    return bool(declining) and len(evidence_words.content(" ".join(beside))) <= MAX_BESIDE


class AnswerJudge:
    """Judges answers.

    Args:
        encoder: scores how well a text fits another.
        threshold: the lowest sum of a fitting answer: how its sentences fit the expected ones, and twenty
            times the share of the expected words in it.
    """

    more_words = frozenset(("response_format",))

    def __init__(self, encoder: CrossEncoder, threshold: float) -> None:
        self._encoder, self._threshold = encoder, threshold
        self._n_read = 0

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a judge prompt with a verdict.

        Raises:
            BadRequest: no sections in the prompt, or thinking asked for.
        """
        if request.thinks():
            raise BadRequest("thinking: this judge has no thinking mode; ask without it")
        case = read_case(request)
        self._n_read = 0
        passed, score, reason = (
            self.refusal(case) if case.expected is None else self.equivalence(case, case.expected)
        )
        verdict = {"reason": reason, "pass": passed, "score": round(score, 4)}
        text = json.dumps(verdict, ensure_ascii=False)
        text, n_tokens, cut = self._encoder.limited(text, request.max_tokens)
        return Completion(text, self._n_read, n_tokens, "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""

    def refusal(self, case: Case) -> tuple[bool, float, str]:
        """Return whether an answer declines, as a number, and why."""
        found = declines(case.output)
        return found, float(found), "the output declines to answer" if found else "the output gives an answer"

    def equivalence(self, case: Case, expected: str) -> tuple[bool, float, str]:
        """Return whether an answer says what is expected, the share of expected words in it, and why."""
        nothing_given, nothing_expected = declines(case.output), declines(expected)
        if nothing_given or nothing_expected:
            same = nothing_given and nothing_expected
            return same, float(same), _declined(nothing_given, nothing_expected)
        known = evidence_words.stems(case.question)
        wanted = evidence_words.stems(expected) - known or evidence_words.stems(expected)
        share = len(wanted & evidence_words.stems(case.output)) / len(wanted) if wanted else 0.0
        fit = self._fit(case.output, expected)
        reason = f"{share:.0%} of the expected words are in the output, and its sentences fit with {fit:.1f}"
        return fit + WORDS_WEIGHT * share >= self._threshold, share, reason

    def _fit(self, output: str, expected: str) -> float:
        """Return the mean over the expected sentences of the best score of a sentence of the output."""
        wanted = evidence_words.sentences(expected)[:MAX_EXPECTED]
        given = evidence_words.sentences(output)[: MAX_PAIRS // len(wanted)]
        return sum(max(self._score(one, other) for other in given) for one in wanted) / len(wanted)

    def _score(self, text: str, other: str) -> float:
        score, n_tokens = self._encoder.score(text, other)
        self._n_read += n_tokens
        return score


def _declined(given: bool, expected: bool) -> str:
    if given and expected:
        return "both say that it is not known"
    return "the output declines, an answer is expected" if given else "an answer is given, none is expected"


def load(*, model: Path, tokenizer: Path, threads: int, threshold: float) -> AnswerJudge:
    """Load the judge; errors as in ``judge.CrossEncoder``."""
    return AnswerJudge(CrossEncoder(model, tokenizer, threads), threshold)
