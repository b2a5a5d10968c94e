import gc
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.mentions import lexicon
from remeasure.mentions.matching import Matcher

TSV = Path(__file__).resolve().parents[2] / "config" / "lexicons" / "coco.tsv"
STRICT, PUBLISHED = lexicon.read(TSV, "strict"), lexicon.read(TSV, "published")
PHRASE, CONTEXT = Matcher.of("phrase", STRICT), Matcher.of("phrase+context", STRICT)
LEMMA = Matcher.of("lemma", PUBLISHED)


def listed(text: str) -> set[str]:
    return set(text.split(", ")) - {""}


def labels(matcher: Matcher, caption: str) -> set[str]:
    return matcher.read(caption).labels()


def with_negation(caption: str) -> set[str]:
    found = PHRASE.read(caption)
    denied = found.denied()
    return {hit.label for hit in found.hits if hit not in denied}


# TOSC card, section 4.7: sentence, classes with the context rule, classes that come on top without it.
CONFORMANCE = [
    ("o knives rest beside a pair of scissors", "knife, scissors", ""),
    ("A red bus is parked", "bus", ""),
    ("Several buses wait in line", "bus", ""),
    ("Three wine glasses stand on the dining table", "dining table, wine glass", ""),
    ("A child holds a teddy bear", "person, teddy bear", ""),
    ("Two teddy bears sit on a bed", "bed, teddy bear", ""),
    ("A brown bear wades through the river", "bear", ""),
    ("A man eats a hot dog", "hot dog, person", ""),
    ("Hot dogs are lined up on the grill", "hot dog", ""),
    ("The dog lies on the couch", "couch, dog", ""),
    ("The toilet seat is up", "toilet", ""),
    ("The seat of the toilet is raised", "toilet", ""),
    ("An orange shirt hangs there", "", "orange"),
    ("Three oranges fill a bowl", "bowl, orange", ""),
    ("Someone peels an orange", "orange", ""),
    ("A jug of orange juice is half full", "", ""),
    ("An orange cat sleeps", "cat", "orange"),
    ("A remote village lies in the mountains", "", "remote"),
    ("A remote control lies on the sofa", "couch, remote", ""),
    ("A computer mouse sits next to the keyboard", "keyboard, mouse", ""),
    ("People ride horses along the beach", "horse, person", ""),
    ("Men and women stand in line", "person", ""),
    ("Sheep graze near a fence", "sheep", ""),
    ("A flock of geese crosses the road", "bird", ""),
    ("A train track runs past the barn", "", ""),
    ("A passenger train arrives", "train", ""),
    ("A baby elephant stands with an adult elephant", "elephant", ""),
    ("A baby sits on the floor", "person", ""),
    ("She has a bow in her hair", "", ""),
    ("A bow tie completes the outfit", "tie", ""),
    ("Cell phones and laptops cover the desk", "cell phone, dining table, laptop", ""),
    ("Several TVs are switched off", "tv", ""),
    ("Two vases hold flowers", "vase", ""),
    ("A vase holds flowers", "vase", ""),
    ("Doughnuts and bagels are stacked", "donut", ""),
    ("A stop sign stands at the corner", "stop sign", ""),
    ("The car stops near a sign", "car", ""),
    ("Traffic lights glow red", "traffic light", ""),
    ("A baseball glove and a baseball bat lie there", "baseball bat, baseball glove", ""),
    ("A bat flies at dusk", "", ""),
    ("Skis lean against the wall", "skis", ""),
    ("A tennis racket and a tennis ball", "sports ball, tennis racket", ""),
    ("The hair dryer is on the counter", "hair drier", ""),
    ("A potted plant decorates the sill", "potted plant", ""),
    ("A slice of cheesecake on a plate", "cake", ""),
    ("An iPhone lies on the table", "cell phone, dining table", ""),
    ("A motor bike leans on its stand", "motorcycle", ""),
    ("The dogs' leashes are tangled", "dog", ""),
    ("The cat's tail is striped", "cat", ""),
    ("A teddy-bear and a hot-dog stand", "hot dog, teddy bear", ""),
    ("A stove top oven and a fridge", "oven, refrigerator", ""),
    ("Giraffes and zebras share the enclosure", "giraffe, zebra", ""),
    ("Calves graze by the barn", "cow", ""),
    ("Ties hang from the rack", "tie", ""),
    ("Skis and snowboards are stacked", "skis, snowboard", ""),
    ("Fire hydrants line the street", "fire hydrant", ""),
    ("Benches face the lake", "bench", ""),
    ("Sandwiches and pizzas are served", "pizza, sandwich", ""),
    ("Mice and keyboards are sold here", "keyboard, mouse", ""),
    ("Toothbrushes stand in a cup", "cup, toothbrush", ""),
]


@pytest.mark.parametrize(("sentence", "expected", "more"), CONFORMANCE)
def test_the_conformance_sentences_hold_in_both_modes(sentence, expected, more):
    assert labels(CONTEXT, sentence) == listed(expected)
    assert labels(PHRASE, sentence) == listed(expected) | listed(more)


def test_there_are_sixty_conformance_sentences():
    assert len(CONFORMANCE) == 60
    assert sum(1 for _, _, more in CONFORMANCE if more) == 3


# Where the lineage's reading differs from the above, and why.
PUBLISHED_DIFFERS = {
    "An orange shirt hangs there": "orange",  # no part of speech
    "A jug of orange juice is half full": "orange",  # no block
    "An orange cat sleeps": "cat, orange",  # no part of speech
    "A remote village lies in the mountains": "remote",  # no part of speech
    "A computer mouse sits next to the keyboard": "mouse, keyboard, laptop",  # computer is a laptop
    "She has a bow in her hair": "tie",  # bow is a tie
}


@pytest.mark.parametrize(("sentence", "expected", "more"), CONFORMANCE)
def test_the_published_reading_of_the_conformance_sentences(sentence, expected, more):
    assert labels(LEMMA, sentence) == listed(PUBLISHED_DIFFERS.get(sentence, expected))


@pytest.mark.parametrize(
    ("sentence", "phrase", "context"),
    [
        # TOSC card, section 4.4, the table of the context rule
        ("An orange sits beside a bowl.", "orange, bowl", "orange, bowl"),
        ("A sliced orange on a board.", "orange", "orange"),
        ("A Wii remote rests in his hand.", "remote", "remote"),
        ("The carpet is orange.", "orange", ""),
        ("A bright orange jacket.", "orange", ""),
        ("An orange slice floats.", "orange", ""),
        ("In remote and rugged hills", "remote", ""),
        ("A dog-shaped balloon", "dog", ""),
        ("A cake shaped like a train", "cake, train", "cake, train"),
        ("Her orange and white cat naps.", "orange, cat", "orange, cat"),  # known error
        ("A large, juicy orange sits there.", "orange", ""),  # known error: comma
        # each part of the rule
        ("Some oranges", "orange", "orange"),
        ("In remotes", "remote", "remote"),
        ("the orange", "orange", "orange"),
        ("orange", "orange", ""),
        ("a big ripe orange.", "orange", "orange"),
        ("a very big ripe orange.", "orange", ""),  # three content words
        ("a bright ripe orange.", "orange", ""),  # colour modifier
        ("my orange can roll", "orange", "orange"),
        ("my orange jumps", "orange", ""),
        ("my orange, which", "orange", "orange"),
        ("the. orange", "orange", ""),
        ("a dog - shaped balloon", "dog", "dog"),  # a dash, no hyphen
        ("a dog shaped balloon", "dog", "dog"),
        ("a dog/shaped balloon", "dog", "dog"),
        ("a teddy-bear-sized box", "teddy bear", ""),
        ("a dog\u2010themed party", "dog", ""),
        ("a car-patterned rug, a train-themed bed", "car, train, bed", "bed"),
    ],
)
def test_context_touches_two_words_and_one_suffix(sentence, phrase, context):
    assert labels(PHRASE, sentence) == listed(phrase)
    assert labels(CONTEXT, sentence) == listed(context)


@pytest.mark.parametrize(
    ("sentence", "keyword", "aware"),
    [
        # TOSC card, section 4.4, the table of negation
        ("There is no dog in the picture.", "dog", ""),
        ("The street is without cars.", "car", ""),
        ("Not only a dog but also a cat.", "dog, cat", "dog, cat"),
        ("There is no dog but a cat sits here.", "dog, cat", "cat"),
        ("No dogs or cats.", "dog, cat", ""),
        ("There are no chairs or couches.", "chair, couch", ""),
        ("A cat is missing from the chair.", "cat, chair", "chair"),
        ("The sofa where the dog used to be is empty.", "couch, dog", "couch"),
        ("A man with no hat rides a horse.", "person, horse", "person, horse"),
        ("The bird has been removed.", "bird", "bird"),  # known miss
        ("Neither the bus nor the truck moves.", "bus, truck", ""),  # known error: both are visible
        # each part of the rule
        ("An absence of dogs, a lack of cats", "dog, cat", ""),
        ("A room free of any chairs", "chair", ""),
        ("A street devoid of cars", "car", ""),
        ("A lot of chairs", "chair", "chair"),
        ("No. A dog", "dog", "dog"),  # barrier
        ("No big black old dog", "dog", "dog"),  # fourth word
        ("No big black dog", "dog", ""),
        ("Not just dogs", "dog", "dog"),
        ("It is not the dog", "dog", ""),
        ("No hat yet dogs", "dog", "dog"),  # contrast
        ("The dog is no longer there", "dog", ""),
        ("The dog, is no longer there", "dog", "dog"),
        ("The dog was absent", "dog", ""),
        ("The dog is gone", "dog", ""),
        ("The dog is brown", "dog", "dog"),
        ("The dog is", "dog", "dog"),
        ("The wall where a dog once was", "dog", ""),
        ("The wall where the big black dog had been", "dog", "dog"),  # where is the fourth word back
        ("The dog used to be small", "dog", "dog"),
        ("Where. The dog had been", "dog", "dog"),
    ],
)
def test_negation_takes_back_what_a_caption_denies(sentence, keyword, aware):
    assert labels(PHRASE, sentence) == listed(keyword)
    assert with_negation(sentence) == listed(aware)


@pytest.mark.parametrize(
    ("sentence", "strict", "published"),
    [
        # blocks and redirects that section 4.4 requires
        ("A railroad track", "", ""),
        ("Tracks of a railway track", "", ""),
        ("Someone at home plate", "", ""),
        ("Orange juice and apple juice", "", "orange, apple"),
        ("They play table tennis", "", "dining table"),
        ("A seat belt", "", "chair"),
        ("A car seat belt", "", "car, chair"),
        ("A hair bow", "", "tie"),
        ("A baby stroller", "", "person"),
        ("Ski boots", "", "skis"),
        ("A bus stop", "", "bus"),
        ("A computer mouse", "mouse", "mouse, laptop"),
        ("A remote control", "remote", "remote"),
        ("Toilet seats", "toilet", "toilet"),
        ("The seat of the toilet", "toilet", "toilet"),
        ("A toilet beside two seats", "toilet, chair", "toilet"),  # the lineage: a toilet takes all seats
        ("A toilet seat, and a seat beside it", "toilet, chair", "toilet"),
        ("Seats in a row", "chair", "chair"),
        ("A toilet beside a stool", "toilet, chair", "toilet, chair"),
        ("A bow tie", "tie", "tie"),
        ("A baby duck", "bird", "person, bird"),  # the lineage knows "baby bird" only
        ("An adult polar bear, baby giraffes", "bear, giraffe", "person, bear, giraffe"),
        ("A baby cub and an adult animal", "person", ""),  # compounds of the lineage that show nothing
        ("A passenger train, a passenger jet", "train, airplane", "train, airplane"),
        ("A passenger plane", "airplane", "person, airplane"),
        ("Traffic signals and a stoplight", "traffic light", "traffic light"),
        ("A street light", "", "traffic light"),
        ("Streetlights", "", "traffic light"),
        ("A hair dryer, a hair drier", "hair drier", "hair drier"),
        ("A stove top oven", "oven", "oven"),
        ("A motor bike", "motorcycle", "motorcycle"),
        ("A teddy-bear eats a hot-dog", "teddy bear, hot dog", "teddy bear, hot dog"),
        ("A baseball player", "person", "person"),
        ("A bus driver", "person", "bus, person"),
        ("A clock tower", "clock", "clock"),
        # compounds against their parts
        ("Bears and a teddy bear", "bear, teddy bear", "bear, teddy bear"),
        ("A stuffed bear", "teddy bear", "bear"),  # no compound of the lineage
        ("Hot dogs for the dogs", "hot dog, dog", "hot dog, dog"),
        ("It is hot. Dog", "dog", "dog"),  # barrier
        ("A fire truck near a fire hydrant", "truck, fire hydrant", "truck, fire hydrant"),
        ("A baby", "person", "person"),
        ("Wine glasses", "wine glass", "wine glass"),
        ("Glasses of wine", "", ""),
        ("Wine-glass", "wine glass", "wine glass"),
        # broader words of the lineage
        ("A computer with a monitor", "", "laptop, tv"),
        ("A container with a turkey", "", "bowl, bird"),
        ("A sub on the desk by the stove", "dining table, oven", "sandwich, dining table, oven"),
        ("Goats", "", "sheep"),
        # the noun lemma, no part of speech
        ("He books a flight", "book", "book"),
        ("Tied up in a booking", "", ""),
        ("People, oxen and mice", "person, cow, mouse", "person, cow, mouse"),
        ("Minibuses, buses, busses, a bus", "bus", "bus"),
        ("Skis", "skis", "skis"),
        ("Scissors", "scissors", "scissors"),
        # parts of words
        ("A caterpillar in a carpet", "", ""),
        ("catdog", "", ""),
        ("TVs", "tv", "tv"),
        ("CAT’S TAIL", "cat", "cat"),
        # nothing to find
        ("", "", ""),
        ("   \n", "", ""),
        ("狗在沙发上。", "", ""),
        ("Собака на диване", "", ""),
        ("الكلب على الأريكة", "", ""),
        ("कुत्ता सोफे पर है", "", ""),
        ("🐕🛋️", "", ""),
        ("🐕dog🛋️", "dog", "dog"),
        ("do\u0301g", "", ""),
        ("I am sorry, but I cannot see the image.", "", ""),
    ],
)
def test_what_captions_mention_in_both_readings(sentence, strict, published):
    assert labels(PHRASE, sentence) == listed(strict)
    assert labels(LEMMA, sentence) == listed(published)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("Two dogs’ leashes; hot–dog", [("dog", "dogs"), ("dog", "dog")]),
        ("… a Hot-Dog stand", [("hot dog", "Hot-Dog")]),
        ("The ﬁre truck’s ladder", [("truck", "ﬁre truck")]),
        ("A cafe\u0301 table, a street\nlight", [("dining table", "table")]),
        ("The seat  of the\ttoilet.", [("toilet", "seat  of the\ttoilet")]),
        ("A dog chases a dog.", [("dog", "dog"), ("dog", "dog")]),
    ],
)
@pytest.mark.parametrize("matcher", [PHRASE, CONTEXT])
def test_a_mention_says_which_characters_it_is(matcher, caption, expected):
    found = [(m.label, caption[m.start : m.stop]) for m in matcher.read(caption).mentions()]
    assert found == expected


def test_a_mention_has_the_phrase_that_it_is_a_form_of():
    mention = PHRASE.read("See: Mobile phones!").mentions()[0]
    assert mention == ("cell phone", "mobile phone", 5, 18)


words = st.sampled_from(
    [
        *STRICT.table.forms,
        "the",
        "a",
        "is",
        "no",
        "of",
        "orange",
        "shaped",
        ".",
        ",",
        "-",
        " - ",
        "'s",
        "ﬁ",
        "狗",
    ]
)
sentences = st.lists(words, max_size=25).map(" ".join)


@given(sentences)
@pytest.mark.parametrize("matcher", [PHRASE, LEMMA])
def test_mentions_do_not_overlap_and_a_mention_alone_is_found_again(matcher, caption):
    last = 0
    for mention in matcher.read(caption).mentions():
        assert last <= mention.start < mention.stop <= len(caption)
        last = mention.stop
        assert mention.label in labels(matcher, caption[mention.start : mention.stop])


@given(sentences)
def test_context_and_negation_only_take_away(caption):
    phrase, context = PHRASE.read(caption), CONTEXT.read(caption)
    assert set(context.hits) <= set(phrase.hits)
    assert set(phrase.denied()) <= set(phrase.hits)


@given(sentences)
def test_case_and_doubled_white_space_change_nothing(caption):
    for matcher in (PHRASE, CONTEXT, LEMMA):
        assert labels(matcher, caption.upper().replace(" ", "  ")) == labels(matcher, caption)


@given(st.lists(sentences, max_size=4))
def test_sentences_do_not_see_each_other(parts):
    together = labels(CONTEXT, ". ".join(parts))
    assert together == set().union(*(labels(CONTEXT, part) for part in parts))


@given(st.text())
def test_any_text_is_read(caption):
    for matcher in (PHRASE, CONTEXT, LEMMA):
        found = matcher.read(caption)
        found.mentions(), found.denied()


@pytest.mark.parametrize(
    ("matcher", "piece"),
    [(CONTEXT, piece) for piece in ("no dog ", "baby polar ", "an orange ", "wine", "🐕 cat’s ")]
    + [(LEMMA, piece) for piece in ("toilet seat ", "狗 ", "wine")],
)
def test_a_long_caption_takes_a_time_in_proportion(matcher, piece):
    def took(size: int) -> float:
        caption = piece * (size // len(piece))
        gc.collect()
        gc.disable()  # how much else is alive in this process would be measured, too
        try:
            start = time.process_time()
            found = matcher.read(caption)
            found.mentions(), found.denied()
            return time.process_time() - start
        finally:
            gc.enable()

    took(1_000)
    short = min(took(12_500) for _ in range(3))
    assert min(took(250_000) for _ in range(2)) < 100 * max(short, 0.005)


def test_a_word_that_is_no_word_is_its_own_lemma_and_what_is_kept_has_an_end():
    lemmas = LEMMA.lemmas
    long = "dogs" * 100
    assert lemmas[long] == long
    assert lemmas["women"] == "woman" and lemmas["sofas"] == "sofa" and lemmas["|"] == "|"
    for number in range(100_001):
        lemmas._ask = lambda word, upos: (word,)
        lemmas[f"w{number}"]
    assert len(lemmas) <= 100_000
    del lemmas._ask
