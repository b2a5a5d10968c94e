"""What a reader was given, for people: the texts of a request in order, its images as places."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from remeasure import images
from remeasure.errors import RemeasureError
from remeasure.page.escaping import plain, visible
from remeasure.records import Item, Request

LONGEST_PROMPT = 6000
"""Characters of a request that are shown; the rest is counted."""
MAX_SLOTS_NAMED = 12

WHOLE = "the whole photograph, with the box"
"""Caption of what an image was cut out of."""


class Part(Struct, frozen=True):
    """A text, an image (its SHA-256, empty where it is none of a store), or who speaks from here on."""

    kind: str
    """text, image or role."""
    text: str


Prompt = tuple[Part, ...]


def of_request(request: Request) -> Prompt:
    """Return the parts of a request in order; what is neither text nor image is passed over."""
    found: list[Part] = []
    messages = request.body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        found.append(Part("role", str(message.get("role"))))
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [part for part in map(_part, parts if isinstance(parts, list) else ()) if part]
    return tuple(found)


def _part(part: Any) -> Part | None:
    if not isinstance(part, dict):
        return None
    if isinstance(part.get("text"), str):
        return Part("text", part["text"])
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if not isinstance(url, str):
        return None
    try:
        return Part("image", images.from_url(url).sha256)
    except RemeasureError:
        return Part("image", "")


def label_of(item: Item, place: int) -> str:
    """Return what an image of an item is called: its label, or its number; behind them stands the whole."""
    if place >= len(item.images) > 0:
        return WHOLE
    labels = item.meta.get("labels")
    known = labels[place] if isinstance(labels, list) and place < len(labels) else None
    return known[:60] if isinstance(known, str) and known.strip() else f"Image {place + 1}"


def unseen(prompt: Prompt, item: Item) -> list[str]:
    """Return the labels of the item's images that a request does not hold."""
    held = [part.text for part in prompt if part.kind == "image"]
    found = []
    for place, ref in enumerate(item.images):
        if ref.sha256 in held:
            held.remove(ref.sha256)  # one image may have two places
        else:
            found.append(label_of(item, place))
    return found


def _called(prompt: Prompt, item: Item) -> list[str]:
    """Return what each image of a request is called."""
    places = list(enumerate(item.images))
    found = []
    for part in prompt:
        if part.kind == "image":
            place = next((place for place, ref in places if ref.sha256 == part.text), None)
            places = [one for one in places if one[0] != place]
            found.append("another image" if place is None else label_of(item, place))
    return found


def body_of(prompt: Prompt, item: Item) -> str:
    """Return a request as HTML."""
    names, rest, parts = iter(_called(prompt, item)), LONGEST_PROMPT, []
    one_speaker = sum(part.kind == "role" for part in prompt) == 1
    for part in prompt:
        if part.kind == "role":
            parts += [] if one_speaker else [f'<p class="role">{visible(part.text[:40])}</p>']
        elif part.kind == "image":
            parts.append(f'<p><span class="slot">{visible(next(names))}</span></p>')
        else:
            parts.append(f"<p>{plain(part.text, rest)}</p>")
            rest = max(0, rest - len(part.text))
    return "".join(parts)


def summary_of(prompt: Prompt) -> str:
    """Return in words how much was given."""
    n_images = sum(part.kind == "image" for part in prompt)
    n_letters = sum(len(part.text) for part in prompt if part.kind == "text")
    pictures = "no image" if not n_images else f"{n_images} image{'s' if n_images > 1 else ''}"
    return f"prompt: {n_letters:,} characters, {pictures}"


def details(prompt: Prompt, item: Item, same_as: str | None) -> str:
    """Return what a cell's reader was given, folded, and which of the item's images it was not shown.

    Args:
        prompt: the request.
        item: whose images are called by their labels.
        same_as: the cell above that was given just the same; null: none.
    """
    inside = body_of(prompt, item) if same_as is None else f"<p>as in {visible(same_as)}, above</p>"
    text = f"<details><summary>{summary_of(prompt)}</summary><div>{inside}</div></details>"
    lost = unseen(prompt, item)
    if not lost:
        return text
    return text + f'<p class="unseen">not shown in this condition: {visible(_listed(lost))}</p>'


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_SLOTS_NAMED
    return ", ".join(names[:MAX_SLOTS_NAMED]) + (f" and {more} more" if more > 0 else "")
