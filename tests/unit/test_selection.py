"""Which pages a run uses, and which set each belongs to."""

import os
from pathlib import Path

import msgspec
import pytest
import yaml

from remeasure import archive_record, jsonl, provenance, selection
from remeasure.archive import Archive
from remeasure.corpora import zim_writer
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.records import Page, Stage
from remeasure.selection import Selection, Settings
from zimkit import Given, write_zim

SHARES = {"test": 0.4, "train": 0.2, "dev": 0.1, "tuning": 0.3}
PARTS = Selection(salt="s", shares=SHARES)
ENTRIES = [(f"Page {number:03}", f"Title {number}") for number in range(100)]


def sets(pages: list[Page]) -> dict[str, set[str]]:
    return {name: {page.page_id for page in pages if page.set == name} for name in SHARES}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Côte d'Ivoire", "cote-divoire"),
        ("What? 100%", "what-100"),
        ("Straße nach Süden", "strasse-nach-suden"),
        ("A/B c", "a-b-c"),
    ],
)
def test_a_page_id_is_safe_and_readable(path, name):
    assert selection.slug(path) == name


def test_pages_without_latin_letters_and_pages_of_one_slug_stay_apart():
    ids = selection.page_ids(["中国", "日本", "A b", "A-b"])
    assert len(set(ids)) == 4
    assert all(selection.re.fullmatch(r"[a-z0-9-]{1,77}", page) for page in ids)


def test_sets_are_disjoint_and_do_not_depend_on_the_numbers_asked_for():
    many = sets(
        selection.select(ENTRIES, Settings(pages={"test": 30, "train": 15, "dev": 5}, selection=PARTS))
    )
    few = sets(selection.select(ENTRIES, Settings(pages={"test": 3, "tuning": 20}, selection=PARTS)))
    assert few["test"] < many["test"]
    everything = [*many["test"], *many["train"], *many["dev"], *few["tuning"]]
    assert len(everything) == len(set(everything)) == 70


def test_a_set_does_not_depend_on_the_other_pages():
    ids = [selection.slug(path) for path, _ in ENTRIES]
    whole, half = selection.partition(ids, PARTS), selection.partition(ids[::2], PARTS)
    for name, pages in half.items():
        assert pages == [page for page in whole[name] if page in ids[::2]]


def test_pages_with_a_place_stand_there():
    parts = Selection(salt="s", shares=SHARES, places={"test": {"page-007": 1, "page-008": 3}})
    chosen = selection.select(ENTRIES, Settings(pages={"test": 4}, selection=parts))
    assert [page.page_id for page in chosen][1::2] == ["page-007", "page-008"]


def test_too_many_pages_asked_for_names_the_numbers():
    with pytest.raises(RemeasureError, match=r"500 pages asked for set 'test', the archive has \d+ "):
        selection.select(ENTRIES, Settings(pages={"test": 500}, selection=PARTS))
    with pytest.raises(RemeasureError, match="set 'tset' is unknown"):
        selection.select(ENTRIES, Settings(pages={"tset": 5}, selection=PARTS))


def test_an_archive_without_facts_gives_pages_in_path_order():
    pages = selection.select(ENTRIES[::-1], Settings(pages={"all": 2}))
    assert [(page.path, page.set) for page in pages] == [("Page 000", "all"), ("Page 001", "all")]
    assert len(selection.select(ENTRIES, Settings(pages={}))) == 100


def archive(path: Path) -> Path:
    entry = zim_writer.Entry
    refresh = b'<meta http-equiv="refresh" content="0;url=A">'
    entries = [
        entry(path="Ä b? 100%", title="Ä", content=b"<p>page</p>"),
        entry(path="A", title="A", content=b"<p>page</p>"),
        entry(path="moved", title="moved", content=refresh),
        entry(path="long", title="long", content=refresh + b" " * 1024),
        entry(path="mainpage", title="main", content=b"<p>list</p>"),
        entry(path="-/style", title="s", content=b"<p>technical</p>"),
        entry(path="picture.svg", title="p", content=b"<svg/>"),
        entry(path="data", title="d", media_type="text/plain", content=b"text"),
        entry(path="other", title="other", target="A"),
    ]
    zim_writer.write_archive(path, entries, main="mainpage", language="eng", date="2025-01-01", metadata={})
    return path


def test_only_content_pages_are_listed(tmp_path):
    found = selection.content_pages(archive(tmp_path / "a.zim"))
    assert found == [("A", "A"), ("long", "long"), ("Ä b? 100%", "Ä")]


def test_a_file_that_is_no_archive_is_one_line(tmp_path):
    (tmp_path / "x.zim").write_bytes(b"ZIM" * 100)
    with pytest.raises(RemeasureError, match="cut short|too long|not a ZIM archive"):
        selection.content_pages(tmp_path / "x.zim")
    with pytest.raises(RemeasureError, match="cannot be read"):
        selection.content_pages(tmp_path / "absent.zim")


def test_the_script_writes_pages_and_record(tmp_path):
    import select_pages

    options = ["--archive", str(archive(tmp_path / "a.zim")), "--settings", '{"pages": {"all": 2}}']
    out = ["--out", str(tmp_path / "pages.jsonl"), "--record", str(tmp_path / "pages.json")]
    assert select_pages.main(options + out) == 0
    assert [page.path for page in jsonl.read(tmp_path / "pages.jsonl", Page)] == ["A", "long"]
    assert jsonl.read_json(tmp_path / "pages.json")["counts"] == {"archive": 3, "all": 2}


@pytest.fixture
def recorded(tmp_path):
    """An archive and its page list, whose record tells a hash that is not the archive's."""
    path, pages, record = archive(tmp_path / "a.zim"), tmp_path / "pages.jsonl", tmp_path / "pages.json"
    pages.touch()

    def write(**told):
        usual = {
            "stage": "select_pages",
            "settings": {},
            "code": "c",
            "inputs": {str(path): "5" * 64},
            "outputs": {str(pages): "6" * 64},
            "facts": {"archive": Archive(path).identity},
        }
        jsonl.write_json(record, Stage(**(usual | told)))
        os.utime(record, ns=(0, path.stat().st_mtime_ns + 1))
        return path, pages, record

    return write


def test_the_hash_of_an_archive_is_taken_from_the_record_of_its_pages(recorded):
    path, pages, _ = recorded()
    assert archive_record.known_hash(Archive(path), pages) == {str(path): "5" * 64}


def test_an_archive_that_changed_since_or_that_the_record_does_not_know_is_hashed(recorded):
    path, pages, record = recorded()
    os.utime(path, ns=(0, record.stat().st_mtime_ns))
    assert archive_record.known_hash(Archive(path), pages) == {}
    for told in ({"facts": {}}, {"facts": {"archive": "0" * 16}}, {"inputs": {"b.zim": "5" * 64}}):
        recorded(**told)
        assert archive_record.known_hash(Archive(path), pages) == {}, told
    record.write_text("{")
    assert archive_record.known_hash(Archive(path), pages) == {}
    record.unlink()
    assert archive_record.known_hash(Archive(path), pages) == {}


def test_another_archive_in_its_place_is_hashed_whatever_time_it_carries(recorded):
    path, pages, record = recorded()
    write_zim(path.with_name("b.zim"), [Given("other", "<html><body>Other</body></html>")]).replace(path)
    os.utime(path, ns=(0, 0))
    assert path.stat().st_mtime_ns < record.stat().st_mtime_ns
    assert archive_record.known_hash(Archive(path), pages) == {}


def test_choosing_pages_hashes_the_archive_once_and_later_steps_know_it(tmp_path, monkeypatch):
    import select_pages

    path = archive(tmp_path / "a.zim")
    os.utime(path, ns=(0, 0))
    hashed = []
    monkeypatch.setattr(
        provenance, "sha256_of", lambda name: hashed.append(Path(name).name) or sha256_file(name)
    )
    out = ["--out", str(tmp_path / "pages.jsonl"), "--record", str(tmp_path / "pages.json")]
    assert select_pages.main(["--archive", str(path), "--settings", '{"pages": {}}', *out]) == 0
    assert hashed == ["a.zim", "pages.jsonl"]
    told = archive_record.known_hash(Archive(path), tmp_path / "pages.jsonl")
    assert told == {str(path): sha256_file(path)}


@pytest.mark.models
def test_the_awkward_pages_are_among_the_test_pages(sources):
    config = Path(__file__).resolve().parents[2] / "config" / "corpora" / "factbook.yaml"
    parts = msgspec.convert(yaml.safe_load(config.read_text("utf-8"))["selection"], Selection)
    entries = selection.content_pages(sources / "factbook.zim")
    twenty = selection.select(entries, Settings(pages={"test": 20}, selection=parts))
    assert set(parts.places["test"]) <= {page.page_id for page in twenty}
    six = selection.select(entries, Settings(pages={"test": 6}, selection=parts))
    assert "russia" in {page.page_id for page in six}
