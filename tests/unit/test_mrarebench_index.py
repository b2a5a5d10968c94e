"""The index of MRareBench: two tables become three files and a store, or one list of what is wrong with them.

Source: MRareBench card, sections 2 (files, name trap) and 2.3 (what fails); issue 6, bad input.
"""

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import msgspec
import numpy as np
import pytest

import index_tables
from casekit import (
    OUT,
    RECORD,
    WORDS,
    b64,
    deep,
    diagnosis_row,
    evidence_row,
    images,
    lines,
    problems,
    report,
    run,
    tsv,
)
from imagekit import picture
from remeasure import jsonl, studies, table_report
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan
from remeasure.studies import mrarebench_index
from remeasure.studies.mrarebench_items import Row


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_good_tables_become_cases_and_a_store(tmp_path, capsys):
    shared = picture("JPEG", seed=1)  # also the first T1 image: stored once
    rows = [evidence_row(1), evidence_row(2, image=images(picture(seed=9), shared))]
    assert run(tmp_path, [diagnosis_row(1), diagnosis_row(2)], rows) == 0
    cases = [lines(tmp_path / name) for name in OUT[:2]]
    assert [[case["index"] for case in some] for some in cases] == [
        ["t1-1", "t1-2"],
        ["t4ev_seed:1", "t4ev_seed:2"],
    ]
    assert cases[1][1]["images"][1]["sha256"] == cases[0][0]["images"][0]["sha256"] == sha256_bytes(shared)
    assert cases[1][1]["images"][1] | {"sha256": "", "member": ""} == {
        **{"slot": 2, "label": "Image 2", "sha256": "", "member": "", "width_px": 8, "height_px": 6},
        **{"format": "jpeg", "odd": [], "converted": None},
    }
    with zipfile.ZipFile(tmp_path / "images.zip") as store:
        held = {one["member"]: one["sha256"] for some in cases for case in some for one in case["images"]}
        assert {name: sha256_bytes(store.read(name)) for name in store.namelist()} == held
        assert len(held) == 5 and all(name.split(".")[0] == digest for name, digest in held.items())
    found = report(tmp_path)
    assert (found["n_rows"], found["n_images"], found["n_different_images"], found["n_problems"]) == (
        4,
        6,
        5,
        0,
    )
    assert found["tables"]["diagnosis.jsonl"]["absent_columns"] == ["pmcid", "doc_id", "case_id"]
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            "diagnosis.jsonl 2 of 2 rows, evidence.jsonl 2 of 2 rows; 0 excluded; 6 images, 5 different "
            "ones, 0 made 8-bit; 0 problems"
        )
    )
    assert not (tmp_path / "index_problems.txt").exists()


def test_both_kinds_of_lines_are_one_type_for_the_stage_that_reads_them(tmp_path):
    assert run(tmp_path, [diagnosis_row()], [evidence_row()]) == 0
    for name, kind in (("diagnosis.jsonl", "DiagnosisCase"), ("evidence.jsonl", "EvidenceCase")):
        assert [type(one).__name__ for one in jsonl.read(tmp_path / name, Row)] == [kind]


def test_equal_tables_give_equal_bytes_and_a_record(tmp_path):
    def once() -> list[bytes]:
        assert run(tmp_path, [diagnosis_row()], [evidence_row()], {"diagnosis.jsonl": 1}) == 0
        return [(tmp_path / name).read_bytes() for name in [*OUT, RECORD]]

    assert once() == once()
    record = json.loads((tmp_path / RECORD).read_bytes())
    assert (record["stage"], list(record["inputs"])) == ("index_tables", ["t1.tsv", "t2.tsv"])
    assert set(record["outputs"]) == set(OUT) and set(record["packages"]) == {"pillow"}
    assert record["counts"] == {
        **{
            "rows": 2,
            "indexed": 2,
            "excluded": 0,
            "images": 3,
            "different_images": 3,
            "converted": 0,
            "odd": 0,
        },
        "expected": 1,
    }


# Issue 1689 of the card's section 15, and empty beside missing (1704).
ODD_TEXTS = [
    "https://a.b/" + "x" * 3000,
    "=1+1",
    "y" * 40_000,
    "\U0001f9a0\u200d",
    "-",
    "NA",
    '"q"\ttab\r\nline',
    "0",
]


def test_every_text_comes_through_as_it_is(tmp_path):
    # An answer needs a letter or digit.
    rows = [
        diagnosis_row(n, context=text, question=text, answer=f"a{text}") for n, text in enumerate(ODD_TEXTS)
    ]
    assert run(tmp_path, rows, [evidence_row(task_type="", row_key=" ")]) == 0
    found = lines(tmp_path / "diagnosis.jsonl")
    assert [(one["context"], one["question"], one["answer"]) for one in found] == [
        (t, t, f"a{t}") for t in ODD_TEXTS
    ]
    assert lines(tmp_path / "evidence.jsonl")[0]["task_type"] is None
    assert lines(tmp_path / "evidence.jsonl")[0]["joined"]["row_key"] == " "


# -- what is wrong ------------------------------------------------------------------------------------------


def test_all_problems_of_both_tables_are_one_list_and_nothing_is_written(tmp_path, capsys):
    first = [diagnosis_row(1), diagnosis_row(1, image='["!"]'), diagnosis_row(2, answer="")]
    second = [evidence_row(1, acceptable_evidence_points="[]"), evidence_row(2, decisive_image_ids="7")]
    assert run(tmp_path, first, second, {"diagnosis.jsonl": 300, "evidence.jsonl": 2}) == 2
    assert [one[:3] for one in problems(tmp_path)] == [
        (2, "t1-1", "index"),
        (2, "t1-1", "image"),
        (3, "t1-2", "answer"),
        (None, None, None),
        (1, "t4ev_seed:1", "acceptable_evidence_points"),
        (2, "t4ev_seed:2", "decisive_image_ids"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("index_problems.txt", "index_report.json", "t1.tsv", "t2.tsv")
    ]
    listed = (tmp_path / "index_problems.txt").read_text().splitlines()
    assert (
        listed[0]
        == "t1.tsv row 2 (line 3, index 't1-1'): column 'index' stands already in row 1; ids must be unique"
    )
    said = capsys.readouterr().err.splitlines()
    assert [line.partition("index_tables: ")[2] for line in said[-7:-1]] == listed
    assert said[-1].startswith(
        f"error: t1.tsv and t2.tsv: 6 problems in 5 rows, so there is no index (first: {listed[0]})"
    )
    assert "all stand in index_problems.txt" in said[-1]


def test_many_problems_are_all_in_the_file_and_some_in_the_log(tmp_path, capsys, monkeypatch):
    rows = [diagnosis_row(n, answer="") for n in range(60)]
    assert run(tmp_path, rows, [evidence_row()]) == 2
    assert len((tmp_path / "index_problems.txt").read_text().splitlines()) == 60
    said = capsys.readouterr().err
    assert said.count("column 'answer' is empty") == 51 and "and 10 further lines of this kind" in said
    monkeypatch.setattr("remeasure.table_indexing.MAX_PROBLEMS", 7)
    assert run(tmp_path, rows, [evidence_row()]) == 2
    assert report(tmp_path)["n_problems"] == 60 and len(report(tmp_path)["problems"]) == 7
    assert (tmp_path / "index_problems.txt").read_text().splitlines()[-1] == "and 53 further ones"


def test_what_an_earlier_run_wrote_does_not_stay_beside_a_refusal(tmp_path):
    assert run(tmp_path, [diagnosis_row()], [evidence_row()]) == 0
    assert run(tmp_path, [diagnosis_row()], [evidence_row(context="A man.")]) == 2
    assert not any((tmp_path / name).exists() for name in (*OUT[:2], "images.zip", RECORD))
    assert run(tmp_path, [diagnosis_row()], [evidence_row()]) == 0
    assert not (tmp_path / "index_problems.txt").exists()


def test_another_number_of_rows_names_the_trap(tmp_path):
    assert run(tmp_path, [diagnosis_row()], [evidence_row()], {"diagnosis.jsonl": 300}) == 2
    ((_, _, _, said),) = problems(tmp_path)
    assert said.startswith("has 1 rows, 300 were expected; MMRareBench is another benchmark (four tracks")
    assert "junzhin/MRareBench" in said and "{expected: {diagnosis.jsonl: null}}" in said


def test_excluded_rows_count_as_rows_and_are_shown_with_their_reason(tmp_path, capsys):
    exclude = {"t1-2": "image 1 is cut", "gone": "was bad"}
    rows = [diagnosis_row(1), diagnosis_row(2, image="broken")]
    assert run(tmp_path, rows, [evidence_row()], {"diagnosis.jsonl": 2}, exclude) == 0
    assert [case["index"] for case in lines(tmp_path / "diagnosis.jsonl")] == ["t1-1"]
    found = report(tmp_path)
    assert found["excluded"] == [
        {"index": "gone", "reason": "was bad", "rows": {}},
        {"index": "t1-2", "reason": "image 1 is cut", "rows": {"diagnosis.jsonl": 1}},
    ]
    facts = found["tables"]["diagnosis.jsonl"]
    assert (facts["n_rows"], facts["n_indexed"], facts["n_excluded"], facts["expected_met"]) == (
        2,
        1,
        1,
        True,
    )
    said = capsys.readouterr().err
    assert "index 't1-2' is excluded (image 1 is cut)" in said
    assert "index 'gone' is excluded (was bad), but there is no such row: correct `exclude`" in said


@pytest.mark.parametrize("cut", ["t1-2\tonly two", "t1-2" + 9 * "\tx"])
def test_a_row_with_the_wrong_number_of_cells_can_be_excluded(tmp_path, cut):
    table = tsv([diagnosis_row(1)]) + f"{cut}\n".encode()
    assert run(tmp_path, table, [evidence_row()]) == 2
    ((row, index, column, said),) = problems(tmp_path)
    assert (row, index, column) == (2, "t1-2", None) and "cells, the header has 9" in said
    assert run(tmp_path, table, [evidence_row()], {"diagnosis.jsonl": 2}, {"t1-2": "a tab is lost"}) == 0
    assert report(tmp_path)["excluded"][0]["rows"] == {"diagnosis.jsonl": 1}


def test_a_row_whose_index_cannot_be_read_cannot_be_excluded(tmp_path):
    row = diagnosis_row(1)
    moved = {name: row[name] for name in [*(name for name in row if name != "index"), "index"]}
    table = tsv([moved]) + b"t1-2\tx\n"
    assert run(tmp_path, table, [evidence_row()], exclude={"t1-2": "a tab is lost"}) == 2
    assert problems(tmp_path)[0][:2] == (2, None)


def test_a_table_without_rows_is_one_sentence(tmp_path, capsys):
    said = ": there is nothing to ask; put rows there, or correct `exclude`"
    header = tsv([diagnosis_row()]).splitlines(keepends=True)[0]
    assert run(tmp_path, header, [evidence_row()], {"diagnosis.jsonl": 300}) == 2
    assert problems(tmp_path) == [(None, None, None, "has no row below its header" + said)]
    exclude = {"t1-1": "bad", "t1-2": "bad"}
    assert run(tmp_path, [diagnosis_row(1), diagnosis_row(2)], [evidence_row()], exclude=exclude) == 2
    assert problems(tmp_path) == [(None, None, None, "all 2 rows are excluded" + said)]
    assert not (tmp_path / "diagnosis.jsonl").exists()


@pytest.mark.parametrize(("what", "named"), [("image", "images.zip"), ("context", "diagnosis.jsonl")])
def test_a_full_disk_is_one_line_that_names_the_file_and_keeps_nothing(tmp_path, what, named):
    noise = np.random.default_rng(1).integers(0, 256, (99, 99, 3), dtype=np.uint8)
    row = diagnosis_row(**{what: images(deep(noise)) if what == "image" else "a" * 29_000})
    for name, rows in (("t1.tsv", [row]), ("t2.tsv", [evidence_row()])):
        (tmp_path / name).write_bytes(tsv(rows))
    command = f'ulimit -f 20; exec {sys.executable} {SCRIPTS}/index_tables.py "$@"'  # 20 KiB a file
    done = subprocess.run(["bash", "-c", command, "-", *WORDS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"error: {named}: cannot be written (File too large); make room or make it writable, then rerun"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t1.tsv", "t2.tsv"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (tsv([diagnosis_row(image=None)]), "t1.tsv: column 'image' is missing (did you mean"),
        (
            tsv([diagnosis_row()]).replace(b"context", b"answer", 1),
            "column 'answer' stands 2 times, expected once",
        ),
        (
            tsv([diagnosis_row()]).replace(b"index", b"Index", 1),
            "column 'index' is missing (did you mean 'Index'?)",
        ),
        (tsv([evidence_row()]), "column 'answer' is missing"),  # tables in the wrong order
        (
            tsv([diagnosis_row()]) + b"short\trow\n",
            "t1.tsv row 2 (line 3, index 'short'): has 2 cells, the header",
        ),
        (tsv([diagnosis_row(context="a\0b")]), "(line 2, index 't1-1'): column 'context' holds a NUL"),
        (tsv([diagnosis_row()]) + b'x\t"open\n', "t1.tsv line 3: the row that begins here is no table row"),
        (b"", "t1.tsv: is empty, expected a header and rows"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "column 'index' is missing; there are:",
        ),
    ],
)
def test_a_table_that_is_broken_is_said_and_the_other_one_read_all_the_same(tmp_path, table, said):
    assert run(tmp_path, table, [evidence_row(), evidence_row(context="x")]) == 2
    listed = (tmp_path / "index_problems.txt").read_text().splitlines()
    assert any(said in line for line in listed) and "t2.tsv row 2" in listed[-1]


@pytest.mark.parametrize("path", ['["../../../etc/passwd"]', '["/etc/passwd"]', '["figures/a.jpg"]'])
def test_files_that_a_table_names_are_never_read(tmp_path, path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/a.jpg").write_bytes(picture("JPEG"))
    assert run(tmp_path, [diagnosis_row(image="[]", image_path=path)], [evidence_row()]) == 2
    assert "files named in image_path are not read" in problems(tmp_path)[0][3]
    assert run(tmp_path, [diagnosis_row(image_path=path)], [evidence_row(image_path=path)]) == 0
    assert lines(tmp_path / "evidence.jsonl")[0]["joined"]["image_path"] == path


def test_half_a_surrogate_pair_in_json_is_a_problem_of_its_row(tmp_path):
    assert run(tmp_path, [diagnosis_row(answer_aliases='["\\ud800"]')], [evidence_row()]) == 2
    assert problems(tmp_path)[0][:2] == (1, "t1-1") and "half of a surrogate pair" in problems(tmp_path)[0][3]


def test_json_that_is_nested_too_deep_is_a_problem_of_its_row(tmp_path):
    row = diagnosis_row(answer_aliases="[" * 100_000, figure_mapping="[" * 100_000)
    assert run(tmp_path, [row], [evidence_row()]) == 2
    assert problems(tmp_path) == [(1, "t1-1", None, "holds JSON that is nested too deep")]


def test_two_indexes_of_one_item_id_are_refused(tmp_path):
    slug = lines_id = "a-b-" + sha256_bytes(b"a b")[:8]
    assert run(tmp_path, [diagnosis_row(index="a b"), diagnosis_row(2, index=slug)], [evidence_row()]) == 2
    assert problems(tmp_path) == [
        (2, slug, "index", f"gives the item id {lines_id!r} that 'a b' has; rename one")
    ]


def test_odd_columns_and_images_are_counted(tmp_path):
    out = picture("PNG", seed=1)
    rows = [diagnosis_row(1, image=images(out), note="x"), diagnosis_row(2, note="")]
    assert run(tmp_path, rows, [evidence_row()]) == 0
    assert report(tmp_path)["tables"]["diagnosis.jsonl"]["unknown_columns"] == ["'note'"]


def test_a_converted_image_is_in_line_and_report(tmp_path):
    data = deep(np.array([[0, 40_000], [20_000, 10]], np.uint16))
    assert run(tmp_path, [diagnosis_row(image=images(picture(), data))], [evidence_row()]) == 0
    made = lines(tmp_path / "diagnosis.jsonl")[0]["images"][1]["converted"]
    assert (made["sha256"], made["minimum"], made["maximum"]) == (sha256_bytes(data), 0, 40_000)
    (told,) = report(tmp_path)["converted"]
    assert (told["index"], told["slot"], told["rule"]) == ("t1-1", 2, made["rule"])


# -- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"expected": {}, "exclude": {"7": ""}},
            "index options of mrarebench: exclude.7: Expected `str` of length",
        ),
        (
            {"expected": {"diagnosis.jsonl": 0}, "exclude": {}},
            "expected.diagnosis.jsonl: Expected `int` >= 1",
        ),
        ({"expected": {}}, "missing required field `exclude`"),
        ({"expected": {"diagnosis.json": 3}, "exclude": {}}, "did you mean 'diagnosis.jsonl'?"),
        ({"expected": {}, "exclude": {}, "skip": 1}, "unknown field `skip`"),
    ],
)
def test_wrong_options_are_said_before_a_table_is_read(tmp_path, capsys, options, said):
    told = json.dumps({"files": OUT[:3], "options": options, "tables": OUT[:2]})
    words = ["--study", "mrarebench", "--settings", told, "--tables", "none", "none", "--out", *OUT]
    assert index_tables.main([*words, "--record", RECORD]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "index_report.json").exists()


def test_files_and_tables_have_to_fit_the_settings(tmp_path, capsys):
    told = json.dumps({"files": OUT[:3], "options": {"expected": {}, "exclude": {}}, "tables": OUT[:2]})
    words = ["--study", "mrarebench", "--settings", told, "--record", RECORD]
    for tables, outs in ((["a"], OUT), (["a", "b"], OUT[1:]), (["a", "b"], [*OUT[1::-1], *OUT[2:]])):
        assert index_tables.main([*words, "--tables", *tables, "--out", *outs]) == 2
        assert "give the same names in order, one of them the report" in capsys.readouterr().err
    with pytest.raises(RemeasureError, match="'x.jsonl' is no index file of MRareBench"):
        mrarebench_index.check(mrarebench_index.Settings(expected={}, exclude={}), ["x.jsonl"])


def test_the_settings_of_the_study_are_those_of_the_stage():
    study = Plan(SCRIPTS.parent / "config").study("mrarebench")
    module = studies.load("mrarebench", "index")
    options = msgspec.convert(study.index.options, module.Settings)
    module.check(options, list(study.index.tables.files))
    assert options.expected == {"diagnosis.jsonl": 300, "evidence.jsonl": 608}  # the card's section 2
    assert study.index.files == OUT[:3] and study.index.tables.images == OUT[3]


# -- memory and ends ----------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_rows(tmp_path):
    image = diagnosis_row()["image"]

    def peak(n: int) -> int:
        rows = tsv([diagnosis_row(k, context="x" * 20_000, image=image) for k in range(n)])
        (tmp_path / "t1.tsv").write_bytes(rows)
        (tmp_path / "t2.tsv").write_bytes(tsv([evidence_row()]))
        del rows
        tracemalloc.start()
        assert index_tables.main(WORDS) == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(500) - peak(50) < 1_000_000  # of 9 MB more


def test_a_killed_run_leaves_nothing_that_looks_whole(tmp_path):
    large = [[picture(size=(200, 200), seed=9 * n + k) for k in range(4)] for n in range(30)]
    rows = [
        evidence_row(n, image=images(*four), image_slot_map="", decisive_image_ids="")
        for n, four in enumerate(large)
    ]
    (tmp_path / "t1.tsv").write_bytes(tsv([diagnosis_row()]))
    (tmp_path / "t2.tsv").write_bytes(tsv(rows))
    command = [sys.executable, str(SCRIPTS / "index_tables.py"), *WORDS]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while process.poll() is None and not any(
        path.stat().st_size > 200_000 for path in tmp_path.glob(".images.zip.*.part")
    ):
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not any((tmp_path / name).exists() for name in [*OUT, RECORD])
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert list(tmp_path.glob(".*.part")) == []
    assert len(zipfile.ZipFile(tmp_path / "images.zip").namelist()) == 121


def test_the_summary_says_what_was_expected():
    facts = table_report.TableFacts(table="t", n_rows=2, n_indexed=1, expected=3, expected_met=False)
    empty = {name: 0 for name in ("n_rows", "n_indexed", "n_excluded", "n_images", "n_different_images")}
    found = table_report.TablesReport(
        **(empty | {"n_converted": 0, "n_odd": 0, "n_problems": 1}),
        **{"tables": {"a.jsonl": facts}, "excluded": [], "converted": [], "odd": {}, "problems": []},
    )
    assert table_report.summary(found).startswith("a.jsonl 1 of 2 rows (3 expected); 0 excluded;")


def test_an_image_of_base64_with_hostile_neighbours_stays_data(tmp_path):
    cell = json.dumps([b64(picture()), "!!python/object/apply:os.system ['true']"])
    assert run(tmp_path, [diagnosis_row(image=cell)], [evidence_row()]) == 2
    assert problems(tmp_path)[0][3].startswith("slot 2 is no base64 (")
