"""A running model server that is asked through our own executor, in neutral words; for the contract tests."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from keeper import MemoryKeeper
from remeasure import executors, images, jsonl, requests
from remeasure.executors import Call, HttpSettings
from remeasure.files import sha256_bytes
from remeasure.records import ImageRef, JournalEntry, OcrImage, OcrLine

LLM = "smollm2-135m-instruct-q4_1.gguf"
ENCODER = "bge-small-en-v1.5"
# 56 pixels wide and high: the tiny model makes 4 tokens of it, and one at each side.
PAGE = cv2.imencode(".png", np.full((56, 56, 3), 200, np.uint8))[1].tobytes()
PAGE_LINES = (
    ("Ruritania", 16, 38, 190, 74),
    ("Capital", 556, 130, 640, 150),
    ("Strelsau", 671, 130, 760, 150),
)


@dataclass
class Server:
    """A running server that is asked in our neutral words."""

    base_url: str
    dialect: str
    folder: Path
    description: str
    served_name: str = "slug"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def ask(self, content: str | list, *, served_name: str | None = None, **words: Any) -> JournalEntry:
        """Return the outcome of one request; ``words`` are those of ``requests.Body``."""
        messages = [{"role": "user", "content": content}]
        body = requests.Body(model="slug", messages=messages, **({"max_tokens": 12} | words))
        request = requests.make_request(f"q-{next(self._numbers)}", body)
        call = Call(key=sha256_bytes(b"key"), custom_id=request.custom_id, body=request.body)
        settings = HttpSettings(
            base_url=self.base_url, dialect=self.dialect, concurrency=1, timeout_s=100, base_wait_s=0.01
        )
        name, keeper = served_name or self.served_name, MemoryKeeper()
        with executors.opened(settings, name, self.folder, self.folder) as executor:
            executor.run(iter([call]), keeper)
        assert keeper.n_sent == {call.key: 1}
        return keeper.entries[0]

    def picture(self, data: bytes = PAGE) -> dict:
        """Return the part of a message that shows a picture, by reference as in a request file."""
        path = self.folder / f"{sha256_bytes(data)[:8]}.png"
        path.write_bytes(data)
        url = images.to_url(ImageRef(sha256=sha256_bytes(data), path=path.name))
        return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict:
    """Return the part of a message that is text."""
    return {"type": "text", "text": words}


def page_reader_files(sources: Path, folder: Path) -> dict[str, str]:
    """Return what the page reader reads, with an OCR file that knows ``PAGE``."""
    lines = tuple(OcrLine(text=words, box=tuple(box), confidence=0.99) for words, *box in PAGE_LINES)
    page = OcrImage(
        sha256=sha256_bytes(PAGE), tile_id="ruritania/0000", width_px=875, height_px=1024, lines=lines
    )
    jsonl.write(folder / "ocr.jsonl", [page])
    names = {"llm": LLM, "encoder": f"{ENCODER}.onnx", "tokenizer": f"{ENCODER}.tokenizer.json"}
    return {option: str(sources / name) for option, name in names.items()} | {
        "ocr": str(folder / "ocr.jsonl")
    }
