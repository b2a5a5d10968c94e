"""Edges of ranked lists, of hits, of a judge's lines, of rare candidates and of what a grader counts."""

import json

import pytest

from remeasure import grading
from remeasure.aligned import Aligned
from remeasure.diagnoses import candidates, judging, lists, matching, names
from remeasure.graders import Unit, by_name
from remeasure.grading import Bootstrap, GradeSettings, Tally
from remeasure.records import ImageRef, Item, Response

MARKER = "Failed to obtain answer via API."
GOLD = ("Fabry disease",)
IMAGE = ImageRef(sha256="0" * 64, path="images.zip", member="0")


# Lists: what the published module makes of each reply; it was run on them.
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        # Two numbered lines are enough: inline numbers are not looked for.
        ("<think>x</think>1. A 2. B\n2. C", ["A 2. B", "C"]),
        # Inline numbers give one candidate, too: as many are not more.
        ("<think>x</think>1. Foo\nnote", ["Foo"]),
        # An inline number has two digits at most.
        ("<think>x</think>a 123. b", ["a 123. b"]),
        ("<think>x</think>a 12. b", ["a", "b"]),
        # Thinking is told by its tag, whatever its case.
        ("<THINK>x</THINK>1. a 2. b", ["a", "b"]),
        # Marks of lists are trimmed, a full stop is not.
        ("A.; B", ["A.", "B"]),
        ("- A.\n* B -", ["A.", "B"]),
    ],
)
def test_published_lists_at_their_edges(reply, expected):
    assert lists.published(reply) == expected


def how(rule, candidate, name):
    (hit,) = rule([candidate], [name])
    return hit.how if hit else None


def test_an_f1_on_the_threshold_hits():
    # 3 shared words of 5 and 5: 2 * 0.6 * 0.6 / 1.2 = 0.6; 2 of 3 and 4: 4/7.
    assert how(matching.hits_published, "a1 b1 c1 d1 e1", "a1 b1 c1 x1 y1") == "token F1"
    assert how(matching.hits_published, "a1 b1 c1", "a1 b1 x1 y1") is None
    assert how(matching.hits_strict, "alpha1 beta1 gamma1 d1 e1", "alpha1 beta1 gamma1 x1 y1") == "token F1"


def test_strict_needs_a_shared_word_that_says_which_disease_it_is():
    # Three of four words are shared, F1 0.75, and all three are generic.
    one, other = "congenital metabolic disorder Fabry", "congenital metabolic disorder Pompe"
    assert how(matching.hits_published, one, other) == "token F1"
    assert how(matching.hits_strict, one, other) is None


def test_a_generic_word_behind_a_word_like_factor_is_no_type():
    # Shared are 2 of 2 and 3 words: F1 0.8. "deficiency" would be the type of the first, 8 of the second.
    assert how(matching.hits_strict, "Factor deficiency", "Factor VIII deficiency") == "token F1"
    assert how(matching.hits_strict, "Factor VII deficiency", "Factor VIII deficiency") is None


def test_one_common_type_is_enough_and_a_name_without_type_differs_from_none():
    assert how(matching.hits_strict, "trisomy 13 and 18 mosaic", "trisomy 18 mosaic") == "token F1"
    assert how(matching.hits_strict, "trisomy mosaic", "trisomy 18 mosaic") == "token F1"


def test_a_number_of_three_digits_is_a_name_and_no_type():
    assert names.designators(("keratin", "12", "dystrophy")) == {"12"}
    assert names.designators(("keratin", "123", "dystrophy")) == frozenset()
    # 4 shared words of 5 and 5.
    one, other = "keratin 101 dystrophy of skin", "keratin 102 dystrophy of skin"
    assert how(matching.hits_strict, one, other) == "token F1"
    assert how(matching.hits_strict, one.replace("101", "11"), other.replace("102", "12")) is None


def test_the_number_of_the_first_line_is_right_in_the_first_line_alone():
    assert judging.strict("1. YES\nNO\n2\nYES\nYES") == judging.Judged(1, 0, 2, 1, 1)
    assert judging.strict("YES\n1. NO\n2\nYES\nYES") == "line 2 has another number"
    assert judging.strict("YES\nNO\n2\nYES\n1. YES") == "line 5 has another number"


def test_of_eleven_candidates_ten_count():
    judged = {
        f"d{n}": candidates.published(json.dumps({"candidate": f"D{n}", "label": "rare"}), f"D{n}")
        for n in range(11)
    }
    found = candidates.counted([f"D{n}" for n in range(11)], judged)
    assert (found.n_rare, found.ratio, found.n_unknown) == (10, 1.0, 0)


# -- the grader --------------------------------------------------------------------------------------------


def item(item_id="q1", references=GOLD, n_images=2):
    return Item(
        item_id=item_id, question="?", references=references, group=item_id, images=(IMAGE,) * n_images
    )


def response(text, status="answered", item_id="q1"):
    return Response(custom_id=item_id, key="k", status=status, text=text)


def graded(text, *, references=GOLD, n_images=2, judge=None):
    grader = by_name("ranked_list" if judge is None else "judge_ranked_list")
    reply = None if judge is None else response(judge)
    unit = Unit("q1", (item(references=references, n_images=n_images),), (response(text),), (reply,), False)
    return grader.begin({})(unit)


def test_white_space_before_the_sentence_of_a_failed_request_does_not_make_it_an_answer():
    found = graded(f" \n\t{MARKER}")
    assert (found.strict.verdict, found.strict.scores["infer_fail_rate"]) == ("ungraded", 1.0)
    assert found.published.scores["infer_fail_rate"] == 1.0


def test_the_sentence_of_a_failed_request_counts_wherever_it_stands_as_published():
    # The original counts every row with the sentence in it.
    found = graded(f"1. Fabry disease\n2. {MARKER}")
    assert (found.published.score, found.published.scores["infer_fail_rate"]) == (1.0, 1.0)


NAMES = ("hits", "hits_strict", "hits_published_only", "hits_strict_only", "hits_by_substring", "short_lists")


def listed(n, first):
    return "\n".join([f"1. {first}", *(f"{k}. Wrong{k}osis" for k in range(2, n + 1))])


# Reply, right diagnosis, then the counts in the order above; by hand.
@pytest.mark.parametrize(
    ("reply", "gold", "counts"),
    [
        (listed(10, "Fabry disease"), "Fabry disease", (1, 1, 0, 0, 0, 0)),
        (listed(9, "Fabry disease"), "Fabry disease", (1, 1, 0, 0, 0, 1)),
        (listed(1, "Fabry disease"), "Fabry disease", (1, 1, 0, 0, 0, 1)),
        (listed(12, "Fabry disease"), "Fabry disease", (1, 1, 0, 0, 0, 0)),
        # No list at all is no short one.
        ("<think>x", "Fabry disease", (0, 0, 0, 0, 0, 0)),
        (listed(2, "Gout"), "Fabry disease", (0, 0, 0, 0, 0, 1)),
        # The first hit decides.
        ("1. Fabry\n2. Fabry disease", "Fabry disease", (1, 1, 0, 0, 1, 1)),
        ("1. Fabry disease\n2. Fabry", "Fabry disease", (1, 1, 0, 0, 0, 1)),
        ("1. giant cell myocarditis", "giant cell arteritis", (1, 1, 0, 0, 0, 1)),
        ("1. Disease", "Fabry disease", (1, 0, 1, 0, 1, 1)),
        # 1 shared word of 2 and 3 as published, F1 0.4; the same words when strict.
        ("1. Erdheim Chester disease", "Erdheim-Chester disease", (0, 1, 0, 1, 0, 1)),
    ],
)
def test_what_is_counted_of_a_list(reply, gold, counts):
    found = graded(reply, references=(gold,)).counts
    assert tuple(found[name] for name in NAMES) == counts


@pytest.mark.parametrize(
    ("n", "part"), [(0, "0"), (1, "1"), (3, "3"), (4, "4 or more"), (5, "4 or more"), (30, "4 or more")]
)
def test_cases_of_four_images_or_more_stand_together(n, part):
    assert graded("1. Gout", n_images=n).strata["images"] == part


def test_a_full_type_match_is_three():
    def mark(typematch):
        shown = graded("1. Fabry disease", judge=f"YES\nYES\n{typematch}\nYES\nNO").shown[-1]
        return [(line.mark, line.note) for line in shown.lines[2:5]]

    assert mark(3) == [("yes", "3"), ("yes", "1"), ("no", "0")]
    assert mark(1) == [("no", "1"), ("yes", "1"), ("no", "0")]


def test_the_mean_judge_score_of_the_cards_two_replies():
    # Card, 6.1: [1,0,2,1,1] and [0,0,0,1,0]: judge_avg_score 0.466667, judge_dim_typematch 1.0.
    grader = by_name("judge_ranked_list")
    replies = ("YES\nNO\n2\nYES\nYES", "NO\nNO\n0\nYES\nNO")
    answers = [response("1. Fabry\n2. Gout", item_id=f"q{n}") for n in range(2)]
    judged = [response(text, item_id=f"q{n}") for n, text in enumerate(replies)]
    tally = Tally(grader.headline)
    lines = grading.grade_all(
        grader,
        [item(f"q{n}") for n in range(2)],
        Aligned(answers, "custom_id", "responses"),
        Aligned(judged, "custom_id", "judge"),
        thinking=False,
        options={},
    )
    for _, line in lines:
        tally.add(line)
    settings = GradeSettings(
        study="mrarebench",
        bench="diagnosis",
        arm="lc",
        model="m",
        grader=grader.name,
        k=None,
        thinking=False,
        reader="M",
        judge="J",
        corpus=None,
        bootstrap=Bootstrap(n=50, seed=1),
        max_judge_failed_share=0.01,
    )
    metrics = grading.score(settings, grader, tally, retrieved=False).metrics
    for reading in ("published", "strict"):
        found = {name: getattr(metrics[name], reading) for name in metrics if name.startswith("judge_")}
        assert {name: (round(number.value, 6), number.n) for name, number in found.items()} == {
            "judge_score": (0.466667, 2),
            "judge_presence": (0.5, 2),
            "judge_top1": (0.0, 2),
            "judge_typematch": (1.0, 2),
            "judge_specificity": (1.0, 2),
            "judge_coherence": (0.5, 2),
        }


def test_what_is_better_low_or_no_share():
    # Every other metric is a share of which more is better.
    metrics = by_name("judge_ranked_list").metrics
    assert {m.name: (m.better, m.kind) for m in metrics if (m.better, m.kind) != ("high", "share")} == {
        "mr": ("low", "number"),
        "parse_fail_rate": ("low", "share"),
        "infer_fail_rate": ("low", "share"),
        "judge_typematch": ("high", "number"),
    }
