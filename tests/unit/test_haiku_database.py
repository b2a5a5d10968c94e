"""haiku.rag's adapter and its databases, with the real packages and a scripted server."""

import json
import subprocess

import pytest

from haikukit import DIM, DOCUMENTS, Adapter, Scripted

pytestmark = pytest.mark.haiku

NEAR = {"key_env": None, "timeout_s": 5}


@pytest.fixture()
def server():
    with Scripted() as running:
        yield running


def tokenizer(folder):
    """A tokenizer that knows no word and counts them."""
    folder.mkdir()
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    told = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(told))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))
    return folder


def uris(reply, list_="found"):
    return [[hit["uri"] for hit in result[list_]] for result in reply["results"]]


def test_it_says_what_it_is(adapter, haiku):
    told = adapter("describe")
    assert told["versions"]["haiku.rag-slim"] == haiku.version
    assert told["arms"] == (["search", "rag"] if haiku.merged else ["search", "rag", "analysis"])
    assert told["versions"]["lancedb"] == ("0.39.0" if haiku.merged else "0.34.0")


def test_there_is_no_torch(haiku):
    code = "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('nvidia'))"
    said = subprocess.run([haiku.python, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "None None\n"


def test_documents_are_indexed_only_by_finish_and_skipped_the_second_time(adapter, haiku, server, tmp_path):
    told = adapter.open(server, tmp_path / "db", create=True)
    assert (told["stamp"]["model"], told["stamp"]["vector_dim"]) == ("words", DIM)
    first = adapter("ingest", documents=DOCUMENTS[:2])
    assert first == {"ok": True, "n_documents": 2, "n_chunks": 2, "failed": []}
    second = adapter("ingest", documents=[*DOCUMENTS, DOCUMENTS[0]])
    assert second == {"ok": True, "n_documents": 2, "n_chunks": 5, "failed": []}
    adapter.open(server, tmp_path / "db")
    counted = adapter("finish")
    assert (counted["n_documents"], counted["n_chunks"]) == (4, 7)
    if not haiku.merged:  # the index that searches would use covers nothing yet (card 0.3)
        assert counted["n_indexed"] == 0
    adapter.open(server, tmp_path / "db", create=True)
    assert adapter("finish") == {"ok": True, "n_documents": 4, "n_chunks": 7, "n_indexed": 7}
    assert adapter("ingest", documents=DOCUMENTS)["n_documents"] == 0
    adapter.open(server, tmp_path / "db")
    assert uris(adapter("search", queries=["zebrafish"], limit=2, filter=None, mode="text")) == [["fox"]]


def test_what_a_kill_left_is_used_and_a_document_without_chunks_is_written_again(
    haiku, adapter, server, tmp_path
):
    with Adapter(haiku.python, tmp_path) as killed:
        killed.open(server, tmp_path / "db", create=True)
        killed("ingest", documents=DOCUMENTS[:3])
        killed._process.kill()
    # As when the process dies between the two writes of a document.
    code = (
        "import os, sys, lancedb; t = lancedb.connect(sys.argv[1]).open_table('chunks');"
        # LanceDB's threads can crash an interpreter that ends.
        "t.delete(\"content LIKE 'Paris%'\"); print(t.count_rows(), flush=True); os._exit(0)"
    )
    words = [haiku.python, "-c", code, tmp_path / "db"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "2\n"
    adapter.open(server, tmp_path / "db", create=True)
    assert adapter("ingest", documents=DOCUMENTS)["n_documents"] == 2
    assert adapter("finish") == {"ok": True, "n_documents": 4, "n_chunks": 7, "n_indexed": 7}
    found = adapter("search", queries=["Paris capital of France"], limit=2, filter=None)
    assert uris(found) == [["paris", "berlin"]]


def test_a_document_that_fails_is_listed_and_the_others_are_written(adapter, server, tmp_path):
    server.refuse_text = "Berlin"
    adapter.open(server, tmp_path / "db", create=True)
    empty = {"uri": "empty", "title": "", "text": " \n"}
    file = {"uri": "file", "title": "", "text": None, "path": "x.pdf"}
    told = adapter("ingest", documents=[empty, *DOCUMENTS, file])
    assert (told["n_documents"], told["n_chunks"]) == (3, 6)
    reasons = {each["uri"]: each["reason"] for each in told["failed"]}
    assert reasons["empty"] == "ValueError: there is no text in it"
    assert "own chunking reads texts" in reasons["file"]
    assert "this text is refused" in reasons["berlin"]


def test_an_embedder_that_is_down_is_no_documents_failure(adapter, server, tmp_path):
    gone = NEAR | {"base_url": "http://127.0.0.1:9/v1", "model": "words", "vector_dim": DIM}
    adapter.open(server, tmp_path / "db", create=True, embedder=gone)
    told = adapter("ingest", documents=DOCUMENTS)
    assert (told["ok"], told["kind"]) == (False, "connection")


def test_a_database_of_other_vectors_is_refused_with_both_sides(adapter, server, filled):
    other = NEAR | {"base_url": server.base_url, "model": "large", "vector_dim": 32}
    told = adapter.open(server, filled, embedder=other)
    assert told["kind"] == "fatal"
    assert "'words' with 64 numbers, those of the embedder 'large' have 32" in told["error"]
    # Of the same size it is opened, and says what it is: the workflow compares.
    named = adapter.open(server, filled, embedder=other | {"vector_dim": DIM})
    assert named["stamp"]["model"] == "words"


def test_a_database_that_is_not_there_is_not_made_by_reading(adapter, server, tmp_path):
    told = adapter.open(server, tmp_path / "none")
    assert (told["kind"], (tmp_path / "none").exists()) == ("fatal", False)


def test_reading_writes_nothing(adapter, server, filled):
    before = sorted((path, path.stat().st_mtime_ns) for path in filled.rglob("*"))
    adapter.open(server, filled)
    adapter("search", queries=["capital"], limit=3, filter=None)
    assert adapter("ingest", documents=DOCUMENTS)["kind"] == "fatal"
    adapter("forget")
    assert sorted((path, path.stat().st_mtime_ns) for path in filled.rglob("*")) == before


def test_a_search_counts_chunks_and_documents(adapter, server, filled):
    adapter.open(server, filled)
    told = adapter("search", queries=["snakes eat mice"], limit=3, filter=None)
    assert uris(told) == [["snakes"] * 3]
    ranked = uris(told, "found_documents")[0]
    assert ranked[0] == "snakes" and len(ranked) == len(set(ranked)) == 3
    # First in both lists: 1/61 from each.
    best = adapter("search", queries=["zebrafish"], limit=1, filter=None)["results"][0]["found"][0]
    assert best["uri"] == "fox" and best["score"] == pytest.approx(2 / 61, abs=1e-6)
    assert best["text"].startswith("The quick brown fox")
    assert uris(adapter("search", queries=[""], limit=3, filter=None)) == [[]]


def test_documents_end_where_there_are_no_more(adapter, server, filled):
    adapter.open(server, filled)
    told = adapter("search", queries=["capital"], limit=10, filter=None)
    assert sorted(uris(told, "found_documents")[0]) == ["berlin", "fox", "paris", "snakes"]


def test_a_filter_holds_and_a_bad_one_is_said(adapter, server, filled):
    adapter.open(server, filled)
    clause = "uri IN ('fox', 'snakes')"
    told = adapter("search", queries=["capital of France"], limit=9, filter=clause)
    assert set(uris(told)[0]) == {"fox", "snakes"}
    assert uris(adapter("search", queries=["x"], limit=9, filter="uri = 'none'")) == [[]]
    # The parser of LanceDB would take the first part of the last ones alone.
    for clause in ("nonsense ((", "nix = 1", "uri = 'fox' LIMIT 5", "uri = 'fox') OR (1 = 1"):
        bad = adapter("search", queries=["x"], limit=9, filter=clause)
        assert bad["kind"] == "bad_filter"
        assert f"filter {clause!r} is no condition" in bad["error"]
    assert adapter("search", queries=["x"], limit=9, filter="colour = 'red'")["kind"] == "bad_filter"


def test_one_failed_search_is_its_own_but_no_embedder_is_everyones(adapter, server, filled):
    adapter.open(server, filled)
    server.refuse_text = "bad"
    told = adapter("search", queries=["bad words", "capital of France"], limit=1, filter=None)
    assert "this text is refused" in told["results"][0]["error"]
    assert uris({"results": told["results"][1:]}) == [["paris"]]
    server.status["/v1/embeddings"] = (401, "no such key")
    assert adapter("search", queries=["x"], limit=1, filter=None)["kind"] == "fatal"


def test_a_reranker_sees_ten_times_the_limit(adapter, server, filled):
    near = NEAR | {"base_url": server.base_url, "model": "r"}
    adapter.open(server, filled, reranker=near)
    told = adapter("search", queries=["a big city in France"], limit=1, filter=None)
    assert len(server.reranked[0]["documents"]) == 7
    # "a", "big", "city" of Berlin's words.
    assert (uris(told), told["results"][0]["found"][0]["score"]) == ([["berlin"]], 3.0)
    server.status["/v1/rerank"] = (500, "boom")
    failed = adapter("search", queries=["x"], limit=1, filter=None)
    assert "500" in failed["results"][0]["error"]


def test_keys_go_only_where_they_belong(keyed, server, tmp_path):
    keyed.open(server, tmp_path / "db", create=True)
    keyed("ingest", documents=DOCUMENTS[:1])
    near = NEAR | {"base_url": server.base_url, "model": "words", "vector_dim": DIM, "key_env": "TOLD"}
    keyed.open(server, tmp_path / "db", embedder=near)
    keyed("search", queries=["x"], limit=1, filter=None)
    server.status["/v1/embeddings"] = (400, "key sk-told is odd")
    told = keyed("search", queries=["x"], limit=1, filter=None)
    assert "sk-told" not in json.dumps(told)
    lost = keyed.open(server, tmp_path / "db", embedder=near | {"key_env": "UNSET"})
    assert lost["error"].startswith("variable UNSET is not set")
    sent = [each["authorization"] for each in server.headers if each["path"] == "/v1/embeddings"]
    assert sent[:2] == ["Bearer none", "Bearer sk-told"]


def test_docling_cuts_markdown_with_a_tokenizer_from_disk_and_fetches_nothing(adapter, server, tmp_path):
    options = {"chunking": "docling", "chunk_tokens": 64, "tokenizer": str(tokenizer(tmp_path / "words"))}
    adapter.open(server, tmp_path / "db", create=True, options=options)
    picture = f"![a picture]({server.base_url}/picture.png)"
    documents = [
        {"uri": "table", "title": "T", "text": f"# Head\n\nText. {picture}\n\n|a|b|\n|-|-|\n|1|2|\n"},
        {"uri": "address", "title": "A", "text": f"{server.base_url}/page.html"},
        {"uri": "plain", "title": "P", "text": "# no heading", "format": "text"},
    ]
    told = adapter("ingest", documents=documents)
    assert (told["failed"], told["n_documents"], told["n_chunks"]) == ([], 3, 3)
    assert {each["path"] for each in server.headers} == {"/v1/embeddings"}
    assert server.embedded[0][0].startswith("Head\nText.")
    adapter.open(server, tmp_path / "other", create=True, options=options | {"tokenizer": "not/there"})
    assert "expected a folder that is there" in adapter("ingest", documents=documents)["error"]


def test_settings_of_somebody_else_in_its_folder_are_not_read(keyed, server, tmp_path):
    assert keyed.open(server, tmp_path / "db", create=True)["stamp"]["model"] == "words"
