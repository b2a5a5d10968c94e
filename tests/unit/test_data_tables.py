"""Tables with tabs between columns: strict, streaming, nothing inferred.

Source: MRareBench card, section 2 (quoting on, all columns text, nothing missing); issue 6, bad input.
"""

import csv
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casekit import tsv
from remeasure import data_tables
from remeasure.data_tables import Columns, TableRow, header_problems, open_table, row_problem
from remeasure.errors import RemeasureError


def read(path, data: bytes) -> tuple[tuple[str, ...], list[TableRow]]:
    path.write_bytes(data)
    with open_table(path) as table:
        return table.columns, list(table.rows())


def test_cells_hold_tabs_quotes_and_line_breaks_as_they_are(tmp_path):
    columns, rows = read(tmp_path / "t.tsv", b'a\tb\n"x\ty\r\nz"\t"say ""no"""\n1\t2\n')
    assert columns == ("a", "b")
    assert rows == [TableRow(1, 2, ["x\ty\r\nz", 'say "no"']), TableRow(2, 4, ["1", "2"])]


# The card's table, first column: missing to the published reader, or text; to ours all are text.
WORDS = ["", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>", "none", "Null", "Nan", "-"]


def test_no_word_is_missing_and_no_number_is_one(tmp_path):
    cells = [
        *WORDS,
        "007",
        "1.0",
        "1e5",
        "True",
        "2021-01-01",
        "=1+1",
        "http://a.b/c",
        " x ",
        "\U0001f9a0" * 3,
    ]
    rows = read(tmp_path / "t.tsv", tsv([{"a": cell, "b": "."} for cell in cells]))[1]
    assert [row.cells[0] for row in rows] == cells


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_a_byte_order_mark_and_a_missing_last_line_end_change_nothing(
    tmp_path, end, is_whole, mark
):
    data = mark + tsv([{"index": "1", "b": "x"}, {"index": "2", "b": "y"}], end)
    columns, rows = read(tmp_path / "t.tsv", data if is_whole else data.removesuffix(end.encode()))
    assert columns == ("index", "b") and [row.cells for row in rows] == [["1", "x"], ["2", "y"]]


def test_empty_lines_are_no_rows(tmp_path):
    rows = read(tmp_path / "t.tsv", b"a\tb\n\n1\t2\n\r\n3\t4\n\n\n")[1]
    assert [(row.number, row.line, row.cells) for row in rows] == [(1, 3, ["1", "2"]), (2, 5, ["3", "4"])]


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
@settings(max_examples=50, deadline=None)
def test_whatever_is_written_is_read(tmp_path_factory, pairs):
    kept = [pair for pair in pairs if "\r" not in "".join(pair)]  # the writer does not quote it
    data = tsv([{"a": "first", "b": "row"}, *({"a": a, "b": b} for a, b in kept)])
    rows = read(tmp_path_factory.mktemp("t") / "t.tsv", data)[1]
    assert [tuple(row.cells) for row in rows] == [("first", "row"), *kept]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b'a\tb\n1\t2\n3\t"4\n5\t6\n',
            "line 3: the row that begins here is no table row (unexpected end of data)",
        ),
        (b'a\tb\n1\t"2"3\n', "line 2: the row that begins here is no table row ("),
        (b"a\tb\n1\t\xff\n", "not UTF-8 (byte 0xff: invalid start byte)"),
        ("a\tb\n".encode("utf-16"), "begins with b'\\xff\\xfea\\x00', expected UTF-8 text"),
        (b"\0" * 5000, "begins with b'\\x00\\x00\\x00\\x00', expected UTF-8 text"),
        (b"", "is empty, expected a header and rows"),
        (b"\t" * 2000 + b"\n", "its header has 2001 columns, at most 1000 are read"),
    ],
)
def test_what_cannot_be_told_apart_is_one_line(tmp_path, data, said):
    with pytest.raises(RemeasureError) as caught:
        read(tmp_path / "t.tsv", data)
    assert said in str(caught.value) and "\n" not in str(caught.value) and "t.tsv" in str(caught.value)


def test_a_missing_table_a_folder_and_a_pipe_are_said_and_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for name in ("none.tsv", ".", "pipe"):
        with pytest.raises(RemeasureError, match="table cannot be read"), open_table(tmp_path / name):
            pass


def test_a_cell_beyond_the_limit_is_refused_before_memory_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(data_tables, "MAX_CELL_CHARS", 1000)
    assert len(read(tmp_path / "t.tsv", b"a\n" + b"x" * 900 + b"\n")[1]) == 1
    for data in (b"a\n" + b"x" * 1001 + b"\n", b"a\n" + b'"' + b"x\n" * 501 + b'"\n', b"x" * 10**6):
        with pytest.raises(RemeasureError, match="at most 1000 characters"):
            read(tmp_path / "t.tsv", data)


def test_the_limit_of_the_parser_is_that_of_before_afterwards(tmp_path):
    before = csv.field_size_limit()
    read(tmp_path / "t.tsv", b"a\n1\n")
    assert csv.field_size_limit() == before


def test_a_cell_of_many_megabytes_is_read_whole(tmp_path):
    rows = read(tmp_path / "t.tsv", b"a\tb\n" + b"x" * 5_000_000 + b"\t" + b'"' + b"y\n" * 10**6 + b'"\n')[1]
    assert [len(cell) for cell in rows[0].cells] == [5_000_000, 2_000_000]


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b"a\tb\n" + (b"1\t" + b"x" * 20_000 + b"\n") * 3000)  # 60 MB
    tracemalloc.start()
    with open_table(path) as table:
        n = sum(len(row.cells) for row in table.rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 6000 and peak < 2_000_000


# -- header and rows ----------------------------------------------------------------------------------------


def test_a_header_is_told_all_that_is_wrong_with_it():
    asked = Columns(needed=(("index",), ("question_open", "question"), ("image",)))
    assert header_problems(("index", "question", "image", "x"), asked) == []
    assert header_problems(("index", "Image", "index"), asked) == [
        "column 'index' stands 2 times, expected once",
        "column 'question_open' or 'question' is missing; there are: 'index', 'Image', 'index'",
        "column 'image' is missing (did you mean 'Image'?); there are: 'index', 'Image', 'index'",
    ]


def test_a_header_of_rubbish_is_shown_cut():
    said = header_problems(("<!DOCTYPE html>" * 1000, *map(str, range(900))), Columns(needed=(("index",),)))
    assert len(said) == 1 and len(said[0]) < 700 and "(15000 characters)" in said[0]


def test_unknown_columns_are_those_that_nothing_reads():
    asked = Columns(needed=(("index",),), optional=("pmcid",))
    assert data_tables.unknown_columns(("index", "x", "pmcid", "é"), asked) == ["'x'", "'\\xe9'"]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1", "2"], None),
        (["1"], "has 1 cells, the header has 2"),
        (["1", "2", ""], "has 3 cells, the header has 2"),
        (["1", "x\0y"], "column 'b' holds a NUL character at place 1"),
    ],
)
def test_a_row_fits_its_header(cells, said):
    found = row_problem(TableRow(1, 2, cells), ("a", "b"))
    assert found is None if said is None else said in found
