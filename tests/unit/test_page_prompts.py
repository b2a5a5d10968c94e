"""What a page shows of prompts, parsed lists and failures; texts of others stay texts, however hostile."""

import re

import pytest
from msgspec import structs
from test_page import graded, item, picture, request, response, write

from remeasure.messages import image_part, text_part
from remeasure.page import boxes, prompt
from remeasure.records import Failed, Request, Shown, ShownLine

EVIL = "</div></details><script>alert(1)</script>\"'<img src=x onerror=y>\u202e\x1b[31m"


def page_of(tmp_path):
    return (tmp_path / "page.html").read_text()


def three(tmp_path):
    """An item with two images of its own labels."""
    refs = (picture(tmp_path), picture(tmp_path, (9, 9, 9), "b.png"))
    return item("q1", "Why?", refs, labels=["CT", "Biopsy"])


def test_every_cell_has_its_prompt_and_says_what_it_was_not_shown(tmp_path):
    one = three(tmp_path)
    ct, biopsy = one.images
    asked = {
        "both": [
            request(
                one,
                text_part("CT:"),
                image_part(ct),
                text_part("Biopsy:"),
                image_part(biopsy),
                text_part("Case."),
            )
        ],
        "text": [request(one, text_part("Only the case."))],
        "half": [request(one, image_part(biopsy), text_part("Case."))],
    }
    cells = {name: ([graded("q1", 1.0)], [response("q1", "A")]) for name in asked}
    assert write(tmp_path, cells, [one], requests=asked) == 0
    text = page_of(tmp_path)
    # Thumbnails stand once, with their labels.
    assert text.count('src="data:image/jpeg;base64,') == 2
    assert "<figcaption>CT</figcaption>" in text and "<figcaption>Biopsy</figcaption>" in text
    rows = text.split('<th class="cell"')[1:]
    # "CT:", "Biopsy:" and "Case." are 3 + 7 + 5 characters.
    assert "prompt: 15 characters, 2 images" in rows[0] and "not shown" not in rows[0]
    places = re.findall(r'CT:|<span class="slot">\w+</span>|Biopsy:|Case\.', rows[0])
    assert places == [
        "CT:",
        '<span class="slot">CT</span>',
        "Biopsy:",
        '<span class="slot">Biopsy</span>',
        "Case.",
    ]
    assert "prompt: 14 characters, no image" in rows[1]
    assert "not shown in this condition: CT, Biopsy<" in rows[1]
    assert "not shown in this condition: CT<" in rows[2] and "1 image<" in rows[2]


def test_a_prompt_that_is_the_same_stands_once(tmp_path):
    one = item("q1")
    asked = {
        "a": [request(one, text_part("The same words."))],
        "b": [request(one, text_part("The same words."), model="another")],
        "c": [request(one, text_part("Other words."))],
    }
    cells = {name: ([graded("q1", 1.0)], [response("q1", "A")]) for name in asked}
    write(tmp_path, cells, [one], requests=asked)
    text = page_of(tmp_path)
    assert text.count("The same words.") == 1 and text.count("as in a, above") == 1
    assert text.count("<summary>prompt:") == 3 and "Other words." in text


def test_two_places_of_one_image_are_two_and_other_images_have_no_name(tmp_path):
    ref = picture(tmp_path)
    twice = item("q1", images=(ref, ref))
    other = picture(tmp_path, (1, 2, 3), "c.png")
    given = prompt.of_request(request(twice, image_part(ref), image_part(other), text_part("x")))
    assert prompt.unseen(given, twice) == ["Image 2"]
    assert re.findall(r'slot">([^<]+)<', prompt.body_of(given, twice)) == ["Image 1", "another image"]


@pytest.mark.parametrize("labels", ["CT", {"0": "CT"}, [1, None], [" ", ""], []])
def test_labels_that_are_none_are_numbers(tmp_path, labels):
    one = item("q1", images=(picture(tmp_path), picture(tmp_path, name="b.png")), labels=labels)
    assert [prompt.label_of(one, place) for place in (0, 1)] == ["Image 1", "Image 2"]


def test_who_speaks_is_said_where_several_do():
    body = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [text_part("Why?")]},
        ]
    }
    given = prompt.of_request(Request(custom_id="q1", body=body))
    shown = prompt.body_of(given, item("q1"))
    assert re.findall(r'role">(\w+)<', shown) == ["system", "user"]
    assert shown.index("Be brief.") < shown.index("Why?")


@pytest.mark.parametrize(
    "messages",
    [
        None,
        "x",
        [None, 1],
        [{"role": "user"}],
        [{"content": [None, 1, {"type": "text", "text": 5}]}],
        [{"content": {}}],
    ],
)
def test_a_request_of_an_odd_form_is_shown_as_far_as_it_is_text(messages):
    given = prompt.of_request(Request(custom_id="q1", body={"messages": messages}))
    assert [part for part in given if part.kind != "role"] == []
    assert "no image" in prompt.summary_of(given)


def test_an_image_that_is_no_reference_is_another_image():
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in ("data:image/png;base64,AAAA", EVIL)]
    given = prompt.of_request(
        Request(custom_id="q1", body={"messages": [{"role": "user", "content": parts}]})
    )
    shown = prompt.body_of(given, item("q1"))
    assert shown.count("another image") == 2 and "base64" not in shown and "<script" not in shown


def test_a_huge_prompt_is_cut_and_the_rest_counted(tmp_path):
    one = item("q1")
    asked = {"m": [request(one, text_part("x" * 5_000), text_part("y" * 2_000_000), text_part("z" * 10))]}
    assert write(tmp_path, {"m": ([graded("q1", 1.0)], [response("q1", "A")])}, [one], requests=asked) == 0
    text = page_of(tmp_path)
    # 6,000 characters are shown in all: 5,000 and 1,000.
    assert "prompt: 2,005,010 characters" in text
    assert "… 1,999,000 more characters" in text and "… 10 more characters" in text
    assert len(text) < 30_000


def test_hostile_texts_never_become_markup(tmp_path):
    one = structs.replace(
        item("q1", EVIL, labels=[EVIL]), meta={"labels": [EVIL], EVIL: EVIL * 9, "note": EVIL}
    )
    shown = (Shown(title=EVIL, lines=(ShownLine(text=EVIL, mark="yes", note=EVIL),)),)
    lost = (Failed(item_id="q1", role="judge", kind=EVIL, error=EVIL),)
    line = structs.replace(graded("q1", 1.0), shown=shown, failed=lost)
    asked = {EVIL: [Request(custom_id="q1", body={"messages": [{"role": EVIL, "content": EVIL}] * 2})]}
    cells = {EVIL: ([line], [response("q1", EVIL, "failed", EVIL)])}
    over = {"sentence": EVIL, "limit": 0.0, "allowed": False, "cells": []}
    assert write(tmp_path, cells, [one], requests=asked, over=over) == 0
    text = page_of(tmp_path)
    assert "<script" not in text and "<img" not in text and "\u202e" not in text and "\x1b" not in text
    assert text.count("⟨U+202E⟩") >= 9
    for tag in ("div", "details", "p", "td", "tr", "section"):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag


def test_text_that_runs_from_right_to_left_cannot_turn_what_stands_beside_it(tmp_path):
    one = item("q1")
    hebrew = "\u05d0\u05d1\u05d2"
    shown = (Shown(title="List", lines=(ShownLine(text=hebrew, mark="no", note="rank 1"),)),)
    cells = {"m": ([structs.replace(graded("q1", 0.0), shown=shown)], [response("q1", hebrew)])}
    asked = {"m": [request(one, text_part(hebrew))]}
    write(tmp_path, cells, [one], requests=asked)
    assert page_of(tmp_path).count(f"<bdi>{hebrew}</bdi>") == 3  # answer, list and prompt


def test_lines_of_a_list_say_what_decided():
    lines = (
        ShownLine(text="Fabry disease", mark="yes", note="equal"),
        ShownLine(text="Gaucher disease", mark="no"),
        ShownLine(text="Sarcoidosis"),
    )
    shown = boxes.boxes((Shown(title="Ranked list", lines=lines), Shown(title="Nothing", lines=())))
    found = re.findall(r'<li class="(\w+)"><b[^>]*aria-label="(\w+)">(.)</b><span><bdi>([^<]+)', shown)
    assert found == [
        ("yes", "yes", "✓", "Fabry disease"),
        ("no", "no", "✗", "Gaucher disease"),
        ("neither", "neither", "–", "Sarcoidosis"),
    ]
    assert "<small>equal</small>" in shown and "<h4>Ranked list</h4>" in shown
    assert '<h4>Nothing</h4><p class="faint">nothing</p>' in shown
    assert boxes.boxes(()) == ""


def test_long_lists_are_folded_and_bounded():
    lines = tuple(ShownLine(text="x" * 5000, mark="yes" if number < 3 else "no") for number in range(75))
    shown = boxes.boxes((Shown(title="Points", lines=lines),))
    assert "<summary>Points <small>3 ✓ of 75</small></summary>" in shown
    assert shown.count("<li ") == 60 and "… 15 more lines" in shown
    assert len(shown) < 60 * 800


@pytest.mark.parametrize(
    ("status", "text", "error", "said"),
    [
        (
            "failed",
            None,
            "rejected: status 413: too big",
            "payload_too_large</span> <bdi>failed: rejected: status 413: too big<",
        ),
        ("cut_off", "A", "cut_off: 8 tokens", "truncated</span> <bdi>cut off: 8 tokens<"),
        ("refused", None, "refused: content filter", "refused</span> <bdi>refused: content filter<"),
        ("not_sent", None, "not_sent", "missing</span> <bdi>not sent<"),
        ("answered", " ", None, "empty</span> <bdi>empty<"),
        ("answered", "<think>A", None, "unfinished</span> <bdi>thinking that does not end<"),
        (
            "answered",
            "Failed to obtain answer via API.",
            None,
            "marker</span> <bdi>the sentence of a failed request<",
        ),
    ],
)
def test_an_answer_that_is_not_whole_has_its_class(tmp_path, status, text, error, said):
    cells = {"m": ([graded("q1", 0.0)], [response("q1", text, status, error)])}
    assert write(tmp_path, cells, [item("q1")]) == 0
    page = page_of(tmp_path)
    assert f'<p class="state"><span class="kind">{said}' in page
    assert '<a href="#u-q1" class="bad">q1 !</a>' in page


def test_an_answer_that_is_whole_has_none(tmp_path):
    write(tmp_path, {"m": ([graded("q1", 1.0)], [response("q1", "It")])}, [item("q1")])
    assert 'class="kind"' not in page_of(tmp_path) and '<a href="#u-q1">q1</a>' in page_of(tmp_path)


def test_a_judge_that_failed_is_named_beside_the_verdict(tmp_path):
    lost = (Failed(item_id="q1", role="judge", kind="timeout", error="timeout: no reply within 60 s"),)
    cells = {"m": ([structs.replace(graded("q1", 0.0), failed=lost)], [response("q1", "It")])}
    write(tmp_path, cells, [item("q1")])
    assert 'kind">timeout</span> <bdi>judge: timeout: no reply within 60 s<' in page_of(tmp_path)


def test_the_first_thing_to_be_seen_is_what_is_over_the_limit(tmp_path):
    cells = {"m": ([graded("q1", 1.0)], [response("q1", "It")])}
    over = {"sentence": "Too many answers failed: 3 of 4.", "limit": 0.0, "allowed": True, "cells": []}
    write(tmp_path, cells, [item("q1")], over=over)
    body = page_of(tmp_path).split("<body>")[1].strip()
    assert body.startswith('<p class="warning">Too many answers failed: 3 of 4.</p>')
    write(tmp_path, cells, [item("q1")])
    assert page_of(tmp_path).split("<body>")[1].strip().startswith("<h1>")


def test_long_facts_of_an_item_are_folded(tmp_path):
    one = item("q1", context="word " * 60, note="first\nsecond", task_type=7, index="q1", image_path="a.png")
    write(tmp_path, {"m": ([graded("q1", 1.0)], [response("q1", "It")])}, [one])
    text = page_of(tmp_path)
    begin = "word " * 11 + "word"  # the first 60 characters
    assert f"<dt>context</dt><dd><details><summary>{begin}…</summary><div><bdi>word word" in text
    assert "<dt>note</dt><dd><bdi>first<br>second</bdi></dd><dt>task type</dt><dd><bdi>7</bdi></dd>" in text
    # The id stands above, and where the images would lie says nothing beside the images.
    assert "<dt>answer</dt><dd><bdi>It</bdi></dd>" in text and "a.png" not in text and "<dt>index" not in text


def test_an_index_that_is_not_the_id_is_a_fact(tmp_path):
    write(tmp_path, {"m": ([graded("q1", 1.0)], [response("q1", "It")])}, [item("q1", index="q:1")])
    assert "<dt>index</dt><dd><bdi>q:1</bdi></dd>" in page_of(tmp_path)


def test_the_page_says_like_the_table_whether_it_may_be_compared(tmp_path):
    cells = {"m": ([graded("q1", 1.0)], [response("q1", "It")])}
    write(tmp_path, cells, [item("q1")], comparability="Not comparable with the paper: Toy data.")
    assert "<p>What stands here.</p>\n<p>Not comparable with the paper: Toy data.</p>" in page_of(tmp_path)


def test_a_request_that_is_missing_stops_the_page(tmp_path, capsys):
    cells = {"m": ([graded("q1", 1.0)], [response("q1", "It")])}
    assert write(tmp_path, cells, [item("q1")], requests={"m": [request(item("other"))]}) == 2
    assert "has an answer but no request; delete its requests.jsonl" in capsys.readouterr().err
