"""Response files of PixelRAG: JSONL in the order in which answers came.

Source:
    StarTrail-org/PixelRAG at c1dae49, ``eval/run_bench.py`` (benches) and ``eval/run_livevqa.py`` (LiveVQA).
    A rerun writes the file afresh, so an id stands in it once.
"""

from collections.abc import Iterator
from pathlib import Path

from remeasure.executors.replies import one_line
from remeasure.imports.reading import Imported, Row, json_lines


def read(path: Path) -> Iterator[Imported]:
    """Yield what became of each example; the order means nothing, failed rows lack ``load_index``.

    Thinking is part of the text: the original's server parses none, and grading strips it. The file holds no
    finish reason. A reply that used as many tokens as ``run_metadata`` allows (``reader_max_tokens``) was cut
    off; where either number is missing, as in all LiveVQA files, a cut reply cannot be told from a whole one.

    Raises:
        RemeasureError: a line that is no row of such a file; names file and line.
    """
    for row in json_lines(path):
        if "example_id" in row:
            yield _of_bench(row)
        elif "raw_response" in row:
            yield _of_livevqa(row)
        else:
            raise row.wrong("has neither example_id (a bench) nor raw_response (LiveVQA)")


def _of_bench(row: Row) -> Imported:
    text, usage = row.text("final_response"), row.inner("usage").whole_numbers()
    common = {"foreign_id": row.id("example_id"), "model": row.text("model"), "place": row.place}
    success = row.fields.get("success")
    if type(success) is not bool:
        raise row.wrong("success is neither true nor false")
    if not success:
        said = one_line(f"{row.text('error_type') or 'failed'}: {row.text('error') or 'no message'}")
        return Imported(status="failed", text=None, error=said, **common)
    if text is None:
        error = "empty: success without a final_response"
        return Imported(status="failed", text=None, error=error, usage=usage or None, **common)
    limit = row.inner("run_metadata").whole_numbers().get("reader_max_tokens")
    n_tokens = usage.get("completion_tokens")
    if limit and n_tokens is not None and n_tokens >= limit:
        error = f"cut_off: {n_tokens} tokens, the limit of that run"
        return Imported(status="cut_off", text=text, error=error, usage=usage, **common)
    return Imported(status="answered", text=text, usage=usage or None, **common)


def _of_livevqa(row: Row) -> Imported:
    text, error = row.text("raw_response"), row.text("error")
    common = {"foreign_id": row.id("idx"), "place": row.place}
    if error or text is None:
        said = one_line(error or "empty: no error and no raw_response")
        return Imported(status="failed", text=None, error=said, **common)
    return Imported(status="answered", text=text, **common)
