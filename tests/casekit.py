"""Tables of MRareBench made by hand in a test, with real images inside, and the stage that reads them."""

import base64
import csv
import io
import json
from pathlib import Path

from PIL import Image

import index_tables
from imagekit import picture

FILES = ["diagnosis.jsonl", "evidence.jsonl", "index_report.json"]
TABLES = FILES[:2]
OUT = [*FILES, "images.zip"]
RECORD = "index_tables.json"


def words(options: dict) -> list[str]:
    """The command line of the stage for two tables in the working folder."""
    told = json.dumps({"files": FILES, "options": options, "tables": TABLES})
    return [
        *("--study", "mrarebench", "--settings", told, "--tables", "t1.tsv", "t2.tsv"),
        *("--out", *OUT, "--record", RECORD),
    ]


WORDS = words({"expected": {}, "exclude": {}})


def deep(values, kind: str = "PNG") -> bytes:
    """An image of grey values that do not fit into 8 bits."""
    out = io.BytesIO()
    Image.fromarray(values).save(out, kind)
    return out.getvalue()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def images(*datas: bytes) -> str:
    """An image cell."""
    return json.dumps([b64(data) for data in datas])


def point(text: str, image: str = "Image 1", credit: str = "required", category: str = "modality") -> dict:
    return {"point": text, "image": image, "credit": credit, "category": category}


def diagnosis_row(n: int = 1, **changes: str) -> dict[str, str]:
    """A good T1 row with the nine columns of the card; None takes a column away."""
    row = {
        "index": f"t1-{n}",
        "question": "What is the diagnosis?",
        "context": f"A {20 + n}-year-old man.",
        "image findings": json.dumps([{"title": "CT", "markdown": f"### CT\nA mass of {n} cm."}]),
        "answer": "Fabry disease",
        "answer_aliases": '["Anderson-Fabry disease"]',
        "figure_mapping": '{"Figure 1": "figures/a.jpg"}',
        "image": images(picture("JPEG", seed=n)),
        "image_path": '["figures/a.jpg"]',
    } | changes
    return {name: cell for name, cell in row.items() if cell is not None}


def evidence_row(n: int = 1, **changes: str) -> dict[str, str]:
    """A good T2 row."""
    row = {
        "index": f"t4ev_seed:{n}",
        "context": f"Established diagnosis: Fabry disease. A {20 + n}-year-old man.\n\nImages: Image 1",
        "question_open": "Which findings fit?",
        "final_diagnosis": "Fabry disease",
        "acceptable_evidence_points": json.dumps([point("a mass"), point("a cyst", "Image 2", "optional")]),
        "gold_rationale": "The mass shows it.",
        "image": images(picture("PNG", seed=2 * n), picture("JPEG", seed=2 * n + 1)),
        "image_slot_map": '[{"public_slot": "Image 1"}, {"public_slot": "Image 2"}]',
        "decisive_image_ids": "[1]",
        "supporting_image_ids": "Image 1, Image 2",
        "task_type": "multi",
        "pmcid": f"PMC{n}",
    } | changes
    return {name: cell for name, cell in row.items() if cell is not None}


def tsv(rows: list[dict[str, str]], end: str = "\n") -> bytes:
    """Return a table as pandas and spreadsheets write it: quotes where they are needed."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator=end)
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return out.getvalue().encode()


def run(
    folder: Path, diagnosis: list[dict] | bytes, evidence: list[dict] | bytes, expected=None, exclude=None
) -> int:
    """Write both tables into the working folder and run the stage there."""
    for name, rows in (("t1.tsv", diagnosis), ("t2.tsv", evidence)):
        (folder / name).write_bytes(rows if isinstance(rows, bytes) else tsv(rows))
    options = {"expected": expected or {}, "exclude": exclude or {}}
    return index_tables.main(words(options))


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def report(folder: Path) -> dict:
    return json.loads((folder / "index_report.json").read_bytes())


def problems(folder: Path) -> list[tuple]:
    """Row, index, column and text of every problem."""
    names = ("row", "index", "column", "problem")
    return [tuple(one[name] for name in names) for one in report(folder)["problems"]]
