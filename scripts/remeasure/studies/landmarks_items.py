"""Items of the landmarks study: one per query photograph.

Source:
    Landmarks card, section 2.1: a stem is the landmark's name and a number (``all_souls_000013``).
"""

import re

from remeasure.instances.labels import Labels
from remeasure.records import ImageRef, Item
from remeasure.requests import safe_id

_NUMBER = re.compile(r"[_\s-]*[0-9]+$")


def from_query(labels: Labels, query: int, box: tuple[int, int, int, int], crop: ImageRef) -> Item:
    """Return the item of a query.

    Args:
        labels: ground truth of the benchmark.
        query: number of the query.
        box: what of its photograph is shown, pixels: left, top, right, bottom.
        crop: that part.

    Edges:
        Queries of one landmark are a group; a stem that is only a number is a group of its own.
    """
    stem, truth = labels.qimlist[query], labels.gnd[query]
    return Item(
        item_id=safe_id(stem),
        question="",
        images=(crop,),
        group=_NUMBER.sub("", stem) or stem,
        meta={
            "photo": stem,
            "box": list(box),
            "n": {name: len(getattr(truth, name)) for name in ("easy", "hard", "junk")},
        },
    )
