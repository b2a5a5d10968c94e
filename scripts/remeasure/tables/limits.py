"""Which cells of a table have more failed answers than a study allows, and the sentence that says so."""

from collections.abc import Callable, Iterable
from pathlib import Path

from remeasure.failing import in_order
from remeasure.records import Record, Score

MAX_CELLS_NAMED = 8
MAX_CLASSES_NAMED = 4
# Failed answers that the next call asks again; what a model said, however little, stays.
_ASKED_AGAIN = ("failed", "not_sent")


class OverCell(Record, kw_only=True):
    """A cell with more failed answers than are allowed."""

    bench: str
    arm: str
    model: str
    n_failed: int
    n: int
    """Expected answers: all requests, those that were never sent included."""
    share: float
    classes: dict[str, int]
    n_asked_again: int
    """How many of the failed ones are asked again where the responses are deleted."""
    responses: str
    """The file that is to be deleted then."""


class OverLimit(Record, kw_only=True):
    """What is over the limit."""

    sentence: str
    limit: float
    allowed: bool
    """Whether the table is published all the same."""
    cells: tuple[OverCell, ...]


def failed_share(score: Score) -> float | None:
    """Return the share of the expected answers of readers that are not whole; null where there is none."""
    return sum(score.failed.values()) / score.n_answers if score.n_answers else None


def percent(share: float) -> str:
    """Return a share in percent with two decimals."""
    return f"{100 * share:.2f} %"


def of_all(n_failed: int, n: int) -> str:
    """Return how many failed, of how many, with the share: ``13 of 300 answers failed (4.33 %)``."""
    return f"{n_failed:,} of {n:,} answers failed ({percent(n_failed / n)})"


def over(
    cells: Iterable[tuple[Path, Score]], limit: float | None, allowed: bool, name: Callable[[Score], str]
) -> OverLimit | None:
    """Return what is over the limit, null where nothing is.

    Args:
        cells: ``score.json`` and what it says, of every cell.
        limit: share of a cell's answers that may have failed; null: no limit.
        allowed: whether the table is published all the same.
        name: how a line of text calls a cell.

    Edges:
        A share that is equal to the limit is not over it.
    """
    if limit is None:
        return None
    scores = [(path, score) for path, score in cells if (failed_share(score) or 0.0) > limit]
    if not scores:
        return None
    return OverLimit(
        sentence=_sentence([score for _, score in scores], limit, name),
        limit=limit,
        allowed=allowed,
        cells=tuple(_cell(path, score) for path, score in scores),
    )


def _cell(path: Path, score: Score) -> OverCell:
    n_failed = sum(score.failed.values())
    return OverCell(
        bench=score.bench,
        arm=score.arm,
        model=score.model,
        n_failed=n_failed,
        n=score.n_answers,
        share=n_failed / score.n_answers,
        classes=dict(score.failed),
        n_asked_again=sum(score.statuses.get(status, 0) for status in _ASKED_AGAIN),
        responses=str(path.parent / "responses.jsonl"),
    )


def _sentence(scores: list[Score], limit: float, name: Callable[[Score], str]) -> str:
    parts = [f"{name(score)}: {_counted(score)}" for score in scores[:MAX_CELLS_NAMED]]
    more = len(scores) - len(parts)
    parts += [f"and {more} more"] if more else []
    return f"Too many answers failed: {'; '.join(parts)}; allowed are {100 * limit:g} % of a cell's answers."


def _counted(score: Score) -> str:
    n_failed = sum(score.failed.values())
    kinds = sorted(in_order(score.failed), key=lambda kind: -score.failed[kind])
    classes = [f"{score.failed[kind]:,} {kind}" for kind in kinds[:MAX_CLASSES_NAMED]]
    classes += ["…"] if len(kinds) > MAX_CLASSES_NAMED else []
    return (
        f"{n_failed:,} of {score.n_answers:,} ({percent(n_failed / score.n_answers)}: {', '.join(classes)})"
    )
