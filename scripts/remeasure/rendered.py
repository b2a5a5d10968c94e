"""Pages that lie in finished tiles of the same corpus, rendered when it had another number of parts."""

import contextlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from remeasure import images, jsonl, tiles
from remeasure.capture import CapturedPage, RenderSettings
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, RenderedPage, Stage
from remeasure.render import Job
from remeasure.spool import Spool


def take_over(
    corpus: Path | None,
    own: Path,
    settings: RenderSettings,
    facts: dict[str, Any],
    jobs: Mapping[str, Job],
    spool: Spool,
) -> int:
    """Put pages into the spool that were rendered before, in the same way, into other stores.

    Args:
        corpus: folder of the corpus; null: nothing is taken.
        own: the store that is being made, which is not looked at.
        settings: size and quality.
        facts: whatever else decides the tiles; a store with others is passed over.
        jobs: what is to be rendered, by page id.
        spool: gets the pages that it does not hold yet.

    Returns:
        Number of pages that were taken. A page that failed is not: it is tried again.
    """
    n_taken = 0
    for store, manifest in _stores(corpus, own, settings, facts) if corpus else ():
        with images.ImageReader() as reader:
            for page in jsonl.read(manifest, RenderedPage):
                job = jobs.get(page.page_id)
                if job is None or page.status != "rendered" or spool.get(job.key) is not None:
                    continue
                with contextlib.suppress(RemeasureError):  # a tile that is damaged is rendered again
                    spool.put(job.key, _captured(page, store, reader, settings))
                    n_taken += 1
    return n_taken


def _stores(
    corpus: Path, own: Path, settings: RenderSettings, facts: dict[str, Any]
) -> Iterator[tuple[Path, Path]]:
    """Yield (tiles, manifest) of every finished store of the corpus that was made in the same way."""
    wanted = jsonl.encode([settings, facts])
    for record in sorted([*corpus.glob("tiles/corpus.json"), *corpus.glob("parts/*/tiles/corpus.json")]):
        store, manifest = record.with_name("tiles.zip"), record.with_name("manifest.jsonl")
        if store == own or not store.is_file() or not manifest.is_file():
            continue
        try:
            stage = jsonl.read_json(record, Stage)
        except RemeasureError:
            continue
        if stage.stage == "render_tiles" and jsonl.encode([stage.settings, stage.facts]) == wanted:
            with contextlib.suppress(zipfile.BadZipFile, OSError):
                zipfile.ZipFile(store).close()
                yield store, manifest


def _captured(
    page: RenderedPage, store: Path, reader: images.ImageReader, settings: RenderSettings
) -> CapturedPage:
    """Return a page as its capture left it."""
    found = [
        tiles.check(
            reader.read(ImageRef(sha256=tile.sha256, path=str(store), member=tile.member)),
            tile.width_px,
            tile.height_px,
        )
        for tile in page.tiles
    ]
    grid = tiles.cut(page.width_px, page.height_px, settings.width_px, settings.tile_height_px)
    seen = [capture.sha256 for capture in found if not capture.blank]
    return CapturedPage(
        page=page,
        tiles=tuple(capture.data for capture in found),
        n_blank=len(found) - len(seen),
        n_repeated=len(seen) - len(set(seen)),
        dropped_bottom_px=grid.dropped_bottom_px,
        dropped_right_px=grid.dropped_right_px,
    )
