"""Reading text in images with RapidOCR: one engine per process, one thread each, every image read once."""

import contextlib
import importlib.metadata
import math
from pathlib import Path
from typing import IO, Literal

import msgspec
import numpy as np

from remeasure.errors import RemeasureError
from remeasure.records import OcrImage, OcrLine

PACKAGES = ("rapidocr", "onnxruntime", "opencv-python-headless")
"""Distributions whose versions can change what is read."""
_REC_BATCH = 1  # One line per call: a line's text does not depend on its neighbours, and is faster so.
_LONGEST_SIDE_PX = 2000
_LEAST_WIDTH_PX = 96  # Short lines are filled up to this width; by default to 320 px, a sixth more work.


class OcrSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which engine reads how many tiles of each page."""

    engine: Literal["rapidocr"]
    tiles_per_page: int


def engine_version() -> str:
    """Return one text for everything about the engine that can change what it reads."""
    versions = " ".join(f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES)
    sizes = f"longest_side={_LONGEST_SIDE_PX} least_width={_LEAST_WIDTH_PX}"
    return f"{versions} rec_batch={_REC_BATCH} use_cls=False {sizes}"


class OcrEngine:
    """A loaded engine (about 0.6 GB with a page tile in work). Not for several threads."""

    def __init__(self) -> None:
        import cv2
        import onnxruntime
        from rapidocr import RapidOCR

        cv2.setNumThreads(1)
        onnxruntime.set_default_logger_severity(3)
        self._engine = RapidOCR(
            params={
                "Global.use_cls": False,
                "Global.log_level": "critical",
                "Rec.rec_batch_num": _REC_BATCH,
                "Rec.rec_img_shape": [3, 48, _LEAST_WIDTH_PX],
                # As they are: by default a low last tile of a page is enlarged to 736 px, ten times the work.
                "Det.limit_type": "max",
                "Det.limit_side_len": _LONGEST_SIDE_PX,
                "Global.max_side_len": _LONGEST_SIDE_PX,
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                "EngineConfig.onnxruntime.enable_cpu_mem_arena": True,
            }
        )

    def read(self, data: bytes, sha256: str, tile_id: str) -> OcrImage:
        """Read all lines of an image, in the engine's order: from top to bottom, then from left to right.

        Args:
            data: PNG, JPEG or WebP bytes.
            sha256: their hash.
            tile_id: id of the tile, for the record and for messages.

        Raises:
            RemeasureError: the bytes are no image.

        Edges:
            An image without text gives a record without lines.
        """
        from remeasure.encoders.photo import decode

        image = decode(data, f"tile {tile_id}")
        height, width = image.shape[:2]
        found = self._engine(image)
        boxes = () if found.boxes is None else found.boxes
        lines = tuple(
            OcrLine(text=text.strip(), box=_corners(box, width, height), confidence=round(float(score), 4))
            for text, box, score in zip(found.txts or (), boxes, found.scores or (), strict=True)
            if text.strip()
        )
        return OcrImage(sha256=sha256, tile_id=tile_id, width_px=width, height_px=height, lines=lines)


def _corners(box: np.ndarray, width: int, height: int) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom around a quadrangle of shape (4, 2), inside the image."""
    left, top = (max(0, math.floor(float(value))) for value in box.min(axis=0))
    right, bottom = (math.ceil(float(value)) for value in box.max(axis=0))
    return left, top, min(width, right), min(height, bottom)


def text_of(image: OcrImage) -> str:
    """Return what an encoder sees of a tile: its lines in the order of reading, one per row."""
    return "\n".join(line.text for line in image.lines)


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    engine: str
    image: OcrImage


class TileJournal:
    """Remembers what was read, one flushed line per image, so that an interrupted run goes on.

    Entries are found by image hash and engine version: another version reads everything again. Only one
    process may hold a journal open; the other journals of its folder, those of other parts of the corpus, are
    looked at only.
    """

    def __init__(self, folder: Path, engine: str, part: str | None = None) -> None:
        """Open ``folder/ocr.jsonl``, or ``ocr.<part>.jsonl``; a last line that was cut off goes to ``.torn``.

        Raises:
            RemeasureError: another process has it open, or a line is damaged.
        """
        import fcntl

        folder.mkdir(parents=True, exist_ok=True)
        self._engine, self._path = engine, folder / (f"ocr.{part}.jsonl" if part else "ocr.jsonl")
        self._stream = open(self._path, "a+b")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            raise RemeasureError(
                f"{self._path}: another process is writing it; wait for it or stop it"
            ) from None
        self._decoder = msgspec.json.Decoder(_Entry)
        self._places: dict[str, tuple[IO[bytes], int, int]] = {}
        self._end = 0
        self._others = [open(path, "rb") for path in sorted(folder.glob("ocr*.jsonl")) if path != self._path]
        for stream in self._others:
            self._look_at(stream)
        self._load()

    def _look_at(self, stream: IO[bytes]) -> None:
        """Note what another journal holds; it may be written at this moment."""
        end = 0
        for line in stream:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                entry = self._decoder.decode(line)
                if line.endswith(b"\n") and entry.engine == self._engine:
                    self._places[entry.image.sha256] = (stream, end, len(line))
            end += len(line)

    def _load(self) -> None:
        """Note where each image's line stands; the records themselves stay in the file."""
        self._stream.seek(0)
        for number, line in enumerate(self._stream, start=1):
            if not line.endswith(b"\n"):
                with open(self._path.with_suffix(".torn"), "ab") as torn:
                    torn.write(line + b"\n")
                self._stream.truncate(self._end)
                break
            try:
                entry = self._decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RemeasureError(
                    f"{self._path} line {number}: damaged ({error}); remove that line, its tile is read again"
                ) from None
            if entry.engine == self._engine:
                self._places[entry.image.sha256] = (self._stream, self._end, len(line))
            self._end += len(line)

    def __enter__(self) -> "TileJournal":
        return self

    def __exit__(self, *_) -> None:
        for stream in (self._stream, *self._others):
            stream.close()

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._places

    def get(self, sha256: str, tile_id: str) -> OcrImage:
        """Return the record of an image under the name of one of the tiles that show it."""
        stream, start, size = self._places[sha256]
        stream.seek(start)
        return msgspec.structs.replace(self._decoder.decode(stream.read(size)).image, tile_id=tile_id)

    def add(self, image: OcrImage) -> None:
        """Remember an image at once."""
        line = msgspec.json.encode(_Entry(self._engine, image), order="sorted") + b"\n"
        self._stream.write(line)
        self._stream.flush()
        self._places[image.sha256] = (self._stream, self._end, len(line))
        self._end += len(line)
