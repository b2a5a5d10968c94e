"""TOSC: what the captioner is shown, which is the image and the same request for every image.

Source:
    TOSC card, section 2: no object is named, nothing tells the three images of a triplet apart.
"""

from typing import Any

from remeasure.cells import Cell
from remeasure.errors import RemeasureError
from remeasure.evidence import Evidence
from remeasure.messages import image_part, prompt_line, text_part
from remeasure.records import Item


def messages(item: Item, evidence: Evidence, cell: Cell) -> list[dict[str, Any]]:
    """Return one user message: the image, then the request of prompt ``describe``.

    Raises:
        RemeasureError: the item has not exactly one image, or a question of its own.
    """
    if len(item.images) != 1 or item.question:
        raise RemeasureError(
            f"item {item.item_id!r}: has {len(item.images)} images and the question {item.question!r}; all "
            "captioners are shown one image and asked the same, so give one image and no question"
        )
    return [
        {
            "role": "user",
            "content": [image_part(item.images[0]), text_part(prompt_line(cell, "describe"))],
        }
    ]
