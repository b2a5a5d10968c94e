"""Who answers: real servers behind an embedded table, a file where a run says so."""

import json
import re
import shutil

from conftest import jobs
from remeasure import jsonl
from remeasure.records import JournalEntry, Request, Response

TABLE = "results/ci/tables/table1.csv"
READER = "page-reader-smollm2"
CELLS = [f"results/ci/pixelrag/{bench}/base/{READER}" for bench in ("nq", "sqa")]


def n_answered(journal, server: str = "server") -> int:
    """How many requests the model server of a cell says that it answered."""
    return int(re.search(r"(\d+) requests answered, 0 refused", (journal / f"{server}.log").read_text())[1])


def n_lines(journal) -> int:
    return sum(len(path.read_text().splitlines()) for path in journal.glob("*.jsonl"))


def test_a_server_answered_in_every_cell_of_the_embedded_run(finished):
    told = {
        path.stem: json.loads(path.read_text())
        for path in finished.path("results/ci").rglob("executors/*.json")
    }
    kinds = {name: way["kind"] for name, way in told.items()}
    systems = {name for name, kind in kinds.items() if kind == "system"}
    assert systems == {"builtin", "haiku-0-77"} and set(kinds.values()) == {"server", "system"}
    behind = [told[name][role]["way"]["kind"] for name in systems for role in ("embedder", "answerer")]
    assert behind == ["server"] * 4
    answers = [path.parent for path in finished.path("results/ci").rglob("answers.json")]
    journals = [
        folder for folder in answers if (folder / "requests.jsonl").exists()
    ]  # rankings are not asked for
    # Two captioners; six conditions and their judge; ten cells of systems, four of them judged; two judges of
    # the calibration.
    assert len(journals) == 24 + 12 + 2 + 2 + 12 + 10 + 4 + 2
    for folder in journals:
        if folder.name in systems:
            # A system asks more than once for an answer, and an answerer only where there are answers.
            for part in ["embedder"] + ["answerer"] * (folder.parent.name != "search"):
                assert n_answered(folder / "journal", part) > 0, folder
            continue
        # A run that was interrupted has lines of several servers, and the log of the last one.
        assert 0 < n_answered(folder / "journal") <= n_lines(folder / "journal"), folder


def test_a_cell_that_is_asked_anew_has_as_many_server_calls_as_outcomes(checkout):
    for cell in CELLS:
        shutil.rmtree(checkout.path(cell))
    checkout.run(TABLE)
    journals = [checkout.path(name) / "journal" for name in (*CELLS, f"{CELLS[1]}/judge")]
    assert [(n_answered(journal), n_lines(journal)) for journal in journals] == [(4, 4)] * 3


def import_answers(checkout, text: str) -> str:
    """Let the reader of the small run be a file of answers; return a cell's folder."""
    cell = "results/ci/pixelrag/nq/base/original"
    run = checkout.project / "config/runs/ci.yaml"
    model = '{title: "The original", imported: {format: pixelrag, path: "old/{bench}_{arm}.jsonl"}}'
    run.write_text(
        run.read_text().replace("pixelrag: {", "pixelrag: {reader: original, ")
        + f"models: {{original: {model}}}\n"
    )
    checkout.path("old").mkdir(exist_ok=True)
    requests = jsonl.read(checkout.path(f"{CELLS[0]}/requests.jsonl"), Request)
    rows = [{"example_id": row.custom_id, "final_response": text, "success": True} for row in requests]
    checkout.path("old/nq_base.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    return cell


def test_a_changed_file_of_answers_is_read_anew_and_nothing_else(checkout):
    cell = import_answers(checkout, "one")
    responses = f"{cell}/responses.jsonl"
    checkout.run(responses)
    assert checkout.planned(responses) == {}
    texts = [row.text for row in jsonl.read(checkout.path(responses), Response)]
    assert texts == ["one"] * 4
    path = checkout.path("old/nq_base.jsonl")
    path.write_text(path.read_text().replace("one", "two"))
    assert jobs(checkout.run(responses)) == {"ask_on_login": 1}
    assert [row.text for row in jsonl.read(checkout.path(responses), Response)] == ["two"] * 4
    kept = jsonl.read(checkout.path(f"{cell}/journal/answers.jsonl"), JournalEntry)
    assert [entry.text for entry in kept] == ["one"] * 4 + ["two"] * 4
