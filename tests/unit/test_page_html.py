"""A page as HTML: a verdict has the colour of its score."""

import pytest

from remeasure.page import html
from remeasure.records import Graded, Item, Reading, Response


def page(published: Reading, strict: Reading) -> str:
    graded = Graded(
        item_id="q",
        group="q",
        status="answered",
        answer="x",
        grader="g@1",
        published=published,
        strict=strict,
    )
    unit = html.UnitPart(
        unit_id="q",
        items=(Item(item_id="q", question="?", references=("It",), group="q"),),
        pictures=((),),
        cells=(
            html.Shown(
                title="A model",
                graded=graded,
                responses=(Response(custom_id="q", key="k", status="answered", text="It"),),
            ),
        ),
    )
    bench = html.BenchPart(title="B", n_units=1, units=(unit,))
    return html.render("T", "ci", [], {"b": "accuracy"}, {"b": bench})


@pytest.mark.parametrize(("score", "colour"), [(1.0, "good"), (0.0, "bad"), (0.5, "faint"), (None, "faint")])
def test_a_verdict_is_good_at_one_bad_at_zero_and_faint_between_and_without(score, colour):
    other = Reading(verdict="something_else", score=1.0 if score == 0.0 else 0.0, reason="r")
    text = page(Reading(verdict="this_verdict", score=score, reason="r"), other)
    assert f'<dt>published</dt><dd><span class="{colour}">this verdict</span>' in text
    opposite = "good" if score == 0.0 else "bad"
    assert f'<dt>strict</dt><dd><span class="{opposite}">something else</span>' in text
