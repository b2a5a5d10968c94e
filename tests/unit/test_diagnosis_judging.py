"""The judge's five lines: every vector of the card's section 6.1 under both readings."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remeasure.diagnoses import judging
from remeasure.diagnoses.judging import NOTHING, Judged

FINE = "YES\nNO\n2\nYES\nYES"


def test_the_score_is_the_mean_of_five_with_the_type_match_as_a_share():
    # Card, 6.1: [1,0,2,1,1] -> 0.733333; [0,0,0,1,0] -> 0.2; their mean 0.466667, mean type match 1.0.
    first, second = Judged(1, 0, 2, 1, 1), Judged(0, 0, 0, 1, 0)
    assert first.score == pytest.approx(0.733333, abs=1e-6)
    assert second.score == 0.2
    assert (first.score + second.score) / 2 == pytest.approx(0.466667, abs=1e-6)
    assert (first.typematch + second.typematch) / 2 == 1.0
    assert Judged(1, 1, 3, 1, 1).score == 1.0


# Card, 6.1, replies that it ran.
PUBLISHED = [
    (FINE, (1, 0, 2, 1, 1)),
    ("YES, NO, 2, YES, YES", (1, 0, 0, 0, 0)),
    ("Here is my assessment:\nYES\nYES\n3\nYES\nYES", (0, 1, 0, 0, 1)),  # by hand: all one line down
    ("Failed to obtain answer via API.", (0, 0, 0, 0, 0)),
    ("", (0, 0, 0, 0, 0)),
    ("\nYES\n\n YES \n3 of 3\nNO\nno\nYES", (1, 1, 3, 0, 0)),
    ("yes and no\nno, yes\n\n", (1, 0, 0, 0, 0)),
    ("NOPE\nyesterday\nx\n1. YES\nCOHERENCE: yes", (0, 0, 0, 1, 1)),
]


@pytest.mark.parametrize(("reply", "expected"), PUBLISHED)
def test_published_reads_five_lines_and_takes_what_it_does_not_understand_for_zero(reply, expected):
    assert judging.published(reply).values == expected


# Card, 6.1, "More ordinal traps": published value, and strict: a bare whole number after an optional label.
TYPE_MATCH = [
    ("3.", 0, None),
    ("2.0", 0, None),
    ("3: 2", 3, 2),  # strict takes the 3 for the number of the line, which is the third
    ("TYPE_MATCH (0-3): 2", 0, 2),
    ("10", 1, None),
    ("3. TYPE_MATCH: 2", 2, 2),
    ("3) 2", 2, 2),
    ("**2**", 2, 2),
    ("2/3", 2, None),
    ("0", 0, 0),
    ("3", 3, 3),
    ("4", 0, None),
    ("two", 0, None),
    ("2) 2", 2, None),  # the number of another line
]


@pytest.mark.parametrize(("line", "published", "strict"), TYPE_MATCH)
def test_the_third_line_is_read_as_the_card_says(line, published, strict):
    reply = f"YES\nNO\n{line}\nYES\nYES"
    assert judging.published(reply).typematch == published
    found = judging.strict(reply)
    assert (found.typematch if isinstance(found, Judged) else None) == strict


@pytest.mark.parametrize(
    "reply",
    [
        FINE,
        "1. YES\n2. NO\n3. 2\n4. YES\n5. YES",
        "PRESENCE: YES\nTOP1: NO\nTYPE_MATCH (0-3): 2\nSPECIFICITY: YES\nCOHERENCE: YES",
        "**YES**\n\n**NO**\n`2`\nyes.\nYes, it is.",
        "yes (second)\r\nno\r\n2\r\nyes\r\nyes\r\n",
    ],
)
def test_strict_reads_five_lines_with_numbers_labels_and_markup(reply):
    assert judging.strict(reply) == Judged(1, 0, 2, 1, 1)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "fewer than five lines"),
        ("YES\nNO\n2\nYES", "fewer than five lines"),
        ("YES, NO, 2, YES, YES", "fewer than five lines"),
        (f"Sure:\n{FINE}", "more than five lines"),
        (f"{FINE}\nYES", "more than five lines"),
        ("Failed to obtain answer via API.", "fewer than five lines"),
        ("YES\nmaybe\n2\nYES\nYES", "line 2 is no YES or NO"),
        ("YES\nNO\n2.5\nYES\nYES", "line 3 is no whole number from 0 to 3"),
        ("YES and NO\nNO\n2\nYES\nYES", "line 1 says both YES and NO"),
        ("NO: YES\nNO\n2\nYES\nYES", "line 1 says both YES and NO"),
        ("2. YES\nNO\n2\nYES\nYES", "line 1 has another number"),
    ],
)
def test_strict_says_why_a_reply_is_unreadable(reply, problem):
    assert judging.strict(reply) == problem


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1, 1, 3, 1, 1), ()),
        ((0, 0, 3, 1, 1), ()),  # a subtype of the right one is a full type match and not in the list
        ((0, 1, 3, 1, 1), ("stands first, but not in the list",)),
        ((1, 0, 2, 1, 1), ("in the list, but type match 2",)),
    ],
)
def test_a_judge_that_contradicts_itself_is_noticed(values, said):
    assert Judged(*values).contradictions == said


@settings(deadline=None)
@given(st.text())
def test_any_reply_is_five_numbers_as_published_and_five_or_a_reason_when_strict(reply):
    published, strict = judging.published(reply), judging.strict(reply)
    assert all(0 <= value <= (3 if place == 2 else 1) for place, value in enumerate(published.values))
    assert isinstance(strict, (str, Judged))
    assert 0.0 <= published.score <= 1.0


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 3))
def test_a_plain_reply_is_read_alike(bits, typematch):
    lines = ["YES" if bit else "NO" for bit in bits]
    reply = "\n".join([*lines[:2], str(typematch), *lines[2:]])
    expected = Judged(*map(int, bits[:2]), typematch, *map(int, bits[2:]))
    assert judging.published(reply) == judging.strict(reply) == expected


def test_no_reply_is_nothing():
    assert judging.published("") == NOTHING == Judged(0, 0, 0, 0, 0)


@pytest.mark.parametrize("text", ["1" * 10**6, "a" * 10**6, "* " * 500_000, "YES " * 250_000, "(" * 10**6])
def test_a_megabyte_is_read_at_once(text):
    start = time.process_time()
    for reply in (text, f"YES\nNO\n{text}\nYES\nYES"):
        judging.published(reply)
        judging.strict(reply)
    assert time.process_time() - start < 20
