"""A cell that can be asked: its files in a folder, and the command that asks it."""

import json
import subprocess
import sys
from pathlib import Path

import collect_responses
from loopback import Loopback
from remeasure import jsonl
from remeasure.fingerprint import SCRIPTS
from remeasure.records import JournalEntry, Request, Response

LOOPBACK = str(Path(__file__).resolve().parent / "loopback.py")
PROMPTS = [f"p{n}" for n in range(12)]


class Cell:
    """A cell's files in a folder, and the command that asks it."""

    def __init__(self, folder: Path, prompts: list[str]) -> None:
        self.folder = folder
        self.write(prompts)

    def write(self, prompts: list[str]) -> None:
        jsonl.write(self.folder / "requests.jsonl", [self.request(prompt) for prompt in prompts])

    @staticmethod
    def request(prompt: str) -> Request:
        messages = [{"role": "user", "content": prompt}]
        return Request(
            custom_id=f"q-{prompt}", body={"model": "toy-slug", "messages": messages, "max_tokens": 9}
        )

    def arguments(self, executor: dict, **settings) -> list[str]:
        given = {"model": "toy-slug", "served_name": "toy", "identity": {"weights": "1"}} | settings
        base = {
            "dialect": "embedded",
            "concurrency": 4,
            "timeout_s": 10,
            "base_wait_s": 0.01,
            "max_wait_s": 0.05,
        }
        words = ["--requests", self.folder / "requests.jsonl", "--settings", json.dumps(given)]
        words += ["--executor", json.dumps(base | executor), "--images-root", self.folder]
        words += ["--journal", self.folder / "journal", "--out", self.folder / "responses.jsonl"]
        return [str(word) for word in [*words, "--record", self.folder / "answers.json"]]

    def ask(self, server: Loopback, concurrency: int = 4, **settings) -> int:
        executor = {"kind": "http", "base_url": server.base_url, "concurrency": concurrency}
        return collect_responses.main(self.arguments(executor, **settings))

    def start(self, executor: dict, shard: str | None = None, **settings) -> subprocess.Popen:
        words = [sys.executable, str(SCRIPTS / "collect_responses.py"), *self.arguments(executor, **settings)]
        if shard:
            place = words.index("--out")
            words[place : place + 2] = ["--shard", shard]
        return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

    def responses(self) -> list[Response]:
        return list(jsonl.read(self.folder / "responses.jsonl", Response))

    def journal(self) -> list[JournalEntry]:
        return list(jsonl.read(self.folder / "journal" / "answers.jsonl", JournalEntry))

    def record(self) -> dict:
        return json.loads((self.folder / "answers.json").read_text())
