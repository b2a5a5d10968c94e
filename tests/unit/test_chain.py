from pathlib import Path

import pytest

import tablekit
from remeasure.errors import RemeasureError
from remeasure.tables import chain


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Source -> pages -> items -> score, all with records, below a working directory."""
    monkeypatch.chdir(tmp_path)
    source = tablekit.put(Path("results/sources/a.zip"), "source")
    pages = tablekit.put(Path("results/embedded/corpora/c/pages.jsonl"), "pages")
    score = tablekit.put(Path("results/embedded/s/b/a/m/score.json"), "score")
    tablekit.write_record(pages.with_suffix(".json"), "select_pages", [source], [pages])
    tablekit.write_record(score.with_name("grade.json"), "grade", [pages], [score])
    return [str(pages.with_suffix(".json")), str(score.with_name("grade.json"))]


SCORE = "results/embedded/s/b/a/m/score.json"


def test_a_number_is_followed_nearest_first_to_its_sources(here):
    links = chain.follow([SCORE], chain.load_records(map(Path, here)))
    assert [(link.stage, Path(link.path).name) for link in links] == [
        ("grade", "score.json"),
        ("grade", "grade.json"),
        ("select_pages", "pages.jsonl"),
        ("select_pages", "pages.json"),
        (None, "a.zip"),
    ]
    assert links[-1].sha256 == tablekit.digest(Path("results/sources/a.zip"))


def test_a_file_of_ours_without_a_record_is_an_error(here):
    with pytest.raises(RemeasureError, match="no stage record says who wrote it"):
        chain.follow([SCORE], chain.load_records([Path(here[1])]))


def test_a_stage_that_read_other_bytes_than_were_written_is_stale(here):
    tablekit.put(Path("results/embedded/corpora/c/pages.jsonl"), "new pages")
    tablekit.write_record(
        Path(here[0]),
        "select_pages",
        [Path("results/sources/a.zip")],
        [Path("results/embedded/corpora/c/pages.jsonl")],
    )
    with pytest.raises(RemeasureError, match="pages.jsonl: .*grade.json read SHA-256"):
        chain.follow([SCORE], chain.load_records(map(Path, here)))


def test_two_records_for_one_file_are_an_error(here):
    twice = Path("results/embedded/twice.json")
    twice.write_bytes(Path(here[0]).read_bytes())
    with pytest.raises(RemeasureError, match="and so does"):
        chain.load_records([*map(Path, here), twice])


def test_a_stage_may_read_another_stages_record(here):
    other = tablekit.put(Path("results/embedded/other.txt"), "other")
    record = tablekit.write_record(Path("results/embedded/other.json"), "late", [Path(here[0])], [other])
    links = chain.follow([str(other)], chain.load_records([record, Path(here[0])]))
    assert [Path(link.path).name for link in links] == ["other.txt", "other.json", "pages.json", "a.zip"]


def test_two_stages_that_read_different_bytes_of_one_source_are_an_error(here):
    tablekit.put(Path("results/sources/a.zip"), "another source")
    extra = tablekit.put(Path("results/embedded/extra.txt"), "extra")
    record = tablekit.write_record(
        Path("results/embedded/extra.json"), "late", [Path("results/sources/a.zip")], [extra]
    )
    with pytest.raises(RemeasureError, match="a.zip"):
        chain.follow([SCORE, str(extra)], chain.load_records([*map(Path, here), record]))


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("results/embedded/a.txt", True),
        ("results/sources/a.zip", False),
        ("/elsewhere/my.zim", False),
        ("/data/results/embedded/a.txt", True),
        ("config/a.yaml", False),
    ],
)
def test_what_stands_under_results_is_ours_unless_it_is_a_source(path, ours):
    assert chain.is_ours(path) is ours
