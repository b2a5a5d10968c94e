from pathlib import Path

import pytest

from remeasure.errors import RemeasureError
from remeasure.mentions import lexicon
from remeasure.mentions.matching import Matcher
from remeasure.mentions.objects import canonical_name, conflict, overlap, own_forms, resolve
from remeasure.mentions.preparing import Prepared
from remeasure.mentions.rates import rates
from remeasure.mentions.triplets import Detected, detect

TSV = Path(__file__).resolve().parents[2] / "config" / "lexicons" / "coco.tsv"
LEXICONS = {name: lexicon.read(TSV, name) for name in ("strict", "published")}
MATCHERS = {
    "phrase": Matcher.of("phrase", LEXICONS["strict"]),
    "strict": Matcher.of("phrase+context", LEXICONS["strict"]),
    "published": Matcher.of("lemma", LEXICONS["published"]),
}


def lexicon_of(reading: str) -> lexicon.Lexicon:
    return LEXICONS["published" if reading == "published" else "strict"]


def target(name: str, side: str = "o", reading: str = "strict"):
    return resolve(name, side, lexicon_of(reading), unknown_objects="other")


def looked(o: str, r: str, *captions: str, reading: str = "strict", negation: bool = False) -> Detected:
    targets = target(o, "o", reading), target(r, "r", reading)
    return detect(captions, *targets, MATCHERS[reading], negation=negation)


def digits(found: Detected) -> str:
    return "".join(str(int(bit)) for bit in found.bits)


# TOSC card, section 3.2: o, r, three captions, bits; the seventh tells RepFail from CC.
EXAMPLE = [
    ("dog", "cat", "A dog naps on a couch.", "An empty couch by a window.", "A cat naps on a couch.", "1001"),
    (
        "car",
        "bus",
        "Two cars wait at a light.",
        "A car stands on the street.",
        "A bus waits at a light.",
        "1101",
    ),
    (
        "cup",
        "vase",
        "A cup stands on the shelf.",
        "The shelf is empty.",
        "A vase and a cup stand there.",
        "1011",
    ),
    ("bird", "kite", "A clear blue sky.", "A clear blue sky.", "A kite floats in the sky.", "0001"),
    ("hot dog", "pizza", "Hot dogs on a grill.", "A dog sits by the grill.", "A grill with flames.", "1000"),
    (
        "bear",
        "teddy bear",
        "A bear in the river.",
        "A river between trees.",
        "A teddy bear on a rock.",
        "1001",
    ),
    ("cup", "vase", "A cup stands on the shelf.", "The shelf is empty.", "A cup stands there.", "1010"),
]


@pytest.mark.parametrize("reading", MATCHERS)
@pytest.mark.parametrize("row", EXAMPLE)
def test_the_hand_example_in_every_reading(row, reading):
    assert digits(looked(*row[:5], reading=reading)) == row[5]


def test_from_captions_to_rates():
    found = rates(looked(*row[:5]).bits for row in EXAMPLE[:6])
    assert (found["tosc"].value, found["opa"].value, found["mixconf"].value) == (2 / 6, 5 / 6, 1 / 6)


def test_substring_search_differs_in_one_bit():
    def naive(row):
        o, r, *captions = row[:5]
        said = [caption.lower() for caption in captions]
        return "".join(str(int(hit)) for hit in (o in said[0], o in said[1], o in said[2], r in said[2]))

    assert [naive(row) for row in EXAMPLE[:6]] == ["1001", "1101", "1011", "0001", "1000", "1011"]


# TOSC card, section 4.6: o, r, replaced caption, c, d
@pytest.mark.parametrize(
    ("o", "r", "caption", "c", "d"),
    [
        ("car", "sports car", "A red sports car by the curb.", 0, 1),
        ("car", "sports car", "A red sports car; the car shines.", 1, 1),
        ("bear", "teddy bear", "A teddy bear on a rock.", 0, 1),
        ("dog", "hot dog", "A hot dog on a plate.", 0, 1),
        ("chair", "couch", "A couch with two seats.", 1, 1),
        ("cup", "mug", "A mug.", 1, 1),  # one class
    ],
)
@pytest.mark.parametrize("reading", MATCHERS)
def test_objects_that_overlap(o, r, caption, c, d, reading):
    found = looked(o, r, "", "", caption, reading=reading)
    assert (found.bits.c, found.bits.d) == (c, d)


@pytest.mark.parametrize("reading", MATCHERS)
def test_forms_of_the_new_object_are_active_in_the_last_caption_only(reading):
    car = "a red sports car"
    assert digits(looked("car", "sports car", car, car, car, reading=reading)) == "1101"


@pytest.mark.parametrize("reading", MATCHERS)
def test_forms_of_the_old_object_are_active_in_all_captions(reading):
    globe = "Snow-globes and a snowglobe"
    assert digits(looked("snow globe", "car", globe, globe, globe + " on a car", reading=reading)) == "1111"
    # "sports car" is the old object, so no caption mentions a car with these words
    sports = "The sports cars"
    assert digits(looked("sports car", "car", sports, "a car", sports, reading=reading)) == "1010"


def test_own_forms_win_over_the_lexicon():
    assert digits(looked("street light", "bird", "a street light", "", "")) == "1000"  # else a block
    assert digits(looked("bird", "sea gull", "a seagull", "", "a seagull")) == "1001"  # else a bird
    assert digits(looked("red bus", "bus stop", "a red bus stop", "red bus", "a red bus stop")) == "1110"


@pytest.mark.parametrize(
    ("caption", "head"),
    [("a car", True), ("two cars", True), ("a sports car", False), ("a truck", False), ("", False)],
)
def test_a_bare_last_word_is_no_mention_but_reported(caption, head):
    found = looked("dog", "sports car", "", "", caption)
    assert found.bits.d is (caption == "a sports car")
    assert found.head_match() == {"d": head}
    assert looked("snow globe", "dog", caption, "a globe", "Globes").head_match() == {
        "a": False,
        "b": True,
        "c": True,
    }
    assert looked("dog", "unicorn", caption, "", "").head_match() == {}


def test_negation_is_an_option_and_its_effect_is_reported():
    captions = ("A dog.", "There is no dog.", "No dog but a cat.")
    off = looked("dog", "cat", *captions, reading="phrase")
    on = looked("dog", "cat", *captions, reading="phrase", negation=True)
    assert (digits(off), digits(on)) == ("1111", "1001")
    assert off.n_mentions() == on.n_mentions() == (4, 2)
    assert [len(marks) for marks in off.marks()] == [1, 1, 2]
    assert [len(marks) for marks in on.marks()] == [1, 0, 1]


def test_marks_are_what_the_bits_rest_on_and_nothing_else():
    captions = ("A dog’s bed and a cat.", "A couch.", "The Sports  car hides a dog, a bus.")
    found = looked("dog", "sports car", *captions)
    assert [
        [(mark.label, text[mark.start : mark.stop]) for mark in marks]
        for text, marks in zip(captions, found.marks(), strict=True)
    ] == [[("dog", "dog")], [], [("r", "Sports  car"), ("dog", "dog")]]


def test_prepared_captions_serve_several_matchers():
    captions = tuple(Prepared(caption) for caption in EXAMPLE[1][2:5])
    for reading, matcher in MATCHERS.items():
        targets = target("car", "o", reading), target("bus", "r", reading)
        assert digits(detect(captions, *targets, matcher, negation=False)) == "1101"


def test_empty_captions_mention_nothing():
    assert digits(looked("dog", "cat", "", "", "", reading="published")) == "0000"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("dog", "dog"),
        ("hot dog", "hot dog"),
        ("sports_car", "sports car"),
        ("cell_phone", "cell phone"),
        ("t-shirt", "t shirt"),
        ("  Teddy__Bear ", "teddy bear"),
        ("TV", "tv"),
        ("cafe\u0301", "café"),
        ("", ""),
    ],
)
def test_canonical_names(raw, name):
    assert canonical_name(raw) == name
    assert canonical_name(name) == name


@pytest.mark.parametrize(
    ("name", "strict", "published"),
    [
        ("dog", ("dog", None), ("dog", None)),
        ("kite", ("kite", None), ("kite", None)),
        ("mug", ("cup", None), ("cup", None)),
        ("people", ("person", None), ("person", None)),
        ("school bus", ("bus", None), ("bus", None)),  # the lineage joins no such words, but a name it is
        ("computer", (None, None), ("laptop", None)),
        ("sports car", (None, "car"), (None, "car")),
        ("bowling ball", (None, "sports ball"), (None, "sports ball")),  # a block has no class
        ("street light", (None, None), ("traffic light", None)),
        ("snow globe", (None, None), (None, None)),
        ("t shirt", (None, None), (None, None)),
        ("dog house", (None, None), (None, None)),
    ],
)
def test_a_name_has_a_class_or_a_parent_or_neither(name, strict, published):
    for reading, expected in (("strict", strict), ("published", published)):
        found = target(name, "r", reading)
        assert (found.cls, found.parent) == expected
        assert found.label == (found.cls or "r")
        assert bool(found.forms) == (found.cls is None)


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("unicorn", ("unicorn", "unicorns")),
        ("sports car", ("sports car", "sportscar", "sports cars", "sportscars")),
        ("sports cars", ("sports cars", "sportscars", "sports car", "sportscar")),
        ("snowman", ("snowman", "snowmen")),
        ("glass", ("glass", "glasses")),
        ("gas mask", ("gas mask", "gasmask", "gas masks", "gasmasks")),
        ("qwrtch", ("qwrtch", "qwrtches")),
        ("狗", ("狗",)),
    ],
)
def test_own_forms_are_both_numbers_apart_and_joined(name, forms):
    assert own_forms(name)[: len(forms)] == forms
    assert len(own_forms(name)) <= len(forms) + 1


def test_stored_forms_are_used_as_they_are():
    found = resolve(
        "unicorn", "r", LEXICONS["strict"], unknown_objects="other", forms=("unicorn", "horned horse")
    )
    assert detect(("", "", "a horned horse"), target("dog"), found, MATCHERS["strict"], negation=False).bits.d


def test_an_object_outside_the_table_is_an_error_unless_the_setting_allows_it():
    with pytest.raises(RemeasureError, match=r"'sports car' is not in the lexicon.*unknown_objects: other"):
        resolve("sports car", "r", LEXICONS["strict"], unknown_objects="error")
    with pytest.raises(RemeasureError, match=r"'teddi bear'.*did you mean 'teddy bear'"):
        resolve("teddi bear", "r", LEXICONS["strict"], unknown_objects="error")
    # Five letters of motorbike are in it, and it is none.
    with pytest.raises(RemeasureError, match=r"^object 'monitor' is not in the lexicon; add it to"):
        resolve("monitor", "r", LEXICONS["strict"], unknown_objects="error")
    assert resolve("sports car", "r", LEXICONS["strict"], unknown_objects="other").parent == "car"


def test_a_name_without_letters_cannot_be_looked_for():
    with pytest.raises(RemeasureError, match="no letter and no digit"):
        own_forms("?!")


# TOSC card, section 4.6
@pytest.mark.parametrize(
    ("o", "r", "kind"),
    [
        ("car", "sports car", "o_in_r"),
        ("sports car", "car", "r_in_o"),
        ("bear", "teddy bear", "o_in_r"),
        ("dog", "hot dog", "o_in_r"),
        ("cup", "mug", "same_class"),
        ("sedan", "sports car", "same_class"),
        ("sports car", "police car", "same_class"),
        ("chair", "couch", "none"),
        ("dog", "cat", "none"),
        ("cat", "cattle", "none"),  # part of a word
        ("snow globe", "hot air balloon", "none"),
        ("hot air balloon", "air", "r_in_o"),
        ("hot balloon", "hot air balloon", "none"),  # not one after the other
    ],
)
def test_overlap_of_two_names(o, r, kind):
    assert overlap(target(o), target(r, "r")) == kind


@pytest.mark.parametrize(
    ("o", "r", "said"),
    [
        ("dog", "dog", "both 'dog'"),
        ("unicorn", "unicorns", "share the form 'unicorn'"),
        ("snow globe", "snowglobe", "share the form 'snowglobe'"),
        ("dog", "cat", None),
        ("cup", "mug", None),
        ("car", "sports car", None),
        ("snow globe", "unicorn", None),
    ],
)
def test_two_names_that_cannot_be_told_apart_are_a_conflict(o, r, said):
    found = conflict(target(o), target(r, "r"))
    assert said in found if said else found is None
