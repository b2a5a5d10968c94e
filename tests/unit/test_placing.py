"""Two stages: shortlist, fusion, and places of labelled photographs, against whole rankings by hand."""

import numpy as np
import pytest

import rankkit
from remeasure.errors import RemeasureError
from remeasure.instances import fusion, placing, ranking
from remeasure.instances.evaluation import average_precision
from remeasure.instances.pairs_file import Pairs
from remeasure.instances.ranking import Gallery, Kept, Source


def test_the_fused_score_by_hand():
    """Sigma of 0 is 1/2, of ln 3 3/4: 0.55 0.8 + 0.45 0.5 = 0.665, 0.55 0.8 + 0.45 0.75 = 0.7775."""
    logits = np.float32([0, np.log(3) / 0.3])
    found = fusion.fused(np.float32([0.8, 0.8]), logits, 0.55, 0.30)
    assert found.dtype == np.float64 and np.abs(found - [0.665, 0.7775]).max() < 1e-7


def test_fusion_is_of_double_precision():
    """0.8 as float32 is 0.800000011920929; 0.55 of that, and 0.45 · 0.5, to the last bits of float64."""
    found = fusion.fused(np.float32([0.8]), np.float32([0]), 0.55, 0.30)
    assert abs(float(found[0]) - 0.665000006556511) < 1e-15


def test_logits_beyond_all_measure_are_certainties():
    found = fusion.fused(np.float32([0, 0]), np.float32([1e30, -1e30]), 0.25, 1.0)
    assert found.tolist() == [0.75, 0.0]


def test_equal_scores_keep_the_order_of_the_first_stage():
    assert fusion.order(np.array([0.1, 0.5, 0.1, 0.5])).tolist() == [1, 3, 0, 2]


class Problem:
    """A gallery with scores and logits at random, and what a person would do with them."""

    def __init__(self, seed: int, n: int, size: int, decimals: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self.size, self.labels = size, rankkit.random_labels(rng, n, 5, most=8)
        self.scores = np.round(rng.uniform(-1, 1, (5, n)), decimals).astype(np.float32)
        self.logits = np.round(rng.standard_normal((5, n)) * 4, 3).astype(np.float32)

    def slow(self, name: str, weight: float, temperature: float) -> float:
        """The card's 2.6 and 2.7 to the letter: junk moved behind, the first K fused, others as they are."""
        values = []
        for query, truth in enumerate(self.labels.gnd):
            positives, junk = rankkit.asked(truth)[name]
            whole = rankkit.by_score(self.scores[query : query + 1])[0]
            moved = [i for i in whole if i not in junk] + [i for i in whole if i in junk]
            cosine, logit = (found[query].astype(np.float64) for found in (self.scores, self.logits))
            fused = weight * cosine + (1 - weight) / (1 + np.exp(-temperature * logit))
            best, rest = moved[: self.size], moved[self.size :]
            best = sorted(best, key=lambda i, fused=fused, best=best: (-fused[i], best.index(i)))
            if positives:
                values.append(rankkit.slow_ap(best + rest, positives, junk))
        return sum(values) / len(values)

    def rankings(self) -> placing.Rankings:
        n = self.scores.shape[1]
        gallery = Gallery([Source(None, np.eye(n, dtype=np.float32), np.empty(0, np.int64))])
        kept = Kept(n, [self.labels.labelled(query) for query in range(5)])
        return placing.open_rankings(
            ranking.first_stage(self.scores, gallery, kept), self.labels, Logits(self.logits), self.size
        )


class Logits:
    """All pairs have one."""

    def __init__(self, logits: np.ndarray) -> None:
        self._logits = logits

    def logits(self, query: int, ids: np.ndarray) -> np.ndarray:
        return self._logits[query, ids]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "size"), [(200, 40), (60, 200), (60, 55), (60, 1)])
def test_two_stages_give_the_same_as_whole_rankings(seed, n, size):
    """Also where the shortlist is longer than what is not junk, which would have junk among the reranked."""
    problem = Problem(seed, n, size)
    rankings = problem.rankings()
    for name in ("medium", "hard"):
        for weight, temperature in ((0.55, 0.3), (0.0, 1.0)):
            found = rankings.mean_ap(name, weight, temperature)
            assert abs(found - problem.slow(name, weight, temperature)) <= 1e-12


def test_with_ties_the_first_stage_decides():
    problem = Problem(1, 120, 40, decimals=1)
    problem.logits[:] = 0
    for name in ("medium", "hard"):
        assert abs(problem.rankings().mean_ap(name, 0.5, 0.3) - problem.slow(name, 0.5, 0.3)) <= 1e-12


def test_with_all_weight_on_the_first_stage_nothing_changes():
    problem = Problem(2, 100, 30)
    rankings = problem.rankings()
    for query in range(5):
        ranks, settings = rankings.first.labelled[query], problem.labels.settings(query)
        by_first = placing.of_first(ranks, settings)[0]
        for name in ("medium", "hard"):
            ids = placing.reranked(rankings.lists[name][query], 1.0, 0.3).ids
            assert rankings.positions(name, query, ids).tolist() == by_first[name].tolist()


def test_junk_in_a_reranked_list_is_counted_out():
    """By hand: reranked 7 3 5 1, junk 3 and 9; 5 is second of those that count. 8 is behind the list: of the
    first stage 7 5 3 1 9 8 it is the fourth once junk is out."""
    ranks = rankkit.ranks({7: 0, 5: 1, 3: 2, 1: 3, 9: 4, 8: 5})
    found = placing.positions(np.array([7, 3, 5, 1]), ranks, [5, 8], [3, 9])
    assert found.tolist() == [1, 3] and average_precision(found, 2) == (0 + 1 / 2 + 1 / 3 + 2 / 4) / 4


def test_the_grid_has_every_cell_and_what_the_best_one_gains():
    rankings = Problem(3, 80, 30).rankings()
    found = placing.grid(rankings, (0.35, 0.75), (0.1, 0.3, 0.5), (0.55, 0.3))
    assert [(one["weight"], one["temperature"]) for one in found["cells"]] == [
        (0.35, 0.1), (0.35, 0.3), (0.35, 0.5), (0.75, 0.1), (0.75, 0.3), (0.75, 0.5),
    ]  # fmt: skip
    assert found["reported"]["map"]["medium"] == rankings.mean_ap("medium", 0.55, 0.3)
    best = max(one["map"]["hard"] for one in found["cells"])
    assert found["best"]["hard"]["gain"] == 100 * (best - found["reported"]["map"]["hard"])


def test_logits_are_found_by_query_and_photograph(tmp_path):
    path = rankkit.put_pairs(tmp_path / "pairs.parquet", {(0, 3): 0.5, (0, 9): -1.5, (2, 3): 4.0})
    pairs = Pairs(path)
    assert pairs.logits(0, np.array([9, 3])).tolist() == [-1.5, 0.5] and len(pairs) == 3
    for query, photo in ((0, 4), (1, 3), (2, 9)):
        with pytest.raises(RemeasureError, match=f"query {query} has no logit with photograph {photo}"):
            pairs.logits(query, np.array([photo]))


def test_pairs_that_are_unsorted_doubled_or_no_numbers_are_refused(tmp_path):
    path = tmp_path / "pairs.parquet"
    for columns, says in (
        (([1, 0], [3, 3], [0.5, 0.5]), "not sorted"),
        (([0, 0], [3, 3], [0.5, 0.5]), "not sorted by query and photograph, or one stands twice"),
        (([0, 0], [3, 4], [0.5, np.nan]), "a logit is not finite"),
    ):
        with pytest.raises(RemeasureError, match=says):
            Pairs(rankkit.put_columns(path, *columns))
    path.write_bytes(b"PAR1")
    with pytest.raises(RemeasureError, match="no table of pairs"):
        Pairs(path)
    with pytest.raises(RemeasureError, match="cannot be read"):
        Pairs(tmp_path / "none.parquet")
