"""The embedded judge: a cross-encoder compares reference and answer and replies as a judge prompt asks.

It is no language model: it reads only the last line of the prompt, a JSON object with ``question``, ``gold``
and ``answer``, and scores how well the answer fits the reference. Instructions, here or inside the answer, do
not reach it.
"""

import re
from pathlib import Path

import msgspec

from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, texts_of
from remeasure.encoders.onnx_session import open_session
from remeasure.errors import RemeasureError

MAX_TOKENS = 256
_EXACT = "Exact Answer:"
_ANY_OF = "Any of:"
_DECLINED = re.compile(
    r"\b(?:(?:do|does|did)(?:n['’]t| not) (?:know|say|tell)|not (?:sure|known|given|stated|enough)|unknown"
    r"|unclear|no answer|n/a"
    r"|(?:can(?:not|['’]t| not)|unable to) (?:answer|say|tell|determine|find|identify|help))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
LETTERS = {"correct": "A", "incorrect": "B", "unattempted": "C"}
REASONS = {
    "correct": "the answer fits the reference",
    "incorrect": "the answer does not fit the reference",
    "unattempted": "no answer was attempted",
}


class Case(msgspec.Struct, frozen=True):
    """What is to be graded."""

    question: str
    gold: str | list[str]
    answer: str

    def golds(self) -> list[str]:
        """Return the accepted answers; "Any of: a | b" and "a OR b" name several."""
        if isinstance(self.gold, list):
            return self.gold
        if self.gold.startswith(_ANY_OF):
            return [part.strip() for part in self.gold.removeprefix(_ANY_OF).split(" | ")]
        return [part.strip() for part in self.gold.split(" OR ")]

    def given(self) -> str:
        """Return the answer without a label before it."""
        return self.answer.rpartition(_EXACT)[2].strip()


def read_case(request: ChatRequest) -> Case:
    """Return what stands in the last line of the last user message.

    Raises:
        BadRequest: no user message, or its last line is no such JSON object.
    """
    users = [message for message in request.messages if message.role == "user"]
    text = "\n\n".join(texts_of(users[-1])) if users else ""
    # Only at line feeds: JSON escapes them, while other separators may stand inside its strings.
    line = text.rstrip().rpartition("\n")[2]
    try:
        case = msgspec.json.decode(line.encode("utf-8", "replace"), type=Case)
    except msgspec.MsgspecError as error:
        raise BadRequest(
            'messages: the last line must be a JSON object with "question", "gold" and "answer" '
            f"({error}); use one of this project's own judge prompts"
        ) from None
    if not any(gold.strip() for gold in case.golds()):
        raise BadRequest('messages: "gold" is empty')
    return case


def wants_label(request: ChatRequest) -> bool:
    """Whether the prompt asks for a line ``Label:`` and not for a single letter."""
    texts = "\n".join(text for message in request.messages for text in texts_of(message))
    return "Label:" in texts.rstrip().rpartition("\n")[0]


def declined(answer: str) -> bool:
    """Whether an answer says nothing, or says that it does not know."""
    return not any(letter.isalnum() for letter in answer) or bool(_DECLINED.search(answer))


def same_number(gold: str, answer: str) -> bool:
    """Whether the first number of the reference stands in the answer; true where the reference has none.

    The cross-encoder finds "36 years" and "37 years" alike; in a number every digit counts.
    """
    wanted = _NUMBER.search(gold)
    found = {number.replace(",", "") for number in _NUMBER.findall(answer)}
    return wanted is None or wanted.group().replace(",", "") in found


class CrossEncoder:
    """Scores how well a text fits another; above 0 it does, by training."""

    def __init__(self, model: Path, tokenizer: Path, threads: int) -> None:
        """Load a model.

        Raises:
            RemeasureError: a file is missing or damaged.
        """
        from tokenizers import Tokenizer

        if threads != 1:
            raise RemeasureError(f"--threads {threads}: the cross-encoder runs with 1; correct `options`")
        self._session = open_session(model)
        try:
            self._tokenizer = Tokenizer.from_str(Path(tokenizer).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RemeasureError(
                f"{tokenizer}: not a tokenizer file ({error}); delete it and run snakemake -c1 {tokenizer}"
            ) from None
        self._tokenizer.no_padding()
        self._whole = Tokenizer.from_str(self._tokenizer.to_str())
        self._whole.no_truncation()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def score(self, text: str, other: str) -> tuple[float, int]:
        """Return the score of a pair and its number of tokens."""
        import numpy as np

        encoded = self._tokenizer.encode(text, other)
        feed = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        logits = self._session.run(None, {name: np.array([ids], np.int64) for name, ids in feed.items()})[0]
        return float(logits.ravel()[0]), len(encoded.ids)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, however long it is."""
        return len(self._whole.encode(text, add_special_tokens=False).ids)

    def limited(self, text: str, max_tokens: int | None) -> tuple[str, int, bool]:
        """Cut a text to a number of tokens; returns text, number of tokens, whether something was cut off."""
        ends = [end for _, end in self._whole.encode(text, add_special_tokens=False).offsets]
        if max_tokens is None or len(ends) <= max_tokens:
            return text, len(ends), False
        return text[: ends[max_tokens - 1]], max_tokens, True


class Judge:
    """Grades answers."""

    more_words: frozenset[str] = frozenset()

    def __init__(self, encoder: CrossEncoder, threshold: float) -> None:
        self._encoder, self._threshold = encoder, threshold

    def verdict(self, case: Case) -> tuple[str, float | None, int]:
        """Return correct, incorrect or unattempted, the best score (null without one), and tokens read."""
        given = case.given()
        if not any(letter.isalnum() for letter in given):
            return "unattempted", None, 0
        scored = [
            (*self._encoder.score(gold, given), same_number(gold, given))
            for gold in case.golds()
            if gold.strip()
        ]
        tokens = sum(n_tokens for _, n_tokens, _ in scored)
        best = max(score for score, _, _ in scored)
        if any(score >= self._threshold and same for score, _, same in scored):
            return "correct", best, tokens
        return ("unattempted" if declined(given) else "incorrect"), best, tokens

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a judge prompt in the form that it asks for.

        Raises:
            BadRequest: no case in the prompt, or thinking asked for.
        """
        if request.thinks():
            raise BadRequest("thinking: this judge has no thinking mode; ask without it")
        verdict, score, n_read = self.verdict(read_case(request))
        if wants_label(request):
            shown = "" if score is None else f" (score {score:.2f}, threshold {self._threshold:g})"
            text = f"Evaluation: {REASONS[verdict]}{shown}.\nLabel: {verdict.capitalize()}"
        else:
            text = LETTERS[verdict]
        text, n_tokens, cut = self._encoder.limited(text, request.max_tokens)
        return Completion(text, n_read, n_tokens, "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""


def load(*, model: Path, tokenizer: Path, threads: int, threshold: float) -> Judge:
    """Load the judge; errors as in ``CrossEncoder``."""
    return Judge(CrossEncoder(model, tokenizer, threads), threshold)
