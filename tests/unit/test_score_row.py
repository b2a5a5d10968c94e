import numpy as np
import pytest

from remeasure.errors import RemeasureError
from remeasure.instances.score_row import ScoreRow


def row(*scores) -> ScoreRow:
    return ScoreRow(np.float32(scores))


def test_ranks_and_the_first_are_by_score_then_id():
    found = row(0.2, 0.9, 0.2, 0.5, 0.9)
    ranks = found.ranks(np.array([0, 1, 2, 4]))
    assert ranks.rank.tolist() == [3, 0, 4, 1] and ranks.n_tied == 4
    assert ranks.score.tolist() == np.float32([0.2, 0.9, 0.2, 0.9]).tolist()
    assert found.top(3).tolist() == [1, 4, 3] and found.top(9).tolist() == [1, 4, 3, 0, 2]
    assert found.top(0).tolist() == []


def test_ranks_of_some_are_found_by_id():
    ranks = row(0.2, 0.9, 0.1, 0.5).ranks(np.array([0, 2, 3]))
    assert ranks.of([3, 0]).tolist() == [1, 2] and ranks.of([]).tolist() == []
    assert ranks.of([1]).tolist() == []  # was not asked for


def test_the_default_order_of_ties_is_numpys_own():
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(-1, 1, 5000), 2).astype(np.float32)
    ids = np.sort(rng.choice(5000, 40, replace=False))
    wanted = np.empty(5000, np.int64)
    wanted[np.argsort(-scores)] = np.arange(5000)
    assert ScoreRow(scores).ranks(ids, default=True).rank_default.tolist() == wanted[ids].tolist()
    plain = ScoreRow(scores).ranks(ids)
    assert plain.rank_default.tolist() == plain.rank.tolist()


def spread(rng, kind: str, n: int) -> np.ndarray:
    """Scores that a histogram finds hard: one bin for all, numbers without a difference, all equal."""
    found = rng.standard_normal(n).astype(np.float32)
    match kind:
        case "large":
            found *= np.float32(6e37)  # differences overflow
        case "outlier":
            found[0] = 1e30
        case "tiny":
            found *= np.float32(1e-40)  # below the smallest normal number
        case "equal":
            found[:] = 0.25
        case "zeros":
            found = np.where(found > 0, np.float32(0.0), np.float32(-0.0))
    return found


@pytest.mark.parametrize("kind", ["usual", "large", "outlier", "tiny", "equal", "zeros"])
@pytest.mark.parametrize("n", [1, 2, 300, 70_000])
def test_ranks_are_exact_whatever_the_scores(kind, n):
    rng = np.random.default_rng(n)
    scores = spread(rng, kind, n)
    order = np.lexsort((np.arange(n), -scores.astype(np.float64)))
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    ids = np.sort(rng.choice(n, min(n, 60), replace=False))
    with np.errstate(all="raise", under="ignore"):
        found = ScoreRow(scores)
        assert found.ranks(ids).rank.tolist() == rank[ids].tolist()
        assert found.top(50).tolist() == order[:50].tolist()


def test_ids_outside_of_the_gallery_and_an_empty_gallery_are_errors():
    with pytest.raises(RemeasureError, match="photograph -1 of a gallery of 2"):
        row(0.5, 0.4).ranks(np.array([-1, 1]))
    with pytest.raises(RemeasureError, match="photograph 2 of a gallery of 2"):
        row(0.5, 0.4).ranks(np.array([0, 2]))
    with pytest.raises(RemeasureError, match="gallery is empty"):
        row()
