"""How far raters agree on the sample, and whether a judge favours answers of its own model."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from remeasure import stats
from remeasure.calibration.picking import Chosen, Pool
from remeasure.tables.csv_text import decimals

TABLE, LABELS = "table", "labels"
"""Raters beside the judges that are asked: the verdicts in the table, and the labels."""
N_RESAMPLES = 2000
Votes = Sequence[bool | None]
COLUMNS = (
    "kind",
    "first",
    "second",
    "first_title",
    "second_title",
    "grader",
    "n",
    "n_first_unreadable",
    "n_second_unreadable",
    "n_both_readable",
    "agreement",
    "agreement_low",
    "agreement_high",
    "kappa",
    "kappa_low",
    "kappa_high",
    "yes_yes",
    "yes_no",
    "no_yes",
    "no_no",
    "agreement_natural_mix",
    "n_own",
    "n_other",
    "excess_own",
    "excess_other",
    "self_preference",
    "self_preference_low",
    "self_preference_high",
    "n_table_passed",
    "n_table_failed",
    "remark",
)
STRATIFIED = (
    "half of the sample passed in the table and half failed: agreement and kappa are not those of the "
    "natural mix"
)


class Drawn(NamedTuple):
    """Counts of yes and no of two raters, per group of answers."""

    table: np.ndarray
    """Shape (n_groups, 4), int64: yes_yes, yes_no, no_yes, no_no."""

    def resampled(self, seed: int) -> np.ndarray:
        """Return the counts of samples with whole groups drawn again: shape (N_RESAMPLES, 4)."""
        n = len(self.table)
        drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
        return drawn @ self.table


def by_group(first: Votes, second: Votes, groups: Sequence[str]) -> Drawn:
    """Count what two raters say, group by group, where both can be read."""
    places: dict[str, int] = {}
    rows: list[list[int]] = []
    for one, other, group in zip(first, second, groups, strict=True):
        if one is None or other is None:
            continue
        place = places.setdefault(group, len(places))
        if place == len(rows):
            rows.append([0, 0, 0, 0])
        rows[place][2 * (not one) + (not other)] += 1
    return Drawn(np.array(rows, dtype=np.int64).reshape(-1, 4))


def kappa_interval(drawn: Drawn, seed: int) -> stats.Interval | None:
    """Return the percentile bootstrap interval of Cohen's kappa, whole groups resampled.

    Edges:
        Null for fewer than two groups, and where the two never disagree: resampling would claim certainty.
        Samples in which chance agreement is complete have no kappa and are left out; null where these are
        more than half.
    """
    if len(drawn.table) < 2 or not drawn.table[:, 1:3].any():
        return None
    counts = drawn.resampled(seed).astype(np.float64)
    n = counts.sum(axis=1)
    observed = (counts[:, 0] + counts[:, 3]) / n
    chance = (
        (counts[:, 0] + counts[:, 1]) * (counts[:, 0] + counts[:, 2])
        + (counts[:, 2] + counts[:, 3]) * (counts[:, 1] + counts[:, 3])
    ) / n**2
    known = chance < 1
    if known.sum() * 2 < len(known):
        return None
    kappas = (observed[known] - chance[known]) / (1 - chance[known])
    low, high = np.quantile(kappas, [0.025, 0.975])
    return float(low), float(high)


def natural_mix(answers: Sequence[Chosen], first: Votes, second: Votes, pool: Pool) -> float | None:
    """Return the agreement weighted as verdicts occur in the table; null where a half was not sampled."""
    shares, n_all = {True: pool.n_passed, False: pool.n_failed}, pool.n_passed + pool.n_failed
    total = 0.0
    for passed, n in shares.items():
        pairs = [
            one == other
            for answer, one, other in zip(answers, first, second, strict=True)
            if answer.passed == passed and one is not None and other is not None
        ]
        if n and not pairs:
            return None
        total += n * sum(pairs) / len(pairs) if pairs else 0.0
    return total / n_all if n_all else None


class SelfPreference(NamedTuple):
    """How much more often a judge lets pass than another rater: answers of its own model, and of others."""

    n_own: int
    n_other: int
    own: float | None
    other: float | None
    interval: stats.Interval | None

    @property
    def difference(self) -> float | None:
        """Of its own model minus of others."""
        return None if self.own is None or self.other is None else self.own - self.other


def self_preference(
    judge: Votes, against: Votes, own: Sequence[bool], groups: Sequence[str], seed: int
) -> SelfPreference:
    """Compare a judge with another rater on answers of the judge's own model and on those of others.

    Args:
        judge: its votes.
        against: those of labels, or of another judge.
        own: whether the judge's model wrote the answer.
        groups: cluster of each answer.
        seed: of the bootstrap over groups.
    """
    rows = [
        (float(one) - float(other), mine, group)
        for one, other, mine, group in zip(judge, against, own, groups, strict=True)
        if one is not None and other is not None
    ]
    excess = {mine: [value for value, whose, _ in rows if whose == mine] for mine in (True, False)}
    means = {mine: sum(found) / len(found) if found else None for mine, found in excess.items()}
    places: dict[str, int] = {}
    for _, _, group in rows:
        places.setdefault(group, len(places))
    sums = np.zeros((len(places), 4))
    for value, mine, group in rows:
        column = 0 if mine else 2
        sums[places[group], column : column + 2] += (value, 1)
    interval = None
    if all(excess.values()) and len(places) > 1:
        n = len(places)
        totals = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES) @ sums
        both = (totals[:, 1] > 0) & (totals[:, 3] > 0)
        drawn = totals[both, 0] / totals[both, 1] - totals[both, 2] / totals[both, 3]
        if len(drawn) * 2 >= N_RESAMPLES:
            low, high = np.quantile(drawn, [0.025, 0.975])
            interval = (float(low), float(high))
    return SelfPreference(len(excess[True]), len(excess[False]), means[True], means[False], interval)


def rows(
    answers: Sequence[Chosen],
    votes: Mapping[str, Votes],
    titles: Mapping[str, str],
    own: Mapping[str, Sequence[bool]],
    grader: str,
    pool: Pool,
    seed: int,
) -> list[dict[str, Any]]:
    """Return one row per pair of raters, then one per judge and the rater that it is held against.

    Args:
        answers: the sample.
        votes: rater to what it says of each answer; null where it cannot be read or did not say.
        titles: rater to title.
        own: judge to whether its own model wrote each answer.
        grader: name and version.
        pool: what the sample was drawn from.
        seed: of the bootstraps.
    """
    groups = [f"{one.bench}\0{one.item.group}" for one in answers]
    common = dict.fromkeys(COLUMNS) | {
        "grader": grader,
        "n": len(answers),
        "n_table_passed": pool.n_passed,
        "n_table_failed": pool.n_failed,
    }
    found = []
    for first, second in combinations(votes, 2):
        pair = _pair(votes[first], votes[second], groups, seed)
        mixed = decimals(natural_mix(answers, votes[first], votes[second], pool), 3)
        named = _named(first, second, votes, titles)
        found.append(common | named | pair | {"kind": "agreement", "agreement_natural_mix": mixed})
        found[-1]["remark"] = STRATIFIED
    for judge in own:
        against = LABELS if LABELS in votes else next((name for name in votes if name != judge), None)
        if against is not None:
            found.append(common | _own_row(judge, against, votes, titles, own[judge], groups, seed))
    return found


def say_unused(rows: list[dict[str, Any]], n: int) -> None:
    """Note in the rows with labels how many labels are of answers outside the sample, and were not used."""
    for row in rows:
        if n and LABELS in (row["first"], row["second"]):
            more = f"{n} label{'s' if n > 1 else ''} of answers that are not in the sample: not used"
            row["remark"] = "; ".join(filter(None, [row["remark"], more]))


def _named(first: str, second: str, votes: Mapping[str, Votes], titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        "first": first,
        "second": second,
        "first_title": titles[first],
        "second_title": titles[second],
        "n_first_unreadable": list(votes[first]).count(None),
        "n_second_unreadable": list(votes[second]).count(None),
    }


def _pair(first: Votes, second: Votes, groups: Sequence[str], seed: int) -> dict[str, Any]:
    both = [(one, other) for one, other in zip(first, second, strict=True) if None not in (one, other)]
    pair = stats.agreement([bool(one) for one, _ in both], [bool(other) for _, other in both])
    spans = {
        "agreement": stats.wilson(pair.yes_yes + pair.no_no, len(both)),
        "kappa": kappa_interval(by_group(first, second, groups), seed),
    }
    bounds = {
        f"{name}_{end}": decimals(span[place], 3) if span else None
        for name, span in spans.items()
        for place, end in enumerate(("low", "high"))
    }
    return bounds | {
        "n_both_readable": len(both),
        "agreement": decimals(pair.agreement, 3),
        "kappa": decimals(pair.kappa, 3),
        "yes_yes": pair.yes_yes,
        "yes_no": pair.yes_no,
        "no_yes": pair.no_yes,
        "no_no": pair.no_no,
    }


def _own_row(
    judge: str,
    against: str,
    votes: Mapping[str, Votes],
    titles: Mapping[str, str],
    own: Sequence[bool],
    groups: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    found = self_preference(votes[judge], votes[against], own, groups, seed)
    low, high = found.interval or (None, None)
    remark = ""
    if not any(own):
        remark = "the judge's model wrote none of the answers"
    elif against != LABELS:
        remark = "no labels: held against another rater, which may have preferences of its own"
    return _named(judge, against, votes, titles) | {
        "kind": "self_preference",
        "n_own": found.n_own,
        "n_other": found.n_other,
        "n_both_readable": found.n_own + found.n_other,
        "excess_own": decimals(found.own, 3),
        "excess_other": decimals(found.other, 3),
        "self_preference": decimals(found.difference, 3),
        "self_preference_low": decimals(low, 3),
        "self_preference_high": decimals(high, 3),
        "remark": remark,
    }
