import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.mentions.preparing import Prepared

# What moves characters or makes more of them: ligatures, fractions, combining marks, dotted I, Hangul, emoji.
awkward = st.lists(
    st.sampled_from(
        [
            "dog",
            "'s",
            "’s",
            " ",
            "-",
            " - ",
            "ﬁ",
            "…",
            "½",
            "e\u0301",
            "\u0301",
            "İ",
            "ẞ",
            "\u1112\u1161\u11ab",
            "狗",
        ]
        + [
            "🐕",
            "👩\u200d🚀",
            "Ǆ",
            "Σ",
            "\u2028",
            "\x85",
            "_",
            "/",
            "|",
            "\t",
            "①",
            "カ\u3099",
            "ﬀ",
            "\u0e33",
            "K",
            "dogs'",
        ]
    )
).map("".join)


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("A dog, a cat.", "a dog | a cat |"),
        ("The cat's tail", "the cat tail"),
        ("The cat’s tail", "the cat tail"),
        ("The dogs' leashes", "the dogs leashes"),
        ("1990's cars", "1990 cars"),
        ("the 's' key", "the s key"),
        ("it'sa", "it sa"),
        ("teddy-bear hot_dog tv/remote", "teddy bear hot dog tv remote"),
        ("hot - dog", "hot | dog"),
        ("hot- dog", "hot dog"),
        ("hot -dog", "hot dog"),
        ("hot \u2010 dog, hot\u2011dog", "hot | dog | hot dog"),
        ("hot—dog", "hot | dog"),
        ("hot–dog…cat", "hot | dog | | | cat"),
        ("hot: dog; cat! sheep? (cow) [ox] \"bus\"", "hot | dog | cat | sheep | | cow | | ox | | bus |"),
        ("hot\ndog\r\ncat", "hot | dog | | cat"),
        ("hot\u2028dog\x85cat\x0bcow", "hot | dog | cat | cow"),
        ("“hot” dog | cat *bus*", "hot dog cat bus"),
        ("Ｄｏｇ ﬁsh", "dog fish"),
        ("Cafe\u0301 CAFÉ", "café café"),
        ("狗 🐕 dog", "狗 dog"),
        ("İ", "i"),
        ("Two TVs", "two tvs"),
        ("", ""),
        ("?!", "| |"),
        ("— \n", "| |"),
    ],
)  # fmt: skip
def test_a_caption_becomes_words_and_barriers(caption, tokens):
    assert Prepared(caption).tokens == tokens.split()


@pytest.mark.parametrize(
    ("caption", "start", "stop", "found"),
    [
        ("A dog.", 1, 2, "dog"),
        ("A hot-dog!", 1, 3, "hot-dog"),
        ("The cat's tail", 1, 2, "cat"),
        ("The cat's tail", 1, 3, "cat's tail"),
        ("Look… a Ｄog", 5, 6, "Ｄog"),  # the ellipsis is three barriers
        ("½ ﬁsh", 2, 3, "ﬁsh"),  # the fraction is two words around a slash that is no ASCII sign
        ("e\u0301clair dog", 1, 2, "dog"),
        ("e\u0301clair dog", 0, 1, "e\u0301clair"),
        ("İ dog", 1, 2, "dog"),  # lower case is i and a dot above, which is no letter
        ("👩\u200d🚀 dog 🐕 cat", 1, 2, "cat"),
        ("한국어 ①dog", 1, 2, "①dog"),
    ],
)
def test_a_span_is_that_of_the_raw_caption(caption, start, stop, found):
    prepared = Prepared(caption)
    low, high = prepared.span(start, stop)
    assert prepared.raw[low:high] == found


@given(awkward | st.text())
def test_spans_go_left_to_right_inside_the_caption_and_hold_their_words(caption):
    prepared = Prepared(caption)
    last = (0, 0)
    for index, token in enumerate(prepared.tokens):
        if token != "|":
            low, high = prepared.span(index, index + 1)
            # One sign may be several words, or the end of one and the beginning of the next.
            assert last[0] <= low < high <= len(caption) and last[1] <= high
            last = (low, high)
            assert token in Prepared(caption[low:high]).words


@given(awkward | st.text())
def test_words_are_those_of_the_whole_caption_in_normal_form(caption):
    normal = unicodedata.normalize("NFKC", caption)
    assert Prepared(caption).tokens == Prepared(normal).tokens


@given(awkward | st.text())
def test_words_have_only_letters_and_digits_and_are_their_own_words(caption):
    words = Prepared(caption).words
    assert all(word.isalnum() for word in words)
    again = Prepared(" ".join(words)).words
    assert again == words or any(unicodedata.normalize("NFKC", word).lower() != word for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a dog, ", "狗", "e\u0301", "…", "- ", "'s", "\u0301", "x", "\u1161"])
def test_a_megabyte_takes_a_time_in_proportion(piece):
    def took(size: int) -> float:
        start = time.process_time()
        prepared = Prepared(piece * (size // len(piece)))
        if prepared.tokens:
            prepared.span(0, len(prepared.tokens))
        return time.process_time() - start

    took(1_000)
    assert took(1_000_000) < 100 * max(took(50_000), 0.02)
