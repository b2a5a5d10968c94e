"""Items of the TOSC benchmark: one image each, three of a triplet next to each other.

Source:
    TOSC card, section 2 (order and keys; slashes of the card's keys are no characters of ids).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Item
from remeasure.studies.tosc_names import image_id, triplet_id
from remeasure.studies.tosc_triplets import STATES, Triplet

Row = Triplet
"""What a line of the index is, for the stage."""


def from_row(row: Triplet, ref: Callable[[str, str], ImageRef]) -> tuple[Item, ...]:
    """Return the items of a triplet in the order origin, removed, replaced.

    Args:
        row: a line of the index.
        ref: gives the reference to an image from its path in the collection and its hash.

    Edges:
        A triplet of the policy ``available`` may have fewer items.
    """
    return tuple(
        Item(
            item_id=image_id(row.index, state),
            question="",
            images=(ref(row.images[state], row.sha256[state]),),
            group=triplet_id(row.index),
            meta={
                "title": _title(row),
                "index": row.index,
                "state": state,
                "original": row.original_object,
                "replacement": row.replacement_object,
                "overlap": row.overlap,
                "o_class": row.o_class,
                "r_class": row.r_class,
            },
        )
        for state in STATES
        if state in row.images
    )


def _title(row: Triplet) -> str:
    """Return what a person calls a triplet."""
    return f"{row.original_object} → {row.replacement_object or 'not known'}"


def units(found: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield the triplets of a user's own items.

    Raises:
        RemeasureError: items of a triplet stand apart or in another order, or one has not one image and the
            names of both objects; names triplet and item.
    """
    seen: set[str] = set()
    for name, members in groupby(found, key=lambda item: item.group):
        triplet = tuple(members)
        if name in seen:
            raise RemeasureError(
                f"item {triplet[0].item_id!r}: other items of triplet {name!r} stand further above; put the "
                "three items of a triplet next to each other in the question file"
            )
        seen.add(name)
        _check(name, triplet)
        yield triplet


def _check(name: str, triplet: tuple[Item, ...]) -> None:
    states = tuple(item.meta.get("state") for item in triplet)
    if states != STATES:
        raise RemeasureError(
            f"triplet {name!r}: the states of its items (meta.state) are {', '.join(map(str, states))}; "
            f"expected {', '.join(STATES)}, in this order, with the same `group`: correct the question file"
        )
    for item in triplet:
        names = [item.meta.get(key) for key in ("original", "replacement")]
        if (
            len(item.images) != 1
            or item.question
            or not all(isinstance(word, str) and word for word in names)
        ):
            raise RemeasureError(
                f"item {item.item_id!r}: expected one image, an empty question and the names of both objects "
                f"(meta.original, meta.replacement); found {len(item.images)} images, question "
                f"{item.question!r}, objects {names}: correct the question file"
            )
        if names != [triplet[0].meta.get(key) for key in ("original", "replacement")]:
            raise RemeasureError(
                f"item {item.item_id!r}: names other objects than {triplet[0].item_id!r}; correct the "
                "question file"
            )
