"""Large files are read from the node's own disk where there is one, and never worse for it."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import scratch
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.fingerprint import SCRIPTS

DATA = b"vectors" * 1000


@pytest.fixture
def local(tmp_path, monkeypatch) -> Path:
    """The scratch folder; it does not exist yet."""
    folder = tmp_path / "local" / "job7"
    monkeypatch.setenv("REMEASURE_SCRATCH", str(folder))
    return folder


@pytest.fixture
def said(caplog):
    caplog.set_level("INFO")
    return lambda: [record.message for record in caplog.records if record.name == "remeasure.scratch"]


@pytest.fixture
def index(tmp_path) -> Path:
    path = tmp_path / "shared" / "index.faiss"
    path.parent.mkdir()
    path.write_bytes(DATA)
    return path


@pytest.fixture
def weights(tmp_path) -> Path:
    """A folder as model hubs keep it: links into a store."""
    store, folder = tmp_path / "blobs", tmp_path / "weights"
    store.mkdir()
    (folder / "original").mkdir(parents=True)
    (store / "abc").write_bytes(b"layer 1")
    (folder / "config.json").write_text("{}")
    (folder / "empty").touch()
    (folder / "original" / "params").write_bytes(b"p")
    (folder / "model.safetensors").symlink_to("../blobs/abc")
    (folder / "more").symlink_to("../blobs")
    return folder


def left(local: Path) -> list[str]:
    """Names of what lies in scratch, locks aside."""
    return sorted(path.name for path in local.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_without_scratch_nothing_is_copied_or_said(index, said, monkeypatch):
    monkeypatch.delenv("REMEASURE_SCRATCH", raising=False)
    assert scratch.local_copy(index) == index
    monkeypatch.setenv("REMEASURE_SCRATCH", "")
    assert scratch.local_copy(index) == index and said() == []


def test_a_file_is_copied_once_and_found_again(index, local, said):
    copy = scratch.local_copy(index, sha256_bytes(DATA))
    assert copy.is_relative_to(local) and copy.name == "index.faiss" and copy.read_bytes() == DATA
    inode = copy.stat().st_ino
    assert scratch.local_copy(index) == copy and copy.stat().st_ino == inode
    assert [text.partition(str(local))[0] for text in said()] == [
        f"{index}: copied 0.007 MB to ",
        f"{index}: reading the copy in ",
    ]


@pytest.mark.parametrize("change", ["bytes", "time", "path"])
def test_another_file_is_another_copy(index, local, change):
    first = scratch.local_copy(index)
    before = index.stat()
    if change == "bytes":
        index.write_bytes(DATA + b"x")
        os.utime(index, ns=(before.st_mtime_ns, before.st_mtime_ns))
    elif change == "time":
        os.utime(index, ns=(before.st_mtime_ns, before.st_mtime_ns + 1))
    else:
        other = index.parent / "other" / "index.faiss"
        other.parent.mkdir()
        shutil.copy2(index, other)
        index = other
    second = scratch.local_copy(index)
    assert second != first and second.read_bytes() == index.read_bytes()


def test_a_folder_is_copied_with_what_its_links_lead_to(weights, local):
    copy = scratch.local_copy(weights)
    assert copy.name == "weights" and copy.is_relative_to(local)
    found = {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert found == {
        "config.json": b"{}",
        "empty": b"",
        "original/params": b"p",
        "model.safetensors": b"layer 1",
        "more/abc": b"layer 1",
    }
    assert not any(path.is_symlink() for path in copy.rglob("*"))


def test_a_link_keeps_its_own_name(tmp_path, index, local):
    link = tmp_path / "weights.gguf"
    link.symlink_to(index)
    assert scratch.local_copy(link).name == "weights.gguf"


@pytest.mark.parametrize("what", ["one file gone", "one file shorter"])
def test_a_copy_that_lost_something_is_made_again(weights, local, what):
    copy = scratch.local_copy(weights)
    if what == "one file gone":
        (copy / "config.json").unlink()
    else:
        (copy / "config.json").write_text("")
    again = scratch.local_copy(weights)
    assert again == copy and (again / "config.json").read_text() == "{}"


def test_what_a_killed_process_left_is_removed(index, local):
    home = scratch.local_copy(index).parent
    part = home.with_name(home.name + ".part")
    home.rename(part)
    (part / "index.faiss").write_bytes(b"half")
    assert scratch.local_copy(index).read_bytes() == DATA
    assert left(local) == ["index.faiss"] and not part.exists()


def in_place(path: Path, said, reason: str) -> None:
    assert scratch.local_copy(path) == path
    (text,) = said()
    assert text.startswith(f"{path} is read in place, no copy in {os.environ['REMEASURE_SCRATCH']}: ")
    assert reason in text and "\n" not in text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("/local/$SLURM_JOB_ID", "a variable in it is not set on this node"),
        ("local", "it is no absolute path"),
        ("/proc/nothing", "/proc/nothing: No such file or directory"),
        ("/dev/null/x", "/dev/null/x: Not a directory"),
        ("/dev/null", "/dev/null: File exists"),
    ],
)
def test_a_folder_that_is_none_is_one_line(index, said, monkeypatch, value, reason):
    monkeypatch.setenv("REMEASURE_SCRATCH", value)
    in_place(index, said, reason)


def test_no_room_is_one_line(index, local, said, monkeypatch):
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda path: SimpleNamespace(free=7100))
    in_place(index, said, "0.007 MB and a margin are needed, 0.0071 MB are free")
    assert left(local) == []


def test_a_disk_that_is_full_in_the_middle_is_one_line_and_left_empty(weights, local, said, monkeypatch):
    real = scratch.os.fsync

    def full(file):
        if len(list(local.rglob("params"))):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(scratch.os, "fsync", full)
    in_place(weights, said, "No space left on device")
    assert left(local) == []


def test_a_really_full_disk(tmp_path, monkeypatch, said):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True
    ).returncode:
        pytest.skip("needs the right to mount")
    try:
        (tmp_path / "big").write_bytes(bytes(2_000_000))
        monkeypatch.setenv("REMEASURE_SCRATCH", str(disk))
        monkeypatch.setattr(scratch.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
        in_place(tmp_path / "big", said, "No space left on device")
        assert left(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_file_that_is_changed_or_goes_while_it_is_copied(weights, local, said, monkeypatch):
    real = scratch._copy_file

    def changing(source, target, *more):
        found = real(source, target, *more)
        if source.name == "params":
            source.write_bytes(b"q")
        return found

    monkeypatch.setattr(scratch, "_copy_file", changing)
    in_place(weights, said, "was changed while it was copied")
    assert left(local) == []

    def vanishing(source, *more):
        source.unlink()
        return real(source, *more)

    monkeypatch.setattr(scratch, "_copy_file", vanishing)
    assert scratch.local_copy(weights) == weights
    assert "No such file or directory" in said()[-1] and left(local) == []


@pytest.mark.parametrize("what", ["circle", "nowhere", "pipe"])
def test_a_folder_that_cannot_be_copied_is_one_line(weights, local, said, what):
    if what == "circle":
        (weights / "original" / "self").symlink_to("..")
        reason = "is a link that leads in a circle"
    elif what == "nowhere":
        (weights / "gone").symlink_to("/nowhere/at/all")
        reason = "No such file or directory"
    else:
        os.mkfifo(weights / "pipe")
        reason = "pipe is no file"
    in_place(weights, said, reason)
    assert left(local) == []


def test_bytes_with_another_hash_are_not_used(index, local, said):
    assert scratch.local_copy(index, "0" * 64) == index
    assert "does not have the hash that is known" in said()[0] and left(local) == []


def test_a_copy_that_was_damaged_is_made_again_where_the_hash_is_known(index, local):
    sha256 = sha256_bytes(index.read_bytes())
    copy = scratch.local_copy(index, sha256)
    time, right = copy.stat().st_mtime_ns, copy.read_bytes()
    copy.write_bytes(right[:-1] + b"?")
    os.utime(copy, ns=(time, time))
    assert scratch.local_copy(index, sha256) == copy and copy.read_bytes() == right


def test_a_missing_file_is_left_to_whoever_opens_it(tmp_path, local, said):
    assert scratch.local_copy(tmp_path / "none") == tmp_path / "none" and said() == []


def test_the_folder_of_somebody_else_is_not_trusted(index, local, said, monkeypatch):
    copy = scratch.local_copy(index)
    uid = os.getuid()
    monkeypatch.setattr(scratch.os, "getuid", lambda: uid + 1)
    (local / f"remeasure-{uid}").rename(local / f"remeasure-{uid + 1}")
    assert scratch.local_copy(index) == index and "is not our own folder" in said()[-1]
    assert not copy.exists()


def test_who_is_told_to_end_does_not_wait_for_a_copy(index, local, said):
    assert scratch.local_copy(index, is_over=lambda: True) == index
    assert "told to end" in said()[0] and left(local) == []


def program(path: Path, more: str = "") -> list[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from pathlib import Path; from remeasure import cli, scratch\n"
        f"{more}\n"
        "import argparse\n"
        f"def work(args): print(scratch.local_copy(Path({str(path)!r})), flush=True)\n"
        "sys.exit(cli.run(argparse.ArgumentParser(), work, []))"
    )
    return [sys.executable, "-c", code]


def test_jobs_that_share_a_folder_share_one_copy(index, local):
    counting = (
        "real = scratch._copy_file\n"
        "def slow(*given):\n"
        "    import time; time.sleep(0.5); print('copied', flush=True); return real(*given)\n"
        "scratch._copy_file = slow"
    )
    runs = [
        subprocess.Popen(
            program(index, counting), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(3)
    ]
    told = [run.communicate(timeout=30)[0].split() for run in runs]
    assert sum(words.count("copied") for words in told) == 1
    assert len({words[-1] for words in told}) == 1 and left(local) == ["index.faiss"]


@pytest.mark.parametrize("kill", ["TERM", "KILL"])
def test_a_copy_that_is_broken_off_is_no_copy(index, local, kill):
    endless = (
        "def endless(source, target, *more):\n"
        "    import time; target.write_bytes(b'half'); print('begun', flush=True); time.sleep(60)\n"
        "scratch._copy_file = endless"
    )
    run = subprocess.Popen(program(index, endless), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "begun\n"
    run.terminate() if kill == "TERM" else run.kill()
    said = run.communicate(timeout=10)[1]
    if kill == "TERM":
        assert run.returncode == 75 and said.startswith("to be continued: ") and left(local) == []
    assert scratch.local_copy(index).read_bytes() == DATA and left(local) == ["index.faiss"]


@pytest.mark.parametrize(("job", "is_kept"), [("job7", False), ("job8", True)])
def test_what_was_made_for_the_job_alone_goes_with_it(index, local, monkeypatch, job, is_kept):
    monkeypatch.setenv("SLURM_JOB_ID", job)
    copy = subprocess.run(program(index), capture_output=True, text=True, check=True).stdout.strip()
    assert copy.startswith(str(local)) and local.exists() == is_kept


def test_a_folder_that_the_site_made_for_the_job_stays(index, local, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "job7")
    local.mkdir(parents=True)
    subprocess.run(program(index), capture_output=True, check=True)
    assert left(local) == ["index.faiss"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/local/$SLURM_JOB_ID", "/local/12"),
        ("${TMPDIR}/x", "/tmp dir/x"),
        ("/local/$NOT_SET/y", "/local/$NOT_SET/y"),
        ("'/a b'", "/a b"),
        ('"/a b"', "/a b"),
        ("/a/$(touch {bad})", "/a/$(touch {bad})"),
        ("/a/`touch {bad}`", "/a/`touch {bad}`"),
        ('/a"; touch {bad}; "', '/a"; touch {bad}; "'),
        ("/a/${{X:-$(touch {bad})}}", "/a/${{X:-$(touch {bad})}}"),
        ("/a/\\$HOME!$", "/a/\\/root!$"),
        ("/a/*/~", "/a/*/~"),
    ],
)
def test_the_profile_s_word_is_expanded_on_the_node_and_nothing_is_run(tmp_path, value, found):
    bad = tmp_path / "bad"
    value, found = value.replace("{bad}", str(bad)), found.replace("{bad}", str(bad))
    shell = f'set -euo pipefail; {scratch.export(value)}printf %s "$REMEASURE_SCRATCH"'
    environment = {"SLURM_JOB_ID": "12", "TMPDIR": "/tmp dir", "HOME": "/root", "PATH": os.environ["PATH"]}
    told = subprocess.run(["bash", "-c", shell], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == found and not bad.exists()


@pytest.mark.parametrize("value", [None, "", " ", "''"])
def test_no_word_is_no_scratch(value):
    assert scratch.export(value) == ""


@pytest.mark.parametrize("value", ["/a\nrm -rf /", "/a\rb", "/a\0b"])
def test_a_word_with_a_line_end_or_a_zero_byte_is_refused(value):
    with pytest.raises(RemeasureError, match="scratch is"):
        scratch.export(value)


RULE = """
configfile: f"{workflow.basedir}/config/config.yaml"
include: "rules/common.smk"
rule show:
    output: "shown.txt"
    shell: 'printf %s "${{REMEASURE_SCRATCH-none}}" > {output}'
"""


@pytest.mark.slow
def test_a_profile_s_scratch_reaches_a_step_and_reruns_nothing(tmp_path, root):
    project = tmp_path / "project"
    project.mkdir()
    for name in ("config", "rules", "scripts", "envs", "requirements.txt"):
        (project / name).symlink_to(root / name)
    (project / "Snakefile").write_text(RULE)
    (project / "site").mkdir()
    words = [sys.executable, "-m", "snakemake", "-s", "Snakefile", "-d", "work", "-c", "1", "shown.txt"]

    def call(scratch_folder: str | None) -> tuple[str, str]:
        more = f"default-resources:\n  mem_mb: 500\n  scratch: {scratch_folder}\n" if scratch_folder else ""
        (project / "site" / "config.yaml").write_text(f"latency-wait: 5\n{more}")
        run = subprocess.run(
            [*words, "--profile", "site"],
            cwd=project,
            env=os.environ | {"SLURM_JOB_ID": "12", "MINE": "my disk"},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        return (project / "work" / "shown.txt").read_text(), run.stdout + run.stderr

    assert call('"/local/$SLURM_JOB_ID/{x}/${MINE}"')[0] == "/local/12/{x}/my disk"
    assert "Nothing to be done" in call("/elsewhere")[1] and "Nothing to be done" in call(None)[1]
    (project / "work" / "shown.txt").unlink()
    assert call(None)[0] == "none"
