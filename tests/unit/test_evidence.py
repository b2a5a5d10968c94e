"""What a ranking shows: the first hits and nothing else, and never silently nothing."""

from pathlib import Path

import pytest

from remeasure import evidence, jsonl
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Item, Passage, Ranked, RenderedPage, TileRef

ITEM = Item(item_id="q1", question="?", references=("x",), group="g")


def ranked(*ids: str) -> Ranked:
    return Ranked(item_id="q1", ids=ids, scores=tuple(1.0 for _ in ids))


def tile(tile_id: str, sha: str) -> TileRef:
    return TileRef(tile_id=tile_id, member=f"{tile_id}.jpg", sha256=sha * 64, y_px=0, height_px=9, width_px=9)


def passage(passage_id: str, text: str) -> Passage:
    return Passage(
        passage_id=passage_id,
        page_id="p",
        chunk_index=0,
        char_offset=0,
        n_tokens=1,
        text=text,
        title="T",
        url="u",
    )


PAGES = [
    RenderedPage(page_id="p", status="rendered", tiles=(tile("p/0000", "a"), tile("p/0001", "b"))),
    RenderedPage(page_id="broken", status="failed", reason="timeout"),
]


def test_tiles_are_found_by_id_inside_the_store():
    images = evidence.tile_images(PAGES, Path("results/tiles.zip"), ("p/0000", "p/0001", "q/0000"))
    assert images["p/0001"] == ImageRef(sha256="b" * 64, path="results/tiles.zip", member="p/0001.jpg")
    assert sorted(images) == ["p/0000", "p/0001"]


def test_only_what_a_ranking_shows_is_held(tmp_path):
    jsonl.write(tmp_path / "r.jsonl", [ranked("p/0001", "p/0000"), ranked("q/0", "p/0000")])
    shown = evidence.shown_ids(tmp_path / "r.jsonl", 1)
    assert shown == {"p/0001", "q/0"}
    assert list(evidence.tile_images(PAGES, Path("t.zip"), shown)) == ["p/0001"]


def test_the_first_hits_are_shown_in_rank_order():
    images = evidence.tile_images(PAGES, Path("t.zip"), ("p/0000", "p/0001"))
    shown = evidence.shown(ITEM, ranked("p/0001", "p/0000", "p/0001"), "tiles", 2, images.__getitem__)
    assert shown.ids == ("p/0001", "p/0000")
    assert [image.sha256[0] for image in shown.images] == ["b", "a"] and shown.texts == ()


def texts_of(folder: Path, *passages: Passage) -> evidence.PassageTexts:
    jsonl.write(folder / "passages.jsonl", passages)
    return evidence.PassageTexts(folder / "passages.jsonl", {passage.passage_id for passage in passages})


def test_the_list_is_cut_first_and_then_empty_texts_are_left_out(tmp_path):
    found = [passage("p/0", "zero"), passage("p/1", " \n"), passage("p/2", "two")]
    with texts_of(tmp_path, *found) as texts:
        shown = evidence.shown(ITEM, ranked("p/1", "p/0", "p/2"), "text", 2, texts.__getitem__)
    assert shown.texts == ("zero",) and shown.ids == ("p/0",)


def test_texts_are_read_where_they_stand_in_bytes_and_in_any_order(tmp_path):
    with texts_of(tmp_path, passage("p/0", "née\u2028Ωß"), passage("p/1", "語"), passage("p/2", "")) as texts:
        assert [texts[name] for name in ("p/2", "p/0", "p/1", "p/0")] == [
            "",
            "née\u2028Ωß",
            "語",
            "née\u2028Ωß",
        ]
        with pytest.raises(KeyError):
            texts["p/3"]


def test_a_broken_passage_is_found_before_any_is_shown(tmp_path):
    (tmp_path / "passages.jsonl").write_bytes(jsonl.encode(passage("p/0", "zero")) + b"\n{}\n")
    with pytest.raises(RemeasureError, match="passages.jsonl line 2: not a valid Passage record"):
        evidence.PassageTexts(tmp_path / "passages.jsonl", ())


def test_an_item_without_a_ranked_list_shows_nothing():
    assert evidence.shown(ITEM, None, "text", 3, {}.__getitem__).texts == ()
    assert evidence.shown(ITEM, ranked(), "tiles", 3, {}.__getitem__).images == ()


def test_a_hit_that_the_corpus_does_not_have_is_an_error():
    with pytest.raises(RemeasureError, match="item 'q1': the ranking shows 'p/9999'"):
        evidence.shown(ITEM, ranked("p/9999"), "tiles", 3, {}.__getitem__)


def test_a_list_for_an_unknown_item_is_an_error(tmp_path):
    path = tmp_path / "ranking.jsonl"
    jsonl.write(path, [ranked("p/0000")])
    lists = evidence.open_ranking(path)
    assert lists.take("q1") == ranked("p/0000")
    evidence.check_used_up(lists, path)
    with pytest.raises(RemeasureError, match="1 lists belong to no item \\(first 'q1'\\)"):
        evidence.check_used_up(evidence.open_ranking(path), path)


def test_no_item_may_be_without_evidence_unless_a_tolerance_is_set():
    rows = [(f"q{n}", 3) for n in range(99)] + [("q99", 0)]
    with pytest.raises(
        RemeasureError, match=r"no evidence for 1 of 100 items \(first 'q99'\), allowed are 0.0%"
    ):
        evidence.check_shown(rows, Path("ranking.jsonl"), 0.0)
    assert evidence.check_shown(rows, Path("ranking.jsonl"), 0.01) == 1


def test_no_tolerance_lets_five_percent_without_evidence_pass():
    rows = [("q", 3)] * 95 + [("empty", 0)] * 5
    with pytest.raises(RemeasureError, match="always less than 5%"):
        evidence.check_shown(rows, Path("ranking.jsonl"), 1.0)
