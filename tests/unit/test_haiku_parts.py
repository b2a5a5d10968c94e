"""haiku.rag's adapter without haiku.rag: chunks, configuration, failures, the loop."""

import asyncio
import io
import json
import os
from types import SimpleNamespace

import pytest

from remeasure.systems.haiku import configuration, failures, searching, serving
from remeasure.systems.haiku.chunking import chunks_of
from remeasure.systems.haiku.failures import Failed

EMBEDDER = {"base_url": "http://h:1/v1", "model": "e", "key_env": None, "vector_dim": 8}
ANSWERER = {"base_url": "http://h:2/v1", "model": "a", "key_env": None, "dialect": "vllm"}


def values(options=None, **words):
    endpoints = {"embedder": EMBEDDER, "answerer": ANSWERER, "reranker": None} | words.pop("endpoints", {})
    return configuration.config_values(endpoints, options or {}, **words)


def test_a_short_text_is_one_chunk():
    assert chunks_of("  One two. Three. ", 10) == ["One two. Three."]


def test_a_text_of_white_space_has_no_chunk():
    assert chunks_of(" \n\t ", 10) == []
    assert chunks_of("", 10) == []


def test_a_chunk_ends_with_the_last_sentence_of_its_second_half():
    # 8 tokens: a b c . d e f . of which the second sentence ends at the last.
    assert chunks_of("a b c. d e f. g h", 8) == ["a b c. d e f.", "g h"]
    # 7 tokens: the first sentence ends at the fourth, the middle one.
    assert chunks_of("a b c. d e f. g h", 7) == ["a b c.", "d e f. g h"]


def test_a_chunk_without_the_end_of_a_sentence_is_cut_after_its_last_token():
    assert chunks_of("a b c d e", 2) == ["a b", "c d", "e"]


def test_an_end_of_a_sentence_in_the_first_half_does_not_cut():
    assert chunks_of("a. b c d e f g", 6) == ["a. b c d e", "f g"]


def test_a_run_without_spaces_is_one_token_however_long():
    assert chunks_of("x" * 5000 + " y", 1) == ["x" * 5000, "y"]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 50])
def test_no_character_but_white_space_is_lost(most):
    text = "Ünïcode 12.5% (of $3,000)!\nNext line — dash. 漢字かな。\tTab\u00a0space. End"
    pieces = chunks_of(text, most)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_the_smallest_configuration_is_that_of_the_card():
    found = values(words={"temperature": 0.3, "max_tokens": 99, "thinking": None})
    assert found["embeddings"]["model"] == {
        "provider": "openai",
        "name": "e",
        "vector_dim": 8,
        "base_url": "http://h:1/v1",
        "multimodal": False,
    }
    assert found["reranking"] == {"model": None}
    assert found["storage"] == {"auto_vacuum": False}
    assert found["processing"]["pictures"] == "none"
    assert found["processing"]["conversion_options"] == {"fetch_remote_images": False}
    assert found["qa"]["model"] == {
        "provider": "openai",
        "name": "a",
        "base_url": "http://h:2/v1",
        "temperature": 0.3,
        "max_tokens": 99,
        "vision": False,
        "extra_body": None,
    }
    assert found["prompts"] == {"domain_preamble": ""}


def test_a_reranker_is_named_without_v1_and_may_have_no_key():
    near = {"base_url": "http://h:3/v1/", "model": "r", "key_env": None}
    found = values(endpoints={"reranker": near})
    assert found["reranking"]["model"] == {"provider": "vllm", "name": "r", "base_url": "http://h:3"}
    with pytest.raises(Failed, match="sends no key to a reranker"):
        values(endpoints={"reranker": near | {"key_env": "X"}})


def test_thinking_goes_where_the_endpoint_has_its_switch_and_further_words_into_the_body():
    found = values({"extra_body": {"chat_template_kwargs": {"reasoning_strength": "high"}}},
                   words={"thinking": True, "top_p": 0.9, "seed": None})  # fmt: skip
    assert found["qa"]["model"]["extra_body"] == {
        "chat_template_kwargs": {"reasoning_strength": "high", "enable_thinking": True},
        "top_p": 0.9,
    }
    with pytest.raises(Failed, match="no switch for thinking"):
        values(endpoints={"answerer": ANSWERER | {"dialect": "openai"}}, words={"thinking": False})


def test_budgets_go_where_the_version_has_them():
    options = {"max_searches": 2, "max_executions": 3, "search_limit": 4, "context_chars": 5}
    old, new = values(options), values(options, merged_code=True)
    assert (old["qa"]["max_searches"], old["analysis"]) == (2, {"max_executions": 3})
    assert (new["qa"]["max_executions"], "analysis" in new) == (3, False)
    assert old["search"] == {"limit": 4, "max_context_chars": 5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunkng": "own"}, "option 'chunkng' is unknown to haiku_rag; known: chunking,"),
        ({"chunking": "mine"}, "option chunking: 'mine'; expected own or docling"),
        ({"config": {"storage": {"auto_vacuum": True}}}, "option config.storage is decided elsewhere"),
        ({"config": {"providers": {"docling_serve": {"api_key": "x"}}}}, "keys come from variables"),
    ],
)
def test_options_that_are_none_are_refused(options, said):
    with pytest.raises(Failed, match=said):
        configuration.check_options(options)


def test_a_key_is_sent_only_to_its_own_endpoint(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-user's")
    monkeypatch.setenv("TOLD", "k-1")
    with configuration.sending_key({"base_url": "u", "key_env": "TOLD"}):
        assert os.environ["OPENAI_API_KEY"] == "k-1"
    with configuration.sending_key(EMBEDDER):
        assert os.environ["OPENAI_API_KEY"] == "none"
    assert os.environ["OPENAI_API_KEY"] == "none"
    with (
        pytest.raises(Failed, match="variable UNSET is not set"),
        configuration.sending_key({"base_url": "u", "key_env": "UNSET"}),
    ):
        pass


def test_an_error_is_one_line_and_not_long():
    assert failures.one_line("a\n  b  c") == "a b c"
    assert len(failures.one_line("x" * 2000)) == 500
    assert failures.one_line(ValueError()) == "ValueError"


def test_a_line_that_is_no_command_is_answered_and_the_loop_goes_on(monkeypatch):
    for name in ("OPENAI_API_KEY", "HAIKU_RAG_CONFIG_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "")
    for name in ("LOGFIRE_IGNORE_NO_CONFIG", "LOGFIRE_SEND_TO_LOGFIRE", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "")
    lines = [b"{bad", b"[1]", b'{"do": "sing", "id": 7}', b'{"do": "search", "id": 8, "limit": 1}', b"\xff"]
    out = io.BytesIO()
    assert serving.serve(io.BytesIO(b"\n".join(lines) + b"\n"), out) == 0
    replies = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [reply["kind"] for reply in replies] == ["fatal"] * 5
    assert replies[2]["id"] == 7 and "'sing' is unknown; known: describe, open" in replies[2]["error"]
    assert replies[3]["error"] == "no database is open; send `open` first"


def test_halves_of_characters_do_not_break_a_line():
    assert serving.written({"text": "a\ud800b"}) == b'{"text": "a?b"}\n'


def test_a_key_never_stands_in_a_reply():
    reply = {"results": [{"error": 'bad key k"1'}]}
    assert serving.written(reply, ('k"1',)) == b'{"results": [{"error": "bad key (key)"}]}\n'


def test_the_preamble_of_the_domain_goes_with_the_instructions_to_the_letter():
    # haiku.rag puts it before its own instructions; its files end with a line end, which stays.
    assert values(preamble="Search first.\n")["prompts"] == {"domain_preamble": "Search first.\n"}
    assert values()["prompts"] == {"domain_preamble": ""}


class Library:
    """Searches a list of chunks."""

    def __init__(self, uris):
        self.hits = [
            SimpleNamespace(document_uri=uri, chunk_id=str(n), score=1.0 / (n + 1), content=f"{uri} {n}")
            for n, uri in enumerate(uris)
        ]
        self.limits = []

    async def search(self, *, query, limit, search_type, filter, include_images):
        self.limits.append(limit)
        return self.hits[:limit]


def test_documents_are_looked_for_further_down_and_their_best_chunks_stand_first():
    library = Library("aaab" + "bcdefgh")
    found = asyncio.run(searching.one_search(library, "x", 3, None, "hybrid"))
    assert [hit["chunk"] for hit in found["found"]] == ["0", "1", "2"]
    # Six chunks give a, b and c; each document with its first chunk.
    assert [(hit["uri"], hit["chunk"]) for hit in found["found_documents"]] == [
        ("a", "0"),
        ("b", "3"),
        ("c", "5"),
    ]
    assert library.limits == [3, 6]
    wide = Library("aabcdefgh")
    found = asyncio.run(searching.one_search(wide, "x", 2, None, "hybrid"))
    assert [hit["uri"] for hit in found["found_documents"]] == ["a", "b"]
