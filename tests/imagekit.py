"""Tiny images and trees of them, made by hand in a test."""

import io
import random
import zipfile
from pathlib import Path

from PIL import Image

from remeasure.files import sha256_file
from remeasure.fingerprint import SCRIPTS

LEXICON = SCRIPTS.parent / "config" / "lexicons" / "coco.tsv"
OPTIONS = {
    "expected": None,
    "policy": "complete",
    "fail_on_conflict": True,
    "unknown_objects": "other",
    "extra_synonyms": {},
    "exclude": {},
    "lexicon": {"name": "coco", "path": "config/lexicons/coco.tsv", "sha256": sha256_file(LEXICON)},
}
FOLDERS = {"origin": "original", "removed": "repair", "replaced": "insert"}


def picture(
    kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (8, 6), seed: int = 0, **options
) -> bytes:
    """Return an image of noise; another seed is another picture."""
    out = io.BytesIO()
    noise = random.Random(seed).randbytes(size[0] * size[1])
    Image.frombytes("L", size, noise).convert(mode).save(out, kind, **options)
    return out.getvalue()


def named(file: str) -> str:
    """Return the place of a file by what its name says: 17.jpg, 17_masked_dog_repair.png and so on."""
    state = "origin" if "_masked_" not in file else "replaced" if "_insert_" in file else "removed"
    return f"benchmark/{FOLDERS[state]}/images/{file}"


def triplet(index: int | str, original: str = "dog", replacement: str = "cat") -> dict[str, bytes]:
    """Return the files of a triplet by path."""
    seed = 10 * int(index)
    return {
        named(f"{index}.jpg"): picture("JPEG", seed=seed),
        named(f"{index}_masked_{original}_repair.png"): picture(seed=seed + 1),
        named(f"{index}_masked_{original}_insert_{replacement}.png"): picture(seed=seed + 2),
    }


def folder(root: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    root.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def store(path: Path, files: dict[str, bytes], pack: int = zipfile.ZIP_STORED) -> Path:
    """Write files into a zip store."""
    with zipfile.ZipFile(path, "w", pack) as out:
        for name, data in files.items():
            out.writestr(name, data)
    return path
