"""Databases are filled, checked, and refused where they are not what was configured."""

import json
import shutil

import msgspec
import pytest

import ingest_documents
import systemkit
from remeasure import jsonl
from remeasure.records import Document, Stage
from remeasure.systems import adapter, database, fulltext
from remeasure.systems.batches import Progress
from remeasure.systems.fulltext import Probe


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy adapter is found among the tests."""
    monkeypatch.setattr(adapter, "FOLDER", systemkit.TESTS)


def ingest(folder, texts=None, **settings) -> int:
    documents = systemkit.write_documents(folder / "documents.jsonl", texts)
    words = ["--settings", json.dumps(systemkit.ingest_settings(**settings))]
    words += ["--way", msgspec.json.encode(systemkit.part()).decode(), "--documents", str(documents)]
    return ingest_documents.main(
        [*words, "--folder", str(folder / "toy"), "--record", str(folder / "toy.json")]
    )


def given(folder) -> list[str]:
    return (folder / "toy" / "database" / "given.txt").read_text().split()


def test_every_document_is_in_and_the_record_says_what_it_is(tmp_path):
    assert ingest(tmp_path) == 0
    stage = jsonl.read_json(tmp_path / "toy.json", Stage)
    assert stage.counts == {"documents": 3, "chunks": 3, "failed": 0}
    facts = database.read(tmp_path / "toy.json")
    assert facts.stamp == {"model": "toy-embedder", "vector_dim": 4}
    assert (facts.n_documents, facts.versions) == (3, {"toy": "1.0"})
    assert facts.folder == str(tmp_path / "toy" / "database")


def test_a_second_run_gives_no_document_again(tmp_path):
    assert ingest(tmp_path) == 0
    (tmp_path / "toy.json").unlink()
    assert ingest(tmp_path) == 0
    assert given(tmp_path) == ["d1", "d2", "d3"]


def test_other_settings_or_documents_begin_anew(tmp_path):
    assert ingest(tmp_path) == 0
    assert ingest(tmp_path, options={"chunk_tokens": 9}) == 0
    assert given(tmp_path) == ["d1", "d2", "d3"]  # the file was removed with the database
    assert ingest(tmp_path, {"e1": "Lighthouses warn sailors."}, options={"chunk_tokens": 9}) == 0
    assert given(tmp_path) == ["e1"]


def test_what_is_no_database_of_ours_is_not_removed(tmp_path, capsys):
    (tmp_path / "toy" / "database").mkdir(parents=True)
    (tmp_path / "toy" / "database" / "precious").touch()
    assert ingest(tmp_path) == 2
    assert "nothing beside it says how far it is; move it away" in capsys.readouterr().err
    assert (tmp_path / "toy" / "database" / "precious").exists()


def test_a_document_that_breaks_the_adapter_costs_itself_alone(tmp_path, capsys):
    texts = systemkit.DOCUMENTS | {"d4": "please break", "d5": "unreadable"}
    assert ingest(tmp_path, texts, max_failed_documents=2) == 0
    facts = database.read(tmp_path / "toy.json")
    assert (facts.failed, facts.n_documents) == (["d4", "d5"], 3)
    assert ingest(tmp_path, texts) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "2 documents could not be ingested, allowed are 0" in said
    assert (
        "'d5': cannot be read" in said and "'d4': server_error: the adapter ended with exit status 3" in said
    )


def test_failed_documents_are_tried_again(tmp_path):
    texts = systemkit.DOCUMENTS | {"d4": "breakonce breakonce", "d5": "unreadable"}
    assert ingest(tmp_path, texts) == 2
    before = given(tmp_path)
    assert ingest(tmp_path, texts) == 2
    assert given(tmp_path)[len(before) :] == ["d5"]


def test_an_index_that_does_not_cover_the_chunks_is_refused(tmp_path, capsys):
    assert ingest(tmp_path, options={"n_lost": 3}) == 2
    assert "the full text index covers 0 of 3 chunks" in capsys.readouterr().err


def test_full_text_that_finds_nothing_is_refused(tmp_path, capsys):
    assert ingest(tmp_path, options={"deaf": True}) == 2
    assert (
        "full text search does not find 'volcanoes', which stands in document 'd1' (3 of 3 such words)"
        in (capsys.readouterr().err)
    )


def test_a_database_of_another_embedder_is_not_written_into(tmp_path, capsys):
    systemkit.write_database(tmp_path, stamp={"model": "other", "vector_dim": 4})
    settings = systemkit.ingest_settings()
    assert ingest(tmp_path, prebuilt=str(tmp_path / "toy" / "database")) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "was built with embedder 'other' of 4 dimensions" in said
    assert f"the run configures {settings['served_name']!r} of 4 dimensions" in said


def test_a_ready_made_database_is_checked_and_used_as_it_is(tmp_path):
    systemkit.write_database(tmp_path)
    place = tmp_path / "toy" / "database"
    assert ingest(tmp_path, prebuilt=str(place)) == 0
    facts = database.read(tmp_path / "toy.json")
    assert facts.is_prebuilt and facts.folder == str(place) and facts.files
    assert [path.name for path in place.iterdir()] == ["toy.json"]


def test_a_ready_made_database_of_other_documents_is_refused(tmp_path, capsys):
    systemkit.write_database(tmp_path, {"d1": systemkit.DOCUMENTS["d1"]})
    place = str(tmp_path / "toy" / "database")
    assert ingest(tmp_path, prebuilt=place) == 2
    assert "holds 1 documents with chunks, the dataset has 3" in capsys.readouterr().err
    systemkit.write_database(tmp_path, {name: f"word{name} again" for name in ("d1", "d2", "d3")})
    assert ingest(tmp_path, prebuilt=place) == 2
    assert "or the database holds other documents" in capsys.readouterr().err


def test_a_uri_that_would_break_lines_is_refused(tmp_path, capsys):
    assert ingest(tmp_path, {"a\nb": "text"}) == 2
    assert "is no line of text without control characters" in capsys.readouterr().err


def test_a_uri_may_have_a_space_that_does_not_break(tmp_path):
    assert ingest(tmp_path, {"Mont\u00a0Blanc": "Glaciers carve valleys."}) == 0


def test_a_ready_made_database_of_other_documents_with_the_same_words_is_refused(tmp_path, capsys):
    same = "Glaciers carve valleys."
    place = systemkit.write_database(tmp_path / "other", {"x1": same, "x2": same}).parent / "toy" / "database"
    assert ingest(tmp_path, {"d1": same, "d2": same}, prebuilt=str(place)) == 2
    assert "holds document 'x1', which is not in the dataset" in capsys.readouterr().err


def test_a_database_that_was_removed_is_made_anew(tmp_path):
    assert ingest(tmp_path) == 0
    shutil.rmtree(tmp_path / "toy" / "database")
    assert ingest(tmp_path) == 0


def test_a_file_where_the_folder_should_be_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "toy").write_text("no folder")
    assert ingest(tmp_path) == 2
    assert "cannot be made (File exists)" in capsys.readouterr().err


def test_documents_that_are_not_there_are_said_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(systemkit, "write_documents", lambda path, texts: path)
    assert ingest(tmp_path) == 2
    assert "documents.jsonl: cannot be read (No such file or directory)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [{"max_failed_documents": -1}, {"batch_documents": 0}, {"document_timeout_s": -3.0}]
)
def test_options_of_the_step_that_cannot_be_are_refused(tmp_path, capsys, option):
    assert ingest(tmp_path, **option) == 2
    assert next(iter(option)) in capsys.readouterr().err


# -- rare words --------------------------------------------------------------------------------------------


def test_a_probe_is_the_longest_word_that_stands_in_one_document_only():
    documents = [
        systemkit.Document(uri="a", title="a", text="Common lantern lanterns"),
        systemkit.Document(uri="b", title="b", text="common COMMON short Zeppelin zebras42 x-raying"),
        systemkit.Document(uri="c", title="c", text="Common"),
        systemkit.Document(uri="d", title="d", path="d.pdf"),
    ]
    assert fulltext.probes(documents) == [Probe("lanterns", "a"), Probe("zeppelin", "b")]


def test_one_word_that_was_cut_to_a_common_stem_is_no_broken_index():
    words = [Probe("one", "a"), Probe("two", "b"), Probe("three", "c")]
    assert fulltext.missed(words, [["a"], ["x"], ["y", "c"]]) == []
    assert fulltext.missed(words, [["a"], [], []]) == [Probe("two", "b"), Probe("three", "c")]


def test_a_document_that_failed_and_is_given_again_is_no_failure_and_progress_never_goes_back():
    batch = [Document(uri=uri, title=uri, text=uri) for uri in ("a", "b")]
    before = Progress(identity="x", n_done=9, failed={"a": "timeout", "c": "no text"})
    found = before.and_then(2, batch, {"b": "refused"})
    assert (found.n_done, found.failed) == (9, {"c": "no text", "b": "refused"})
    assert before.and_then(12, batch, {}).n_done == 12
