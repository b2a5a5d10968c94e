"""The response of a ranker to a query: where its labelled photographs stand, and the first of its ranking."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from remeasure import requests
from remeasure.errors import RemeasureError
from remeasure.instances import placing
from remeasure.instances.gallery_order import Order
from remeasure.instances.labels import Labels
from remeasure.instances.placing import Rankings
from remeasure.records import Item, Placed, PlacedPhoto, Response

N_SHOWN = 10
"""Photographs at the top of a ranking that are kept for people."""


class Rerank(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a shortlist is reordered."""

    shortlist: int
    weight: float
    temperature: float
    grid_weights: tuple[float, ...] = ()
    grid_temperatures: tuple[float, ...] = ()


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the ranking of a cell."""

    study: str
    bench: str
    arm: str
    model: str
    gallery: str
    rerank: Rerank | None = None
    """Null: the first stage is the ranking."""


class Names(NamedTuple):
    """What the photographs of a gallery are called."""

    labels: Labels
    order: Order | None

    @property
    def n(self) -> int:
        """Photographs of the gallery."""
        return len(self.labels.imlist) + (self.order.n if self.order else 0)

    def of(self, photo: int) -> str:
        """Return a stem of the benchmark, or piece and row of a distractor."""
        n_own = len(self.labels.imlist)
        if photo < n_own or self.order is None:
            return self.labels.imlist[photo]
        starts = [shard.start for shard in self.order.shards]
        number = int(np.searchsorted(starts, photo - n_own, side="right")) - 1
        shard = self.order.shards[number]
        return f"{shard.name} row {photo - n_own - shard.start}"


def queries_of(items: Sequence[Item], labels: Labels) -> list[int]:
    """Return the number of the query that every item is about.

    Raises:
        RemeasureError: an item about a photograph that is no query of the benchmark.
    """
    numbers = {stem: number for number, stem in enumerate(labels.qimlist)}
    found = []
    for item in items:
        stem = item.meta.get("photo")
        if stem not in numbers:
            raise RemeasureError(
                f"item {item.item_id!r}: its photograph {stem!r} is no query of {labels.dataset}; delete "
                "items.jsonl and run its target again"
            )
        found.append(numbers[stem])
    return found


def placed(rankings: Rankings, names: Names, query: int, rerank: Rerank | None) -> Placed:
    """Return what a ranker did for a query; easy has no places where shortlists were reranked."""
    first, labels = rankings.first, names.labels
    ranks, settings = first.labelled[query], labels.settings(query)
    if rerank is None:
        at, as_sorted = placing.of_first(ranks, settings)
        ids, scores = first.top_id[query][:N_SHOWN], first.top_score[query][:N_SHOWN]
    else:
        found = {
            name: placing.reranked(lists[query], rerank.weight, rerank.temperature)
            for name, lists in rankings.lists.items()
        }
        at = {name: rankings.positions(name, query, one.ids) for name, one in found.items()}
        as_sorted = {}
        ids, scores = found["medium"].ids[:N_SHOWN], found["medium"].scores[:N_SHOWN]
    truth = labels.gnd[query]
    kinds = {row: kind for kind in ("easy", "hard", "junk") for row in getattr(truth, kind)}
    return Placed(
        n_gallery=first.n_gallery,
        n_positives={name: len(right) for name, (right, _) in settings.items()},
        positions=_numbers(at),
        as_sorted=_numbers(as_sorted),
        n_tied=ranks.n_tied,
        n_undecoded=len({*truth.easy, *truth.hard} & set(first.undecoded)),
        ignored=_numbers({name: np.sort(ranks.of(ids)) for name, (_, ids) in settings.items()}),
        top=tuple(
            PlacedPhoto(photo=names.of(photo), score=score, label=kinds.get(photo))
            for photo, score in zip(ids.tolist(), scores.tolist(), strict=True)
        ),
    )


def _numbers(found: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(at.tolist()) for name, at in found.items()}


def response(item: Item, told: Told, made_from: Mapping[str, str], found: Placed) -> Response:
    """Return the line of a query.

    Args:
        item: the query.
        told: settings of the cell.
        made_from: SHA-256 of the files that the ranking was made from, by what they are.
        found: what the ranker did.
    """
    settings = msgspec.to_builtins(told)
    # What a diagnostic grid has does not decide a ranking.
    for name in ("grid_weights", "grid_temperatures"):
        (settings["rerank"] or {}).pop(name, None)
    identity = {"item": item.item_id, "settings": settings, "made_from": dict(made_from)}
    return Response(
        custom_id=item.item_id,
        key=requests.identity_digest(identity),
        status="answered",
        text="\n".join(one.photo for one in found.top),
        model=told.model,
        placed=found,
    )
