"""Looking at a picture: an ImageNet classifier on the whole and on overlapping squares, in everyday words."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from remeasure import torch_file
from remeasure.embedded.everyday_words import words_of
from remeasure.encoders.onnx_session import session_of
from remeasure.encoders.photo import prepare
from remeasure.encoders.photo_model import N_CLASSES, classifier_to_onnx
from remeasure.errors import RemeasureError

VIEW_PX = 224
# Side of the squares of each further scale, as a share of the shorter side of the picture.
SCALES = (0.85, 0.6)
# Steps per axis at most: a picture of one pixel row is no reason to look ten thousand times.
MAX_STEPS = 6


@dataclass(frozen=True)
class View:
    """A part of a picture, in pixels."""

    left: int
    top: int
    width: int
    height: int

    def centre(self, size_px: tuple[int, int]) -> tuple[float, float]:
        """Return where its middle lies in a picture of (width, height), both 0 to 1."""
        return (self.left + self.width / 2) / size_px[0], (self.top + self.height / 2) / size_px[1]


@dataclass(frozen=True)
class Seen:
    """A thing that was recognised in a picture."""

    word: str
    share: float
    """Probability in the view that shows it best, 0 to 1."""
    view: View
    whole: bool
    """Whether the whole picture was that view."""


def views(width_px: int, height_px: int, scales: int) -> list[View]:
    """Return the parts of a picture that are looked at.

    Args:
        width_px: width of the picture.
        height_px: its height.
        scales: 1: the whole picture alone; each further one adds squares of a size of ``SCALES`` that
            overlap by half.
    """
    found = [View(0, 0, width_px, height_px)]
    for share in SCALES[: scales - 1]:
        side = max(1, round(share * min(width_px, height_px)))
        lefts, tops = _steps(width_px, side), _steps(height_px, side)
        found += [View(left, top, side, side) for top in tops for left in lefts]
    return found


def _steps(length_px: int, side_px: int) -> list[int]:
    n = min(MAX_STEPS, -(-2 * (length_px - side_px) // side_px) + 1)
    return [round(k * (length_px - side_px) / max(1, n - 1)) for k in range(n)]


def read_words(synsets: Path, lemmas: Path) -> list[str]:
    """Return the everyday word of each ImageNet class; an empty one is never said.

    Args:
        synsets: WordNet numbers of the classes in their order, one per line.
        lemmas: WordNet number, tab, names of the thing parted by commas.

    Raises:
        RemeasureError: a file is missing or has another form, or these are other classes.
    """
    try:
        numbers = synsets.read_text(encoding="utf-8").split()
        lines = lemmas.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RemeasureError(
            f"{synsets} or {lemmas}: cannot be read ({error}); delete both, they are fetched again"
        ) from None
    names = dict(line.split("\t", 1) for line in lines if "\t" in line)
    missing = [number for number in numbers if number not in names]
    if len(numbers) != N_CLASSES or missing:
        raise RemeasureError(
            f"{synsets}: {len(numbers)} classes, {len(missing)} of them without a name in {lemmas}; expected "
            f"the {N_CLASSES} of ImageNet 2012: delete both, they are fetched again"
        )
    return words_of([names[number].split(",")[0].strip() for number in numbers])


class Looker:
    """Recognises things in pictures.

    Args:
        weights: torch weight file of EfficientNet-Lite0, classifier included.
        words: everyday word of each class; classes of one word count together.

    Raises:
        RemeasureError: the weights are missing or others.
    """

    def __init__(self, weights: Path, words: list[str]) -> None:
        self._session = session_of(classifier_to_onnx(torch_file.read(weights)), str(weights))
        self.words = sorted(set(words) - {""})
        known = {word: row for row, word in enumerate(self.words)}
        # Word of each class; classes without one are added up behind the last.
        self._rows = np.array([known.get(word, len(known)) for word in words])

    def look(self, image: np.ndarray, scales: int, threshold: float) -> list[Seen]:
        """Return the things that are seen, the surest first.

        A thing is seen where it is the first of all things in a view and its probability reaches the
        threshold; of several views the best one counts.

        Args:
            image: shape (height, width, 3), uint8, blue, green, red.
            scales: as in ``views``.
            threshold: probability, 0 to 1.
        """
        height, width = image.shape[:2]
        best: dict[str, Seen] = {}
        for number, view in enumerate(views(width, height, scales)):
            shares = self.shares(image, view)
            row = int(shares.argmax())
            seen = Seen(self.words[row], float(shares[row]), view, number == 0)
            known = best.get(seen.word)
            if seen.share >= threshold and (known is None or seen.share > known.share):
                best[seen.word] = seen
        return sorted(best.values(), key=lambda seen: (-seen.share, seen.word))

    def shares(self, image: np.ndarray, view: View) -> np.ndarray:
        """Return the probability of each word in a part of an image, shape (words,), float64."""
        part = image[view.top : view.top + view.height, view.left : view.left + view.width]
        logits = self._session.run(["logits"], {"image": prepare(part, VIEW_PX)})[0][0]
        odds = np.exp(logits.astype(np.float64) - logits.max())
        return np.bincount(self._rows, odds / odds.sum(), len(self.words) + 1)[:-1]


def with_article(word: str) -> str:
    """Return a thing with its article: a, an, or none where there are several or no single one."""
    if word in _NO_ARTICLE or (word.endswith("s") and not word.endswith(_SINGULAR)):
        return word
    return f"{'an' if word[0] in 'aeiou' and not word.startswith(_LIKE_YOU) else 'a'} {word}"


_NO_ARTICLE = frozenset(
    ("bread", "chain mail", "coffee", "corn", "dough", "hay", "honeycomb", "mashed potato", "paper towel")
    + ("pasta", "toilet paper", "velvet", "wool")
)
_SINGULAR = ("ss", "us", "is", "abacus", "lens")
_LIKE_YOU = ("unicycle", "ukulele")
