"""The grader of triplets: worked examples of the card, and every state that a caption can be in."""

from pathlib import Path

import msgspec
import pytest

from remeasure import grading
from remeasure.aligned import Aligned
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.graders import by_name
from remeasure.grading import Bootstrap, GradeSettings, Tally
from remeasure.records import Item, Metric, Response

ROOT = Path(__file__).parents[2]
LEXICON = "config/lexicons/coco.tsv"
OPTIONS = {
    "lexicon": {"name": "coco", "path": LEXICON, "sha256": sha256_file(ROOT / LEXICON)},
    "unknown_objects": "other",
    "extra_synonyms": {},
    "denominator": "complete",
    "cut_off": "keep",
    "negation": False,
}
# TOSC card, section 3.2, with its seventh triplet.
EXAMPLE = [
    ("dog", "cat", "A dog naps on a couch.", "An empty couch by a window.", "A cat naps on a couch."),
    ("car", "bus", "Two cars wait at a light.", "A car stands on the street.", "A bus waits at a light."),
    ("cup", "vase", "A cup stands on the shelf.", "The shelf is empty.", "A vase and a cup stand there."),
    ("bird", "kite", "A clear blue sky.", "A clear blue sky.", "A kite floats in the sky."),
    ("hot dog", "pizza", "Hot dogs on a grill.", "A dog sits by the grill.", "A grill with flames."),
    ("bear", "teddy bear", "A bear in the river.", "A river between trees.", "A teddy bear on a rock."),
    ("cup", "vase", "A cup stands on the shelf.", "The shelf is empty.", "A cup stands there."),
]
STATES = ("origin", "removed", "replaced")


def triplet(number, o, r):
    return [
        Item(
            item_id=f"{number:06}-{state}",
            question="",
            group=f"{number:06}",
            meta={"index": number, "state": state, "original": o, "replacement": r},
        )
        for state in STATES
    ]


def said(item, text, status="answered"):
    return Response(custom_id=item.item_id, key="k", status=status, text=text)


def graded(triplets, **options):
    """Grade (o, r, *captions); a caption is a text or (status, text)."""
    items, responses = [], []
    for number, (o, r, *captions) in enumerate(triplets, start=1):
        for item, caption in zip(triplet(number, o, r), captions, strict=True):
            status, text = caption if isinstance(caption, tuple) else ("answered", caption)
            items.append(item)
            responses.append(said(item, text, status))
    grader = by_name("triplets")
    tally = Tally(grader.headline)
    found = []
    lines = grading.grade_all(
        grader,
        items,
        Aligned(responses, "custom_id", "responses"),
        None,
        thinking=False,
        options=OPTIONS | options,
    )
    for unit, line in lines:
        tally.add(line)
        for response in unit.responses:
            tally.add_answer(response.status, response.text)
        found.append(line)
    settings = GradeSettings(
        study="tosc",
        bench="triplets",
        arm="describe",
        model="m",
        grader="triplets",
        options=OPTIONS | options,
        k=None,
        thinking=False,
        reader="M",
        judge=None,
        corpus=None,
        bootstrap=Bootstrap(n=200, seed=1),
        max_judge_failed_share=0.0,
    )
    return found, grading.score(settings, grader, tally, retrieved=False)


def percents(score, reading="strict"):
    numbers = {
        name: {"published": m.published, "strict": m.strict, **m.also}[reading]
        for name, m in score.metrics.items()
    }
    return {name: round(100 * number.value, 2) for name, number in numbers.items()}


@pytest.mark.parametrize("reading", ["published", "strict", "phrase"])
def test_six_worked_triplets_give_the_nine_rates_of_the_card(reading):
    _, score = graded(EXAMPLE[:6])
    assert percents(score, reading) == {
        "opa": 83.33,
        "rca": 83.33,
        "rua": 66.67,
        "tosc": 33.33,
        "oldpersist_rem": 16.67,
        "oldpersist_rep": 16.67,
        "repfail": 16.67,
        "cc": 16.67,
        "mixconf": 16.67,
        "rca_given_opa": 80.0,
        "rua_given_opa": 60.0,
    }
    assert (score.n, score.n_answers, score.headline) == (6, 18, "tosc")


def test_a_seventh_triplet_tells_rates_apart_that_are_alike_in_six():
    _, score = graded(EXAMPLE)
    found = percents(score)
    assert [found[name] for name in ("opa", "rca", "rua", "tosc")] == [85.71, 85.71, 57.14, 28.57]
    assert [found[name] for name in ("oldpersist_rem", "oldpersist_rep")] == [14.29, 28.57]
    assert [found[name] for name in ("repfail", "cc", "mixconf")] == [28.57, 14.29, 14.29]


def test_a_line_says_the_bits_the_verdict_and_the_part_it_belongs_to():
    (first, *_, last), _ = graded(EXAMPLE[:6])
    assert (first.strict.verdict, first.strict.score) == ("consistent", 1.0)
    assert first.strict.reason == "a=1 b=0 c=0 d=1"
    assert first.strata == {"object": "dog", "overlap": "none"}
    assert last.strata == {"object": "bear", "overlap": "o_in_r"}
    assert first.status == "answered" and first.item_id == "000001"


def test_marks_point_at_the_words_that_decided():
    (line,), _ = graded([("bear", "teddy bear", "A bear.", "A river.", "Two Teddy-Bears and a dog")])
    captions = {"000001-origin": "A bear.", "000001-replaced": "Two Teddy-Bears and a dog"}
    shown = [(mark.label, captions[mark.item_id][mark.start : mark.end]) for mark in line.marks]
    assert shown == [("bear", "bear"), ("teddy bear", "Teddy-Bears")]


@pytest.mark.parametrize("status", ["failed", "refused", "not_sent"])
def test_a_caption_that_is_missing_is_rewarded_as_published_and_left_out_under_strict(status):
    # The object was removed and nothing is said about it: RCA 1 for silence.
    (line,), score = graded([("dog", "cat", "A dog.", (status, None), "A cat.")])
    assert line.published.scores["rca"] == 1.0 and line.published.score == 1.0
    assert line.strict.score is None and set(line.strict.scores.values()) == {None}
    assert (line.strict.verdict, line.status) == ("ungraded", status)
    assert line.strict.reason == f"no caption: removed {status.replace('_', ' ')}"
    assert line.also["phrase"].verdict == "ungraded"
    assert (score.metrics["rca"].published.n, score.metrics["rca"].strict.n) == (1, 0)
    assert score.metrics["rca"].n_differ == 1
    assert score.statuses == {"answered": 2, status: 1}


@pytest.mark.parametrize("status", ["failed", "not_sent"])
def test_text_beside_a_failure_is_no_caption(status):
    (line,), _ = graded([("dog", "cat", "A dog.", (status, "A dog."), "A cat.")], denominator="per_rate")
    assert line.published.reason == "a=1 b=0 c=0 d=1"
    assert line.strict.scores["rca"] is None
    assert {mark.item_id for mark in line.marks} == {"000001-origin", "000001-replaced"}


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_caption_is_a_state_of_its_own(text):
    (line,), score = graded([("dog", "cat", "A dog.", text, "A cat.")])
    assert line.published.scores["rca"] == 1.0
    assert line.strict.verdict == "ungraded" and line.strict.reason == "no caption: removed empty"
    assert score.n_empty == 1


def test_each_rate_may_be_taken_over_the_triplets_that_have_its_captions():
    given = [("dog", "cat", "A dog.", ("failed", None), "A cat.")]
    (line,), _ = graded(given, denominator="per_rate")
    values = line.strict.scores
    assert (values["opa"], values["rua"], values["repfail"]) == (1.0, 1.0, 0.0)
    assert (values["rca"], values["oldpersist_rem"], values["rca_given_opa"]) == (None, None, None)
    assert values["rua_given_opa"] == 1.0 and line.strict.score is None


def test_a_cut_caption_is_looked_at_whole_or_without_its_last_sentence_as_published():
    cut = ("cut_off", "A river. Beside it a dog and a ca")
    (kept,), _ = graded([("dog", "cat", cut, "A river.", "A cat.")])
    (dropped,), _ = graded([("dog", "cat", cut, "A river.", "A cat.")], cut_off="drop_last_sentence")
    assert (kept.published.scores["opa"], dropped.published.scores["opa"]) == (1.0, 0.0)
    assert kept.status == "cut_off"


@pytest.mark.parametrize("end", [".", "!", "?"])
def test_a_sentence_ends_in_three_ways(end):
    cut = ("cut_off", f"A dog is here{end} Then a ca")
    (line,), _ = graded([("dog", "cat", cut, "x", "A cat")], cut_off="drop_last_sentence")
    assert line.published.scores["opa"] == 1.0
    whole = ("cut_off", "A dog and")
    (line,), _ = graded([("dog", "cat", whole, "x", "A cat")], cut_off="drop_last_sentence")
    assert line.published.scores["opa"] == 1.0


@pytest.mark.parametrize("cut_off", ["keep", "drop_last_sentence"])
def test_what_a_cut_caption_did_not_come_to_is_never_not_mentioned_under_strict(cut_off):
    # The dog may have come next: neither OPA 0 nor RCA 1 is known.
    cut = ("cut_off", "A river with a big")
    (line,), score = graded([("dog", "cat", cut, cut, "A cat.")], cut_off=cut_off)
    assert line.strict.verdict == "ungraded" and set(line.strict.scores.values()) == {None}
    assert line.strict.reason == "no caption: origin cut off, removed cut off"
    assert (line.published.scores["opa"], line.published.scores["rca"]) == (0.0, 1.0)
    assert score.metrics["opa"].n_differ == 1


def test_each_reading_has_its_own_words_and_rules():
    # An orange shirt: a word for published and phrase, no thing in context. A bow: a tie to the lineage.
    (orange,), _ = graded([("orange", "cat", "An orange shirt hangs there.", "A wall.", "A cat.")])
    readings = {"published": orange.published, "strict": orange.strict, "phrase": orange.also["phrase"]}
    assert {name: one.scores["opa"] for name, one in readings.items()} == {
        "published": 1.0,
        "strict": 0.0,
        "phrase": 1.0,
    }
    (bow,), _ = graded([("tie", "cat", "She has a bow in her hair.", "A wall.", "A cat.")])
    readings = {"published": bow.published, "strict": bow.strict, "phrase": bow.also["phrase"]}
    assert {name: one.scores["opa"] for name, one in readings.items()} == {
        "published": 1.0,
        "strict": 0.0,
        "phrase": 0.0,
    }
    assert [(mark.label, mark.readings) for mark in bow.marks] == [
        ("tie", ("published",)),
        ("cat", ("published", "strict", "phrase")),
    ]


def test_a_result_names_its_lexicon_and_its_matchers():
    _, score = graded(EXAMPLE[:1])
    assert score.method == {
        "lexicon": "coco",
        "lexicon_sha256": sha256_file(ROOT / LEXICON),
        "matcher_published": "lemma@1",
        "matcher_strict": "phrase+context@1",
        "matcher_phrase": "phrase@1",
    }


def test_refused_captions_are_read_as_published_where_they_have_a_text():
    (line,), _ = graded([("dog", "cat", ("refused", "I see no dog."), "x", "A cat.")])
    assert line.published.scores["opa"] == 1.0 and line.strict.score is None


def test_objects_are_parted_by_class_and_counts_are_those_of_the_strict_reading():
    lines, score = graded(
        [
            ("mug", "cat", "A mug.", "An orange shirt and no dog.", "A cat."),
            ("cup", "sports car", "A cup.", "A shelf.", "A car."),
        ]
    )
    assert [line.strata["object"] for line in lines] == ["cup", "cup"]
    # Strict: mug, dog, cat; cup, car. The shirt is no orange there. "car" is the last word of "sports car".
    assert score.counts == {
        "mentions": 5,
        "denied_mentions": 1,
        "head_matches": 1,
        "captions_without_latin": 0,
    }


@pytest.mark.parametrize("reading", ["published", "strict", "phrase"])
def test_rates_that_do_not_fit_together_are_a_defect(reading):
    _, score = graded(EXAMPLE)
    grader = by_name("triplets")
    grader.check(score.metrics)
    wrong = msgspec.to_builtins(score.metrics)
    there = wrong["rua"]["also"] if reading == "phrase" else wrong["rua"]
    there[reading]["value"] += 0.1
    with pytest.raises(AssertionError, match="does not hold"):
        grader.check(msgspec.convert(wrong, dict[str, Metric]))


def test_a_caption_in_another_script_mentions_nothing_and_is_graded():
    (line,), score = graded([("dog", "cat", "一只狗在沙发上", "沙发", "Кошка на диване 🐈")])
    assert score.counts["captions_without_latin"] == 3
    assert line.strict.reason == "a=0 b=0 c=0 d=0" and line.strict.score == 0.0


def test_an_object_outside_the_lexicon_is_an_error_or_looked_for_by_its_name():
    given = [("car", "sports car", "A car.", "A street.", "A red sports car by the curb.")]
    (line,), _ = graded(given)
    assert line.strict.reason == "a=1 b=0 c=0 d=1"
    with pytest.raises(RemeasureError, match="'sports car' is not in the lexicon"):
        graded(given, unknown_objects="error")


def test_further_names_of_an_object_outside_the_lexicon_are_looked_for_too():
    given = [("car", "sports car", "A car.", "A street.", "Two fast roadsters by the curb.")]
    (plain,), _ = graded(given)
    (extra,), _ = graded(given, extra_synonyms={"sports car": ["racing car", "roadster"]})
    assert (plain.strict.reason, extra.strict.reason) == ("a=1 b=0 c=0 d=0", "a=1 b=0 c=0 d=1")
    assert extra.published.reason == "a=1 b=0 c=0 d=1"


def test_a_denied_mention_counts_unless_negation_is_asked_for():
    given = [("dog", "cat", "A dog.", "There is no dog in the picture.", "A cat.")]
    (plain,), score = graded(given)
    (aware,), _ = graded(given, negation=True)
    assert (plain.strict.scores["rca"], aware.strict.scores["rca"]) == (0.0, 1.0)
    assert score.counts["denied_mentions"] == 1


def test_two_names_of_one_object_are_a_conflict():
    (line,), _ = graded([("dog", "dog", "A dog.", "x", "A dog.")])
    assert line.published.verdict == line.strict.verdict == "ungraded"
    assert line.published.score is None and "both 'dog'" in line.published.reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lexicon": {"name": "coco", "path": LEXICON, "sha256": "0" * 64}}, "SHA-256"),
        ({"denominator": "some"}, "denominator"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_options_are_said(change, said):
    with pytest.raises(RemeasureError, match=said):
        graded(EXAMPLE[:1], **change)


def without(state):
    """Grade a triplet that lacks one image, as an index of the policy `available` lists it."""
    items = [item for item in triplet(1, "dog", "cat") if item.meta["state"] != state]
    captions = {"origin": "A dog.", "removed": "A couch.", "replaced": "A cat."}
    answers = [said(item, captions[item.meta["state"]]) for item in items]

    def line(**options):
        responses = Aligned(answers, "custom_id", "responses")
        found = grading.grade_all(
            by_name("triplets"), items, responses, None, thinking=False, options=OPTIONS | options
        )
        return next(found)[1]

    return line


@pytest.mark.parametrize("reading", ["published", "strict"])
def test_an_image_that_is_not_there_is_no_silent_caption_in_any_reading(reading):
    line = without("removed")(denominator="per_rate")
    one = getattr(line, reading)
    # RCA needs the caption of the removed image, TOSC all three.
    assert (one.score, one.scores["rca"], one.scores["opa"], one.scores["rua"]) == (None, None, 1.0, 1.0)
    assert one.reason == "no caption: removed has no image"


def test_complete_means_complete_where_an_image_is_missing():
    line = without("removed")(denominator="complete")
    assert set(line.published.scores.values()) == {None} and line.published.score is None


@pytest.mark.parametrize("states", [("removed", "origin"), ("origin", "origin"), ("origin", "elsewhere")])
def test_a_unit_that_is_no_triplet_is_said(states):
    items = [
        Item(
            item_id=f"x{number}",
            question="",
            group="000001",
            meta={"state": state, "original": "dog", "replacement": "cat"},
        )
        for number, state in enumerate(states)
    ]
    responses = Aligned([said(item, "A dog.") for item in items], "custom_id", "responses")
    with pytest.raises(RemeasureError, match="expected one image each of origin, removed, replaced"):
        list(grading.grade_all(by_name("triplets"), items, responses, None, thinking=False, options=OPTIONS))


def test_items_of_a_triplet_that_stand_apart_are_said():
    one, two = triplet(1, "dog", "cat"), triplet(2, "dog", "cat")
    items = [*one[:2], *two, one[2]]
    responses = Aligned([said(item, "A dog.") for item in items], "custom_id", "responses")
    with pytest.raises(RemeasureError):
        list(grading.grade_all(by_name("triplets"), items, responses, None, thinking=False, options=OPTIONS))
