"""What a ranking shows to the reader: the first hits of each item, as tile images or as texts."""

from collections.abc import Callable, Container, Iterable
from pathlib import Path

import msgspec

from remeasure import jsonl
from remeasure.aligned import Aligned
from remeasure.cells import EvidenceKind
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Item, Passage, Ranked, Record, RenderedPage

# More rows without any evidence than this are a broken retriever, whatever tolerance is set.
_LIMIT_WITHOUT = 0.05


class Evidence(Record, kw_only=True):
    """What is shown for one item, best first."""

    kind: EvidenceKind
    ids: tuple[str, ...] = ()
    images: tuple[ImageRef, ...] = ()
    texts: tuple[str, ...] = ()


NOTHING = Evidence(kind="none")


def shown_ids(ranking: Path, n_shown: int) -> set[str]:
    """Return the ids that a ranking shows: of a large corpus a few thousand among millions."""
    return {name for ranked in jsonl.read(ranking, Ranked) for name in ranked.ids[:n_shown]}


def tile_images(manifest: Iterable[RenderedPage], tiles: Path, wanted: Container[str]) -> dict[str, ImageRef]:
    """Return the images of the wanted tile ids, those that the corpus has."""
    return {
        tile.tile_id: ImageRef(sha256=tile.sha256, path=str(tiles), member=tile.member)
        for page in manifest
        for tile in page.tiles
        if tile.tile_id in wanted
    }


class PassageTexts:
    """Texts of a passage file by passage id; holds ids and places, and reads a text when it is asked for."""

    def __init__(self, path: Path, wanted: Container[str]) -> None:
        """Read and check the whole file; only wanted ids are known afterwards.

        Raises:
            RemeasureError: the file is missing or a line is not a passage.
        """
        found = jsonl.read_placed(path, Passage)
        self._places = {p.passage_id: place for place, p in found if p.passage_id in wanted}
        self._stream = open(path, "rb")
        self._decoder = msgspec.json.Decoder(Passage)

    def __enter__(self) -> "PassageTexts":
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def __getitem__(self, passage_id: str) -> str:
        """Return the text of a passage; KeyError for an unknown one."""
        self._stream.seek(self._places[passage_id])
        return self._decoder.decode(self._stream.readline()).text


def shown(
    item: Item,
    ranked: Ranked | None,
    kind: EvidenceKind,
    n_shown: int,
    found: Callable[[str], ImageRef | str],
) -> Evidence:
    """Return what the reader is shown for one item.

    Args:
        item: the question.
        ranked: its ranked list; null where the ranking has none.
        kind: none, text or tiles.
        n_shown: how many of the first hits are shown.
        found: image or text of an id; raises KeyError for an unknown one.

    Edges:
        No hits: evidence of ``kind`` without parts. A text that is empty or blank is left out.

    Source:
        Page-image card 6.5: the list is cut first, then empty texts are left out. Unlike the original a
        missing tile never promotes the next rank: it is an error.
    """
    ids, images, texts = [], [], []
    for hit in ranked.ids[:n_shown] if ranked else ():
        try:
            part = found(hit)
        except KeyError:
            raise RemeasureError(
                f"item {item.item_id!r}: the ranking shows {hit!r}, which the corpus does not have; "
                "ranking and corpus are of different runs: delete the ranking and rerun"
            ) from None
        if kind == "tiles":
            images.append(part)
        elif part.strip():
            texts.append(part)
        else:
            continue
        ids.append(hit)
    return Evidence(kind=kind, ids=tuple(ids), images=tuple(images), texts=tuple(texts))


def open_ranking(path: Path) -> Aligned[Ranked]:
    """Open a ranking, whose lists stand in item order.

    Raises:
        RemeasureError: the file is missing; while it is read, an item stands twice.
    """
    return Aligned(jsonl.unique(jsonl.read(path, Ranked), "item_id", path), "item_id", path)


def check_used_up(lists: Aligned[Ranked], path: Path) -> None:
    """Check, when every item has taken its list, that no list is left over.

    Raises:
        RemeasureError: a ranked list belongs to no item, or stands out of item order.
    """
    left = lists.ids_left()
    strange = sorted(set(left) - set(lists.missed))
    if strange:
        raise RemeasureError(
            f"{path}: {len(strange)} lists belong to no item (first {strange[0]!r}); "
            "items and ranking are of different runs: delete the ranking and rerun"
        )
    if left:
        raise RemeasureError(
            f"{path}: the list of item {left[0]!r} stands out of item order; lists must stand in the order "
            "of the items: delete the ranking and rerun"
        )


def check_shown(rows: list[tuple[str, int]], source: Path, tolerance: float) -> int:
    """Refuse a cell whose evidence did not arrive; return the number of items without any.

    Args:
        rows: item id and number of evidence parts *in its messages*, one per item.
        source: the ranking, for the message.
        tolerance: share of items that may have none, 0 to 1.

    Raises:
        RemeasureError: more items than the tolerance, or 5 % and more, were built without evidence.

    Source:
        Page-image card 11, P12, P34 and P36: an arm without evidence silently became the naive arm.
    """
    without = [item_id for item_id, n_parts in rows if not n_parts]
    share = len(without) / len(rows)
    if share > tolerance or share >= _LIMIT_WITHOUT:
        raise RemeasureError(
            f"{source}: no evidence for {len(without)} of {len(rows)} items (first {without[0]!r}), allowed "
            f"are {tolerance:.1%} and always less than {_LIMIT_WITHOUT:.0%}; repair the search, "
            "or set max_share_without_evidence"
        )
    return len(without)
