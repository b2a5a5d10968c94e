"""Numbers out of tables and sentences, and what is computed with them."""

import pytest

from remeasure.embedded.evidence_numbers import find, kind_of, program, said, shown
from remeasure.embedded.evidence_request import Chunk

OTTER = Chunk(
    "otter/0",
    "Otterbeck Mills Ltd. 2011",
    "Otterbeck Mills Ltd. spins wool. Amounts in millions of dollars unless noted.\n\n"
    "| | 2011 | 2010 |\n| --- | --- | --- |\n"
    "| net sales | $ 1,200.5 | $ 1,000.0 |\n"
    "| cost of wool | 300.0 | 260.0 |\n"
    "| foreign exchange gain ( loss ) | ( 12.5 ) | 4.0 |\n"
    "| gross margin rate | 33.4% | 31.0% |\n"
    "| looms | 2,401 | 2,390 |\n\n"
    "Net sales of Otterbeck Mills Ltd. were $1,200.5 million in 2011.",
)
HERON = Chunk(
    "heron/0",
    "Heronsgate Ports Ltd. 2011",
    "Heronsgate Ports Ltd. loads ships. Amounts in millions of dollars.\n\n"
    "| | 2011 | 2010 |\n|---|---|---|\n| net sales | $ 77.0 | $ 70.0 |\n| tugs | 12 | 11 |\n",
)
BOTH = [HERON, OTTER]


@pytest.mark.parametrize(
    ("question", "kind", "number", "ids"),
    [
        ("What were the net sales of Otterbeck Mills in 2011?", "value", 1200.5, ("otter/0",)),
        ("What were the net sales of Heronsgate Ports in 2010?", "value", 70.0, ("heron/0",)),
        (
            "What was the foreign exchange gain (loss) of Otterbeck Mills in 2011?",
            "value",
            -12.5,
            ("otter/0",),
        ),
        ("What was the gross margin rate of Otterbeck Mills in 2010?", "value", 31.0, ("otter/0",)),
        ("How many looms did Otterbeck Mills have in 2011?", "value", 2401.0, ("otter/0",)),
        # 77 - 70
        (
            "By how much did the net sales of Heronsgate Ports change from 2010 to 2011?",
            "difference",
            7.0,
            ("heron/0",),
        ),
        # 100 * 7 / 70
        (
            "What was the percentage change in net sales of Heronsgate Ports from 2010 to 2011?",
            *("change", 10.0, ("heron/0",)),
        ),
        # 300 / 1200.5
        (
            "What was the ratio of cost of wool to net sales of Otterbeck Mills in 2011?",
            *("ratio", pytest.approx(0.24990, abs=1e-5), ("otter/0",)),
        ),
        # 1,200.5 million / 2,401
        (
            "What were the net sales per loom of Otterbeck Mills in 2011, in dollars?",
            *("per", pytest.approx(500000.0), ("otter/0",)),
        ),
        # 77 / 12, both as they are printed
        (
            "What were the net sales per tug of Heronsgate Ports in 2011, in millions?",
            "per",
            pytest.approx(77 / 12),
            ("heron/0",),
        ),
        # 100 * 260 / 1000
        (
            "What percentage of net sales was the cost of wool at Otterbeck Mills in 2010?",
            *("share", 26.0, ("otter/0",)),
        ),
        (
            "What was the average of net sales of Heronsgate Ports in 2010 and 2011?",
            "average",
            73.5,
            ("heron/0",),
        ),
        (
            "What were the combined net sales of Heronsgate Ports in 2010 and 2011?",
            "sum",
            147.0,
            ("heron/0",),
        ),
    ],
)
def test_a_number_is_found_or_computed(question, kind, number, ids):
    found = find(question, BOTH)
    assert (found.kind, found.number, found.chunk_ids) == (kind, number, ids)


@pytest.mark.parametrize(
    "question", ["Who founded Otterbeck Mills?", "What were the dividends of Brill Ltd. in 2011?"]
)
def test_without_a_row_that_fits_nothing_is_found(question):
    assert find(question, [Chunk("x", "Brill Ltd.", "No number stands here.")]) is None
    assert find(question, []) is None


def test_nothing_is_divided_by_zero():
    chunk = Chunk("z", "Zero Ltd.", "| | 2011 | 2010 |\n|---|---|---|\n| sales | 3 | 0 |\n")
    assert find("What was the percentage change in sales of Zero Ltd. from 2010 to 2011?", [chunk]) is None


def test_a_value_is_told_as_it_is_written():
    loss = find("What was the foreign exchange gain (loss) of Otterbeck Mills in 2011?", BOTH)
    assert program(loss) is None
    assert said(loss, None).endswith("\nANSWER: -12.5")
    rate = find("What was the gross margin rate of Otterbeck Mills in 2010?", BOTH)
    assert said(rate, None).endswith("\nANSWER: 31%")


def test_what_is_computed_is_a_program_too_and_its_print_is_the_answer():
    found = find("What was the percentage change in net sales of Heronsgate Ports from 2010 to 2011?", BOTH)
    assert program(found) == "a = 70.0\nb = 77.0\nprint(100 * (b - a) / abs(a))"
    assert said(found, "10.0\n").endswith("\nANSWER: 10%")
    for nothing in (None, "", "Error: no interpreter", "nan", "inf"):
        assert said(found, nothing).endswith("\nANSWER: 10%")
    per = find("What were the net sales per loom of Otterbeck Mills in 2011, in dollars?", BOTH)
    scope = {}
    exec(program(per).replace("print(", "x = ("), scope)
    assert scope["x"] == pytest.approx(500000.0)


@pytest.mark.parametrize(
    ("number", "text"), [(10.0, "10"), (0.24990004, "0.2499"), (-3.5, "-3.5"), (1e7, "10000000"), (0.0, "0")]
)
def test_a_number_is_written_without_an_exponent(number, text):
    assert shown(number) == text


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What percent of the total was paid?", "share"),
        ("By what percent did sales grow?", "change"),
        ("How much higher were sales?", "difference"),
        ("What was the total debt in 2011?", "value"),
        ("What was the growth rate of sales?", "change"),
    ],
)
def test_kinds_of_questions(question, kind):
    assert kind_of(question) == kind
