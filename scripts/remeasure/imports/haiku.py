"""Evaluation reports of haiku.rag: what its harness holds in memory, as the library behind it writes it.

Source:
    ggozad/haiku.rag at e9f6fea (0.77.0), ``evaluations``: the harness writes no file. Its reports are
    ``EvaluationReport`` objects of pydantic-evals, written by ``EvaluationReportAdapter.dump_json`` (shape of
    2.62.0); the names of ids stand in ``evaluations/datasets``. Its script for submissions reads the same
    runs as a CSV with the columns id, question and output.
"""

from collections.abc import Iterator
from pathlib import Path

from remeasure.errors import RemeasureError
from remeasure.executors.replies import one_line
from remeasure.imports.reading import Imported, Row, json_document, table_rows

# T2-RAGBench, HotpotQA, OpenRAG Bench, MTRAG; a case's name holds its position and is the last resort.
_IDS = ("id", "question_id", "query_id", "task_id")


def read(path: Path) -> Iterator[Imported]:
    """Yield the answer of each case, in live conversations of each turn; a case that raised is a failure.

    Ids are the question's own where the case's metadata has one, else the case's name. What judges said is
    passed over. Of a CSV an empty output is a failure, because an answer that is empty and one that is null
    look alike there. Neither kind says how a reply ended, so a cut one cannot be told from a whole one.

    Raises:
        RemeasureError: another kind of file, or a report of a retrieval run; names the case.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        document = json_document(path)
        if not isinstance(document, dict) or "cases" not in document:
            raise RemeasureError(
                f"{path}: no evaluation report: it has no list `cases`; dump the whole report"
            )
        yield from _of_report(Row(path, "report", document))
    elif suffix == ".csv":
        yield from _of_csv(path)
    else:
        raise RemeasureError(f"{path}: expected a report as .json or a run's table as .csv")


def _of_report(report: Row) -> Iterator[Imported]:
    settings = report.inner("experiment_metadata")
    model = settings.text("capability_model") or settings.text("qa_model")
    for case in report.rows("cases"):
        yield from _of_case(case, model)
    for failure in report.rows("failures") if "failures" in report else ():
        said = one_line(failure.text("error_message") or "no message")
        for foreign_id in _turn_ids(failure) or [_id_of(failure)]:
            yield Imported(
                foreign_id=foreign_id,
                status="failed",
                text=None,
                error=f"raised: {said}",
                model=model,
                place=failure.place,
            )


def _of_case(case: Row, model: str | None) -> Iterator[Imported]:
    turns = _turn_ids(case)
    if turns is None:
        yield _outcome(_id_of(case), case.text("output"), case, model, _usage(case))
        return
    answers = case.fields.get("output")
    if not isinstance(answers, list) or len(answers) != len(turns):
        raise case.wrong(f"output is not one answer for each of {len(turns)} turns")
    for number, (foreign_id, answer) in enumerate(zip(turns, answers, strict=True)):
        row = Row(case.path, f"{case.place}.output[{number}]", {"output": answer})
        yield _outcome(foreign_id, row.text("output"), row, model, None)


def _outcome(
    foreign_id: str, text: str | None, row: Row, model: str | None, usage: dict[str, int] | None
) -> Imported:
    common = {"foreign_id": foreign_id, "model": model, "usage": usage, "place": row.place}
    if text is None:
        return Imported(status="failed", text=None, error="empty: output is null", **common)
    return Imported(status="answered", text=text, **common)


def _id_of(case: Row) -> str:
    metadata = case.inner("metadata")
    return next((metadata.id(name) for name in _IDS if name in metadata), None) or case.id("name")


def _turn_ids(case: Row) -> list[str] | None:
    """Return the ids of a conversation's turns; null where the case is one question."""
    metadata = case.inner("metadata")
    return [turn.id("task_id") for turn in metadata.rows("turns")] if "turns" in metadata else None


def _usage(case: Row) -> dict[str, int] | None:
    """Return the tokens of all model calls behind an answer, in the words of the chat protocol."""
    found = case.inner("metrics").whole_numbers()
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    return {ours: found[theirs] for ours, theirs in names.items() if theirs in found} or None


def _of_csv(path: Path) -> Iterator[Imported]:
    for row in table_rows(path, ",", ("id", "output")):
        text = row.text("output")
        common = {"foreign_id": row.id("id"), "place": row.place}
        if text:
            yield Imported(status="answered", text=text, **common)
        else:
            error = "empty: no output (a table cannot tell an empty answer from a missing one)"
            yield Imported(status="failed", text=None, error=error, **common)
