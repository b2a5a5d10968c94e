"""How many replies a judge may owe a cell before the cell is no number."""

import logging
from pathlib import Path

from remeasure.errors import RemeasureError
from remeasure.grading import Tally

log = logging.getLogger("remeasure.grade")


def check(
    tally: Tally, max_failed_share: float, *, needs_form: bool = False, replies: Path | None = None
) -> None:
    """Stop if the judge failed too often: failures leave the denominator, or are zeros.

    They would flatter or empty the cell. A reply that cannot be read counts with them where the published
    reading takes it for a no (``needs_form``); elsewhere it is one of the original's readings, and is told.

    Args:
        tally: of the cell.
        max_failed_share: share of the judged answers that is allowed.
        needs_form: of the grader.
        replies: ``responses.jsonl`` of the judge, to say what is to be deleted.

    Raises:
        RemeasureError: says what of it happened how often, what would be graded, how to ask again.
    """
    # Where the headline does not depend on the judge, its failures are counted, and are no verdicts.
    n_failed = tally.verdicts["judge_failed"] + tally.counts["judge_failed"]
    n_unreadable = tally.verdicts_strict["judge_unreadable"] + tally.counts["judge_unreadable"]
    if n_unreadable:
        log.warning("%d of %d replies of the judge cannot be read", n_unreadable, tally.n_judged)
    n_lost = n_failed + n_unreadable * needs_form
    if not tally.n_judged or n_lost / tally.n_judged <= max_failed_share:
        return
    said = f"the judge failed on {n_failed} of {tally.n_judged} answers"
    said += f", {n_unreadable} of its replies cannot be read" if n_lost > n_failed else ""
    raise RemeasureError(
        f"{said} ({n_lost / tally.n_judged:.1%}, allowed {max_failed_share:.1%}); "
        f"{_would_be(tally, needs_form)}: repair the judge and rerun{_asking_again(replies)}, "
        "or raise `max_judge_failed_share` of the study in the run"
    )


def _would_be(tally: Tally, needs_form: bool) -> str:
    if needs_form:
        return "what it did not say would be a no in published numbers"
    return f"{tally.n_graded} of {tally.n} items would be graded"


def _asking_again(replies: Path | None) -> str:
    """Say how a reply is asked for again; what a judge did answer, however little, stays in its journal."""
    if replies is None:
        return ""
    return (
        f" after deleting {replies} (empty and unreadable replies are kept as answers: "
        f"`scripts/forget.py {replies.parent / 'journal'}` has all replies of the cell asked again)"
    )
