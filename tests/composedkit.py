"""Composed cases for tests: the real book and settings, the tables of the rule, requests about them."""

import base64
import csv
import io
import json
from functools import cache
from pathlib import Path

import yaml

from remeasure.cases import settings, tables
from remeasure.cases.choosing import Chooser
from remeasure.embedded.chat import ChatRequest, parse
from remeasure.phenotypes import records
from remeasure.phenotypes.knowledge import Knowledge

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "results/sources/orpha-phenotypes.json"
PROMPTS = ROOT / "config/prompts/mrarebench/own"
csv.field_size_limit(1 << 28)


def given(name: str = "composed-cases", **changes) -> str:
    """The settings of a set of cases as the rule gives them."""
    found = yaml.safe_load((ROOT / "config/cases.yaml").read_text())[name]
    del found["study"]
    return json.dumps(found | changes)


@cache
def knowledge() -> Knowledge:
    return Knowledge(records.read(BOOK))


@cache
def composer(name: str = "composed-cases") -> tables.Composer:
    wanted = settings.read(given(name))
    return tables.Composer(Chooser(knowledge(), wanted), wanted)


@cache
def rows(name: str, track: str) -> tuple[dict[str, str], ...]:
    """The rows of a table as a reader of the file gets them; track is `diagnosis` or `evidence`."""
    made = getattr(composer(name), f"{track}_rows")()
    return tuple(csv.DictReader(io.StringIO(tables.as_tsv(made), newline=""), delimiter="\t"))


def pictures(row: dict[str, str]) -> list[bytes]:
    return [base64.b64decode(data, validate=True) for data in json.loads(row["image"])]


def prompt(name: str) -> str:
    return (PROMPTS / f"{name}.txt").read_text().removesuffix("\n")


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def image(data: bytes) -> dict:
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def request(*parts: dict, **more) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": list(parts)}], **more}
    return parse(json.dumps(body).encode())


def diagnosis_text(row: dict[str, str], basis: str) -> str:
    """The text of the conditions LC (basis `images`) and TO (basis `text`), card section 3.1."""
    asked = prompt("instruction_diagnosis").replace("{{basis}}", prompt(f"basis_{basis}"))
    return f"{row['context']}\n\nQuestion: {row['question']}\n\n{asked}"


def diagnosis(row: dict[str, str], shown: list[bytes], **more) -> ChatRequest:
    basis = "images" if shown else "text"
    return request(*map(image, shown), text(diagnosis_text(row, basis)), **more)


def evidence_text(row: dict[str, str], with_diagnosis: bool = True) -> str:
    """The text of the second track; without the diagnosis its sentence is cut off at the first full stop."""
    context = row["context"]
    if not with_diagnosis:
        context = context.partition(".")[2].strip()
    return f"{context}\n\nQuestion: {row['question_open']}\n\n{prompt('instruction_evidence')}"


def evidence(row: dict[str, str], shown: list[bytes], with_diagnosis: bool = True) -> ChatRequest:
    labels = [slot["public_slot"] for slot in json.loads(row["image_slot_map"])]
    parts = [
        part for label, data in zip(labels, shown, strict=False) for part in (text(f"{label}:"), image(data))
    ]
    return request(*parts, text(evidence_text(row, with_diagnosis)))


def names_in(answer: str) -> list[str]:
    """The names of a numbered list."""
    return [line.partition(". ")[2] for line in answer.splitlines()]
