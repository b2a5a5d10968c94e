"""Which units a page shows first."""

from remeasure import jsonl
from remeasure.page import choice
from remeasure.records import Graded, Reading


def graded(item_id: str, published: str, strict: str) -> Graded:
    return Graded(
        item_id=item_id,
        group=item_id,
        status="answered",
        answer="x",
        grader="em@1",
        published=Reading(verdict=published, score=1.0, reason="made up"),
        strict=Reading(verdict=strict, score=1.0, reason="made up"),
    )


def test_cells_disagree_too_where_only_the_strict_reading_differs(tmp_path):
    one = [graded(name, "correct", "correct") for name in "abc"]
    other = [graded(name, "correct", "incorrect" if name == "b" else "correct") for name in "abc"]
    for name, lines in (("one", one), ("other", other)):
        jsonl.write(tmp_path / name, lines)
    assert choice.chosen([tmp_path / "one", tmp_path / "other"], 1) == (["b"], 3)
