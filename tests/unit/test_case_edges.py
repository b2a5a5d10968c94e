"""Edges of the embedded case judge and reader, of cases that become items, of wording that is taken."""

import hashlib
import json

import pytest

from remeasure import taken
from remeasure.embedded import case_request
from remeasure.embedded.case_judge import CaseJudge, RankedCase, RubricCase, closeness
from remeasure.embedded.chat import parse
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef
from remeasure.studies import mrarebench_items
from remeasure.studies.mrarebench_cases import DiagnosisCase


class Relevant:
    """An encoder that gives every pair one score."""

    def __init__(self, score):
        self._score = score

    def score(self, text, other):
        return self._score, 4


TEN = "kappa lambda sigma omega delta gamma theta epsilon upsilon omicron"


def stated(point, sentence, score=-1.0):
    """The lines about one required point: stated, denied."""
    return CaseJudge(Relevant(score), threshold=0.0).rubric(
        RubricCase("Nine disease", "", sentence, [point], [])
    )


def test_seven_tenths_of_the_words_are_enough():
    words = TEN.split()
    assert stated(TEN, " ".join(words[:7])) == ["YES", "NO"]
    assert stated(TEN, " ".join(words[:6])) == ["NO", "NO"]
    assert stated("kappa lambda sigma", "kappa lambda") == ["NO", "NO"]  # 2 of 3


def test_four_tenths_are_enough_where_the_sentence_is_relevant():
    words = TEN.split()
    assert stated(TEN, " ".join(words[:4]), score=0.0) == ["YES", "NO"]  # the threshold itself is relevant
    assert stated(TEN, " ".join(words[:4]), score=-0.1) == ["NO", "NO"]
    assert stated(TEN, " ".join(words[:3]), score=5.0) == ["NO", "NO"]


def test_six_tenths_denied_are_a_denial():
    words = TEN.split()
    assert stated(TEN, f"no {' '.join(words[:6])}") == ["NO", "YES"]
    assert stated(TEN, f"no {' '.join(words[:5])}") == ["NO", "NO"]


def test_the_contrary_of_four_tenths_is_a_denial():
    point = "high kappa lambda sigma omega"
    assert stated(point, "low kappa lambda") == ["NO", "YES"]  # 2 of 5 words, the other way
    assert stated(point, "low kappa") == ["NO", "NO"]


def ranked(*names):
    return CaseJudge(Relevant(-1.0), threshold=0.0).ranked(RankedCase("Fabry disease", [], list(names)))


def test_four_of_five_entries_that_are_certain_diseases_are_enough():
    certain, vague = ("Gout", "Pompe disease", "Gaucher disease", "Lupus"), ("Infection", "Cancer")
    assert ranked(*certain, vague[0])[3] == "YES"
    assert ranked(*certain[:3], *vague)[3] == "NO"
    assert ranked(*certain[:3], vague[0])[3] == "NO"  # 3 of 4


def test_three_different_names_are_a_sensible_list():
    assert ranked("Gout", "Lupus")[4] == "NO"
    assert ranked("Gout", "Lupus", "Pompe disease")[4] == "YES"


def test_a_name_has_fourteen_words_at_most():
    long = " ".join(f"word{n}" for n in range(15))
    assert ranked("Gout", "Lupus", long.rpartition(" ")[0])[4] == "YES"
    assert ranked("Gout", "Lupus", long)[4] == "NO"


def test_names_are_near_by_half_of_their_words_or_one_of_five_letters():
    # 2 of 4 stems are shared, then 1 of 3; a shared one of five letters, of four.
    assert closeness("giant cell myocarditis", "giant cell arteritis") == 2
    assert closeness("brain rust", "brain dust") == 1
    assert closeness("bone rust", "bone dust") == 0


# -- the reader --------------------------------------------------------------------------------------------


def test_the_last_word_question_begins_what_is_asked():
    text = "A man.\nQuestion: is he well?\nA woman.\n\nQuestion: which images fit?"
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    found = case_request.understand(parse(json.dumps(body).encode()))
    assert found.case == "A man.\nQuestion: is he well?\nA woman."
    assert found.wants == "evidence"


# -- items -------------------------------------------------------------------------------------------------


def test_other_names_that_are_empty_are_no_accepted_names():
    # An empty name would be part of every other one.
    row = DiagnosisCase(
        index="1",
        item_id="1",
        group="1",
        question="?",
        context="A man.",
        findings=None,
        answer=" Fabry disease ",
        aliases=("", "Anderson-Fabry disease", ""),
        images=(),
    )
    (found,) = mrarebench_items.from_row(row, lambda member, sha256: ImageRef(sha256=sha256, path=member))
    assert found.references == ("Fabry disease", "Anderson-Fabry disease")


# -- wording -----------------------------------------------------------------------------------------------


def take(body: str, expected: str) -> str:
    module = f"class C:\n def f(self):\n  {body}\n".encode()
    wanted = taken.TakeSettings(
        module_sha256=hashlib.sha256(module).hexdigest(),
        prompts={"p": taken.Place(at="C.f", value="x", places={"y": "y"})},
        sha256={"p": hashlib.sha256(expected.encode()).hexdigest()},
    )
    return taken.take(module, wanted, "m.py")["p"]


def test_an_expression_that_is_known_is_taken_as_it_is_or_not_at_all():
    assert take("x = f'a {y} b'", "a {{y}} b") == "a {{y}} b"
    for body in ("x = f'a {y!r} b'", "x = f'a {y!s} b'", "x = f'a {y:>3} b'"):
        with pytest.raises(RemeasureError, match="expression 'y' "):
            take(body, "a {{y}} b")
