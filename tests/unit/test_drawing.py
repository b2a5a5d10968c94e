"""Flags as pixels, by the real browser."""

import io
import json
import zipfile

import pytest
from PIL import Image

import draw_pictures
from remeasure.records import Fact

pytestmark = pytest.mark.browser

RED = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 480">'
    '<path fill="red" d="M0 0h640v240H0z"/></svg>'
)


def fact(page_id: str, field: str, value: str) -> dict:
    return {"page_id": page_id, "subject": page_id, "field": field, "value": value, "where": "infobox"}


def run(tmp_path, facts, svg=RED):
    with zipfile.ZipFile(tmp_path / "flags.zip", "w") as store:
        store.writestr("package/flags/4x3/aa.svg", svg)
        store.writestr("package/flags/1x1/aa.svg", "<svg/>")
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in facts))
    words = ["--flags", tmp_path / "flags.zip", "--facts", tmp_path / "facts.jsonl"]
    words += ["--out", tmp_path / "pictures.zip", "--record", tmp_path / "pictures.json"]
    return draw_pictures.main([str(word) for word in words])


def test_each_page_gets_its_flag_on_white_and_pages_without_are_counted(tmp_path):
    facts = [
        *(fact("one", "flag", "aa"), fact("one", "capital", "X"), fact("two", "flag", "aa")),
        *(fact("three", "capital", "Y"), fact("four", "flag", "zz")),
    ]
    assert run(tmp_path, facts) == 0
    with zipfile.ZipFile(tmp_path / "pictures.zip") as store:
        assert store.namelist() == ["one.png", "two.png"]
        image = Image.open(io.BytesIO(store.read("one.png"))).convert("RGB")
    assert image.size == (640, 480)
    assert (image.getpixel((10, 10)), image.getpixel((10, 470))) == ((255, 0, 0), (255, 255, 255))
    record = json.loads((tmp_path / "pictures.json").read_text())
    assert record["counts"] == {"drawn": 2, "without_flag": 1, "unknown_flag": 1}
    assert record["facts"]["unknown"] == ["zz"]


def test_facts_without_any_flag_are_an_error(tmp_path, capsys):
    assert run(tmp_path, [fact("one", "capital", "X")]) == 2
    assert "no page states a flag" in capsys.readouterr().err


def test_a_picture_that_cannot_be_drawn_is_an_error_that_names_it(tmp_path, capsys):
    assert run(tmp_path, [fact("one", "flag", "aa")], svg="no picture") == 2
    assert "pictures aa" in capsys.readouterr().err


def test_the_flag_of_a_page_is_a_fact_of_its_own():
    facts = [Fact(page_id="a", subject="A", field="flag", value="FR", where="infobox")]
    assert draw_pictures.flag_codes(facts) == ({"a": "fr"}, 0)
