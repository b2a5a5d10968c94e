"""Our average precision against others: a plain one of whole rankings, and the published evaluator.

Both get one matrix of scores and one order of ties (a stable sort, so the lower row of the gallery comes
first): two products of the same descriptors differ in their last bits, and an unstable sort orders ties as
the processor likes.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.image_tree import printable
from remeasure.instances import evaluation, upstream_peer
from remeasure.instances.labels import DIFFICULTIES, Labels

KAPPAS = (1, 5, 10)
LIMIT = 1e-12
_TIMEOUT_S = 900


class Measured(NamedTuple):
    """What a ranking is worth at one difficulty."""

    map: float
    """Mean over the queries that have a positive."""
    ap: np.ndarray
    """float64 [nq]; NaN where a query has no positive, as in the next."""
    mean_precisions: np.ndarray
    """float64 [len(KAPPAS)]."""
    precisions: np.ndarray
    """float64 [nq, len(KAPPAS)]."""


def ours(scores: np.ndarray, labels: Labels) -> dict[str, Measured]:
    """Measure a matrix of scores, float32 [nq, n], by counted ranks."""
    settings = [labels.settings(i) for i in range(len(labels.gnd))]
    ranks = evaluation.rank_rows(scores, [evaluation.labelled_ids(one) for one in settings])
    placed = [evaluation.positions_of(row, one) for row, one in zip(ranks, settings, strict=True)]
    found = {}
    for name in DIFFICULTIES:
        ap, precisions = np.full(len(placed), np.nan), np.full((len(placed), len(KAPPAS)), np.nan)
        for i, where in enumerate(placed):
            n_positives = len(settings[i][name][0])
            if n_positives:
                ap[i] = evaluation.average_precision(where[name], n_positives)
                precisions[i] = [evaluation.precision_at(where[name], k, published=True) for k in KAPPAS]
        found[name] = _mean(ap, precisions)
    return found


def _mean(ap: np.ndarray, precisions: np.ndarray) -> Measured:
    columns = [evaluation.mean(column) for column in precisions.T]
    return Measured(evaluation.mean(ap), ap, np.array(columns), precisions)


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Return the rank matrix that the published evaluator takes, int64 [n, nq]: best first, ties by row."""
    return np.argsort(-scores.T, axis=0, kind="stable")


def dense(ranks: np.ndarray, labels: Labels) -> dict[str, Measured]:
    """Measure whole rankings, one photograph after the other; slow and plain.

    Args:
        ranks: int64 [n, nq], rows of the gallery, best first.
        labels: the ground truth.

    Source:
        Landmarks card, section 2.4, steps 1 to 6, written from that text.
    """
    found = {}
    for name in DIFFICULTIES:
        ap, precisions = [], []
        for query in range(len(labels.gnd)):
            positives, ignored = (set(rows.tolist()) for rows in labels.settings(query)[name])
            if not positives:
                ap.append(np.nan)
                precisions.append([np.nan] * len(KAPPAS))
                continue
            places = _walk(ranks[:, query].tolist(), positives, ignored)
            ap.append(_area(places, len(positives)))
            reach = [min(places[-1] + 1, k) if places else k for k in KAPPAS]
            precisions.append([sum(place < k for place in places) / k for k in reach])
        found[name] = _mean(np.array(ap), np.array(precisions))
    return found


def _walk(ranking: Sequence[int], positives: set[int], ignored: set[int]) -> list[int]:
    """Return at which places positives stand, ignored photographs not counted."""
    places, place = [], 0
    for row in ranking:
        if row in ignored and row not in positives:
            continue
        if row in positives:
            places.append(place)
        place += 1
    return places


def _area(places: Sequence[int], n_positives: int) -> float:
    area = 0.0
    for found, place in enumerate(places):
        before = 1.0 if place == 0 else found / place
        area += (before + (found + 1) / (place + 1)) * (1.0 / n_positives) / 2.0
    return area


def upstream(ranks: np.ndarray, labels: Labels, module: Path) -> dict[str, Measured]:
    """Measure whole rankings with the published evaluator, in a process of its own.

    Args:
        ranks: int64 [n, nq].
        labels: the ground truth.
        module: the published ``evaluate.py``, which is run.

    Raises:
        RemeasureError: it ends with an error or gives something else.
    """
    asked = [
        [
            {"ok": positives.tolist(), "junk": ignored.tolist()}
            for positives, ignored in (labels.settings(i)[name] for i in range(len(labels.gnd)))
        ]
        for name in DIFFICULTIES
    ]
    with tempfile.TemporaryDirectory(prefix="remeasure-audit-") as folder:
        here = Path(folder)
        np.save(here / "ranks.npy", ranks, allow_pickle=False)
        (here / "asked.json").write_text(json.dumps([asked, KAPPAS]), encoding="utf-8")
        command = [sys.executable, "-I", upstream_peer.__file__, str(module.resolve()), str(here)]
        try:
            ended = subprocess.run(command, cwd=here, capture_output=True, timeout=_TIMEOUT_S, check=False)
            answer = json.loads(ended.stdout) if ended.returncode == 0 else None
            found = _read(answer, len(labels.gnd)) if answer is not None else None
        except (subprocess.TimeoutExpired, ValueError, TypeError, KeyError):
            ended, found = None, None
    if found is None:
        last = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] if ended else []
        why = printable(last[0]) if last else "it gave no numbers, or none in time"
        raise RemeasureError(
            f"{module}: the published evaluator failed: {why}; give evaluate.py of revisitop as "
            "`upstream`, or take it out"
        )
    return dict(zip(DIFFICULTIES, found, strict=True))


def _read(answer: Sequence[Mapping], n_queries: int) -> list[Measured]:
    found = []
    for one in answer:
        arrays = [np.array(one[key], dtype=np.float64) for key in ("aps", "pr", "prs")]
        if [a.shape for a in arrays] != [(n_queries,), (len(KAPPAS),), (n_queries, len(KAPPAS))]:
            raise ValueError("shapes")
        found.append(Measured(float(np.float64(one["map"])), *arrays))
    return found if len(found) == len(DIFFICULTIES) else []


def difference(first: Mapping[str, Measured], second: Mapping[str, Measured]) -> float:
    """Return the largest difference of any number of two measurements; infinite where only one is NaN."""
    largest = 0.0
    for name in DIFFICULTIES:
        for one, other in zip(first[name], second[name], strict=True):
            a, b = np.atleast_1d(one), np.atleast_1d(other)
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                return float("inf")
            if (~np.isnan(a)).any():
                largest = max(largest, float(np.nanmax(np.abs(a - b))))
    return largest
