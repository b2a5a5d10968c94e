"""The captioner: says in plain sentences what an ImageNet classifier sees in a picture, and where.

It stands in for a vision-language model. It gets the bytes of one picture and nothing else: no file name, no
metadata, and the words of the request change nothing. It knows a thousand classes and no more; where it
recognises none, it names none.
"""

import cv2
import numpy as np

from remeasure import image_check, tokens
from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, images_of, texts_of
from remeasure.embedded.looking import Looker, Seen, with_article
from remeasure.errors import RemeasureError

# Decoded it takes three bytes per pixel; a photo of a telephone has 12 to 50 megapixels.
MAX_PIXELS = 50_000_000
# A picture is looked at in this size at most: a view has 224 pixels.
MAX_SIDE_PX = 1024
MAX_THINGS = 6
NOTHING = "Nothing in it can be made out."
# Mean brightness below which a picture is dark, above which bright, 0 to 255.
DARK, BRIGHT = 60, 190


def decode(data: bytes) -> np.ndarray:
    """Decode a picture without turning it by its metadata; transparent parts become white.

    Returns:
        Shape (height, width, 3), uint8, blue, green, red, no side longer than ``MAX_SIDE_PX``.

    Raises:
        BadRequest: not a whole PNG, JPEG, GIF or WebP, or too large.
    """
    try:
        facts = image_check.inspect(data)
    except RemeasureError as error:
        raise BadRequest(f"the image {error}") from None
    if facts.width_px * facts.height_px > MAX_PIXELS:
        raise BadRequest(
            f"the image has {facts.width_px} x {facts.height_px} pixels, at most {MAX_PIXELS} are looked at"
        )
    try:
        image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise BadRequest(f"the image cannot be decoded ({error.code})") from None
    if image is None:
        raise BadRequest(f"the image cannot be decoded ({len(data)} bytes of {facts.format})")
    return _smaller(_plain(image))


def _plain(image: np.ndarray) -> np.ndarray:
    """Return any decoded image as 8 bits in blue, green and red."""
    if image.dtype != np.uint8:
        image = (image >> 8).astype(np.uint8) if image.dtype == np.uint16 else np.clip(image, 0, 255)
        image = image.astype(np.uint8)
    if image.ndim == 2 or image.shape[2] == 1:
        return cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
    if image.shape[2] == 4:
        alpha = image[:, :, 3:].astype(np.float32) / 255
        return np.rint(image[:, :, :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return image


def _smaller(image: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    share = MAX_SIDE_PX / max(height, width)
    if share >= 1:
        return image
    size = max(1, round(width * share)), max(1, round(height * share))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def place_of(seen: Seen, size_px: tuple[int, int]) -> str:
    """Return where a thing is: left, right, middle, top, bottom; nothing where the whole picture shows it."""
    if seen.whole:
        return ""
    x, y = seen.view.centre(size_px)
    if abs(x - 0.5) >= 0.12:
        return " on the left" if x < 0.5 else " on the right"
    if abs(y - 0.5) >= 0.12:
        return " at the top" if y < 0.5 else " at the bottom"
    return " in the middle"


def caption(seen: list[Seen], size_px: tuple[int, int], brightness: float) -> str:
    """Return the sentences about a picture.

    Args:
        seen: things, the surest first.
        size_px: width and height of the picture.
        brightness: mean, 0 to 255.
    """
    light = "dark" if brightness < DARK else "bright" if brightness > BRIGHT else "evenly lit"
    sentences = [f"The picture is {light}."]
    for number, thing in enumerate(seen[:MAX_THINGS]):
        start = ("It shows", "There is also")[min(number, 1)]
        name = with_article(thing.word)
        if number and name == thing.word:
            start = "It also shows"
        sentences.append(f"{start} {name}{place_of(thing, size_px)}.")
    return " ".join([*sentences, *([] if seen else [NOTHING])])


class Captioner:
    """Describes one picture per request.

    Args:
        looker: what recognises things.
        scales: how closely it looks, 1 to 3 (``looking.views``).
        threshold: probability from which a thing is named.
    """

    more_words: frozenset[str] = frozenset()

    def __init__(self, looker: Looker, scales: int, threshold: float) -> None:
        self._looker, self._scales, self._threshold = looker, scales, threshold

    def answer(self, request: ChatRequest) -> Completion:
        """Describe the request's picture.

        Raises:
            BadRequest: no picture or several, or one that cannot be read.
        """
        pictures = [data for message in request.messages for data in images_of(message)]
        if len(pictures) != 1:
            raise BadRequest(f"{len(pictures)} images; this model describes exactly one")
        text = self.describe(pictures[0])
        for stop in request.stops():
            text = text.partition(stop)[0]
        words = text.split(" ")
        cut = request.max_tokens is not None and len(words) > request.max_tokens
        if cut:
            text = " ".join(words[: request.max_tokens])
        asked = sum(tokens.text_tokens(said) for message in request.messages for said in texts_of(message))
        return Completion(text, asked, len(text.split()), "length" if cut else "stop")

    def describe(self, data: bytes) -> str:
        """Return the caption of a picture; depends on its pixels alone.

        Raises:
            BadRequest: as in ``decode``.
        """
        image = decode(data)
        seen = self._looker.look(image, self._scales, self._threshold)
        return caption(seen, (image.shape[1], image.shape[0]), float(image.mean()))

    def close(self) -> None:
        """Nothing to give back; the process ends next."""
