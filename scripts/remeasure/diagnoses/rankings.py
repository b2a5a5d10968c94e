"""A reply as a ranked list under one reading, and where the right diagnosis stands in it.

Source:
    MRareBench card, sections 4 to 6.
"""

from collections.abc import Sequence

from msgspec import Struct

from remeasure import failing, roundtrip
from remeasure.diagnoses import lists, matching
from remeasure.diagnoses.matching import Hit
from remeasure.diagnoses.spans import Parsed
from remeasure.records import Response

RECALL_AT = (1, 3, 5, 10)
HEADLINE = "recall@1"
_NO_LIST = Parsed(found=(), step="")


class Ranking(Struct, frozen=True):
    """A list and how it fared."""

    parsed: Parsed
    hits: tuple[Hit | None, ...]
    """One per candidate."""
    failed: bool | None
    """Whether this reading counts a failed request; null: it has no such row."""
    text: str | None = None
    """What was read; null: the answer is in no denominator."""
    left_out: str | None = None
    """Why it is not."""

    @property
    def rank(self) -> int | None:
        """Place of the first hit, from 1; null for a miss."""
        return next((place for place, hit in enumerate(self.hits, start=1) if hit is not None), None)

    @property
    def first(self) -> Hit | None:
        """The first hit."""
        return next((hit for hit in self.hits if hit is not None), None)

    @property
    def verdict(self) -> str:
        """What became of it, one of ``graders.base.SCORES``."""
        if self.left_out is not None:
            return "ungraded"
        if not self.parsed.found:
            return "parse_failed"
        return {None: "miss", 1: "hit_first"}.get(self.rank, "hit_later")

    @property
    def reason(self) -> str:
        """Which step of the parser and which rule for hits decided."""
        if self.left_out is not None:
            return self.left_out
        if not self.parsed.found:
            return self.parsed.step
        return f"{self.parsed.step}; {self.first.how if self.first else 'no candidate hits'}"

    def scores(self) -> dict[str, float | None]:
        """Return the scores beside the headline's.

        A miss has no rank (``mr``) and counts 0 in ``mrr``; an answer that is left out has neither.
        """
        failed = None if self.failed is None else float(self.failed)
        rank = self.rank
        found: dict[str, float | None] = {
            f"recall@{k}": float(rank is not None and rank <= k) for k in RECALL_AT[1:]
        }
        found |= {
            "mrr": 0.0 if rank is None else 1 / rank,
            "mr": None if rank is None else float(rank),
            "hit_rate": float(rank is not None),
            "parse_fail_rate": float(not self.parsed.found),
        }
        return (dict.fromkeys(found) if self.left_out is not None else found) | {"infer_fail_rate": failed}


def published(response: Response, accepted: Sequence[str]) -> Ranking:
    """Read and match as the original does, on the text that its table holds.

    A failed request is a list with one candidate, the toolkit's sentence; a missing answer is one with "nan".
    Both can hit.
    """
    text = roundtrip.answer(response)
    if text is None:
        return Ranking(_NO_LIST, (), failed=None, left_out="not sent: no row in the original's table")
    parsed = lists.read_published(text)
    hits = matching.hits_published(parsed.candidates, accepted)
    return Ranking(parsed, hits, failed=roundtrip.is_marked(text), text=text)


def strict(response: Response, accepted: Sequence[str]) -> Ranking:
    """Read and match strictly; what is no whole answer is left out and counts as a failed request.

    Edges:
        Thinking that never ends, though the answer was not cut off, counts as one as well, but stays in: as a
        list that cannot be read (card, section 4).
    """
    text = response.text or ""
    kind = failing.kind_of(response)
    if kind == failing.UNFINISHED:
        return Ranking(Parsed(found=(), step="the answer ends while it thinks"), (), failed=True, text=text)
    if kind is not None:
        return Ranking(_NO_LIST, (), failed=True, left_out=f"no whole answer: {kind}")
    parsed = lists.strict(text)
    return Ranking(parsed, matching.hits_strict(parsed.candidates, accepted), failed=False, text=text)
