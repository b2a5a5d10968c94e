import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.text import after_label, contains, drop_label, normalise, strip_thinking

pieces = st.lists(st.sampled_from(["<think>", "</think>", "think>", "Paris", " the ", "A.", "é", "\n"])).map(
    "".join
)


@pytest.mark.parametrize(
    ("text", "answer", "closed"),
    [
        ("Paris", "Paris", None),
        ("", "", None),
        ("<think>Rome?</think>Paris", "Paris", True),
        ("Rome?</think>Paris", "Paris", True),
        ("<think>a</think>b<think>c</think>d", "d", True),
        ("<think>a</think>b<think>c", "b<think>c", False),
        ("<think>Rome", "Rome", False),
        ("I rethink> it", " it", None),
        ("thinking without a tag", "thinking without a tag", None),
        ("</think> first <think>", " first <think>", False),
    ],
)
def test_thinking_is_cut_as_the_original_cuts_it_and_says_whether_it_was_closed(text, answer, closed):
    assert strip_thinking(text) == (answer, closed)


@given(pieces)
def test_thinking_cut_off_returns_an_end_of_the_text_and_names_closure_only_where_a_tag_is(text):
    answer, closed = strip_thinking(text)
    assert text.endswith(answer)
    assert (closed is None) == ("<think>" not in text and "</think>" not in text)
    assert "</think>" not in answer


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Eiffel Tower!", "eiffel tower"),
        ("rock-n-roll", "rocknroll"),
        ("A", ""),
        ("The", ""),
        ("?!", ""),
        ("theatre", "theatre"),
        ("  1,000\tkm² ", "1000 km²"),
        ("Ångström", "ångström"),
        ("U.S.A.", "usa"),
        ("a.an.the", "aanthe"),
        ("“Paris”", "“paris”"),
    ],
)
def test_normal_form_is_that_of_squad(text, normal):
    assert normalise(text) == normal


@given(st.text())
def test_normal_form_has_no_ascii_capitals_and_no_stray_space_and_settles_soon(text):
    once = normalise(text)
    assert once == " ".join(once.split())
    assert not any("A" <= letter <= "Z" for letter in once)
    assert normalise(f"  {text}\n") == once
    assert normalise(normalise(once)) == normalise(once)


def test_only_the_literal_label_is_dropped_but_everywhere():
    assert drop_label("Exact Answer: x Exact Answer: y ") == "x y"
    assert drop_label("exact answer: x") == "exact answer: x"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("because.\nExact Answer: Paris\nThanks", "Paris"),
        ("**exact answer**: *Paris*", "Paris"),
        ("Exact Answer: no\nExact Answer: yes", "yes"),
        (" Paris ", "Paris"),
        ("Exact Answer:", ""),
        ("Exact Answer:\nParis", "Paris"),
    ],
)
def test_the_strict_label_is_read_in_any_case_and_markup(text, answer):
    assert after_label(text) == answer


def test_containment_needs_whole_words_and_both_sides():
    assert contains("It is the Eiffel Tower.", "Eiffel Tower")
    assert not contains("1997", "19")
    assert not contains("anything", "The")
    assert not contains("", "Paris")


@given(st.text(), st.text(alphabet="xyz ", min_size=1), st.text())
def test_what_stands_between_two_spaces_is_contained(before, reference, after):
    assert contains(f"{before} {reference} {after}", reference) == bool(normalise(reference))
