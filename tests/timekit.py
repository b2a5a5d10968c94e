"""What two makings of the same results have in common: all but the times that systems took.

How long a system worked on a question is one of its measures: it stands in its answers, what is graded from
them, their hashes and the table. A database of a system is made anew with other names and times inside.
"""

import csv
import io
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

TIME = "seconds"
# What holds answers of systems, or what is made from them.
_TIMED = re.compile(r"/(ragbench|calibration)/|/tables/ragbench\.")
# Text and drawings for people, in which a time may stand anywhere.
_FOR_PEOPLE = {".html", ".md", ".svg"}


def is_database(name: str) -> bool:
    """Return whether a file lies in the folder of a database: ``datasets/<dataset>/<database>/…``."""
    parts = PurePosixPath(name).parts
    return "datasets" in parts and len(parts) - parts.index("datasets") > 3


def without_times(name: str, data: bytes) -> bytes:
    """Return a file's bytes without times and without hashes of files that hold some."""
    if not _TIMED.search(name):
        return data
    suffix = PurePosixPath(name).suffix
    if suffix in _FOR_PEOPLE:
        return b""
    if suffix == ".csv":
        return _rows(data.decode())
    if suffix in (".json", ".jsonl"):
        lines = [data] if suffix == ".json" else data.splitlines()
        return b"\n".join(json.dumps(_value(json.loads(line))).encode() for line in lines)
    return data


def compared(folder: Path, pattern: str) -> dict[str, bytes]:
    """Return what can be compared of all result files: no logs, journals, databases or times."""
    found = {
        str(path.relative_to(folder)): path
        for path in sorted(folder.glob(pattern))
        if path.is_file() and not {"logs", "journal"} & set(path.relative_to(folder).parts)
    }
    return {
        name: without_times(name, path.read_bytes()) for name, path in found.items() if not is_database(name)
    }


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _value(one) for key, one in value.items() if key != TIME}
    kept |= {key: "" for key in kept if _TIMED.search(key)}
    if "sha256" in kept and _TIMED.search(str(kept.get("path"))):
        kept["sha256"] = ""
    return kept


def _rows(text: str) -> bytes:
    rows = list(csv.reader(io.StringIO(text)))
    shown = [n for n, title in enumerate(rows[0]) if title.partition(".")[0] != TIME] if rows else []
    kept = [[row[n] for n in shown] for row in rows if row is rows[0] or TIME not in row]
    return json.dumps(kept).encode()
