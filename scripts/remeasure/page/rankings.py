"""The top of a ranking as small pictures in a row, with positives, junk and wrong ones marked.

Every photograph stands in the page once, as a background in the style sheet: many rankings show it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from remeasure.errors import RemeasureError
from remeasure.page import thumbnails
from remeasure.page.escaping import visible
from remeasure.records import Item, Placed, PlacedPhoto

N_SHOWN = 10
"""Of every ranking."""
SIDE_PX = 72
DIFFICULTIES = ("easy", "medium", "hard")
STYLE = f"""
.ranking {{ display: flex; flex-wrap: wrap; gap: 4px; margin: .3rem 0; }}
.ranking i {{ width: {SIDE_PX}px; height: {SIDE_PX}px; background: var(--well) center / cover no-repeat;
  border: 3px solid var(--bad); border-radius: 4px; font-size: 9px; overflow: hidden; color: var(--faint); }}
.ranking i.easy {{ border-color: var(--good); }}
.ranking i.hard {{ border-color: var(--good); border-style: dashed; }}
.ranking i.junk {{ border-color: var(--faint); border-style: dotted; }}
"""
LEGEND = (
    "Top of each ranking: green frame easy positive, dashed hard positive, dotted junk (not counted), red a "
    "wrong one; a name alone is a distractor, or could not be decoded."
)


class PhotoSource(Protocol):
    """Where photographs of a gallery are read from."""

    def read(self, stem: str) -> bytes:
        """Return the bytes of a photograph."""


class Album:
    """The photographs that a page shows in rankings, each once."""

    def __init__(self) -> None:
        self._classes: dict[tuple[Path, str], str] = {}
        self._urls: list[str] = []

    def class_of(self, path: Path, source: PhotoSource, photo: str) -> str:
        """Return the class of a photograph; empty where there is none to be shown, as of distractors.

        Args:
            path: of the gallery's photographs: those of several galleries are told apart.
            source: reads them.
            photo: its name.
        """
        key = path, photo
        if key not in self._classes:
            try:
                url = thumbnails.small_url(source.read(photo), 2 * SIDE_PX)
            except RemeasureError:
                url = ""
            if url:
                self._urls.append(url)
            self._classes[key] = f"r{len(self._urls)}" if url else ""
        return self._classes[key]

    @property
    def style(self) -> str:
        """Rules of the style sheet, one for every photograph."""
        if not self._urls:
            return ""
        return STYLE + "".join(
            f'.r{number} {{ background-image: url("{url}") !important; }}\n'
            for number, url in enumerate(self._urls, start=1)
        )


def whole(item: Item, source: PhotoSource) -> tuple[str, ...]:
    """Return the photograph that a query was cut out of, with its box; nothing where that is not known."""
    photo, box = item.meta.get("photo"), item.meta.get("box")
    is_box = isinstance(box, list | tuple) and len(box) == 4 and all(type(x) in (int, float) for x in box)
    if not isinstance(photo, str) or not is_box:
        return ()
    try:
        return (thumbnails.small_url(source.read(photo), thumbnails.SIDE_PX, box),)
    except RemeasureError:
        return ("",)


def strip(placed: Placed, path: Path, source: PhotoSource, album: Album) -> str:
    """Return the top of a ranking and where its positives stand.

    Args:
        placed: where the labelled photographs stand.
        path: of the benchmark's photographs.
        source: reads them.
        album: keeps the pictures of the page.
    """
    shown = "".join(
        _photo(one, rank, path, source, album) for rank, one in enumerate(placed.top[:N_SHOWN], 1)
    )
    return f'<div class="ranking">{shown}</div>{positions(placed)}'


def _photo(one: PlacedPhoto, rank: int, path: Path, source: PhotoSource, album: Album) -> str:
    name = album.class_of(path, source, one.photo)
    label = one.label or "wrong"
    title = visible(f"{rank}. {one.photo}: {label}, {one.score:.4g}")
    text = "" if name else visible(one.photo[-40:])
    return f'<i class="{label} {name}" title="{title}">{text}</i>'


def positions(placed: Placed) -> str:
    """Return the ranks of the positives per difficulty, from 1, junk left out; and ties."""
    lines = []
    for name in DIFFICULTIES:
        if name not in placed.positions:  # not reranked
            continue
        n, at = placed.n_positives.get(name, 0), placed.positions[name]
        lines.append(f"<dt>{name}</dt><dd>{_ranks(at, n)}</dd>")
    if placed.n_tied:
        lines.append(f"<dt>ties</dt><dd>{placed.n_tied:,} labelled photographs share a score</dd>")
    return f'<dl class="facts">{"".join(lines)}</dl>'


def _ranks(positions: Sequence[int], n: int) -> str:
    if not n:
        return "no positive: left out of the mean"
    more = f" … {positions[-1] + 1:,}" if len(positions) > 12 else ""
    told = ", ".join(f"{position + 1:,}" for position in positions[:12])
    return f"{n:,} positives at {told}{more}"
