import json
from collections import Counter

import pytest

from remeasure import images, tokens
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 1),  # 0.21, rounded up
        ("abcd " * 20, 21),  # 100 letters and spaces, 0.21 each
        ("12,345.67\n", 6),  # 10 digits, marks and line ends, 0.6 each
        ("北京" * 10, 15),  # 20 characters, 0.75 each
        ("Привет" * 10, 27),  # 60 letters, 0.45 each
        ("é" * 10, 10),
        ("😀", 2),
    ],
)
def test_text_is_estimated_by_its_characters(text, expected):
    assert tokens.text_tokens(text) == expected


def test_every_code_point_has_a_class_with_a_weight():
    points = [*range(0, 0x3000, 7), 0x4E00, 0xAC00, 0xE000, 0xFB00, 0xFFFD, 0x1F600, 0x10FFFF]
    counts = tokens.characters("".join(map(chr, points)))
    assert counts.total() == len(points) and tokens.of_characters(counts) > 0


def test_the_stated_error_grows_with_what_is_not_english():
    assert tokens.text_error(tokens.characters("Plain words, 12 of them.")) == 0.15
    assert tokens.text_error(tokens.characters("Plain “words” with two quotes. " * 4)) == 0.3
    assert tokens.text_error(tokens.characters("问题: what is 北京?")) == 0.3
    assert tokens.text_error(tokens.characters("Что это?")) == 1.0
    assert tokens.text_error(Counter()) == 0.15


def test_the_estimate_of_english_requests_is_within_its_stated_error(root):
    # Counted with the tokenizers of GPT-4o (o200k) and Qwen; the texts are this project's own prompts.
    prompts = root / "config" / "prompts" / "pixelrag" / "own"
    counted = {"judge_simpleqa": (212, 212), "system_evidence": (52, 52)}
    for name, truths in counted.items():
        estimate = tokens.text_tokens((prompts / f"{name}.txt").read_text())
        assert all(abs(estimate / truth - 1) <= tokens.ERROR_ASCII for truth in truths), name


@pytest.mark.parametrize(
    ("size", "formula", "expected"),
    [
        # Page-image card 1.4: a tile of 875 x 1024 is 27 x 32 = 864 merged tokens; two more around it.
        ((875, 1024), "qwen3-vl", 866),
        # 1024 / 28 = 36.57, rounded 37 on both sides.
        ((1024, 1024), "qwen2.5-vl", 37 * 37 + 2),
        ((1024, 1024), "qwen2-vl", 37 * 37 + 2),
        # Above 12,845,056 pixels: scaled by 1.97296, 5068.5 / 28 = 181.02 and 2534.3 / 28 = 90.5, both down.
        ((10000, 5000), "qwen2-vl", 181 * 90 + 2),
        # Below 65,536 pixels: scaled by 9.051, 181.0 / 32 = 5.66 and 362.0 / 32 = 11.3, both up.
        ((20, 40), "qwen3-vl", 6 * 12 + 2),
        # A server's own limit of 256 tokens: 256 * 32 * 32 = 262,144 pixels, so 512 x 512.
        ((1024, 1024), "qwen3-vl:256", 16 * 16 + 2),
        # OpenAI, "Images and vision", examples for gpt-4o.
        ((1024, 1024), "openai-tiles", 765),
        ((2048, 4096), "openai-tiles", 1105),
        # The same guide: smaller images are not enlarged, one tile of 512.
        ((512, 512), "openai-tiles", 255),
        # Billed by gpt-4.1 (OpenAI's forum, topic 1281361), without the 8 tokens of text.
        ((2049, 513), "openai-tiles", 1445),
        ((2050, 513), "openai-tiles", 765),
        # The guide's gpt-4o-mini: 2833 and 5667 per tile, four tiles.
        ((1024, 1024), "openai-tiles:2833:5667", 25501),
        # The guide's examples for patches.
        ((1024, 1024), "openai-patches:1", 1024),
        ((1800, 2400), "openai-patches:1", 1452),
        ((1024, 1024), "openai-patches:1.2:2500:2048", 1229),
        ((2048, 2048), "openai-patches:1.2:2500:2048", 3000),
        # gpt-4.1-mini: 1452 * 1.62 = 2352.24, rounded up.
        ((1800, 2400), "openai-patches:1.62", 2353),
        # OpenAI's calculator for gpt-4.1-mini (the forum topic above).
        ((4000, 1474), "openai-patches:1.62", 2348),
        ((3, 3000), "llava-1.5", 576),
        ((3, 3000), "fixed:1000", 1000),
    ],
)
def test_images_cost_what_the_vendors_documents_say(size, formula, expected):
    assert tokens.image_tokens(*size, formula) == expected


def test_low_detail_costs_the_base_whatever_the_size():
    # OpenAI's guide: a 4096 x 8192 image in low detail is 85 tokens.
    assert tokens.image_tokens(4096, 8192, "openai-tiles", low_detail=True) == 85


@pytest.mark.parametrize("formula", [name for name in tokens.FORMULAS if name != "fixed"])
@pytest.mark.parametrize("size", [(1, 1), (1, 100_000), (100_000, 1), (12_000, 12_000)])
def test_no_shape_is_free_or_without_bound(formula, size):
    name = "openai-patches:1" if formula == "openai-patches" else formula
    assert 1 <= tokens.image_tokens(*size, name) <= 16_386


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("qwen3vl", "did you mean 'qwen3-vl'?"),
        ("openai-patches", "openai-patches and 1 to 3 numbers"),
        ("fixed:many", "fixed and 1 numbers"),
        ("fixed:0", "numbers above 0"),
        ("fixed:nan", "numbers above 0"),
        ("openai-patches:inf", "numbers above 0"),
        ("llava-1.5:7", "llava-1.5 and 0 numbers"),
    ],
)
def test_a_formula_that_is_none_is_one_line_with_the_place(formula, said):
    with pytest.raises(RemeasureError) as error:
        tokens.check_formula(formula, "mine.yaml: models.m")
    assert said in str(error.value) and str(error.value).startswith("mine.yaml: models.m: ")
    assert "\n" not in str(error.value)


def body(*parts, **words) -> dict:
    content = [{"type": "text", "text": p} if isinstance(p, str) else p for p in parts]
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]} | words


def picture(detail: str | None = None) -> dict:
    url = images.to_url(ImageRef(sha256="0" * 64, path="a.png"))
    return {"type": "image_url", "image_url": {"url": url} | ({"detail": detail} if detail else {})}


def test_a_request_is_its_text_its_images_and_its_chat_template():
    asked = body("abcd " * 20, picture(), picture("low"), "12,345.67\n")
    # 100 sparse and 10 dense characters are 27 tokens; 4 for the message, 3 for the request; 765 and 85.
    assert tokens.request_tokens(asked, lambda ref: (1024, 1024), "openai-tiles") == 27 + 7 + 765 + 85


def test_a_plain_text_and_an_answer_s_schema_are_read_too():
    plain = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "abcd " * 20}]}
    assert tokens.request_tokens(plain, lambda ref: (1, 1), None) == 21 + 7
    schema = {"type": "json_schema"}
    assert json.dumps(schema, separators=(",", ":")) == '{"type":"json_schema"}'
    # 14 letters, 0.21 each, and 8 marks, 0.6 each: 7.74 more than 21.
    assert tokens.request_tokens(plain | {"response_format": schema}, lambda ref: (1, 1), None) == 29 + 7


def test_images_without_a_formula_make_the_request_unknown_and_are_not_looked_at():
    def never(ref):
        raise AssertionError(ref)

    assert tokens.request_tokens(body("text", picture()), never, None) is None
    assert tokens.request_tokens(body("text"), never, None) == 1 + 7
