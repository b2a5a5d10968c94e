"""A table above its limit of failed answers: made, not published, allowed, and repaired without asking twice.

Two cells of six questions each, asked at a server in this process; nothing of the embedded runs is needed.
"""

import json
import re

import pytest

import snakekit
from conftest import copy_project
from loopback import Loopback
from remeasure import jsonl
from remeasure.records import JournalEntry
from remeasure.tables import csv_text

RUN = """
title: "A small run"
not_comparable: [data, reader]
corpora: {{}}
encoders: {{}}
models:
  reader:
    title: "A hosted reader"
    base_url: {base_url}
    served_name: toy
    dialect: openai
    thinking_default: false
    concurrency: 2
    timeout_s: 20
    max_failed_share: 1.0
studies:
  pixelrag:
    reader: reader
    prompts: {prompts}
    items: questions
    items_per_bench: 6
{more}
"""
TABLE = "results/table1.csv"
PUBLISHED = (
    "csv",
    "cells.csv",
    "contrasts.csv",
    "breakdown.csv",
    "drift.csv",
    "spread.csv",
    "failures.csv",
    "md",
    "json",
    "svg",
    "html",
)
CELL = "results/small/pixelrag/{}/naive/reader"
# Two of nq's six fail: one is too large for the server, one for its context. Of nqt's six one is cut off.
SENTENCE = (
    "Too many answers failed: nq naive: 2 of 6 (33.33 %: 1 payload_too_large, 1 context_overflow); "
    "nqt naive: 1 of 6 (16.67 %: 1 truncated); allowed are 10 % of a cell's answers."
)


class Small:
    """A project with one run of two cells, and where it works."""

    def __init__(self, folder, server):
        self.project, self.directory, self.server = copy_project(folder / "project"), folder / "work", server
        cells = "study\tbench\tarm\ttable\npixelrag\tnq\tnaive\ttable1\npixelrag\tnqt\tnaive\ttable1\n"
        (self.project / "config/cells.tsv").write_text(cells)
        study = self.project / "config/studies/pixelrag.yaml"
        study.write_text(re.sub(r"^contrasts: .*$", "contrasts: []", study.read_text(), flags=re.MULTILINE))
        questions = self.directory / "questions"
        questions.mkdir(parents=True)
        for bench in ("nq", "nqt"):
            lines = [
                {
                    "item_id": f"{bench}-{number}",
                    "question": f"What is {bench} number {number}?",
                    "images": [],
                    "references": ["answer"],
                    "relevant": [],
                    "group": f"g{number}",
                    "meta": {},
                }
                for number in range(6)
            ]
            (questions / f"{bench}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.configure("max_failed_share: 0.1")

    def configure(self, *lines):
        more = "".join(f"    {line}\n" for line in lines)
        text = RUN.format(base_url=self.server.base_url, prompts="own", more=more)
        (self.project / "config/runs/small.yaml").write_text(text)

    def call(self, target=TABLE):
        words = ["-s", str(self.project / "Snakefile"), "--directory", str(self.directory)]
        words += ["--profile", str(self.project / "profiles/default")]
        return snakekit.call([*words, "--cores", "2", target, "--config", "run=small"], self.project)

    def path(self, name):
        return self.directory / name

    def published(self):
        return sorted(path.name for path in self.path("results").iterdir() if path.is_file())

    def asked(self):
        """How often each question was asked, by bench and number."""
        found = {}
        for prompt, n in self.server.calls.items():
            bench, number = re.search(r"What is (\w+) number (\d)\?", prompt).groups()
            found[f"{bench}-{number}"] = n
        return found


def broken(prompt, nth):
    if "nq number 2" in prompt:
        return "status 413"
    if "nq number 4" in prompt:
        return "error 400 context_length_exceeded"
    return "length" if "nqt number 5" in prompt else "ok"


@pytest.fixture
def small(tmp_path):
    with Loopback("toy") as server:
        server.behave = broken
        yield Small(tmp_path, server)


def test_a_table_above_its_limit_is_made_but_not_published_until_it_is_allowed_or_repaired(small):
    done = small.call()
    # Made and told, not published.
    assert done.returncode == 1
    assert small.published() == []
    said = small.path("results/logs/table1.log").read_text()
    assert (
        f"results/small/tables/table1.md: not published: {SENTENCE.rstrip('.')}; to ask again what failed"
        in said
    )
    assert (
        f"delete {CELL.format('nq')}/responses.jsonl and rerun; the other 1 (cut off, refused or empty) stay"
        in said
    )
    assert "`allow_failures: true`" in said and "config/runs/small.yaml" in said
    tables = small.path("results/small/tables")
    assert (tables / "table1.md").read_text().splitlines()[0] == f"**{SENTENCE}**"
    assert {row["warning"] for row in csv_text.read(tables / "table1.csv")} == {SENTENCE}
    page = (tables / "table1.html").read_text()
    assert page.split("<body>")[1].strip().startswith('<p class="warning">Too many answers failed: nq naive')
    rows = csv_text.read(tables / "table1.failures.csv")
    assert [(row["item_id"], row["class"]) for row in rows] == [
        ("nq-2", "payload_too_large"),
        ("nq-4", "context_overflow"),
        ("nqt-5", "truncated"),
    ]
    assert jsonl.read_json(tables / "table1.json")["over_limit"]["sentence"] == SENTENCE
    assert small.asked() == {f"{bench}-{number}": 1 for bench in ("nq", "nqt") for number in range(6)}

    # Allowed: published, and it still says so. Nothing is asked for that.
    small.configure("max_failed_share: 0.1", "allow_failures: true")
    done = small.call()
    assert done.returncode == 0, done.stderr
    assert small.published() == sorted(f"table1.{part}" for part in PUBLISHED)
    assert small.path("results/table1.md").read_text().splitlines()[0] == f"**{SENTENCE}**"
    assert set(small.asked().values()) == {1}

    # No longer allowed: what was published does not stay.
    small.configure("max_failed_share: 0.1")
    assert small.call().returncode == 1
    assert small.published() == []

    # Repaired: what failed is asked again where the responses are deleted, and nothing else is.
    small.server.behave = lambda prompt, nth: "ok"
    small.path(f"{CELL.format('nq')}/responses.jsonl").unlink()
    assert small.call().returncode == 1  # nqt's answer that was cut off is final
    assert small.asked() == {f"{bench}-{number}": 1 for bench in ("nq", "nqt") for number in range(6)} | {
        "nq-2": 2,
        "nq-4": 2,
    }
    kept = list(jsonl.read(small.path(f"{CELL.format('nq')}/journal/answers.jsonl"), JournalEntry))
    assert [entry.status for entry in kept].count("answered") == 6 and len(kept) == 8
    said = small.path("results/logs/table1.log").read_text()
    assert "nqt naive: 1 of 6 (16.67 %: 1 truncated)" in said and "nq naive" not in said
    assert "the other 1 (cut off, refused or empty) stay" in said and "to ask again what failed" not in said

    # A limit that it keeps: published without a word.
    small.configure("max_failed_share: 0.2")
    done = small.call()
    assert done.returncode == 0, done.stderr
    first = small.path("results/table1.md").read_text().splitlines()[0]
    assert first.startswith("# ")
    assert "warning" not in small.path(TABLE).read_text().splitlines()[0]
    assert small.asked()["nqt-5"] == 1


def test_without_a_limit_failures_are_told_and_the_table_is_published(small):
    small.configure()
    done = small.call()
    assert done.returncode == 0, done.stderr
    page = small.path("results/table1.md").read_text()
    assert page.startswith("# ") and "2 of 6 answers failed (33.33 %)" in page
    assert {row["failed_share"] for row in csv_text.read(small.path("results/table1.cells.csv"))} == {
        "33.33",
        "16.67",
    }
