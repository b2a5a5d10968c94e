import json

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import extract_text
from remeasure import archive_record, passages
from remeasure.errors import RemeasureError
from zimkit import Given, write_pages, write_zim

PROSE = "<p>" + "Many words about rivers and mountains of a country that nobody has seen. " * 6 + "</p>"
SETTINGS = passages.TextSettings(max_tokens=4, tables=True, comments=False)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A tokenizer whose tokens are the words, so that cuts can be counted by hand."""
    tokenizer = Tokenizer(WordLevel({"x": 0}, unk_token="x"))
    tokenizer.pre_tokenizer = Whitespace()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.enable_truncation(2)
    tokenizer.save(str(path))
    return path


def test_passages_hold_the_asked_number_of_tokens_without_overlap(words):
    tokenizer = passages.load_tokenizer(words)
    text = "one two three  four\nfive"
    assert passages.cut(text, tokenizer, 2) == [(0, 2, "one two"), (8, 2, "three  four"), (20, 1, "five")]


def test_offsets_count_characters_and_point_into_the_text(words):
    tokenizer = passages.load_tokenizer(words)
    text = "Äöü ßen 北京 end"
    parts = passages.cut(text, tokenizer, 1)
    assert [text[offset : offset + len(part)] for offset, _, part in parts] == ["Äöü", "ßen", "北京", "end"]


def test_an_empty_text_has_no_passage(words):
    assert passages.cut("", passages.load_tokenizer(words), 4) == []
    assert passages.cut(" \n", passages.load_tokenizer(words), 4) == []


def test_a_file_that_is_no_tokenizer_is_one_line(tmp_path):
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(RemeasureError, match="not a tokenizer file"):
        passages.load_tokenizer(tmp_path / "t.json")
    with pytest.raises(RemeasureError, match="cannot be read"):
        passages.load_tokenizer(tmp_path / "none.json")


def test_tables_are_kept_or_left_out_as_asked():
    table = "<table><tr><th>Capital</th><td>Lisbon</td></tr></table>"
    html = f"<html><body><article>{PROSE}{table}</article></body></html>"
    with_tables = passages.extract(html.encode(), SETTINGS)
    without = passages.extract(
        html.encode(), passages.TextSettings(max_tokens=4, tables=False, comments=False)
    )
    assert "Lisbon" in with_tables
    assert "Lisbon" not in without


def run(tmp_path, words, entries, pages):
    out = tmp_path / "out"
    code = extract_text.main(
        [
            *("--archive", str(write_zim(tmp_path / "a.zim", entries))),
            *("--pages", str(write_pages(tmp_path / "pages.jsonl", pages))),
            *("--settings", '{"max_tokens": 16, "tables": true, "comments": false}'),
            *("--tokenizer", str(words)),
            *("--passages-out", str(out / "passages.jsonl")),
            *("--extraction-out", str(out / "extraction.jsonl")),
            *("--record", str(out / "passages.json")),
        ]
    )
    return code, out


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_page_is_recorded_as_extracted_empty_or_failed(tmp_path, words):
    entries = [
        Given("full", f"<html><title>Full</title><body><article>{PROSE}</article></body></html>"),
        Given("nothing", "<html><body></body></html>"),
        Given("style", "p {}", "text/css"),
    ]
    code, out = run(
        tmp_path, words, entries, {"full": "full", "nothing": "nothing", "style": "style", "gone": "no"}
    )
    assert code == 0
    found = {line["page_id"]: line["status"] for line in lines(out / "extraction.jsonl")}
    assert found == {"full": "extracted", "nothing": "empty", "style": "failed", "gone": "failed"}
    parts = lines(out / "passages.jsonl")
    assert {part["page_id"] for part in parts} == {"full"}
    assert [part["passage_id"] for part in parts][:2] == ["full/0000", "full/0001"]
    assert parts[0]["n_tokens"] == 16
    assert parts[0]["title"] == "full"
    record = json.loads((out / "passages.json").read_text())
    assert record["counts"] == {"extracted": 1, "empty": 1, "failed": 2, "passages": len(parts)}


def test_the_archive_s_hash_is_the_one_that_the_record_of_its_pages_tells(tmp_path, words, monkeypatch):
    told = {"a.zim": "5" * 64}
    monkeypatch.setattr(
        archive_record, "known_hash", lambda archive, pages: {str(archive.path): told[archive.path.name]}
    )
    entries = [Given("full", f"<html><title>Full</title><body><article>{PROSE}</article></body></html>")]
    code, out = run(tmp_path, words, entries, {"full": "full"})
    assert code == 0
    record = json.loads((out / "passages.json").read_text())
    assert record["inputs"][str(tmp_path / "a.zim")] == "5" * 64


def test_no_passage_at_all_is_an_error_and_leaves_no_file(tmp_path, words, capsys):
    code, out = run(tmp_path, words, [Given("nothing", "<html><body></body></html>")], {"nothing": "nothing"})
    assert code == 2
    assert "no passage in 1 pages" in capsys.readouterr().err
    assert list(out.glob("*")) == []
