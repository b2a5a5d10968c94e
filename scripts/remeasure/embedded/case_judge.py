"""The case judge: compares words of an answer with words of a case; replies as judge prompts ask.

It is no language model and no physician. It reads only the last line of the prompt, a JSON object; nothing
that stands in an answer is an instruction to it. How rough it is:

- A point is stated where one sentence about its image has seven tenths of its word stems, or four tenths
  and the ms-marco cross-encoder finds the sentence relevant to it. Synonyms without a common word are lost;
  a sentence with the right words in a wrong order passes.
- Something is denied where "no", "not", "normal" and the like stand in the same clause. It is contradicted
  also where a point says more and the sentence says less of the same.
- Names of diseases are compared by the stems that they share. What is a subtype of what it does not know: a
  name that holds all of another one counts as its subtype.
- Whether a list is a sensible differential diagnosis it cannot tell: it looks for three or more different
  entries that are names, not sentences.

``tests/unit/test_case_judge.py`` has pairs written by hand with the verdicts of a person.
"""

from pathlib import Path

import msgspec

from remeasure.embedded import case_words
from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, texts_of
from remeasure.embedded.judge import CrossEncoder

ENOUGH, DOUBTFUL, DENIED = 0.7, 0.4, 0.6
_GENERIC = frozenset(map(case_words.stem, "disease syndrome disorder condition type form familial".split()))
_WIDE = frozenset(
    map(
        case_words.stem,
        "infection inflammation inflammatory tumor tumour cancer malignancy neoplasm anemia autoimmune "
        "genetic metabolic congenital hereditary acute chronic viral bacterial systemic unknown".split(),
    )
)
_LONGEST_NAME = 14  # words


class RankedCase(msgspec.Struct, frozen=True):
    """A list of diagnoses and the right one."""

    gold: str
    aliases: list[str]
    ranked: list[str]


class RubricCase(msgspec.Struct, frozen=True):
    """An answer about images and the points that it should state."""

    diagnosis: str
    rationale: str
    answer: str
    required: list[str]
    optional: list[str]


def read_case(request: ChatRequest) -> RankedCase | RubricCase:
    """Return what stands in the last line of the last user message.

    Raises:
        BadRequest: no user message, or its last line is no such JSON object.
    """
    users = [message for message in request.messages if message.role == "user"]
    text = "\n\n".join(texts_of(users[-1])) if users else ""
    # Only at line feeds: JSON escapes them, while other separators may stand inside its strings.
    line = text.rstrip().rpartition("\n")[2].encode("utf-8", "replace")
    try:
        keys = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        case = msgspec.json.decode(line, type=RankedCase if "ranked" in keys else RubricCase)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadRequest(
            'messages: the last line must be a JSON object with "gold", "aliases" and "ranked", or with '
            f'"diagnosis", "rationale", "answer", "required" and "optional" ({error}); use one of this '
            "project's own judge prompts"
        ) from None
    if isinstance(case, RankedCase) and not case.gold.strip():
        raise BadRequest('messages: "gold" is empty')
    return case


def closeness(entry: str, gold: str) -> int:
    """Return how near a name comes to another: 3 the same or a kind of it, 2, 1, or 0 for nothing.

    3 where all stems of the right name stand in the entry, generic words apart; 2 where all of the entry's
    stand in the right name, or half of all are in both; 1 where one of five letters or more is in both.
    """
    wanted, given = (case_words.stems(name) - _GENERIC for name in (gold, entry))
    wanted, given = wanted or case_words.stems(gold), given or case_words.stems(entry)
    both = wanted & given
    if wanted and wanted <= given:
        return 3
    if both and (given <= wanted or 2 * len(both) >= len(wanted | given)):
        return 2
    return int(any(len(one) >= 5 for one in both - _WIDE))


class CaseJudge:
    """Judges lists of diagnoses and answers about images.

    Args:
        encoder: scores how relevant a text is to another.
        threshold: its lowest score of a relevant one.
    """

    more_words: frozenset[str] = frozenset()

    def __init__(self, encoder: CrossEncoder, threshold: float) -> None:
        self._encoder, self._threshold = encoder, threshold
        self._n_read = 0

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a judge prompt with one verdict per line.

        Raises:
            BadRequest: no case in the prompt, or thinking asked for.
        """
        if request.thinks():
            raise BadRequest("thinking: this judge has no thinking mode; ask without it")
        case = read_case(request)
        self._n_read = 0
        lines = self.ranked(case) if isinstance(case, RankedCase) else self.rubric(case)
        text, n_tokens, cut = self._encoder.limited("\n".join(lines), request.max_tokens)
        return Completion(text, self._n_read, n_tokens, "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""

    def ranked(self, case: RankedCase) -> list[str]:
        """Return the five lines about a list: in it, first, how near, certain diseases, sensible."""
        names = [name for name in (case.gold, *case.aliases) if name.strip()]
        near = [max(closeness(entry, name) for name in names) for entry in case.ranked]
        is_specific = [bool(case_words.stems(entry) - _WIDE - _GENERIC) for entry in case.ranked]
        is_name = [len(case_words.words(entry)) <= _LONGEST_NAME for entry in case.ranked]
        different = {case_words.stems(entry) for entry in case.ranked}
        return [
            _said(3 in near),
            _said(near[:1] == [3]),
            str(max(near, default=0)),
            _said(bool(near) and sum(is_specific) * 5 >= len(near) * 4),
            _said(len(different) >= 3 and len(different) == len(near) and all(is_name)),
        ]

    def rubric(self, case: RubricCase) -> list[str]:
        """Return a line for each required and optional point, and whether each required one is denied."""
        told = case_words.sentences(case.answer)
        required = [self._verdict(point, told, case.diagnosis) for point in case.required]
        optional = [self._verdict(point, told, case.diagnosis) for point in case.optional]
        stated = [_said(is_stated) for is_stated, _ in (*required, *optional)]
        return stated + [_said(is_denied) for _, is_denied in required]

    def _verdict(
        self, point: str, told: list[tuple[str, frozenset[int]]], diagnosis: str
    ) -> tuple[bool, bool]:
        """Return whether an answer states a point, and whether it says the contrary."""
        images, text = _parted(point)
        stated = denied = False
        for sentence, about in told:
            if images and not images <= about:
                continue
            is_stated, is_denied = self._compare(text, sentence, diagnosis)
            stated, denied = stated or is_stated, denied or is_denied
        return stated, denied and not stated

    def _compare(self, point: str, sentence: str, diagnosis: str) -> tuple[bool, bool]:
        states, denies = case_words.asserted(sentence)
        wanted = case_words.stems(point)
        name = case_words.stems(diagnosis) - _GENERIC
        if name and name <= wanted:  # a point about the diagnosis: the sentence must name it, and say more
            if len(name & states) < ENOUGH * len(name):
                return False, False
            wanted -= name
        if not wanted:
            return False, False
        share, contrary = len(wanted & states) / len(wanted), len(wanted & denies) / len(wanted)
        ways = case_words.direction(wanted), case_words.direction(states)
        if ways[0] * ways[1] < 0:
            return False, share >= DOUBTFUL
        if share >= ENOUGH:
            return True, False
        if contrary >= DENIED:
            return False, True
        return share >= DOUBTFUL and self._is_relevant(point, sentence), False

    def _is_relevant(self, point: str, sentence: str) -> bool:
        score, n_tokens = self._encoder.score(point, sentence)
        self._n_read += n_tokens
        return score >= self._threshold


def _parted(point: str) -> tuple[frozenset[int], str]:
    """Return the images that a point is about, and its text without "[Image k] " before it."""
    head, bracket, rest = point.partition("]")
    if not point.startswith("[") or not bracket:
        return frozenset(), point
    return frozenset(int(number[:9]) for number in case_words.words(head) if number.isdecimal()), rest.strip()


def _said(verdict: bool) -> str:
    return "YES" if verdict else "NO"


def load(*, model: Path, tokenizer: Path, threads: int, threshold: float) -> CaseJudge:
    """Load the judge; errors as in ``judge.CrossEncoder``."""
    return CaseJudge(CrossEncoder(model, tokenizer, threads), threshold)
