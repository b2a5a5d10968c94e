"""The page of a table: what it shows, in which order, and that nothing in an answer becomes markup."""

import io
import json
import re

import pytest
from PIL import Image

import make_page
from remeasure import jsonl
from remeasure.files import sha256_bytes
from remeasure.messages import image_part, text_part
from remeasure.page import choice, escaping
from remeasure.records import Graded, ImageRef, Item, Mark, Reading, Request, Response


def reading(verdict, score):
    return Reading(verdict=verdict, score=score, reason="made up")


def graded(item_id, score, marks=(), status="answered"):
    one = reading("correct" if score else "incorrect", score)
    return Graded(
        item_id=item_id,
        group=item_id,
        status=status,
        answer="x",
        grader="em@1",
        published=one,
        strict=one,
        marks=marks,
    )


def response(item_id, text, status="answered", error=None):
    return Response(custom_id=item_id, key="k", status=status, text=text, error=error)


def picture(tmp_path, colour=(200, 30, 30), name="a.png"):
    out = io.BytesIO()
    Image.new("RGB", (640, 480), colour).save(out, "PNG")
    (tmp_path / name).write_bytes(out.getvalue())
    return ImageRef(sha256=sha256_bytes(out.getvalue()), path=str(tmp_path / name))


def request(item, *parts, model="m"):
    """What a reader is given: the parts, or the item's images and its question."""
    parts = parts or (*map(image_part, item.images), text_part(item.question))
    return Request(
        custom_id=item.item_id, body={"model": model, "messages": [{"role": "user", "content": list(parts)}]}
    )


def write(tmp_path, cells, items, requests=None, over=None, comparability="", **changes):
    """Make the page of one bench; cells: title to (graded, responses), requests: title to requests."""
    jsonl.write(tmp_path / "items.jsonl", items)
    settings = {
        "run": "ci",
        "title": "A table",
        "lines": ["What stands here."],
        "benches": [{"name": "nq", "title": "NQ"}],
        "graders": {"nq": "em"},
        "cells": [{"bench": "nq", "title": title} for title in cells],
        "n_units": 60,
    } | changes
    argv = ["--settings", json.dumps(settings), "--items", str(tmp_path / "items.jsonl")]
    for number, (title, (lines, answers)) in enumerate(cells.items()):
        jsonl.write(tmp_path / f"graded{number}.jsonl", lines)
        given = (requests or {}).get(title, [request(item) for item in items])
        jsonl.write(tmp_path / f"requests{number}.jsonl", given)
        jsonl.write(tmp_path / f"responses{number}.jsonl", answers)
    numbers = range(len(cells))
    argv += ["--graded", *(str(tmp_path / f"graded{number}.jsonl") for number in numbers)]
    argv += ["--responses", *(str(tmp_path / f"responses{number}.jsonl") for number in numbers)]
    argv += ["--requests", *(str(tmp_path / f"requests{number}.jsonl") for number in numbers)]
    jsonl.write_json(
        tmp_path / "table.json", {"table": "t", "over_limit": over, "comparability": comparability}
    )
    argv += ["--table", str(tmp_path / "table.json")]
    return make_page.main([*argv, "--out", str(tmp_path / "page.html")])


def item(item_id, question="What is it?", images=(), **meta):
    return Item(
        item_id=item_id, question=question, references=("It",), group=item_id, images=images, meta=meta
    )


def test_a_unit_stands_with_its_picture_answers_and_verdicts(tmp_path):
    ref = picture(tmp_path)
    cells = {
        "first model": ([graded("q1", 1.0)], [response("q1", "A red wall")]),
        "second model": ([graded("q1", 0.0)], [response("q1", None, "failed", "timeout: 60 s")]),
    }
    assert write(tmp_path, cells, [item("q1", images=(ref,), state="origin")]) == 0
    text = (tmp_path / "page.html").read_text()
    assert text.count('src="data:image/jpeg;base64,') == 1
    for said in (
        "A red wall",
        "first model",
        "second model",
        "failed: timeout: 60 s",
        "<dt>state</dt><dd><bdi>origin</bdi></dd>",
        "<dt>answer</dt><dd><bdi>It</bdi></dd>",
    ):
        assert said in text
    assert "All 1 units." in text and "Made from run ci" in text


def test_what_is_said_in_an_answer_never_becomes_markup(tmp_path):
    evil = '<script>alert(1)</script><img src=x onerror="x">\u202eevil'
    cells = {evil: ([graded("q1", 1.0)], [response("q1", evil, "cut_off", evil)])}
    assert write(tmp_path, cells, [item("q1", question=evil, note=evil)], title=evil, lines=[evil]) == 0
    text = (tmp_path / "page.html").read_text()
    assert "<script" not in text and "<img" not in text and "\u202e" not in text
    assert "⟨U+202E⟩evil" in text
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)


def test_marks_stand_around_the_characters_that_decided():
    marks = (
        Mark(item_id="q", start=2, end=9, label="hot dog"),
        Mark(item_id="q", start=6, end=9, label="dog"),
    )
    # The second begins inside the first.
    assert escaping.marked("A hot dog & a cat", marks) == ("<bdi>A <mark>hot dog</mark> &amp; a cat</bdi>")


def test_a_mark_says_what_it_stands_for_and_in_which_readings_where_that_is_not_plain():
    mark = Mark(item_id="q", start=0, end=3, label="tie", readings=("published",))
    assert escaping.marked("bow", (mark,), 3) == "<bdi><mark>bow<small>tie (published)</small></mark></bdi>"
    everywhere = Mark(item_id="q", start=0, end=3, label="tie", readings=("published", "strict", "phrase"))
    assert escaping.marked("Tie", (everywhere,), 3) == "<bdi><mark>Tie</mark></bdi>"


def test_a_mark_that_adds_nothing_has_no_label():
    mark = Mark(item_id="q1", start=3, end=7, label="", readings=("published", "strict"))
    assert escaping.marked("1. Gout", [mark], 2) == "<bdi>1. <mark>Gout</mark></bdi>"


def test_a_long_answer_is_cut_and_the_rest_counted():
    shown = escaping.marked("x" * 4010, (Mark(item_id="q", start=3999, end=4005, label="y"),))
    assert "10 more characters" in shown and "<mark>" not in shown


def test_units_about_which_cells_disagree_are_shown_first_and_in_item_order(tmp_path):
    first = [graded("a", 1.0), graded("b", 1.0), graded("c", 0.0), graded("d", 1.0)]
    second = [graded("a", 1.0), graded("b", 0.0), graded("c", 0.0), graded("d", 0.0)]
    for name, lines in {"one": first, "two": second}.items():
        jsonl.write(tmp_path / name, lines)
    cells = [tmp_path / "one", tmp_path / "two"]
    assert choice.chosen(cells, 2) == (["b", "d"], 4)
    assert choice.chosen(cells, 3) == (["a", "b", "d"], 4)
    assert choice.chosen(cells, 9) == (["a", "b", "c", "d"], 4)


def test_how_many_of_all_units_are_shown_is_said(tmp_path):
    names = ["a", "b", "c"]
    cells = {"m": ([graded(n, 1.0) for n in names], [response(n, "It") for n in names])}
    assert write(tmp_path, cells, [item(n) for n in names], n_units=2) == 0
    assert (
        "2 of 3 units, chosen so that those are among them about which the cells disagree."
        in (tmp_path / "page.html").read_text()
    )


def test_an_image_that_was_changed_stops_the_page(tmp_path, capsys):
    ref = picture(tmp_path)
    picture(tmp_path, colour=(1, 2, 3))
    cells = {"m": ([graded("q1", 1.0)], [response("q1", "It")])}
    assert write(tmp_path, cells, [item("q1", images=(ref,))]) == 2
    assert "a.png" in capsys.readouterr().err


@pytest.mark.parametrize("answers", [[], [response("other", "It")]])
def test_an_answer_that_is_missing_stops_the_page(tmp_path, capsys, answers):
    cells = {"m": ([graded("q1", 1.0)], answers)}
    assert write(tmp_path, cells, [item("q1")]) == 2
    assert "has no verdict or no answer" in capsys.readouterr().err
