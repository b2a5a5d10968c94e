"""The servers that keep the contract, each started once, and a way to ask them through our own executor."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import real_vllm
from keeper import MemoryKeeper
from remeasure import executors, images, jsonl, model_server, requests
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
        body = requests.Body(
            model="slug", messages=[{"role": "user", "content": content}], **({"max_tokens": 12} | words)
        )
        request = requests.make_request(f"q-{next(self._numbers)}", body)
        call = Call(
            key=sha256_bytes(request.custom_id.encode()),
            **{"custom_id": request.custom_id, "body": request.body},
        )
        settings = HttpSettings(
            base_url=self.base_url, dialect=self.dialect, concurrency=1, timeout_s=100, base_wait_s=0.01
        )
        keeper = MemoryKeeper()
        with executors.opened(
            settings, served_name or self.served_name, self.folder, self.folder
        ) as executor:
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


def _running(folder: Path, program: str, dialect: str, files: dict, options: dict) -> Iterator[Server]:
    words = model_server.command(program, "slug", files, options)
    with model_server.running(words, "slug", folder / "server.log", 300) as server:
        yield Server(server.base_url, dialect, folder, server.description)


@pytest.fixture(scope="session")
def page_reader(tmp_path_factory, sources) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page_reader")
    files = page_reader_files(sources, folder)
    yield from _running(folder, "serve_page_reader.py", "embedded", files, {"threads": 1})


@pytest.fixture(scope="session")
def plain_llm(tmp_path_factory, sources) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("plain_llm")
    yield from _running(folder, "serve_llm.py", "llamacpp", {"llm": str(sources / LLM)}, {"threads": 1})


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, request) -> Iterator[Path]:
    """A tiny vision-language model; while it is used, the program ``vllm`` is on the search path."""
    python = request.config.getoption("--vllm-python")
    if python is None:
        pytest.skip("no vLLM: give --vllm-python PATH")
    folder = tmp_path_factory.mktemp("vllm")
    bin_folder, _ = real_vllm.install(folder, python)
    model = real_vllm.build_model(folder / "model", bin_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
        yield model


@pytest.fixture(scope="session")
def vllm(tmp_path_factory, tiny_model) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("vllm_server")
    files = {"model": str(tiny_model)}
    yield from _running(folder, "serve_vllm.py", "vllm", files, real_vllm.OPTIONS)


@pytest.fixture
def server(request) -> Server:
    """The server that a test is parametrised with, by name."""
    return request.getfixturevalue(request.param)
