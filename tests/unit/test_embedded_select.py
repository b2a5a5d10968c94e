"""Which lines are shown, and what becomes of the model's words."""

import numpy as np
import pytest

from remeasure.embedded.answers import containing_option, short_answer
from remeasure.embedded.lines import spoken, title_of
from remeasure.embedded.prompt import Option
from remeasure.embedded.select import Candidate, best_lines


def pick(scored, rank_penalty=0.0):
    """Lines whose cosine with the question is given: (text, rank, cosine)."""
    candidates = [Candidate(text, rank) for text, rank, _ in scored]
    vectors = np.array([[score, (1 - score**2) ** 0.5] for *_, score in scored], dtype=np.float32)
    question = np.array([1, 0], dtype=np.float32)
    return [line.text for line in best_lines(candidates, vectors, question, rank_penalty)]


def test_the_nearest_line_comes_first_and_far_ones_stay_out():
    assert pick([("a", 0, 0.50), ("b", 0, 0.80), ("c", 0, 0.78)]) == ["b", "c"]


def test_at_most_four_lines_are_shown():
    assert len(pick([(str(i), 0, 0.9) for i in range(6)])) == 4


def test_a_tie_falls_to_the_earlier_evidence():
    assert pick([("late", 1, 0.8), ("early", 0, 0.8)], rank_penalty=0.02)[0] == "early"


def test_a_much_nearer_line_wins_from_later_evidence():
    assert pick([("early", 0, 0.7), ("late", 2, 0.8)], rank_penalty=0.02)[0] == "late"


def test_a_text_is_shown_once():
    assert pick([("a", 0, 0.8), ("a", 1, 0.8)]) == ["a"]


def test_without_evidence_there_is_nothing_to_show():
    assert best_lines([], np.empty((0, 2)), np.ones(2), 0.0) == []


def test_a_row_is_spoken_with_its_label_first():
    assert spoken("Ruritania - Capital: Strelsau") == "Capital of Ruritania: Strelsau"
    assert spoken("Capital: Strelsau") == "Capital: Strelsau"
    assert title_of("Ruritania - Capital: Strelsau") == "Ruritania"
    assert title_of("Capital: Strelsau") is None


ROWS = ["Ruritania - Death rate: 5.51 deaths/1,000 (2025 est.)", "Ruritania - Railways: 63 km (2008)"]
PROSE = ["Ruritania: The legislature is called the Council of Elders of Ruritania."]


@pytest.mark.parametrize(
    ("written", "question", "lines", "expected"),
    [
        # The value of a row is taken in full, whatever the model adds or leaves out.
        (
            "The death rate is 5.51 deaths, while",
            "What is the death rate?",
            ROWS,
            "5.51 deaths/1,000 (2025 est.)",
        ),
        ("Ruritania - Railways: 63 km.", "How long are the railways?", ROWS, "63 km (2008)"),
        # Words of the question are dropped, and the closing full stop.
        ("The capital of Ruritania is Strelsau.", "What is the capital of Ruritania?", [], "Strelsau"),
        ('"Strelsau"\nMore.', "What is the capital?", [], "Strelsau"),
        # A question that holds the value asks for the title.
        (
            "Strelsau is it",
            "Which country has the capital Strelsau?",
            ["Ruritania - Capital: Strelsau"],
            "Ruritania",
        ),
        # What stands nowhere in the evidence gives way to the best line.
        ("I like trains", "What is the death rate?", ROWS, "5.51 deaths/1,000 (2025 est.)"),
        ("The Council of Elders meets", "What is the legislature called?", PROSE, "Council of Elders"),
        (
            "The legislature is called the Council of Elders of Ruritania.",
            "What is the legislature called?",
            PROSE,
            "the Council of Elders of Ruritania",
        ),
        ("", "What is the death rate?", ROWS, "5.51 deaths/1,000 (2025 est.)"),
        ("", "What is the death rate?", [], ""),
    ],
)
def test_the_answer_is_what_the_evidence_says(written, question, lines, expected):
    assert short_answer(written, question, lines) == expected


OPTIONS = (Option("A", "12 km"), Option("B", "12 km of river"), Option("C", "Strelsau"))


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("Strelsau.", "C"),
        ("it has 12 km of river", "B"),
        ("only 12 km", "A"),
        ("river", "B"),
        ("", None),
        ("x", None),
    ],
)
def test_the_option_that_stands_in_the_answer_is_chosen(answer, letter):
    option = containing_option(answer, OPTIONS)
    assert (option.letter if option else None) == letter
