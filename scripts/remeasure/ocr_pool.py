"""OCR of many tiles with several processes; each result is handed over as soon as it is there."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import NamedTuple

from remeasure.errors import RemeasureError
from remeasure.images import ImageReader
from remeasure.ocr import OcrEngine
from remeasure.records import ImageRef, OcrImage

_engine: OcrEngine | None = None


class Tile(NamedTuple):
    """A tile to read: its id and where its bytes lie."""

    tile_id: str
    image: ImageRef


def _leave_with(parent: int) -> None:
    wait([parent])
    os._exit(1)


def _start() -> None:
    """Prepare a worker process: load the engine, leave Ctrl-C to the parent, never outlive it."""
    global _engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sentinel = multiprocessing.parent_process().sentinel
    threading.Thread(target=_leave_with, args=(sentinel,), daemon=True).start()
    _engine = OcrEngine()


def _read(data: bytes, sha256: str, tile_id: str) -> OcrImage:
    return _engine.read(data, sha256, tile_id)


def read_tiles(tiles: Iterable[Tile], processes: int) -> Iterator[OcrImage]:
    """Read tiles and yield the records in the order in which they are finished.

    Args:
        tiles: with distinct contents.
        processes: at least 1; with 1 everything stays in this process.

    Raises:
        RemeasureError: a tile is missing, damaged or no image; a worker process was killed. What was yielded
            before stays good.
    """
    with ImageReader() as reader:
        if processes == 1:
            engine = OcrEngine()
            for tile in tiles:
                yield engine.read(reader.read(tile.image), tile.image.sha256, tile.tile_id)
            return
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(processes, context, initializer=_start) as pool:
            try:
                yield from _through(pool, tiles, reader, 2 * processes)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _through(pool, tiles: Iterable[Tile], reader: ImageReader, window: int) -> Iterator[OcrImage]:
    """Keep ``window`` tiles in work: memory does not grow with the number of tiles."""
    waiting: dict[concurrent.futures.Future, str] = {}
    try:
        for tile in tiles:
            job = pool.submit(_read, reader.read(tile.image), tile.image.sha256, tile.tile_id)
            waiting[job] = tile.tile_id
            if len(waiting) >= window:
                yield from _finished(waiting)
        while waiting:
            yield from _finished(waiting)
    except BrokenProcessPool:
        names = ", ".join(waiting.values())
        raise RemeasureError(
            f"a reading process ended while these tiles were in work: {names}; it was killed or out of "
            "memory (0.7 GB each): run again with fewer processes, finished tiles are kept"
        ) from None


def _finished(waiting: dict[concurrent.futures.Future, str]) -> Iterator[OcrImage]:
    done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
    for job in done:
        image = job.result()
        del waiting[job]
        yield image
