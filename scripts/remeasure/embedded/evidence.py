"""What the page reader has at hand: lines of known pages and their vectors; others are made once, kept."""

import hashlib
from pathlib import Path

import msgspec
import numpy as np

from remeasure import jsonl
from remeasure.embedded.chat import BadRequest
from remeasure.embedded.lines import tile_lines
from remeasure.encoders import EncoderSettings
from remeasure.encoders.text import TextEncoder
from remeasure.errors import RemeasureError
from remeasure.records import OcrImage

ENCODER_MODEL = "bge-small-en-v1.5"
LINE_TOKENS = 128


class _Hash(msgspec.Struct):
    """The one field by which a page is found."""

    sha256: str


class PageTexts:
    """Candidate lines of images by content: from ``ocr.jsonl``, or read on the spot by OCR and kept."""

    def __init__(self, ocr: Path | None) -> None:
        """Note where each image's record stands; records are decoded when they are asked for.

        Raises:
            RemeasureError: the file cannot be read, or a line is no record.
        """
        self._path = ocr
        self._places: dict[str, tuple[int, int]] = {}
        self._known: dict[str, list[str]] = {}
        self._engine = None
        if ocr is None:
            return
        decoder = msgspec.json.Decoder(_Hash)
        place = number = 0
        try:
            with open(ocr, "rb") as stream:
                for line in stream:
                    number += 1
                    self._places[decoder.decode(line).sha256] = (place, len(line))
                    place += len(line)
        except OSError as error:
            raise jsonl.unreadable(ocr, error) from None
        except msgspec.MsgspecError as error:
            raise RemeasureError(
                f"{ocr} line {number}: not an OCR record ({error}); delete it and run snakemake -c1 {ocr}"
            ) from None

    def lines(self, data: bytes) -> list[str]:
        """Return the candidate lines of an image.

        Raises:
            BadRequest: the bytes are no image.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._known:
            self._known[sha256] = tile_lines(self._record(sha256, data))
        return self._known[sha256]

    def _record(self, sha256: str, data: bytes) -> OcrImage:
        if sha256 not in self._places:
            return self._read(sha256, data)
        place, size = self._places[sha256]
        with open(self._path, "rb") as stream:
            stream.seek(place)
            return msgspec.json.decode(stream.read(size), type=OcrImage)

    def _read(self, sha256: str, data: bytes) -> OcrImage:
        if self._engine is None:
            from remeasure.ocr import OcrEngine

            self._engine = OcrEngine()
        try:
            return self._engine.read(data, sha256, f"image {sha256[:12]}")
        except RemeasureError as error:
            raise BadRequest(str(error)) from None


class LineVectors:
    """Unit vectors of lines by their text: from a descriptor file, or encoded on the spot and kept."""

    def __init__(self, encoder: Path, tokenizer: Path, descriptors: Path | None) -> None:
        """Load the encoder and, where there are any, the vectors of the corpus.

        Args:
            encoder: ONNX model.
            tokenizer: its tokenizer file.
            descriptors: ``descriptors.h5`` of unit ``lines``; ``order.txt`` with the line ids lies beside.

        Raises:
            RemeasureError: a file is missing or damaged, or the vectors are of another encoder or limit.
        """
        settings = EncoderSettings(unit="lines", model=ENCODER_MODEL, max_tokens=LINE_TOKENS)
        self._encoder = TextEncoder(settings, encoder, tokenizer, threads=1)
        self._rows: dict[str, int] = {}
        self._stored = np.empty((0, self._encoder.dim), dtype=np.float32)
        self._made: dict[str, np.ndarray] = {}
        if descriptors is not None:
            self._load(descriptors)

    def _load(self, path: Path) -> None:
        from remeasure.vectors import read_descriptors

        found = read_descriptors(path, path.parent / "order.txt")
        if found.identity.space() != self._encoder.identity().space():
            raise RemeasureError(
                f"{path}: vectors of {found.identity.encoder} with {found.identity.input_limit}, the reader "
                f"needs {ENCODER_MODEL} with {LINE_TOKENS} tokens; correct the encoder of unit lines"
            )
        self._stored = found.vectors
        self._rows = {sha256: row for row, sha256 in enumerate(found.order)}

    def of_question(self, question: str) -> np.ndarray:
        """Return the vector of a question, shape (dim,), float32."""
        return self._encoder.queries([question])[0]

    def of_lines(self, lines: list[str]) -> np.ndarray:
        """Return the vectors of lines, shape (len(lines), dim), float32, unit rows."""
        return np.stack([self._one(line) for line in lines])

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of any texts, shape (len(texts), dim), float32; they are not kept."""
        return self._encoder.documents(texts)

    def _one(self, line: str) -> np.ndarray:
        sha256 = line_sha256(line)
        row = self._rows.get(sha256)
        if row is not None:
            return self._stored[row]
        if sha256 not in self._made:
            self._made[sha256] = self._encoder.documents([line])[0]
        return self._made[sha256]


def line_sha256(line: str) -> str:
    """Return the id of a line: the SHA-256 of its text."""
    return hashlib.sha256(line.encode()).hexdigest()
