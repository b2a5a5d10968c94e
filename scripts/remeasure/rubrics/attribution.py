"""Which images an answer names, and which of them it should: strings and sets, no judge.

Every expression runs in time linear in the answer.

Source:
    MRareBench card, section 9.1.
"""

import re
from collections.abc import Iterable

from remeasure.rubrics.points import MOST_DIGITS

SELECTING = (
    "det_image_select_recall",
    "det_image_select_precision",
    "det_image_attribution_offtarget_rate",
)
"""Averaged only over cases with images that are not decisive."""
NAMES = (
    "det_image_coverage",
    "det_image_ref_out_of_range_rate",
    "det_image_format_compliance",
    "det_image_attribution_hallucination_rate",
    *SELECTING,
)
Number = int | str
"""Of an image; one that is too long for a number stays as it is written, and is out of every range."""
_NAMED = re.compile(r"\bimage\s*+#?+\s*+(\d++)", re.IGNORECASE)
_LABEL = re.compile(r"image\s*+#?+\s*+(\d++)\s*+\*{0,2}+\s*+[:\-)]", re.IGNORECASE)


def named(text: str) -> set[Number]:
    """Return the images that a text names: "Image 3", "image #3", "image 03"; not "images 1 and 2"."""
    return {_number(found) for found in _NAMED.findall(text)}


def labelled(text: str) -> set[Number]:
    """Return the images that begin a line as a label: "Image 3:", "**Image 3**:", "- Image #3)", "Image 3 -".

    The mark may stand on the next line, where it may as well be the bullet of a list.
    """
    found, end = set(), 0
    for match in _LABEL.finditer(text):
        if _begins_line(text, end, match.start()):
            found.add(_number(match[1]))
            end = match.end()
    return found


def _begins_line(text: str, start: int, stop: int) -> bool:
    """Return whether only marks and white space stand between the beginning of a line and ``stop``.

    Args:
        text: the answer.
        start: where the label before ends: it takes the beginning of its line with it.
        stop: where the word begins.
    """
    at = stop
    while at > start and (text[at - 1] in "*-#>" or text[at - 1].isspace()):
        at -= 1
        if text[at] == "\n":
            return True
    return at == 0


def _number(digits: str) -> Number:
    return int(digits) if len(digits) <= MOST_DIGITS else digits


def has_distractors(n_images: int, decisive: Iterable[int]) -> bool:
    """Return whether a case has images to tell decisive ones from."""
    return 0 < len(set(decisive)) < n_images


def attribution(
    text: str, n_images: int, decisive: Iterable[int], supporting: Iterable[int]
) -> dict[str, float]:
    """Return the rates of an answer that are defined, by name.

    Args:
        text: the answer.
        n_images: images of the case, whether or not they were shown.
        decisive: numbers of the decisive ones.
        supporting: numbers of those that support the diagnosis; the decisive ones belong to them.

    Edges:
        Without an image named: out of range 0, coverage 0, recall 0; the others are not defined.
    """
    said, wanted = named(text), set(decisive)
    backed = wanted | set(supporting)
    there = set(range(1, n_images + 1))
    inside = said & there
    rates: dict[str, float] = {}
    if there:
        outside = said - there
        rates["det_image_coverage"] = len(inside) / n_images
        rates["det_image_ref_out_of_range_rate"] = len(outside) / len(said) if said else 0.0
        rates["det_image_format_compliance"] = len(labelled(text) & there) / n_images
        if said and backed:
            rates["det_image_attribution_hallucination_rate"] = len((inside - backed) | outside) / len(said)
    if has_distractors(n_images, wanted):
        rates["det_image_select_recall"] = len(said & wanted) / len(wanted)
        if inside:
            rates["det_image_select_precision"] = len(inside & wanted) / len(inside)
            rates["det_image_attribution_offtarget_rate"] = len(inside - backed) / len(inside)
    return rates
