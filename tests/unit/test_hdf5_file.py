"""HDF5 on a full disk: one error that names the file, nothing under its name, and no crash of the process."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from remeasure import hdf5_file

ROOT = Path(__file__).resolve().parents[2]
# Both writers of files of photographs, with at most so many bytes in a file.
_LIMITED = """
import resource, signal, sys
import numpy as np
from pathlib import Path
from remeasure import cli
from remeasure.instances import first_file, vectors_file
from remeasure.instances.score_row import Ranks

def work(args):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (args.limit, args.limit))
    if args.kind == "vectors":
        names = [str(i) for i in range(2000)]
        vectors_file.write(args.out, names, about={}, cls=np.ones((2000, 8), np.float32))
    else:
        none = np.empty(0, np.int64)
        ranks = Ranks(none, none, none, np.empty(0, np.float32), 0)
        top = np.arange(2000)[None], np.ones((1, 2000), np.float32)
        first_file.write(args.out, {"": first_file.First(2000, *top, (ranks,))}, {})

import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path)
parser.add_argument("--limit", type=int)
parser.add_argument("--kind")
sys.exit(cli.run(parser, work))
"""


@pytest.mark.parametrize("kind", ["vectors", "ranking"])
@pytest.mark.parametrize("limit", [100, 4096, 20_000])
def test_no_room_is_one_line_and_leaves_nothing(tmp_path, kind, limit):
    out = tmp_path / "x.h5"
    command = [sys.executable, "-c", _LIMITED, "--out", out, "--limit", str(limit), "--kind", kind]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {out}: cannot be written (File too large); make room or make it writable, then rerun\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_told_between_blocks_and_stays(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as told:
        with hdf5_file.writing(tmp_path / "x.h5") as (store, sink):
            rows = store.create_dataset("cls", (1000, 100), "f4")
            store.flush()
            sink.check()
            with monkeypatch.context() as patched:
                patched.setattr(os, "pwrite", full)
                rows[:] = np.ones((1000, 100), np.float32)
                store.flush()
            sink.check()
    assert told.value.filename == str(tmp_path / "x.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_file_reads_as_it_was_written_and_its_rows_lie_where_hdf5_says(tmp_path):
    with hdf5_file.writing(tmp_path / "x.h5") as (store, _):
        store.create_dataset("cls", data=np.arange(12, dtype=np.float32).reshape(3, 4), track_times=False)
        store.attrs["about"] = "{}"
    with h5py.File(tmp_path / "x.h5", "r") as store:
        assert store["cls"][2].tolist() == [8, 9, 10, 11]
        place = store["cls"].id.get_offset()
    data = (tmp_path / "x.h5").read_bytes()
    assert np.frombuffer(data, "<f4", 12, place).tolist() == list(range(12))
