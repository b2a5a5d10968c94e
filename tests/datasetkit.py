"""Small datasets in the form of the real files, and the step that loads them."""

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import load_dataset
from remeasure import jsonl
from remeasure.records import Document, Question

HEADER = "query-id\tcorpus-id\tscore\n"


def lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def document(path: Path, value: Any) -> Path:
    """Write one JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def zipped(path: Path, members: dict[str, str]) -> Path:
    """Write a zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as store:
        for name, text in members.items():
            store.writestr(name, text)
    return path


def pdf(path: Path, text: str = "") -> Path:
    """Write a file that begins as PDF files do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"%PDF-1.7\n" + text.encode())
    return path


def load(folder: Path, loader: str, files: dict[str, Path], **settings: Any) -> int:
    """Run the step; outputs go to ``folder``."""
    told = {"loader": loader, "expected": {}, "options": {}} | settings
    return load_dataset.main(
        [
            *["--settings", json.dumps(told), "--files", *(f"{name}={path}" for name, path in files.items())],
            *["--documents", str(folder / "documents.jsonl"), "--questions", str(folder / "questions.jsonl")],
            *["--record", str(folder / "dataset.json")],
        ]
    )


def loaded(folder: Path) -> tuple[list[Document], list[Question], dict[str, int]]:
    """Return what the step wrote."""
    return (
        list(jsonl.read(folder / "documents.jsonl", Document)),
        list(jsonl.read(folder / "questions.jsonl", Question)),
        jsonl.read_json(folder / "dataset.json")["counts"],
    )
