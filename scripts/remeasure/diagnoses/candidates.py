"""How many diagnoses of a list are rare diseases: what a second judge says of each, without the case.

A tendency of the model, not whether it is right. Every distinct candidate is judged once.

Source:
    MRareBench card, section 6.2.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from remeasure.diagnoses.spans import MOST
from remeasure.text import normalise

LABELS = ("rare", "nonrare", "generic", "unknown")
_TRUE = frozenset(("true", "yes", "y", "1"))
_FALSE = frozenset(("false", "no", "n", "0"))
_NO_CODE = frozenset(("", "none", "null", "unknown"))


class Candidate(Struct, frozen=True, kw_only=True):
    """What a judge says of one candidate."""

    candidate: str
    label: str
    """One of ``LABELS``."""
    is_rare: bool
    is_specific: bool
    orpha_code: Any = None
    parse_failed: bool = False
    """Whether there is no judgement: the label is then unknown."""


class Counted(Struct, frozen=True, kw_only=True):
    """A list in numbers."""

    n_rare: int
    n_unknown: int
    n_generic: int
    n_failed: int
    """Candidates without a judgement; they are among the unknown."""

    @property
    def ratio(self) -> float:
        """Rare ones as a share of ten, however short the list is."""
        return self.n_rare / MOST


def key(candidate: str) -> str:
    """Return the form under which a candidate is judged once; empty: it is not judged."""
    return normalise(candidate)


def to_judge(lists: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return what is to be judged, by key; the spelling that comes first is shown."""
    found: dict[str, str] = {}
    for ranked in lists:
        for candidate in ranked[:MOST]:
            if key(candidate):
                found.setdefault(key(candidate), candidate.strip())
    return found


def published(reply: str, candidate: str) -> Candidate:
    """Read a judge's reply as the original does; an unreadable one is "unknown"."""
    said = _object(reply)
    if said is None:
        return unknown(candidate)
    label = _label(said)
    is_rare, is_specific = _truth(said.get("is_rare_disease")), _truth(said.get("is_specific_disease"))
    code = said.get("orpha_code_if_known")
    return Candidate(
        candidate=str(said.get("candidate") or candidate or "").strip(),
        label=label,
        is_rare=label == "rare" and is_rare is not False,
        is_specific=label != "generic" and (label != "unknown" if is_specific is None else is_specific),
        orpha_code=None if isinstance(code, str) and code.strip().lower() in _NO_CODE else code,
    )


def unknown(candidate: str) -> Candidate:
    """Return what counts where there is no judgement."""
    return Candidate(
        candidate=candidate.strip(), label="unknown", is_rare=False, is_specific=False, parse_failed=True
    )


def strict(reply: str, candidate: str) -> Candidate | str:
    """Read a reply that is one JSON object and agrees with itself; return why it is none otherwise.

    What is returned as a reason is a failure to be asked again, and no judgement: it must not be kept as one.
    """
    said = _loaded(reply)
    if said is None:
        return "no JSON object"
    label = _written(said.get("label"))
    if label not in LABELS:
        return "no label of the list"
    if key(str(said.get("candidate", ""))) != key(candidate):
        return "about another candidate"
    is_rare, is_specific = said.get("is_rare_disease"), said.get("is_specific_disease")
    if not isinstance(is_rare, bool) or not isinstance(is_specific, bool):
        return "no true or false"
    if is_rare != (label == "rare") or (label == "generic" and is_specific):
        return "label and answers contradict each other"
    return published(reply, candidate)


def counted(ranked: Sequence[str], judged: Mapping[str, Candidate]) -> Counted:
    """Count a list.

    Args:
        ranked: candidates.
        judged: what was said, by key; a candidate that is not in it counts as unknown and failed.
    """
    found = [judged.get(key(candidate)) or unknown(candidate) for candidate in ranked[:MOST]]
    return Counted(
        n_rare=sum(one.is_rare for one in found),
        n_unknown=sum(one.label == "unknown" for one in found),
        n_generic=sum(one.label == "generic" for one in found),
        n_failed=sum(one.parse_failed for one in found),
    )


def _written(label: object) -> str:
    return str(label).strip().lower().replace("-", "")


def _label(said: Mapping[str, Any]) -> str:
    label = _written(said.get("label", "unknown"))
    return label if label in LABELS else "unknown"


def _truth(value: object) -> bool | None:
    if isinstance(value, (bool, int, float)):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def _object(reply: str) -> dict[str, Any] | None:
    """Read the reply, else what stands between its first and its last brace."""
    text = reply.strip()
    whole = _load(text)
    if whole is not _BROKEN:
        return whole if isinstance(whole, dict) else None
    start, end = text.find("{"), text.rfind("}")
    return _loaded(text[start : end + 1]) if 0 <= start < end else None


_BROKEN = object()


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _BROKEN


def _loaded(text: str) -> dict[str, Any] | None:
    found = _load(text.strip())
    return found if isinstance(found, dict) else None
