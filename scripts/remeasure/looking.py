"""Every image of a collection decoded once, on all cores: what it is, or why it is none."""

import io
import logging
import struct
import threading
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TypeVar

from remeasure import image_check, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.journal import entries
from remeasure.progress import Progress
from remeasure.records import Record

log = logging.getLogger("remeasure.looking")

PACKAGES = ("pillow",)
# What is remembered of an older way to look is not used.
_WAY = 2
# Larger images are decoded one at a time, so that memory does not grow with the number of threads.
_LARGE_PX = 8_000_000
# What Pillow raises for broken files; which one depends on the format and on where the damage lies.
BROKEN = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    OverflowError,
    struct.error,
    zlib.error,
)


class Seen(Record, kw_only=True):
    """What an image is after all its pixels were decoded; equal bytes are equal."""

    sha256: str | None
    """Null where the bytes could not be read."""
    format: str | None = None
    """png, jpeg, gif or webp, by content."""
    width_px: int | None = None
    height_px: int | None = None
    mode: str | None = None
    """As Pillow names it: RGB, RGBA, P, L, …"""
    transparent: bool = False
    """Whether a pixel is not opaque."""
    odd: tuple[str, ...] = ()
    """What servers treat differently (``image_check.ImageFacts``)."""
    problem: str | None = None
    """Why it cannot be used; all else is null then."""


class Remembered(Record, kw_only=True):
    """A line of the journal: what was seen, and by which decoder."""

    by: str
    seen: Seen


def look(data: bytes, sha256: str | None = None) -> Seen:
    """Decode an image whole.

    Args:
        data: its bytes.
        sha256: of the bytes, where it is known.

    Returns:
        What it is; ``problem`` says what is wrong where it is no image, is cut off, broken or a bomb.
    """
    digest = sha256 or sha256_bytes(data)
    try:
        facts = image_check.inspect(data)
        mode, transparent = _decode(data, facts)
    except RemeasureError as error:
        return Seen(sha256=digest, problem=str(error))
    return Seen(
        sha256=digest,
        format=facts.format,
        width_px=facts.width_px,
        height_px=facts.height_px,
        mode=mode,
        transparent=transparent,
        odd=facts.odd,
    )


_large = threading.Lock()


def _decode(data: bytes, facts: image_check.ImageFacts) -> tuple[str, bool]:
    """Return the mode of an image and whether it is transparent anywhere.

    Raises:
        RemeasureError: its pixels cannot be decoded to the end.
    """
    from PIL import Image

    with ExitStack() as held:
        if facts.width_px * facts.height_px > _LARGE_PX:
            held.enter_context(_large)
        try:
            image = held.enter_context(Image.open(io.BytesIO(data), formats=(facts.format.upper(),)))
            image.load()
            if facts.format == "png":
                _check_rows(data)
            return image.mode, is_transparent(image)
        except Image.DecompressionBombError as error:
            raise RemeasureError(f"is too large to be decoded ({error})") from None
        except BROKEN as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise RemeasureError(f"cannot be decoded to the end ({said[:200]})") from None


# Start and step of columns, then of rows, of the seven passes of an interlaced PNG.
_ADAM7 = ((0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2))
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_STEP_BYTES = 1 << 20


def _check_rows(data: bytes) -> None:
    """Check that a decoded PNG has all its rows.

    Pillow leaves rows black that a compressed stream with a proper end does not hold; other decoders refuse.

    Raises:
        RemeasureError: it has fewer.

    Source:
        W3C, "Portable Network Graphics (Third Edition)", sections 7.2, 8.1 and 10.1.
    """
    width, height, bits, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    wanted = 0
    for left, across, top, down in _ADAM7 if interlaced else ((0, 1, 0, 1),):
        columns, rows = (width - left + across - 1) // across, (height - top + down - 1) // down
        wanted += rows * (1 + (columns * bits * _CHANNELS[colour] + 7) // 8) if columns > 0 else 0
    unpacker, n, at = zlib.decompressobj(), 0, 8
    while at + 8 <= len(data) and n < wanted and not unpacker.eof:
        length, kind = struct.unpack_from(">I4s", data, at)
        packed = data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        while packed and n < wanted:
            n += len(unpacker.decompress(packed, _STEP_BYTES))
            packed = unpacker.unconsumed_tail
        at += 12 + length
    n += len(unpacker.flush()) if n < wanted else 0
    if n < wanted:
        raise RemeasureError(f"has no pixels behind {n} of {wanted} bytes of its rows; copy or make it again")


def is_transparent(image) -> bool:
    """Return whether a decoded Pillow image has a pixel that is not opaque."""
    if image.mode in ("RGBA", "LA"):
        return image.getchannel("A").getextrema()[0] < 255
    if image.mode not in ("1", "L", "P", "RGB") or "transparency" not in image.info:
        return False
    return image.convert("RGBA").getchannel("A").getextrema()[0] < 255


class Memory:
    """What was seen before, by content; a stopped step decodes nothing twice.

    A context manager. It may be lost without harm: a damaged file is begun anew.

    Args:
        folder: where it is kept, in ``images.jsonl``.
    """

    def __init__(self, folder: Path) -> None:
        import PIL

        self._by = f"pillow {PIL.__version__}, way {_WAY}"
        self._path = Path(folder) / "images.jsonl"
        self._seen: dict[str, Seen] = {}

    def __enter__(self) -> "Memory":
        self._path.parent.mkdir(parents=True, exist_ok=True)
        end = self._read() if self._path.exists() else 0
        self._file = open(self._path, "ab")
        self._file.truncate(end)  # without a torn last line
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def _read(self) -> int:
        """Read what is remembered; return the position behind the last whole line."""
        end = 0
        try:
            for start, length, line in entries(self._path, Remembered):
                end = start + length
                if line.by == self._by and line.seen.sha256:
                    self._seen[line.seen.sha256] = line.seen
        except RemeasureError as error:
            log.warning("%s; what was seen before is looked at again", error)
            self._seen.clear()
            return 0
        return end

    def get(self, sha256: str) -> Seen | None:
        """Return what was seen of an image with these bytes."""
        return self._seen.get(sha256)

    def add(self, seen: Seen) -> None:
        """Remember an image; a killed process loses at most the last lines."""
        if seen.sha256 is None or seen.sha256 in self._seen:
            return
        self._seen[seen.sha256] = seen
        self._file.write(jsonl.encode(Remembered(by=self._by, seen=seen)) + b"\n")


def look_at_all(
    paths: Iterable[str],
    read: Callable[[str], bytes],
    memory: Memory,
    progress: Progress,
    n_threads: int,
) -> dict[str, Seen]:
    """Decode many images, each read and forgotten in turn.

    Args:
        paths: the images.
        read: gives the bytes of one, from any thread; raises ``RemeasureError`` where it cannot.
        memory: what is known by content is not decoded again.
        progress: counts them.
        n_threads: at least 1; decoding runs outside the interpreter's lock.

    Returns:
        What each is, in the order of ``paths``.
    """

    def one(path: str) -> Seen:
        try:
            data = read(path)
        except RemeasureError as error:
            return Seen(sha256=None, problem=str(error))
        digest = sha256_bytes(data)
        return memory.get(digest) or look(data, digest)

    found: dict[str, Seen] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large and of odd files; what matters is in Seen
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                for path, seen in in_order(pool, one, paths, 4 * n_threads):
                    memory.add(seen)
                    found[path] = seen
                    progress.add()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    progress.finish()
    return found


T, U = TypeVar("T"), TypeVar("U")


def in_order(
    pool: ThreadPoolExecutor, function: Callable[[T], U], things: Iterable[T], window: int
) -> Iterator[tuple[T, U]]:
    """Yield things with their results in order, with at most ``window`` of them in work."""
    rest = iter(things)
    waiting: deque[tuple[T, Future]] = deque()
    for thing in islice(rest, window):
        waiting.append((thing, pool.submit(function, thing)))
    while waiting:
        thing, job = waiting.popleft()
        yield thing, job.result()
        for following in islice(rest, 1):
            waiting.append((following, pool.submit(function, following)))
