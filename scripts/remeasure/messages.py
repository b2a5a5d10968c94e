"""Parts of chat messages, as the message functions of all studies put them together."""

from typing import Any

from remeasure import images, prompts
from remeasure.cells import Cell
from remeasure.records import ImageRef


def text_part(text: str) -> dict[str, Any]:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def image_part(ref: ImageRef) -> dict[str, Any]:
    """Return an image as a part of a message: its reference stands for the bytes until it is sent."""
    return {"type": "image_url", "image_url": {"url": images.to_url(ref)}}


def prompt_line(cell: Cell, name: str) -> str:
    """Return a prompt that is set into a text: without the end of its last line, which is the file's."""
    return prompts.get(cell.prompts, name).removesuffix("\n")
