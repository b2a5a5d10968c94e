"""What tests of systems share: documents, requests, settings, and a keeper that remembers."""

from pathlib import Path

import msgspec

from remeasure import jsonl
from remeasure.executors import HttpSettings, Part, SystemSettings
from remeasure.records import Document, JournalEntry, Request
from remeasure.systems import database

TESTS = Path(__file__).resolve().parent
NOWHERE = "http://127.0.0.1:9/v1"
DOCUMENTS = {
    "d1": "Volcanoes erupt molten basalt, and ashes darken the skies.",
    "d2": "Glaciers carve valleys while meltwater feeds the rivers.",
    "d3": "Beekeepers harvest honeycombs in the summer months.",
}


def part(name: str = "toy-embedder", **more) -> Part:
    """A model that the toy adapter never asks."""
    way = {"base_url": NOWHERE, "dialect": "embedded", "concurrency": 1, "timeout_s": 5.0} | more
    return Part(served_name=name, way=HttpSettings(**way))


def write_documents(path: Path, texts: dict[str, str] | None = None) -> Path:
    """A ``documents.jsonl``."""
    texts = DOCUMENTS if texts is None else texts
    jsonl.write(path, (Document(uri=uri, title=uri, text=text) for uri, text in texts.items()))
    return path


def ingest_settings(**more) -> dict:
    """Settings of ``ingest_documents``."""
    return {
        "adapter": "toy_adapter",
        "code": "0123456789abcdef",
        "environment": None,
        "embedder": {"name": "toy-embedder"},
        "served_name": "toy-embedder",
        "vector_dim": 4,
        "options": {},
    } | more


def write_database(folder: Path, texts: dict[str, str] | None = None, stamp: dict | None = None) -> Path:
    """A database of the toy adapter with its record, as ``ingest_documents`` would leave them."""
    stamp = {"model": "toy-embedder", "vector_dim": 4} if stamp is None else stamp
    texts = DOCUMENTS if texts is None else texts
    place = folder / "toy" / "database"
    place.mkdir(parents=True, exist_ok=True)
    (place / "toy.json").write_bytes(jsonl.encode({"stamp": stamp, "documents": texts}))
    facts = database.Facts(
        folder=str(place),
        documents="0" * 64,
        stamp=stamp,
        versions={"toy": "1.0"},
        n_documents=len(texts),
        n_chunks=len(texts),
    )
    stage = {
        "stage": "ingest_documents",
        "settings": {},
        "code": "0123456789abcdef",
        "inputs": {},
        "outputs": {},
        "facts": msgspec.to_builtins(facts),
    }
    jsonl.write_json(folder / "toy.json", stage)
    return folder / "toy.json"


def system(record: Path, **more) -> SystemSettings:
    """How the toy system is reached."""
    given = {
        "adapter": "toy_adapter",
        "vector_dim": 4,
        "embedder": part(),
        "answerer": part("toy-answerer"),
        "case_timeout_s": 20.0,
        "database": str(record),
    }
    return SystemSettings(**(given | more))


def request(custom_id: str, *texts: str, do: str = "answer", **task) -> Request:
    """A request: user messages, or for an answer user and assistant in turn."""
    roles = ("user", "assistant") if do == "answer" else ("user", "user")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    task = {"do": do, "filter": None} | ({"limit": 2, "query": "query"} if do == "search" else {}) | task
    return Request(
        custom_id=custom_id, body={"model": "toy", "messages": messages, "max_tokens": 9, "task": task}
    )


class Kept:
    """A keeper that remembers."""

    def __init__(
        self, entries: dict[str, JournalEntry] | None = None, enough_after: int | None = None
    ) -> None:
        self.entries = dict(entries or {})
        self.new: list[JournalEntry] = []
        self.n_sent: dict[str, int] = {}
        self._enough_after = enough_after

    def sent(self, key):
        self.n_sent[key] = self.n_sent.get(key, 0) + 1

    def keep(self, entry):
        self.new.append(entry)
        self.entries[entry.custom_id] = entry

    def kept(self, custom_id):
        return self.entries.get(custom_id)

    def enough(self):
        over = self._enough_after is not None and len(self.new) >= self._enough_after
        return "spent enough" if over else None
