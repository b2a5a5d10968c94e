"""Ranked lists: the table of the card's section 4 under both readings, bad input, hostile input."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remeasure.diagnoses import lists
from remeasure.failing import MARKER
from remeasure.records import Response
from remeasure.roundtrip import answer as seen

TWELVE = "\n".join(f"{n}. D{n}" for n in range(1, 13))
ELEVEN = "\n".join(f"{n}. D{n}" for n in range(1, 12))
TEN = ["D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10"]
ONE_LINE = "1. foo 2. bar 3. baz"
# Card, section 4: reply, published candidates (all of them run by the card), and what its "STRICT adds" makes
# of them. Rows in the card's order.
TABLE = [
    ("1. A\n2) B\n3.C\n4 - D", ["A", "B", "C"], ["A", "B", "C", "D"]),
    ("10. ten\n1. one", ["ten", "one"], ["ten", "one"]),
    (TWELVE, TEN, TEN),
    (
        "1. Sarcoidosis\n2. sarcoidosis\n3. Sarcoidosis.\n4. Lymphoma",
        ["Sarcoidosis", "Sarcoidosis.", "Lymphoma"],
        ["Sarcoidosis", "Lymphoma"],
    ),
    ("**1. Foo**\n**2. Bar**", ["1. Foo", "2. Bar"], ["Foo", "Bar"]),
    ("- Foo\n- Bar; Baz", ["Foo", "Bar", "Baz"], ["Foo", "Bar", "Baz"]),
    ("These are likely\n1. Foo\n2. Bar\nGood luck", ["Foo", "Bar"], ["Foo", "Bar"]),
    ("1. Foo (ICD 1.2)\n1.5 mg of bar", ["Foo (ICD 1.2)", "5 mg of bar"], ["Foo (ICD 1.2)"]),
    (ONE_LINE, ["foo 2. bar 3. baz"], ["foo", "bar", "baz"]),
    (f"<think>hm</think>{ONE_LINE}", ["foo", "bar", "baz"], ["foo", "bar", "baz"]),
    ("<think>hm</think>The answer: 1. foo 2. bar", ["The answer:", "foo", "bar"], ["foo", "bar"]),
    ("<think>hm</think>Foo\nBar", ["Foo\nBar"], ["Foo", "Bar"]),
    ("<think>1. x\n2. y", ["<think>1. x", "y"], []),
    ("1. z\n</think>\n1. a", ["z", "a"], ["a"]),
    ("１. Foo\n２. Bar", ["Foo", "Bar"], ["Foo", "Bar"]),
    ("１．Foo", ["１．Foo"], ["Foo"]),
    ("1、Foo", ["1、Foo"], ["Foo"]),
    ("1: Foo", ["1: Foo"], ["Foo"]),
    ("#1. Foo", ["#1. Foo"], ["Foo"]),
    ("- 1. Foo\n- 2. Bar", ["1. Foo", "2. Bar"], ["Foo", "Bar"]),
    ("1. **Foo**: because it is so", ["**Foo**: because it is so"], ["Foo"]),
    ("Foo, Bar, Baz", ["Foo, Bar, Baz"], ["Foo", "Bar", "Baz"]),
    ("I cannot tell from this.", ["I cannot tell from this."], ["I cannot tell from this."]),
    ("", [], []),
    (" \n\t", [], []),
    ("<think>1. Foo</think>", [], []),
    (
        "Failed to obtain answer via API.",
        ["Failed to obtain answer via API."],
        ["Failed to obtain answer via API."],
    ),
]


@pytest.mark.parametrize(("reply", "expected"), [(row[0], row[1]) for row in TABLE])
def test_published_reads_the_cards_replies_as_it_says(reply, expected):
    assert lists.published(reply) == expected


@pytest.mark.parametrize(("reply", "expected"), [(row[0], row[2]) for row in TABLE])
def test_strict_reads_the_cards_replies_as_it_proposes(reply, expected):
    assert lists.strict(reply).candidates == expected


# What strict reads otherwise; each expected list was written by hand from the reply.
STRICT_ONLY = [
    ("0. Foo\n1. Bar", ["Foo", "Bar"]),
    ("0. Foo 1. Bar 2. Baz", ["Foo", "Bar", "Baz"]),
    ("(1) Foo (2) Bar", ["Foo", "Bar"]),
    ("1.foo 2.bar 3.baz", ["foo", "bar", "baz"]),
    ("#1 Foo\n#2 Bar", ["Foo", "Bar"]),
    ("1# Foo\n2# Bar", ["Foo", "Bar"]),
    ("1） Foo\n2） Bar", ["Foo", "Bar"]),
    ("| 1 | Foo | seen |\n| 2 | Bar | not seen |", ["Foo", "Bar"]),
    ("**1.** **Foo**: because\n**2. Bar:** since\n3. **Baz** - as\n4. *Qux*", ["Foo", "Bar", "Baz", "Qux"]),
    ("1. **Gaucher** disease type 1", ["Gaucher disease type 1"]),
    ("```\n1. Foo\n2. Bar\n```", ["Foo", "Bar"]),
    ("My list:\nFoo\nBar", ["Foo", "Bar"]),
    ("Most likely are:\n* Foo\n* Bar\nAsk a doctor.", ["Foo", "Bar"]),
    ("1. Diabetes type 2. 2. Foo", ["Diabetes type 2.", "Foo"]),
    ("<THINK>1. z</THINK>1. a", ["a"]),
    ("<think>1. y<think>1. z</think>1. x</think>1. a", ["a"]),
    ("1. a\n<think>\n2. b", ["a"]),
    (ELEVEN, TEN),
    ("1. Foo\n2. foo\n3. FOO.\n4. Fóo\n5. Bar", ["Foo", "Bar"]),
    ("1. Foo\u200b\n2. \u202eBar", ["Foo\u200b", "\u202eBar"]),
]


@pytest.mark.parametrize(("reply", "expected"), STRICT_ONLY)
def test_strict_reads_further_ways_to_write_a_list(reply, expected):
    assert lists.strict(reply).candidates == expected


@pytest.mark.parametrize(
    ("reply", "step"),
    [
        ("", "empty"),
        ("<think>1. Foo", "nothing but reasoning"),
        ("1. Foo</think>", "nothing but reasoning"),
        ("***\n---\n```", "no names"),
        ("1. \n2. ?", "no names"),
        ("nan", "no names"),
        ("N/A", "no names"),
        (" ".join(["word"] * 16), "nothing but prose"),
    ],
)
def test_strict_says_why_a_reply_is_no_list(reply, step):
    found = lists.strict(reply)
    assert (found.candidates, found.step) == ([], step)


def test_what_is_dropped_is_counted():
    # Eleven diagnoses of which the second repeats the first by normal form, not by spelling.
    reply = "\n".join(["1. Foo", "2. Foo.", *(f"{n}. D{n}" for n in range(3, 13))])
    published, strict = lists.read_published(reply), lists.strict(reply)
    assert (published.n_doubled, published.n_beyond) == (0, 2)
    assert (strict.n_doubled, strict.n_beyond) == (1, 1)
    assert len(published.candidates) == len(strict.candidates) == 10


@pytest.mark.parametrize(
    ("reply", "step"),
    [
        ("1. Foo", "numbered lines"),
        ("<think>x</think>1. Foo 2. Bar", "inline numbers after thinking"),
        ("Foo; Bar", "lines and semicolons"),
        ("", "nothing left to read"),
    ],
)
def test_published_names_the_step_that_decided(reply, step):
    assert lists.read_published(reply).step == step


def test_candidates_know_where_they_stand_in_the_reply():
    reply = "<think>1. no</think>\n 1. Foo \n2. <think>?</think>Bar\n"
    found = lists.read_published(reply).found
    assert [reply[span.start : span.end] for span in found] == ["Foo", "Bar"]
    # Thinking inside a name is cut out of the name, not out of its place.
    (span,) = lists.read_published("1. Fo<think>?</think>o").found
    assert (span.text, span.start, span.end) == ("Foo", 3, 22)


pieces = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "\n",
            "\u2028",
            " ",
            "1. ",
            "2) ",
            "１．",
            "3:",
            "#",
            "**",
            "- ",
            ";",
            "Foo",
            "bar",
        ]
        + [": ", "|", "type ", "é", "\x00", "\u202e", "1.5", "Foo disease"]
    )
    | st.text(max_size=5)
).map("".join)


@settings(deadline=None)
@given(pieces)
def test_any_reply_gives_at_most_ten_different_candidates_that_stand_in_it(reply):
    for found in (lists.read_published(reply), lists.strict(reply)):
        assert len(found.candidates) <= 10
        assert all(found.candidates)
        assert len({name.lower() for name in found.candidates}) == len(found.candidates)
        for span in found.found:
            assert 0 <= span.start < span.end <= len(reply)
        assert found.step
    for span in lists.read_published(reply).found:
        assert (reply[span.start], reply[span.end - 1]) == (span.text[0], span.text[-1])


@settings(deadline=None)
@given(st.lists(st.text("abcdefgh ", min_size=2).filter(str.strip), min_size=2, max_size=10))
def test_a_clean_numbered_list_is_read_alike(names):
    reply = "\n".join(f"{n}. {name}" for n, name in enumerate(names, start=1))
    wanted = list(dict.fromkeys(name.strip() for name in names))
    assert lists.published(reply) == wanted


HOSTILE = {
    "spaces inside a line": "1. a" + " " * 10**6 + "b",
    "opening tags": "<think>" * 150_000,
    "closed thinking": "<think></think>" * 70_000,
    "thinking, then numbers": "<think></think>" + " 1." * 300_000,
    "numbers": "1. " * 330_000,
    "digits": "1" * 10**6,
    "stars": "*" * 10**6 + "1",
    "bold": "1. " + "**a" * 300_000,
    "hashes": "#" * 10**6,
    "angles": "<" * 10**6,
    "semicolons": "a;" * 500_000,
    "commas": "a, " * 300_000,
    "brackets": "(" * 10**6 + "1",
    "one word": "1. " + "a" * 10**6,
    "bells": "1. \x07\x1b[2J" * 100_000,
    "lines": "1. \n" * 250_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_is_read_at_once(name):
    start = time.process_time()
    lists.published(HOSTILE[name])
    lists.strict(HOSTILE[name])
    # Anything quadratic takes hours here; linear takes a second or two on a slow computer.
    assert time.process_time() - start < 20


def response(text, status="answered", error=None):
    return Response(custom_id="q", key="k", status=status, text=text, error=error)


@pytest.mark.parametrize("word", ["", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"])
def test_the_originals_table_turns_words_for_missing_into_nan(word):
    # Card, section 2, first row of the table, and section 4, "Spreadsheet effect".
    assert seen(response(word)) == "nan"
    assert lists.published(seen(response(word))) == ["nan"]


@pytest.mark.parametrize("word", ["none", "Null", "Nan", "-", " ", "1. Foo", " NA"])
def test_other_texts_stay_as_they_are(word):
    # Card, section 2: "none, Null, Nan and - stay text"; white space was run through pandas: it stays.
    assert seen(response(word)) == word


def test_what_the_original_sees_of_an_answer_that_there_is_not():
    assert seen(response(None, "not_sent")) is None
    assert seen(response(None)) == "nan"
    assert seen(response("1. Foo", "cut_off")) == "1. Foo"
    for status in ("failed", "refused"):
        assert seen(response(None, status)) == "Failed to obtain answer via API."
        assert seen(response("<html>", status)) == "Failed to obtain answer via API."
    kept = f"{MARKER} via API. [500]"
    assert seen(response(kept, "failed", "marker: …")) == kept
    # An imported table whose cell is empty was never a failed request.
    empty = "empty: empty cell (a spreadsheet cannot tell an empty answer from a missing one)"
    assert seen(response(None, "failed", empty)) == "nan"
    assert seen(response(None, "failed", "empty: missing value")) == "nan"
