"""The memory of a cell survives kills, torn lines and second writers."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.journal import Journal
from remeasure.records import JournalEntry


def entry(key: str, status="answered", text="A") -> JournalEntry:
    return JournalEntry(key=key, custom_id="q-" + key, status=status, text=text, attempts=1, seconds=0.5)


def test_what_was_appended_is_found_by_key_at_once_and_after_reopening(tmp_path):
    with Journal(tmp_path / "journal") as journal:
        assert journal.get("k1") is None and journal.status("k1") is None
        journal.append(entry("k1"))
        journal.append(entry("k2", text="ü"))
        assert journal.get("k1") == entry("k1")
    with Journal(tmp_path / "journal") as journal:
        assert len(journal) == 2 and journal.get("k2") == entry("k2", text="ü")


def test_an_appended_line_is_in_the_file_before_append_returns(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(entry("k1"))
        assert (tmp_path / "answers.jsonl").read_bytes() == jsonl.encode(entry("k1")) + b"\n"


def test_a_torn_last_line_is_set_aside_and_its_request_asked_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    whole = jsonl.encode(entry("k1")) + b"\n"
    path.write_bytes(whole + jsonl.encode(entry("k2"))[:30])
    with Journal(tmp_path) as journal:
        assert not journal.is_final("k2") and journal.is_final("k1")
        assert path.read_bytes() == whole
        journal.append(entry("k2"))
    assert (tmp_path / "answers.jsonl.torn").read_bytes() == jsonl.encode(entry("k2"))[:30] + b"\n"
    with Journal(tmp_path) as journal:
        assert journal.is_final("k2")


def test_a_torn_line_longer_than_one_block_is_set_aside_whole(tmp_path):
    whole = jsonl.encode(entry("k1")) + b"\n"
    (tmp_path / "answers.jsonl").write_bytes(whole + b"x" * 200_000)
    with Journal(tmp_path) as journal:
        assert len(journal) == 1
    assert (tmp_path / "answers.jsonl").read_bytes() == whole


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path):
    (tmp_path / "answers.jsonl").write_bytes(b"\0\0\0")
    with Journal(tmp_path) as journal:
        assert len(journal) == 0
    assert (tmp_path / "answers.jsonl").read_bytes() == b""


def test_damage_in_the_middle_stops_with_file_and_line(tmp_path):
    line = jsonl.encode(entry("k1")) + b"\n"
    (tmp_path / "answers.jsonl").write_bytes(line + b'{"key": 3}\n' + line)
    with pytest.raises(RemeasureError, match=r"answers.jsonl line 2: damaged journal line"):
        Journal(tmp_path).__enter__()
    # The lock was given back.
    (tmp_path / "answers.jsonl").write_bytes(line)
    with Journal(tmp_path) as journal:
        assert len(journal) == 1


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["failed", "answered"], 1),
        (["answered", "failed"], 0),
        (["answered", "answered"], 1),
        (["cut_off", "answered", "refused"], 1),
        (["refused", "cut_off"], 1),
        (["failed", "failed"], 1),
    ],
)
def test_of_several_outcomes_the_best_counts_and_of_equal_ones_the_last(tmp_path, statuses, expected):
    with Journal(tmp_path) as journal:
        for number, status in enumerate(statuses):
            journal.append(entry("k", status, text=str(number)))
        assert journal.get("k").text == str(expected)
    with Journal(tmp_path) as journal:
        assert journal.get("k").text == str(expected)


def test_a_failed_outcome_is_asked_again_and_a_refused_one_is_not(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(entry("k1", "failed"))
        journal.append(entry("k2", "refused"))
        journal.append(entry("k3", "cut_off"))
        assert [journal.is_final(key) for key in ("k1", "k2", "k3")] == [False, True, True]


def test_all_files_of_the_folder_are_read_and_only_the_own_one_is_written(tmp_path):
    other = jsonl.encode(entry("k1")) + b"\n" + b'{"torn'
    (tmp_path / "1of2.jsonl").write_bytes(other)
    with Journal(tmp_path, "2of2") as journal:
        assert journal.get("k1") == entry("k1")
        journal.append(entry("k2"))
    assert (tmp_path / "1of2.jsonl").read_bytes() == other
    assert (tmp_path / "2of2.jsonl").read_bytes() == jsonl.encode(entry("k2")) + b"\n"


def test_a_second_writer_gets_one_clear_line(tmp_path):
    with Journal(tmp_path):
        with pytest.raises(RemeasureError, match="is asking this cell right now"):
            Journal(tmp_path).__enter__()
    with Journal(tmp_path):
        pass


def test_a_killed_writer_does_not_hold_the_lock(tmp_path):
    code = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPTS)!r}); from remeasure.journal import Journal\n"
        f"with Journal({str(tmp_path)!r}): print('locked', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"locked\n"
    with pytest.raises(RemeasureError, match="is asking this cell"):
        Journal(tmp_path).__enter__()
    process.kill()
    process.wait()
    process.stdout.close()
    with Journal(tmp_path) as journal:
        journal.append(entry("k"))


FULL_DISK = """
import resource, sys
sys.path[:0] = [{scripts!r}, {tests!r}]
from remeasure.errors import RemeasureError
from remeasure.journal import Journal
from test_journal import entry
with Journal({folder!r}) as journal:
    journal.append(entry("k1"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))  # as a full disk: short write, then error
    try:
        journal.append(entry("k2", text="x" * 500))
    except RemeasureError as error:
        print(error)
    assert journal.get("k2") is None and journal.get("k1") == entry("k1")
"""


def test_a_full_disk_is_one_line_and_leaves_no_torn_line(tmp_path):
    code = FULL_DISK.format(scripts=str(SCRIPTS), tests=str(Path(__file__).parent), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "'q-k2' cannot be kept" in done.stdout and "make room and rerun" in done.stdout, done.stderr
    assert (tmp_path / "answers.jsonl").read_bytes() == jsonl.encode(entry("k1")) + b"\n"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RemeasureError, match="cannot be written"):
        Journal(tmp_path / "file").__enter__()


def test_twenty_thousand_lines_are_read_in_a_second(tmp_path):
    line = jsonl.encode(entry("k")) + b"\n"
    (tmp_path / "answers.jsonl").write_bytes(line * 20_000)
    began = time.process_time()
    with Journal(tmp_path) as journal:
        assert len(journal) == 1
    assert time.process_time() - began < 1.0
