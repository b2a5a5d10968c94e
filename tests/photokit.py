"""Photographs of a benchmark and of a shard, made by hand, and a describer that needs no weights."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from remeasure.instances.decode import decode
from remeasure.instances.vectors_file import Column


def jpeg(width=64, height=48, seed=0, **options) -> bytes:
    """Return a photograph of coarse noise, which JPEG keeps."""
    coarse = np.random.default_rng(seed).integers(
        0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8
    )
    out = io.BytesIO()
    Image.fromarray(coarse).resize((width, height)).save(out, "JPEG", quality=95, **options)
    return out.getvalue()


def truth(bbx=(10.5, 4.5, 50.7, 40.2), easy=(), hard=(), junk=()) -> dict:
    return {"bbx": list(bbx), "easy": list(easy), "hard": list(hard), "junk": list(junk)}


def benchmark(
    root: Path, gallery: dict[str, bytes], queries: dict[str, bytes], gnd=None
) -> tuple[Path, Path]:
    """Write a zip store of photographs and its labels; return both paths."""
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / "photos.zip", "w") as store:
        for stem, data in (gallery | queries).items():
            store.writestr(f"{stem}.jpg", data)
    labels = {
        "schema": 1,
        "dataset": "small",
        "source_sha256": "0" * 64,
        "imlist": list(gallery),
        "qimlist": list(queries),
        "gnd": gnd or [truth() for _ in queries],
    }
    (root / "labels.json").write_text(json.dumps(labels))
    return root / "photos.zip", root / "labels.json"


def shard(root: Path, photos: dict[str, bytes], landmarks: list[int] | None = None) -> tuple[Path, Path]:
    """Write a shard and its index; return both paths."""
    import pyarrow as pa
    from pyarrow import parquet

    root.mkdir(parents=True, exist_ok=True)
    rows = []
    with tarfile.open(root / "1of1.tar", "w") as tar:
        for name, data in photos.items():
            member = tarfile.TarInfo(f"{len(rows):06}.jpg")
            member.size = len(data)
            offset = tar.offset + 512
            tar.addfile(member, io.BytesIO(data))
            sha1 = hashlib.sha1(data, usedforsecurity=False).hexdigest()
            rows.append((name, 0, member.name, offset, len(data), sha1))
    names = ("name", "archive", "member", "offset", "size", "sha1")
    columns = {key: [row[i] for row in rows] for i, key in enumerate(names)}
    columns["landmark_id"] = pa.array(landmarks or [None] * len(rows), pa.int32())
    parquet.write_table(pa.table(columns), root / "1of1.index.parquet")
    return root / "1of1.tar", root / "1of1.index.parquet"


class Means:
    """Describes a photograph by its mean colour, over the whole and over its left half; batches by size."""

    columns = {"cls": Column(np.float32, (2, 3))}
    batch, block_rows = 2, 4

    def __init__(self) -> None:
        self.ran: list[tuple] = []

    def decode(self, data):
        return decode(data)

    def prepare(self, pixels):
        half = pixels[:, : max(1, pixels.shape[1] // 2)]
        return [(part.shape, part) for part in (pixels, half)]

    def run(self, kind, inputs):
        assert all(part.shape == kind for part in inputs)
        self.ran.append((kind, len(inputs)))
        return [part.reshape(-1, 3).mean(axis=0) for part in inputs]

    def finish(self, outputs):
        return {"cls": np.stack(outputs)}
