"""Whether a benchmark is what the protocol says: counts, names, boxes, labels, how queries were described.

Every check is a number with its limit, so that a reader sees how far off something is and not only that it
is.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import crops
from remeasure.instances.labels import Labels

LEAST_COSINE = 0.9995
"""Between a crop that is described again and the stored vector of its query; other devices differ by less."""
# Two descriptions of the same pixels (a box around the whole photograph) may differ by rounding.
_ROUNDING = 1e-6


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at."""

    name: str
    ok: bool
    value: float | int | None
    limit: float | int | None
    """What the value may be at most, or at least where the name ends in ``_least``; null: it is only told."""
    skipped: str | None = None
    """Why it was not looked at."""


def counted(name: str, value: int, limit: int | None = 0) -> Check:
    """Return a check of how often something occurs; ``limit`` null only tells it."""
    return Check(name=name, ok=limit is None or value <= limit, value=value, limit=limit)


def equal(name: str, value: int, expected: int | None) -> Check:
    """Return a check of a count that must come out; null: any."""
    return Check(name=name, ok=expected in (None, value), value=value, limit=expected)


def skipped(name: str, why: str, *, ok: bool = True) -> Check:
    """Return a check that was not made."""
    return Check(name=name, ok=ok, value=None, limit=None, skipped=why)


def _plain(number: float) -> float | None:
    """Return a number as JSON has it: there is no NaN."""
    return float(number) if math.isfinite(number) else None


def _told(cosine: float) -> float | None:
    """Return a cosine as it is told: later digits differ from run to run where a model has threads."""
    return _plain(round(cosine, 6))


def at_most(name: str, value: float, limit: float) -> Check:
    """Return a check of a difference; one that is not finite fails."""
    return Check(name=name, ok=bool(value <= limit), value=_plain(value), limit=limit)


def at_least(name: str, value: float, limit: float) -> Check:
    """Return a check of a similarity; one that is not finite fails."""
    return Check(name=name, ok=bool(value >= limit), value=_told(value), limit=limit)


def protocol(found: Labels, expected: Mapping[str, int]) -> list[Check]:
    """Check counts, names and labels without looking at photographs.

    Args:
        found: labels of which only the form was checked.
        expected: counts that must come out: ``queries``, ``gallery``.

    Source:
        Landmarks card, section 1.2, checks 1, 2 and 4.
    """
    n = len(found.imlist)
    lists = [getattr(truth, name) for truth in found.gnd for name in ("easy", "hard", "junk")]
    overlapping = 0
    for truth in found.gnd:
        easy, hard, junk = set(truth.easy), set(truth.hard), set(truth.junk)
        overlapping += len(easy & hard) + len(easy & junk) + len(hard & junk)
    return [
        equal("queries", len(found.qimlist), expected.get("queries")),
        equal("gallery", n, expected.get("gallery")),
        equal("queries_with_labels", len(found.gnd), len(found.qimlist)),
        counted("queries_in_gallery", len(set(found.qimlist) & set(found.imlist))),
        counted("names_twice_in_gallery", n - len(set(found.imlist))),
        counted("names_twice_in_queries", len(found.qimlist) - len(set(found.qimlist))),
        counted("rows_outside_gallery", sum(not 0 <= row < n for rows in lists for row in rows)),
        counted("rows_twice", sum(len(rows) - len(set(rows)) for rows in lists)),
        counted("rows_of_two_kinds", overlapping),
        counted("queries_without_positives", sum(not (t.easy or t.hard) for t in found.gnd), None),
    ]


class Query(NamedTuple):
    """A query photograph as it was decoded."""

    size: tuple[int, int]
    """Width and height; 0 where it cannot be decoded."""
    bbx: Sequence[float]


def boxes(queries: Sequence[Query]) -> list[Check]:
    """Check that every box has pixels of its photograph; tell how many had to be clamped.

    Source:
        Landmarks card, section 1.2, check 3.
    """
    wrong = clamped = 0
    for query in queries:
        left, top, right, bottom = query.bbx
        try:
            crops.pillow_box(query.bbx, query.size)
            crops.array_box(query.bbx, query.size)
            wrong += right <= left or bottom <= top
            clamped += crops.reaches_outside(query.bbx, query.size)
        except RemeasureError:
            wrong += 1
    return [counted("boxes_wrong", wrong), counted("boxes_clamped", clamped, None)]


def stored(
    found: Labels, names: Mapping[str, Sequence[str]], box: np.ndarray | None, queries: Sequence[Query]
):
    """Check that stored vectors are of the photographs that the labels name, and cropped by their boxes.

    Args:
        found: the labels.
        names: of the rows of ``queries``, ``whole`` and ``gallery``.
        box: int [nq, 4], the boxes that stored queries were cropped by; null where they are not known.
        queries: the photographs.
    """
    wanted = {"queries": found.qimlist, "whole": found.qimlist, "gallery": found.imlist}
    checks = [
        counted(f"{piece}_of_other_photographs", sum(a != b for a, b in _pairs(names[piece], stems)))
        for piece, stems in wanted.items()
    ]
    if box is None:
        return [
            *checks,
            skipped("boxes_differ", "the vectors of the queries were given, without their boxes"),
        ]
    right = [crops.pillow_box(query.bbx, query.size) for query in queries]
    differ = sum(tuple(map(int, ours)) != theirs for ours, theirs in zip(box, right, strict=True))
    return [*checks, counted("boxes_differ", differ)]


def _pairs(names: Sequence[str], stems: Sequence[str]) -> list[tuple[str | None, str | None]]:
    n = max(len(names), len(stems))
    return [(names[i] if i < len(names) else None, stems[i] if i < len(stems) else None) for i in range(n)]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of every pair of rows; float64 [n]."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide((a * b).sum(axis=1), norms, out=np.full(len(a), np.nan), where=norms > 0)


def crop(again: np.ndarray, whole_again: np.ndarray, queries: np.ndarray, whole: np.ndarray) -> list[Check]:
    """Check that stored queries were described from their crops, and not from whole photographs.

    Args:
        again: float [nq, dim], the crops, described again.
        whole_again: float [nq, dim], the whole photographs, described again.
        queries: float [nq, dim], as stored.
        whole: float [nq, dim], the uncropped ones as stored.

    Source:
        Landmarks card, section 1.2, check 6. The original reports cosines of 1.0 for crops, and of 0.49 to
        0.97 for whole photographs, by how much of them a box covers.
    """
    of_crop, of_whole = cosines(again, queries), cosines(whole_again, queries)
    of_stored = cosines(whole_again, whole)
    closer = int(np.count_nonzero(~(of_whole <= of_crop + _ROUNDING)))
    return [
        at_least("crop_cosine_least", _extreme(np.min, of_crop), LEAST_COSINE),
        at_least("whole_cosine_least", _extreme(np.min, of_stored), LEAST_COSINE),
        counted("whole_closer_than_crop", closer),
        Check(name="whole_to_crop_min", ok=True, value=_told(_extreme(np.min, of_whole)), limit=None),
        Check(name="whole_to_crop_max", ok=True, value=_told(_extreme(np.max, of_whole)), limit=None),
    ]


def _extreme(of: Any, values: np.ndarray) -> float:
    return float(of(values)) if len(values) else math.nan


def verdict(dataset: str, checks: Sequence[Check]) -> dict[str, Any]:
    """Return the verdict as it is written."""
    told = msgspec.to_builtins(list(checks))
    return {"dataset": dataset, "checks": told, "ok": all(check.ok for check in checks)}


def told_failures(checks: Sequence[Check]) -> str:
    """Return the failed checks in words."""
    return "; ".join(
        f"{check.name} is {check.skipped or check.value}"
        + (f" (limit {check.limit})" if check.limit is not None else "")
        for check in checks
        if not check.ok
    )
