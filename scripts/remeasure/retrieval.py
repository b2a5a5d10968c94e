"""Ranked lists for questions: a text route, a photo route from query images, and their fusion."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from remeasure import jsonl, ranking, scratch, vectors
from remeasure.encoders import EncoderSettings, batched
from remeasure.encoders.pictures import tile_under
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.records import Item, Ranked, RenderedPage, Stage

BLOCK = 64


class Fusion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the two routes are put together (``ranking.fuse``)."""

    text_weight: float
    photo_weight: float
    rank_constant: float


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an arm retrieves with; ``photo`` and ``fusion`` are null for an arm without query images."""

    n_docs: int
    text: EncoderSettings
    photo: EncoderSettings | None
    fusion: Fusion | None


class OpenIndex(NamedTuple):
    """A search index with the ids of its rows and what made them."""

    index: Any
    order: tuple[str, ...]
    position: dict[str, int]
    identity: vectors.Identity
    sha256: str | None = None
    """Of its file, where it was read to check it."""

    def search(self, query: np.ndarray, k: int) -> list[tuple[str, float]]:
        """Return the best k (id, score) for a vector of shape (dim,), best first."""
        rows, values = next(vectors.search_index(self.index, query[None, :], k))
        return [(self.order[row], float(value)) for row, value in zip(rows, values, strict=True)]


def open_index(index: Path, record: Path, order: Path) -> OpenIndex:
    """Open an index and check it against its record; where there is local scratch, from a copy there.

    Raises:
        RemeasureError: a file is missing or damaged, or not the one that the record was written for.
    """
    facts = jsonl.read_json(record, Stage)
    try:
        identity = msgspec.convert(facts.facts.get("identity"), vectors.Identity)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"{record}: not the record of an index ({error}); delete it and rerun build_index"
        ) from None
    ids = vectors.read_order(order)
    if vectors.order_sha256(ids) != facts.facts.get("order_sha256"):
        raise RemeasureError(f"{order}: not the order that {record} was written for; rerun build_index")
    written = list(facts.outputs.values())
    place = scratch.local_copy(index, written[0] if len(written) == 1 else None)
    sha256 = sha256_file(place) if place.is_file() else None
    if sha256 is not None and sha256 not in written:
        raise RemeasureError(f"{index}: not the index that {record} was written for; rerun build_index")
    opened = vectors.read_index(place, len(ids), identity.dim, mapped=place != index)
    return OpenIndex(opened, ids, {name: row for row, name in enumerate(ids)}, identity, sha256)


def check_same_space(opened: OpenIndex, query: vectors.Identity, place: Path) -> None:
    """Refuse a query encoder that is not the one which made the index (P7: an adapter on one side only).

    Raises:
        RemeasureError: names the first field that differs.
    """
    for field in vectors.SPACE:
        indexed, asked = getattr(opened.identity, field), getattr(query, field)
        if indexed != asked:
            raise RemeasureError(
                f"{place}: made with {field} {indexed}, but the questions would be embedded with {asked}; "
                "use the same encoder and adapter, or delete the index and rerun"
            )


class PhotoRoute(NamedTuple):
    """Search over pictures, and the tile that stands for each picture."""

    index: OpenIndex
    encode: Callable[[Item], np.ndarray]
    """Vectors of an item's images, shape (images, dim)."""
    tile_of: dict[str, str]

    def search(self, item: Item, k: int) -> list[str]:
        """Return up to k different tiles, best picture first; of several images the best match counts."""
        queries = self.encode(item)
        n_pictures = k
        while True:
            n_pictures = min(n_pictures, len(self.index.order))
            best: dict[str, float] = {}
            for query in queries:
                for name, value in self.index.search(query, n_pictures):
                    best[name] = max(value, best.get(name, -np.inf))
            names = sorted(best, key=lambda name: (-best[name], self.index.position[name]))
            tiles = list(dict.fromkeys(self.tile_of[name] for name in names))
            if len(tiles) >= k or n_pictures == len(self.index.order):
                return tiles[:k]
            n_pictures *= 2


def tiles_of_pictures(pages: Iterable[RenderedPage], pictures: OpenIndex, tiles: OpenIndex) -> dict[str, str]:
    """Return for each indexed picture the tile it lies in, or its page's first indexed tile.

    Raises:
        RemeasureError: a picture whose page has no indexed tile, or that no page has.
    """
    found: dict[str, str] = {}
    for page in pages:
        indexed = [tile.tile_id for tile in page.tiles if tile.tile_id in tiles.position]
        for picture in page.pictures:
            under = tile_under(page, picture)
            if indexed and picture.picture_id in pictures.position:
                found[picture.picture_id] = under if under in indexed else indexed[0]
    lost = next((name for name in pictures.order if name not in found), None)
    if lost is not None:
        raise RemeasureError(
            f"picture {lost} is indexed, but none of its page's tiles is; "
            "embed tiles and pictures from the same manifest"
        )
    return found


def rank(
    items: Iterable[Item],
    settings: SearchSettings,
    text_index: OpenIndex,
    encode: Callable[[Sequence[str]], np.ndarray],
    photo: PhotoRoute | None,
) -> Iterator[tuple[Item, Ranked]]:
    """Yield every item with its ranked list, in order.

    The text route ranks by the question. With a photo route, an item with images is also ranked by them, and
    the first ``n_docs`` of both routes are fused; its scores are then fused ones, not cosines.

    Raises:
        RemeasureError: an item without question, or with fewer hits than there could be (P12).
    """
    expected = min(settings.n_docs, len(text_index.order))
    for block in batched(items, BLOCK):
        blank = next((item.item_id for item in block if not item.question.strip()), None)
        if blank is not None:
            raise RemeasureError(f"item {blank}: has no question; correct or remove it")
        for item, query in zip(block, encode([item.question for item in block]), strict=True):
            hits = text_index.search(query, settings.n_docs)
            ids, values = [name for name, _ in hits], [value for _, value in hits]
            if photo is not None and item.images:
                routes = [
                    (settings.fusion.text_weight, ids),
                    (settings.fusion.photo_weight, photo.search(item, settings.n_docs)),
                ]
                ids, values = ranking.fuse(
                    routes, settings.fusion.rank_constant, settings.n_docs, text_index.position.__getitem__
                )
            if len(ids) < expected:
                raise RemeasureError(
                    f"item {item.item_id}: {len(ids)} hits, expected {expected}; the index probes too few "
                    "lists: raise nprobe, or use kind flat"
                )
            yield item, Ranked(item_id=item.item_id, ids=tuple(ids), scores=tuple(values))


class Hits:
    """Counts at which rank the first relevant page stands."""

    def __init__(self, n_docs: int) -> None:
        self.n_items = self.n_with_relevant = self.n_with_images = 0
        self.at = dict.fromkeys(range(1, n_docs + 1), 0)

    def add(self, item: Item, ranked: Ranked) -> None:
        """Count one item; items without relevant pages are in no recall."""
        self.n_items += 1
        self.n_with_images += bool(item.images)
        self.n_with_relevant += bool(item.relevant)
        first = ranking.first_hit(ranked.ids, item.relevant)
        for k in self.at:
            self.at[k] += first is not None and first <= k
