"""How many tokens a request costs, from characters and pixels: no tokenizer, no image decoding.

Source:
    Text: fitted and measured on 200 requests and 260 passages of the embedded run and on the translated
    messages of Django 5.2 in 40 languages, with the tokenizers of GPT-4o (o200k), Qwen and DeepSeek, and on
    the requests with that of SmolLM2. Estimate against truth: English requests and pages full of figures -14
    to +9 % (the lowest is SmolLM2, which spends one token per digit; plain characters/4 gives -20 to +16 %),
    other European languages in Latin script -27 to +14 %, Chinese, Japanese and Korean -9 to +22 %, all other
    scripts by up to a factor of two either way, because tokenizers themselves differ by that much there.
    Images: the vendors' own rules, named at each formula.
"""

import functools
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

from remeasure import images, jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.records import ImageRef, Record

_SPARSE = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
# Tokens per character, by class.
_PER_CHARACTER = {
    "sparse": 0.21,  # ASCII letters and spaces: words
    "dense": 0.6,  # all other ASCII: digits, punctuation, line ends
    "latin": 1.0,  # letters with accents: they split words
    "cyrillic": 0.45,  # and Greek
    "arabic": 0.5,  # and Hebrew
    "cjk": 0.75,  # Chinese, Japanese, Korean
    "indic": 0.75,  # South and Southeast Asia, Armenian, Georgian
    "symbol": 1.0,  # typographic punctuation, arrows, box drawings
    "other": 2.0,  # emoji and everything rare
}
# Last code point of each block with its class; what no line names in between is "other".
_BLOCKS = (
    (0x024F, "latin"),
    (0x036F, "other"),
    (0x052F, "cyrillic"),
    (0x058F, "indic"),
    (0x08FF, "arabic"),
    (0x10FF, "indic"),
    (0x11FF, "cjk"),
    (0x177F, "other"),
    (0x17FF, "indic"),
    (0x1DFF, "other"),
    (0x1EFF, "latin"),
    (0x1FFF, "cyrillic"),
    (0x2BFF, "symbol"),
    (0x2E7F, "other"),
    (0xA4CF, "cjk"),
    (0xABFF, "other"),
    (0xD7FF, "cjk"),
    (0xF8FF, "other"),
    (0xFAFF, "cjk"),
    (0xFEFF, "arabic"),
    (0xFFFF, "cjk"),
    (0x10FFFF, "other"),
)
_LAST = tuple(last for last, _ in _BLOCKS)
# Share by which the estimate of a text may be wrong, by the classes that it is made of.
ERROR_ASCII, ERROR_LATIN_CJK, ERROR_OTHER = 0.15, 0.3, 1.0
# What a chat template adds: 3 tokens and the role per message, 3 that open the answer.
# Source: OpenAI Cookbook, "How to count tokens with tiktoken", num_tokens_from_messages; Qwen's ChatML
# template has one more per message.
PER_MESSAGE, PER_REQUEST = 4, 3


def characters(text: str) -> Counter[str]:
    """Count a text's characters by class."""
    ascii_bytes = text.encode("ascii", "ignore")
    dense = len(ascii_bytes.translate(None, _SPARSE))
    found = Counter(sparse=len(ascii_bytes) - dense, dense=dense)
    if len(ascii_bytes) != len(text):
        for character, n in Counter(text).items():
            if character > "\x7f":
                found[_class_of(character)] += n
    return found


@functools.cache
def _class_of(character: str) -> str:
    return _BLOCKS[bisect_left(_LAST, ord(character))][1]


def of_characters(counts: Counter[str]) -> int:
    """Return the estimated tokens of counted characters, rounded up.

    Edges:
        0 for no character.
    """
    # Rounded before it is rounded up, so that 100 letters are 21 tokens whatever the float says.
    return math.ceil(round(sum(_PER_CHARACTER[name] * n for name, n in counts.items()), 6))


def text_tokens(text: str) -> int:
    """Return the estimated tokens of a text; the module says how far off this is."""
    return of_characters(characters(text))


def text_error(counts: Counter[str]) -> float:
    """Return the share by which ``of_characters`` may be wrong, 0.15 for English.

    Edges:
        Up to one character in fifty from another class changes nothing: quotes and names in English text.
    """
    total = counts.total()
    ascii_only = counts["sparse"] + counts["dense"]
    covered = ascii_only + counts["symbol"] + counts["latin"] + counts["cjk"]
    if total - ascii_only <= total / 50:
        return ERROR_ASCII
    return ERROR_LATIN_CJK if total - covered <= total / 50 else ERROR_OTHER


Formula = Callable[[int, int, bool], int]
"""Tokens of an image of (width_px, height_px), asked for in low detail or not."""


def _arguments(formula: str, kinds: tuple[type, ...], least: int) -> list[Any]:
    """Return the numbers behind a formula's name; all are above 0."""
    name, *words = formula.split(":")
    try:
        values = [kind(word) for kind, word in zip(kinds, words, strict=False)]
    except ValueError:
        values = [0]
    if not least <= len(words) <= len(kinds) or not all(0 < value < 1e9 for value in values):
        span = f"{least} to {len(kinds)}" if least < len(kinds) else str(least)
        raise RemeasureError(
            f"image formula {formula!r}: expected {name} and {span} numbers above 0, each after a colon; "
            "correct `image_tokens` of the model"
        )
    return values


def _qwen(factor_px: int, least_px: int, most_px: int) -> Callable[[str], Formula]:
    """Return a Qwen formula: both sides become multiples of a factor, the area stays between two bounds.

    Source:
        ``smart_resize`` of transformers (``image_processing_qwen2_vl.py``) and of qwen-vl-utils; bounds from
        ``preprocessor_config.json`` of Qwen2-VL and Qwen2.5-VL (3,136 and 12,845,056 pixels) and of Qwen3-VL
        (65,536 and 16,777,216). Two tokens around each image: chat template, and Alibaba Cloud Model Studio,
        "h_bar * w_bar / token_pixels + 2". The argument is the server's own limit of tokens per image.
    """

    def made(formula: str) -> Formula:
        limit = _arguments(formula, (int,), 0)
        bound = limit[0] * factor_px**2 if limit else most_px

        def tokens(width_px: int, height_px: int, low: bool) -> int:
            rows = max(1, round(height_px / factor_px))
            columns = max(1, round(width_px / factor_px))
            area = rows * columns * factor_px**2
            if area > bound:
                scale = math.sqrt(height_px * width_px / bound) * factor_px
                rows, columns = math.floor(height_px / scale), math.floor(width_px / scale)
            elif area < least_px:
                scale = math.sqrt(least_px / (height_px * width_px)) / factor_px
                rows, columns = math.ceil(height_px * scale), math.ceil(width_px * scale)
            return max(1, rows) * max(1, columns) + 2

        return tokens

    return made


def _openai_tiles(formula: str) -> Formula:
    """Return the tile formula; arguments are base and tile tokens where they are not 85 and 170.

    Source:
        OpenAI, "Images and vision", tile-based image tokenization: gpt-4o and gpt-4.1 85 and 170, gpt-4o-mini
        2833 and 5667, o1 and o3 75 and 150, gpt-5 70 and 140. Smaller images are not enlarged; low detail
        costs the base alone. A detail that is not said is taken as high, which is what ``auto`` means there.
        That sides are rounded to whole pixels after the first scaling is seen in what was billed for 2049 and
        2050 by 513 pixels (OpenAI's forum, topic 1281361).
    """
    base, per_tile = _arguments(formula, (int, int), 0) or (85, 170)

    def tokens(width_px: int, height_px: int, low: bool) -> int:
        if low:
            return base
        fit = min(1.0, 2048 / max(width_px, height_px))
        short, long = sorted((max(1, round(width_px * fit)), max(1, round(height_px * fit))))
        if short > 768:
            short, long = 768, long * 768 // short
        return base + per_tile * math.ceil(short / 512) * math.ceil(long / 512)

    return tokens


def _openai_patches(formula: str) -> Formula:
    """Return the patch formula; numbers: multiplier, most patches (1536), longest side.

    Source:
        OpenAI, "Images and vision", patch-based image tokenization. Multipliers: gpt-4.1-mini and gpt-5-mini
        1.62, gpt-4.1-nano 2.46, o4-mini 1.72 with 1,536 patches, as the guide had it until 2026. In its
        version of August 2026 gpt-4.1-mini has 6,144 patches and a longest side of 2,048 pixels
        (``openai-patches:1.62:6144:2048``), gpt-5.4 1.2 with 2,500 and 2,048.
    """
    multiplier, *rest = _arguments(formula, (float, int, int), 1)
    patches = rest[0] if rest else 1536
    longest_px = rest[1] if len(rest) > 1 else math.inf

    def covering(width_px: float, height_px: float) -> int:
        return math.ceil(width_px / 32) * math.ceil(height_px / 32)

    def tokens(width_px: int, height_px: int, low: bool) -> int:
        fit = min(1.0, longest_px / max(width_px, height_px))
        width, height = max(1, round(width_px * fit)), max(1, round(height_px * fit))
        if covering(width, height) > patches:
            shrink = math.sqrt(32**2 * patches / (width * height))
            columns, rows = width * shrink / 32, height * shrink / 32
            shrink *= min(max(1, math.floor(columns)) / columns, max(1, math.floor(rows)) / rows)
            # What is a whole number of pixels on paper may come out a hair below it.
            width, height = max(1, int(width * shrink + 1e-6)), max(1, int(height * shrink + 1e-6))
        return math.ceil(round(min(patches, covering(width, height)) * multiplier, 6))

    return tokens


def _fixed(formula: str) -> Formula:
    """Return a formula that gives every image the same tokens."""
    (n,) = _arguments(formula, (int,), 1)
    return lambda width_px, height_px, low: n


def _llava(formula: str) -> Formula:
    """Return LLaVA-1.5's formula: any image becomes 336 by 336 pixels in patches of 14, 24 * 24 = 576.

    Source:
        ``config.json`` of llava-hf/llava-1.5-7b-hf: image_size 336, patch_size 14, feature strategy
        "default", which drops the class token.
    """
    _arguments(formula, (), 0)
    return lambda width_px, height_px, low: 576


FORMULAS: dict[str, Callable[[str], Formula]] = {
    "qwen3-vl": _qwen(32, 65_536, 16_777_216),
    "qwen2.5-vl": _qwen(28, 3_136, 12_845_056),
    "qwen2-vl": _qwen(28, 3_136, 12_845_056),
    "openai-tiles": _openai_tiles,
    "openai-patches": _openai_patches,
    "llava-1.5": _llava,
    "fixed": _fixed,
}


@functools.cache
def formula_of(formula: str) -> Formula:
    """Return the formula that a name such as ``openai-patches:1.62`` stands for.

    Raises:
        RemeasureError: no formula of that name, or wrong numbers behind it.
    """
    name = formula.partition(":")[0]
    if name not in FORMULAS:
        raise RemeasureError(
            f"image formula {formula!r} is not known{did_you_mean(name, FORMULAS)}; known: "
            f"{', '.join(FORMULAS)}; correct `image_tokens` of the model"
        )
    return FORMULAS[name](formula)


def check_formula(formula: str, place: str) -> None:
    """Check a formula's name where a model names it; errors as in ``formula_of`` with the place in front."""
    try:
        formula_of(formula)
    except RemeasureError as error:
        raise RemeasureError(f"{place}: {error}") from None


def image_tokens(width_px: int, height_px: int, formula: str, low_detail: bool = False) -> int:
    """Return the tokens of an image.

    Args:
        width_px: at least 1.
        height_px: at least 1.
        formula: name in ``FORMULAS``, with its numbers behind colons.
        low_detail: whether the request asks for ``"detail": "low"``.

    Raises:
        RemeasureError: see ``formula_of``.
    """
    return formula_of(formula)(width_px, height_px, low_detail)


class RequestSize(Record, kw_only=True):
    """What is in one request."""

    characters: dict[str, int]
    """By class."""
    n_messages: int
    n_images: int
    image_tokens: int | None
    """Null where there are images and no formula says what they cost."""

    def text_tokens(self) -> int:
        """Return the estimated tokens of all text, with what the chat template adds."""
        return of_characters(Counter(self.characters)) + PER_MESSAGE * self.n_messages + PER_REQUEST


def request_size(
    body: dict[str, Any], size_of: Callable[[ImageRef], tuple[int, int]], formula: str | None
) -> RequestSize:
    """Measure a neutral body; images are looked at only where a formula is named.

    Args:
        body: neutral body with image references.
        size_of: gives (width_px, height_px) of an image.
        formula: name of the image formula; null where none is known.
    """
    counts: Counter[str] = Counter()
    shown: list[tuple[ImageRef, bool]] = []
    for message in body["messages"]:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if part.get("type") == "text":
                counts.update(characters(part["text"]))
            elif part.get("type") == "image_url":
                image = part["image_url"]
                shown.append((images.from_url(image["url"]), image.get("detail") == "low"))
    if body.get("response_format"):
        # A schema is shown to the model or to its grammar; services count it as input.
        counts.update(characters(jsonl.encode(body["response_format"]).decode()))
    of_images = None
    if formula is not None or not shown:
        of_images = sum(image_tokens(*size_of(ref), formula, low) for ref, low in shown)
    return RequestSize(
        characters=dict(counts),
        n_messages=len(body["messages"]),
        n_images=len(shown),
        image_tokens=of_images,
    )


def request_tokens(
    body: dict[str, Any], size_of: Callable[[ImageRef], tuple[int, int]], formula: str | None
) -> int | None:
    """Return the estimated input tokens of a request: text, images, chat template.

    Edges:
        Null, and never a number that leaves the images out, where it has images and no formula is named.
    """
    size = request_size(body, size_of, formula)
    return None if size.image_tokens is None else size.text_tokens() + size.image_tokens
