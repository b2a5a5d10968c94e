"""What a system did stands on the page: hits, gold, citations, conversation, tools, the reason of a judge."""

import json
import re
from html import unescape

import make_page
from remeasure import jsonl
from remeasure.page import traces
from remeasure.page.boxes import boxes
from remeasure.page.tables import tables
from remeasure.records import (
    Document,
    Graded,
    Hit,
    Item,
    Reading,
    Request,
    Response,
    Shown,
    ShownLine,
    Trace,
    Turn,
    Usage,
)
from remeasure.tables.block_text import BlockText

TURNS = [
    {"speaker": "user", "text": "Who was <b>Ada</b>?"},
    {"speaker": "agent", "text": "A mathematician."},
    {"speaker": "user", "text": "When?"},
]
ITEM = Item(
    item_id="c1-2",
    question="When?",
    references=("1815",),
    relevant=("u1", "u2"),
    group="c1",
    meta={"turns": TURNS, "turn": 2, "answerability": "ANSWERABLE"},
)
TRACE = Trace(
    found=(Hit(uri="u3", chunk="a", score=0.0325, text="Some\n text"), Hit(uri="u1", chunk="b")),
    found_documents=(Hit(uri="u3", chunk="a"),),
    cited=("u1",),
    searched=("u3", "u1"),
    citation_status="grounded",
    requests=(Usage(input_tokens=1200, output_tokens=10), Usage(input_tokens=300, output_tokens=5)),
    tools={"search": 2, "cite": 1, "execute": 0},
    events={"empty_searches": 1},
    before=(Turn(speaker="user", text="Who?"), Turn(speaker="agent", text="<i>Nobody</i>")),
    seconds=1.25,
)

SETTINGS = {
    "run": "ci",
    "title": "T",
    "lines": [],
    "benches": [{"name": "nq", "title": "NQ"}],
    "graders": {"nq": "em"},
    "cells": [{"bench": "nq", "title": "one"}],
    "n_units": 5,
}


def answer(**changes):
    more = {
        "custom_id": "c1-2",
        "key": "k",
        "status": "answered",
        "text": "In 1815.",
        "trace": TRACE,
    } | changes
    return Response(**more)


def shown(found):
    return {box.title: [(line.text, line.mark, line.note) for line in box.lines] for box in found}


def test_hits_have_title_uri_rank_score_and_whether_they_are_gold():
    found = shown(traces.boxes_of(ITEM, answer(), {"u1": "Ada", "u3": "u3"}))
    assert found["Hits: chunks"] == [("u3", None, "0.0325, Some text"), ("Ada · u1", "yes", "")]
    # That u1 is gold and found says its tick.
    assert found["Hits: documents"] == [("u3", None, "")]
    assert found["Gold documents"] == [("u2", "no", "not found")]
    assert found["Citations: grounded"] == [("Ada · u1", "yes", "")]
    assert found["Found by its searches"] == [("u3", None, ""), ("Ada · u1", "yes", "")]


def test_tools_events_tokens_and_time_are_told():
    found = shown(traces.boxes_of(ITEM, answer(), {}))
    assert [text for text, _, _ in found["Tools, requests, time"]] == [
        "1 × cite",
        "2 × search",
        "1 × empty searches",
        "2 requests, 1,500 tokens in, 15 tokens out",
        "1.25 s",
    ]


def test_a_live_conversation_is_shown_as_it_went_and_never_as_markup():
    found = traces.boxes_of(ITEM, answer(), {})
    assert shown(found)["The conversation before, as it went"] == [
        ("Who?", None, "user"),
        ("<i>Nobody</i>", None, "agent"),
    ]
    assert "&lt;i&gt;Nobody&lt;/i&gt;" in boxes(found) and "<i>" not in boxes(found)
    told = traces.reference_conversation(ITEM)
    assert "2 turns before" in told and "&lt;b&gt;Ada&lt;/b&gt;" in told and "<b>" not in told


def test_a_model_that_is_asked_directly_has_no_such_boxes():
    plain = Response(custom_id="c1-2", key="k", status="answered", text="x")
    assert traces.boxes_of(ITEM, plain, {}) == ()
    alone = Item(item_id="x", question="?", group="x", meta={"turns": [TURNS[0]]})
    assert traces.reference_conversation(alone) == ""
    assert (
        traces.reference_conversation(Item(item_id="x", question="?", group="x", meta={"turns": "x"})) == ""
    )


def test_the_judges_reason_is_shown_and_a_reply_that_is_none_as_it_is():
    replies = {
        "c1-2": answer(text='<think>hm</think>{"reason": "Same year.", "pass": true, "score": 1}'),
        "c1-2--refusal": answer(custom_id="c1-2--refusal", text='{"reason": "It answers.", "pass": false}'),
        "c1-3": answer(custom_id="c1-3", text="another"),
    }
    assert shown(traces.judged_boxes("c1-2", replies)) == {
        "What the judge replied": [
            ("Same year.", "yes", "pass"),
            ("It answers.", None, "refusal: no"),
        ]
    }
    for text in ("It is right.", "{" * 3000, '{"pass": "yes"}', "[1]"):
        found = shown(traces.judged_boxes("c1-2", {"c1-2": answer(text=text)}))
        assert found["What the judge replied"] == [(text, None, "")]
    lost = answer(text=None, status="failed", error="timeout: x")
    assert shown(traces.judged_boxes("c1-2", {"c1-2": lost}))["What the judge replied"] == [
        ("no text", None, "failed")
    ]
    assert traces.judged_boxes("c1-4", replies) == ()


def test_blocks_stand_above_the_units_and_nothing_in_them_is_markup():
    block = BlockText(
        title="A <b>", header=("Bench", "R@5"), n_text=1, rows=(("<i>", "0.5"),), anchors=("BM<25",)
    )
    (text,) = tables([block])
    assert "A &lt;b&gt;" in text and "<td>&lt;i&gt;</td><td>0.5</td>" in text and "BM&lt;25" in text


def test_the_page_of_a_system_from_its_files(tmp_path):
    folder = tmp_path / "cell"
    jsonl.write(tmp_path / "items.jsonl", [ITEM])
    reading = Reading(verdict="correct", score=1.0, reason="pass")
    graded = Graded(
        item_id="c1-2",
        group="c1",
        status="answered",
        answer="In 1815.",
        grader="em@1",
        published=reading,
        strict=reading,
    )
    jsonl.write(folder / "graded.jsonl", [graded])
    jsonl.write(folder / "responses.jsonl", [answer()])
    body = {"model": "m", "messages": [{"role": "user", "content": "When?"}]}
    jsonl.write(folder / "requests.jsonl", [Request(custom_id="c1-2", body=body)])
    jsonl.write(folder / "judge/responses.jsonl", [answer(text='{"reason": "Same.", "pass": true}')])
    documents = [Document(uri=f"u{n}", title=f"Title {n}", text="x") for n in range(1, 5)]
    jsonl.write(tmp_path / "documents.jsonl", documents)
    block = {"title": "Answers", "header": ["Bench"], "n_text": 1, "rows": [["Live"]], "anchors": []}
    table = {"left_out": "Left out: haiku.", "blocks": [block], "spread": [block | {"title": "Over seeds"}]}
    (tmp_path / "table.json").write_text(json.dumps(table))
    argv = ["--settings", json.dumps(SETTINGS), "--items", str(tmp_path / "items.jsonl")]
    for name in ("graded", "responses", "requests"):
        argv += [f"--{name}", str(folder / f"{name}.jsonl")]
    argv += ["--judged", str(folder / "judge/responses.jsonl")]
    argv += ["--documents", str(tmp_path / "documents.jsonl"), "--table", str(tmp_path / "table.json")]
    assert make_page.main([*argv, "--out", str(tmp_path / "page.html")]) == 0
    text = unescape(re.sub("<[^>]+>", " ", (tmp_path / "page.html").read_text()))
    titles = ("Title 1 · u1", "Title 3 · u3", "Live", "Over seeds")
    for said in ("Left out: haiku.", "Same.", "1,500 tokens in", *titles):
        assert said in text


def test_replies_of_a_cell_that_is_not_there_are_one_line(tmp_path, capsys):
    argv = ["--settings", json.dumps(SETTINGS), "--items", "i"]
    argv += ["--graded", "a/g", "--responses", "a/r", "--requests", "a/q"]
    argv += ["--judged", "b/judge/responses.jsonl", "--table", "t", "--out", str(tmp_path / "p")]
    assert make_page.main(argv) == 2
    assert "--judged b/judge/responses.jsonl: belongs to none of the cells" in capsys.readouterr().err


def test_hits_of_a_search_stand_once_and_snippets_do_not_begin_with_the_title():
    hits = [Hit(uri="u1", chunk="a", text="Ada  Lovelace\nShe wrote."), Hit(uri="u1", chunk="b", text="x")]
    more = (hits[0], Hit(uri="u9", chunk="c"))
    response = answer(text="u1", trace=Trace(found=tuple(hits), found_documents=more, seconds=0.5))
    found = traces.boxes_of(ITEM, response, {"u1": "Ada Lovelace"})
    assert shown(found) == {
        "Hits: chunks": [("Ada Lovelace · u1", "yes", "She wrote."), ("Ada Lovelace · u1", "yes", "x")],
        "Further documents, up to the limit (strict)": [("u9", None, "")],
        "Gold documents": [("u2", "no", "not found")],
        "Tools, requests, time": [("0.50 s", None, "")],
    }
    assert traces.is_list_of_hits(response)
    assert not traces.is_list_of_hits(answer(text="u1\nIn 1815."))
    # Times and costs have no ranks.
    text = boxes(found)
    assert (text.count("<ol>"), text.count("<ul>")) == (3, 1)


def test_what_the_judge_replied_stands_once():
    line = ShownLine(text="Same year.", mark="yes")
    grader = (Shown(title="Judge", lines=(line,)), Shown(title="Gold", lines=(ShownLine(text="1815"),)))
    replied = traces.judged_boxes("c1-2", {"c1-2": answer(text='{"reason": "Same year.", "pass": true}')})
    assert [box.title for box in traces.without_replies(grader, replied)] == ["Gold"]
    assert traces.without_replies(grader, ()) == grader


def test_a_number_of_a_block_has_what_is_published_below_it_and_shared_reasons_stand_above():
    row = ("Say; now", "0.41; published 0.83; -0.42")
    block = BlockText(title="A", header=("Bench", "R@5"), n_text=1, rows=(row,), common="All rows differ.")
    (text,) = tables([block])
    assert "<td>Say; now</td><td>0.41<br><small>published 0.83</small><br><small>-0.42</small></td>" in text
    assert text.index("All rows differ.") < text.index("<table>")
