"""Rare candidates: every rule of the card's section 6.2 under both readings."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remeasure.diagnoses import candidates
from remeasure.diagnoses.candidates import Candidate


def said(**fields):
    return json.dumps({"candidate": "Fabry disease", **fields})


def published(**fields):
    found = candidates.published(said(**fields), "Fabry disease")
    return found.label, found.is_rare, found.is_specific


# Card, 6.2, "Rules [V]".
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"label": "rare", "is_rare_disease": True, "is_specific_disease": True}, ("rare", True, True)),
        ({"label": "Non-Rare"}, ("nonrare", False, True)),  # lower case, without hyphens
        ({"label": " RARE "}, ("rare", True, True)),  # is_rare absent: label = rare
        ({"label": "common"}, ("unknown", False, False)),  # any other label
        ({}, ("unknown", False, False)),
        ({"label": "nonrare", "is_rare_disease": True}, ("nonrare", False, True)),
        ({"label": "generic", "is_rare_disease": "yes"}, ("generic", False, False)),
        ({"label": "unknown", "is_rare_disease": 1}, ("unknown", False, False)),
        ({"label": "rare", "is_rare_disease": False}, ("rare", False, True)),  # explicit false stays
        ({"label": "rare", "is_rare_disease": "no"}, ("rare", False, True)),
        ({"label": "rare", "is_rare_disease": "perhaps"}, ("rare", True, True)),
        ({"label": "generic", "is_specific_disease": True}, ("generic", False, False)),
        ({"label": "rare", "is_specific_disease": "no"}, ("rare", True, False)),
    ],
)
def test_published_settles_label_and_answers_as_the_card_says(fields, expected):
    assert published(**fields) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [("ORPHA:324", "ORPHA:324"), ("", None), ("None", None), (" NULL ", None), ("unknown", None), (324, 324)],
)
def test_words_for_no_code_are_no_code(code, expected):
    found = candidates.published(said(label="rare", orpha_code_if_known=code), "Fabry disease")
    assert found.orpha_code == expected


def test_the_first_to_the_last_brace_of_a_chatty_reply_is_tried():
    chatty = f"Sure! ```json\n{said(label='rare')}\n``` Anything else?"
    assert candidates.published(chatty, "x").is_rare
    assert candidates.published(f"{said(label='rare')} or {{}}", "x").parse_failed


@pytest.mark.parametrize(
    "reply", ["", "rare", "[1]", '"rare"', "{", "}{", "null", "{'label': 'rare'}", "[" * 100_000]
)
def test_an_unreadable_reply_is_unknown_and_failed_as_published(reply):
    found = candidates.published(reply, " Fabry disease ")
    assert found == Candidate(
        candidate="Fabry disease", label="unknown", is_rare=False, is_specific=False, parse_failed=True
    )


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "no JSON object"),
        (f"Sure: {said(label='rare')}", "no JSON object"),
        ("[]", "no JSON object"),
        (said(label="common", is_rare_disease=False, is_specific_disease=True), "no label of the list"),
        (said(), "no label of the list"),
        (said(label="rare", is_rare_disease="yes", is_specific_disease=True), "no true or false"),
        (said(label="rare"), "no true or false"),
        (
            said(label="rare", is_rare_disease=False, is_specific_disease=True),
            "label and answers contradict each other",
        ),
        (
            said(label="generic", is_rare_disease=False, is_specific_disease=True),
            "label and answers contradict each other",
        ),
        (
            json.dumps({"candidate": "Gaucher disease", "label": "rare"}),
            "about another candidate",
        ),
    ],
)
def test_strict_gives_a_reason_and_no_judgement_for_what_is_to_be_asked_again(reply, problem):
    assert candidates.strict(reply, "Fabry disease") == problem


def test_strict_reads_a_clean_reply():
    reply = said(
        label="non-rare", is_rare_disease=False, is_specific_disease=True, orpha_code_if_known="null"
    )
    assert candidates.strict(reply, "Fabry Disease.") == Candidate(
        candidate="Fabry disease", label="nonrare", is_rare=False, is_specific=True
    )


def judgements(*labels):
    return {
        f"d{n}": candidates.published(json.dumps({"candidate": f"D{n}", "label": label}), f"D{n}")
        for n, label in enumerate(labels)
    }


def test_a_list_of_four_with_three_rare_has_the_ratio_of_three_in_ten():
    # Card, 6.2, the example: count and count / 10, not count / length of the list.
    found = candidates.counted(["D0", "D1", "D2", "D3"], judgements("rare", "rare", "rare", "generic"))
    assert (found.n_rare, found.ratio, found.n_unknown, found.n_generic, found.n_failed) == (3, 0.3, 0, 1, 0)


def test_a_candidate_without_a_judgement_counts_as_unknown_and_failed():
    # Card, 6.2: "a candidate that normalises to nothing counts as unknown + parse_failed".
    found = candidates.counted(["D0", "?!", "D9"], judgements("rare"))
    assert (found.n_rare, found.n_unknown, found.n_failed) == (1, 2, 2)


def test_candidates_of_one_form_are_judged_once_and_only_the_first_ten_of_a_list():
    lists = [["Fabry disease", "The Fabry Disease."], ["?!", *(f"D{n}" for n in range(12))]]
    asked = candidates.to_judge(lists)
    assert asked["fabry disease"] == "Fabry disease"
    assert list(asked) == ["fabry disease", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"]


values = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["rare", "yes", "No"])
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["candidate", "label", "is_rare_disease", "is_specific_disease", "orpha_code_if_known"]
        ),
        values,
    ),
    st.text(max_size=10),
)
def test_what_strict_accepts_published_reads_alike(record, candidate):
    reply = json.dumps(record)
    found, strict = candidates.published(reply, candidate), candidates.strict(reply, candidate)
    assert found.label in candidates.LABELS
    assert not found.is_rare or found.label == "rare"
    assert isinstance(strict, str) or strict == found
