"""Request files and image stores for ``asking.py``, true to the schemas and from no chance."""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remeasure import images, jsonl, requests
from remeasure.files import sha256_bytes
from remeasure.records import ImageRef

MODEL = "toy"
_WORDS = (
    "harbour valley council railway northern painter century island border river university treaty "
    "mineral orchestra castle village engineer province museum and of the in was by from its after"
).split()
_WIDTH_PX, _HEIGHT_PX = 320, 312
"""Three bytes per pixel, not compressed: 299,520 bytes and some."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rng: random.Random) -> bytes:
    """Return a true PNG of noise, 300 kB."""
    rows = b"".join(b"\0" + rng.randbytes(3 * _WIDTH_PX) for _ in range(_HEIGHT_PX))
    header = struct.pack(">IIBBBBB", _WIDTH_PX, _HEIGHT_PX, 8, 2, 0, 0, 0)
    parts = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 0)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def write_images(path: Path, n: int) -> list[ImageRef]:
    """Write a store of n distinct images and return references to them."""
    found: list[ImageRef] = []

    def members() -> Iterator[tuple[str, bytes]]:
        rng = random.Random(1)
        for number in range(n):
            data, name = png(rng), f"{number:06d}.png"
            found.append(ImageRef(sha256=sha256_bytes(data), path=path.name, member=name))
            yield name, data

    images.write_store(path, members())
    return found


def write_requests(path: Path, n: int, n_images: int, refs: list[ImageRef]) -> None:
    """Write n requests of some 300 words, each with ``n_images`` of the references, in turn."""
    rng = random.Random(2)

    def content(number: int) -> list[dict[str, Any]]:
        text = f"Question {number}. " + " ".join(rng.choices(_WORDS, k=300))
        shown = [refs[(number * n_images + i) % len(refs)] for i in range(n_images)]
        pictures = [{"type": "image_url", "image_url": {"url": images.to_url(ref)}} for ref in shown]
        return [{"type": "text", "text": text}, *pictures]

    def lines() -> Iterator[Any]:
        for number in range(n):
            messages = [{"role": "user", "content": content(number)}]
            body = requests.Body(model=MODEL, messages=messages, max_tokens=200, temperature=0.0)
            yield requests.make_request(f"question-{number:06d}", body)

    jsonl.write(path, lines())


def write_executor(path: Path, base_url: str, in_flight: int) -> None:
    """Write how the server is reached: every limit is on, and none of them binds."""
    price = {"input_usd_per_mtok": 0.1, "output_usd_per_mtok": 0.4}
    settings = {
        "kind": "http",
        "base_url": base_url,
        "dialect": "vllm",
        "concurrency": in_flight,
        "timeout_s": 60,
        "requests_per_minute": 1e7,
        "tokens_per_minute": 1e11,
        "money": {"price": price, "spend_usd": 1e6, "ledger": str(path.parent / "ledger")},
    }
    path.write_text(json.dumps(settings))


def write(folder: Path, base_url: str, n: int, in_flight: int, n_images: int, n_distinct: int) -> None:
    """Write all that a client reads into a folder."""
    folder.mkdir()
    refs = write_images(folder / "images.zip", n_distinct) if n_images else []
    write_requests(folder / "requests.jsonl", n, n_images, refs)
    write_requests(folder / "one.jsonl", 1, n_images, refs)
    write_executor(folder / "executor.json", base_url, in_flight)
