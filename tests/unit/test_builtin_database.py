"""The built-in system's database: ingesting, going on after a kill, searching, what it says of itself."""

import asyncio
import json
import time

import pytest

from builtinkit import Servers, Talk, document, vector
from remeasure.systems.builtin.failing import Failed
from remeasure.systems.builtin.system import System

DOCUMENTS = [
    document("r", "A red barn stands on the hill.", "Barn", year="2010"),
    document("g", "Green grass grows.", "Grass", year="2011"),
    document("b", "The blue sea is deep.", "Sea", year="2010"),
]


@pytest.fixture
def servers():
    with Servers() as running:
        yield running


def opening(servers, folder, create=True, model="colours", dim=4, reranker=None, answerer=None, **options):
    return {
        "do": "open",
        "database": str(folder),
        "create": create,
        "embedder": servers.endpoint(model, vector_dim=dim),
        "reranker": reranker,
        "answerer": answerer,
        "options": {"chunk_tokens": 16, **options},
    }


def done(commands, system=None):
    """Carry out commands on one system and return the last result."""

    async def run():
        one = system or System()
        for command in commands:
            reply = await one.do(command)
        return reply

    return asyncio.run(run())


def search(*queries, limit=3, where=None, **more):
    return {"do": "search", "queries": list(queries), "limit": limit, "filter": where, **more}


def filled(servers, folder, documents=DOCUMENTS, **options):
    return [
        opening(servers, folder, **options),
        {"do": "ingest", "documents": documents},
        {"do": "finish"},
    ]


def uris(result, which="found"):
    return [hit["uri"] for hit in result[which]]


def test_documents_become_chunks_that_are_all_indexed(servers, tmp_path):
    long = document("long", "One two three four five six seven eight nine ten. " * 3, "Numbers")
    told = done([*filled(servers, tmp_path / "db"), {"do": "ingest", "documents": [*DOCUMENTS, long]}])
    # 1 token of title leaves 15; two sentences of 11 are too many.
    assert told == {"n_documents": 1, "n_chunks": 3, "failed": []}
    counts = done([opening(servers, tmp_path / "db"), {"do": "finish"}])
    assert counts == {"n_documents": 4, "n_chunks": 6, "n_indexed": 6}


def test_an_unfinished_database_says_so(servers, tmp_path):
    done([*filled(servers, tmp_path / "db"), {"do": "ingest", "documents": [document("n", "New words.")]}])
    counts = done([opening(servers, tmp_path / "db", create=False), {"do": "finish"}])
    assert counts == {"n_documents": 4, "n_chunks": 4, "n_indexed": 3}


def test_what_has_no_text_fails_by_name(servers, tmp_path):
    pdf = {**document("p", ""), "text": None, "path": "p.pdf", "format": "pdf"}
    told = done([opening(servers, tmp_path / "db"), {"do": "ingest", "documents": [pdf, document("e", " ")]}])
    assert told["failed"] == [
        {"uri": "p", "reason": "a file (pdf); the built-in system reads text only"},
        {"uri": "e", "reason": "no text"},
    ]


def test_words_and_vectors_are_fused(servers, tmp_path):
    told = done([*filled(servers, tmp_path / "db"), search("the blue sea")])
    (result,) = told["results"]
    assert uris(result)[0] == "b" and len(uris(result)) == 3
    assert result["found"][0]["score"] == pytest.approx(2 / 61)
    assert result["found"][0]["text"].startswith("Sea\nThe blue sea")


def test_the_full_text_index_can_be_asked_alone(servers, tmp_path):
    told = done([*filled(servers, tmp_path / "db"), search("grass", "nothing-here", mode="text")])
    assert [uris(result) for result in told["results"]] == [["g"], []]
    assert servers.embedded == [["Barn\nA red barn stands on the hill.", "Grass\nGreen grass grows.",
                                 "Sea\nThe blue sea is deep."]]  # fmt: skip


def test_a_filter_holds_for_words_and_vectors(servers, tmp_path):
    where = """metadata LIKE '%"year": "2010"%' AND uri != 'b'"""
    told = done([*filled(servers, tmp_path / "db"), search("red green blue grass", where=where)])
    assert uris(told["results"][0]) == ["r"]


@pytest.mark.parametrize(
    "where",
    ["nix = 3", "uri = 'a", "uri"]
    # What the parser of LanceDB takes for its first part alone.
    + ["uri = 'r'; drop table chunks", "uri = 'r') OR (1 = 1", "uri = 'r' -- more", "uri = 'r' LIMIT 5"],
)
def test_a_bad_filter_is_a_kind_of_failure(servers, tmp_path, where):
    with pytest.raises(Failed) as caught:
        done([*filled(servers, tmp_path / "db"), search("red", where=where)])
    assert caught.value.kind == "bad_filter"


def test_documents_are_counted_by_looking_further(servers, tmp_path):
    long = document("long", "Red red red red red. Red red red red red. " * 4, "Red")
    told = done(
        [
            *filled(servers, tmp_path / "db", [*DOCUMENTS, long], candidates=2),
            search("red red red red", limit=2),
        ]
    )
    (result,) = told["results"]
    assert uris(result) == ["long", "long"]
    assert uris(result, "found_documents") == ["long", "r"]


def test_a_corpus_that_ends_before_the_limit_ends_the_search(servers, tmp_path):
    told = done([*filled(servers, tmp_path / "db"), search("red", limit=10)])
    assert len(uris(told["results"][0], "found_documents")) == 3


def test_a_search_that_fails_fails_alone(servers, tmp_path):
    servers.fail_embedding = "liked"
    told = done([*filled(servers, tmp_path / "db"), search("red", "not liked", "  ")])
    assert uris(told["results"][0])[0] == "r"
    assert told["results"][1]["kind"] == "server_error"
    assert told["results"][1]["error"].startswith("colours /embeddings: status 400")
    assert told["results"][2] == {"kind": "refused", "error": "an empty query"}


def test_a_reranker_sees_ten_candidates_per_hit(servers, tmp_path):
    many = [document(f"d{number:02}", f"red {'x ' * number}") for number in range(14)]
    reranker = servers.endpoint("scorer")
    told = done([*filled(servers, tmp_path / "db", many, reranker=reranker), search("red", limit=1)])
    (asked,) = servers.reranked
    assert asked["query"] == "red" and len(asked["documents"]) == 10
    # The score is the length of the text.
    assert told["results"][0]["found"][0]["score"] == max(map(len, asked["documents"]))


def test_a_reranker_without_a_score_for_each_is_a_failure(servers, tmp_path):
    servers.rerank = lambda body: {"results": [{"index": 0, "relevance_score": 1.0}]}
    command = filled(servers, tmp_path / "db", reranker=servers.endpoint("scorer"))
    told = done([*command, search("red")])
    assert told["results"][0]["error"].startswith("scorer /rerank: not a score for each")


@pytest.mark.parametrize(
    "results",
    [
        [(0, 1.0), (1, 1.0), (1, 5.0), (2, 1.0)],
        [(0, 1.0), (1, 1.0), (2, 1.0), (99, 5.0)],
        [(0, 1.0), (1, 1.0), (2, 10**400)],
    ],
)
def test_scores_of_a_reranker_that_belong_to_nothing_are_a_failure(servers, tmp_path, results):
    told = [{"index": index, "relevance_score": score} for index, score in results]
    servers.rerank = lambda body: {"results": told}
    command = filled(servers, tmp_path / "db", reranker=servers.endpoint("scorer"))
    found = done([*command, search("red")])
    assert found["results"][0]["error"].startswith("scorer /rerank: not a score for each")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(0, [1, 0, 0, 0]), (0, [0, 1, 0, 0])], "their indices are not 0 to 1, each once"),
        ([(1, [1, 0, 0, 0]), (2, [0, 1, 0, 0])], "their indices are not 0 to 1, each once"),
        ([(0, [[1], [0], [0], [0]]), (1, [[1], [0], [0], [0]])], "an embedding of 2 dimensions"),
        ([(0, 4), (1, 4)], "an embedding of 0 dimensions"),
    ],
)
def test_vectors_that_belong_to_no_text_are_a_failure(servers, tmp_path, entries, said):
    data = [{"index": index, "embedding": embedding} for index, embedding in entries]
    servers.embeddings = lambda body: {"data": data}
    given = {"do": "ingest", "documents": DOCUMENTS[:2]}
    with pytest.raises(Failed, match=said) as caught:
        done([opening(servers, tmp_path / "db", create=True), given])
    assert caught.value.kind == "server_error"


def test_vectors_may_come_as_lists_and_longer_than_one(servers, tmp_path):
    servers.as_lists, servers.vector = True, lambda text: [3 * number for number in vector(text)]
    told = done([*filled(servers, tmp_path / "db"), search("red")])
    assert uris(told["results"][0])[0] == "r"


def test_vectors_of_another_length_end_everything(servers, tmp_path):
    with pytest.raises(Failed, match=r"vectors of \[4\] numbers for 3 texts; expected 5") as caught:
        done(filled(servers, tmp_path / "db", dim=5))
    assert caught.value.kind == "fatal"


def test_a_database_says_which_embedder_made_it(servers, tmp_path):
    done(filled(servers, tmp_path / "db"))
    told = done([opening(servers, tmp_path / "db", create=False, model="other", dim=8)])
    assert told["stamp"] == {"model": "colours", "vector_dim": 4, "chunk_tokens": 16}


def test_a_database_of_another_embedder_is_not_gone_on_with(servers, tmp_path):
    done(filled(servers, tmp_path / "db"))
    with pytest.raises(Failed, match='"colours".*now it is to be.*"other"') as caught:
        done([opening(servers, tmp_path / "db", model="other")])
    assert caught.value.kind == "fatal"


def test_a_damaged_database_is_said_in_one_line(servers, tmp_path):
    done(filled(servers, tmp_path / "db"))
    for path in (tmp_path / "db" / "chunks.lance" / "data").iterdir():
        path.write_bytes(b"x" * 100)
    with pytest.raises(Failed, match="delete the folder to make it anew") as caught:
        done([opening(servers, tmp_path / "db", create=False), search("red")])
    assert caught.value.kind == "fatal" and "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_said_in_one_line(servers, tmp_path):
    (tmp_path / "db").write_text("a file")
    with pytest.raises(Failed, match="db: .*delete the folder"):
        done([opening(servers, tmp_path / "db")])


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_that_is_no_database_is_refused(servers, tmp_path, made):
    if made:
        (tmp_path / "db").mkdir()
    with pytest.raises(Failed, match="no database of the built-in system"):
        done([opening(servers, tmp_path / "db", create=False)])


def test_a_database_that_is_read_only_takes_no_documents(servers, tmp_path):
    done(filled(servers, tmp_path / "db"))
    with pytest.raises(Failed, match="open for reading only"):
        done([opening(servers, tmp_path / "db", create=False), {"do": "ingest", "documents": DOCUMENTS}])


def test_a_killed_ingest_is_gone_on_with_and_gives_the_same(servers, tmp_path):
    colours = ("red", "green", "blue", "no")
    documents = [
        document(f"d{number}", f"{colours[number % 4]} word{number} common. " * 4, f"Title {number}")
        for number in range(900)
    ]
    whole = done([*filled(servers, tmp_path / "whole", documents), search("red word7 common", limit=10)])

    talk = Talk()
    assert talk.ask(**opening(servers, tmp_path / "db"))["ok"]
    servers.embedded.clear()
    talk.tell(do="ingest", documents=documents)
    while sum(map(len, servers.embedded)) < 1200:  # of 1800 chunks or so
        time.sleep(0.005)
    talk.process.kill()
    talk.end()

    talk = Talk()
    assert talk.ask(**opening(servers, tmp_path / "db"))["ok"]
    told = talk.ask(do="ingest", documents=documents)
    assert 0 < told["n_documents"] < 900, told
    counts = talk.ask(do="finish")
    assert counts["n_documents"] == 900 and counts["n_chunks"] == counts["n_indexed"]
    found = talk.ask(**search("red word7 common", limit=10))
    assert found["results"] == whole["results"]
    assert talk.end() == 0


def test_the_adapter_answers_line_by_line_and_lives_on(servers, tmp_path):
    talk = Talk()
    assert talk.ask(do="describe", id=7)["versions"]["lancedb"]
    assert talk.ask(do="search", id=8)["error"] == "search: no database is open"
    talk.process.stdin.write(b'nonsense\n[1]\n{"do": "\\ud800"}\n\xff\n{"do": "open"}\n')
    talk.process.stdin.flush()
    replies = [json.loads(talk.process.stdout.readline()) for _ in range(5)]
    assert [reply["kind"] for reply in replies] == ["fatal"] * 5
    assert replies[-1][
        "error"
    ] == "options of the database or of the system: Object missing required field " + (
        "`chunk_tokens`; known: chunk_tokens, candidates, search_limit, max_searches, max_requests, "
        "more_requests; correct `databases` or `models`"
    )
    assert talk.ask(do="open", options={"chunk_tokens": 16})["error"] == "open: 'embedder' is missing"
    assert talk.ask(do="sing", id=9) == {
        "ok": False,
        "id": 9,
        "kind": "fatal",
        "error": "no such command: 'sing'",
    }
    assert talk.ask(do="forget") == {"ok": True}
    assert talk.end() == 0
