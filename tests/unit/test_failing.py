"""Classes of failures: from what servers say word by word to what a table calls it (MRareBench card, 11)."""

import json
import time

import pytest

from remeasure import failing, thinking
from remeasure.executors.replies import Failure, Outcome, entry_of, of_http
from remeasure.imports import vlmevalkit
from remeasure.records import Response

# As the servers write them: vLLM 0.32 (recorded in tests/data/vllm) and others, OpenAI, llama.cpp before and
# after it told its own type, nginx.
VLLM = (
    "This model's maximum context length is 512 tokens. However, your prompt contains at least 513 input "
    "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
    "prompt. (parameter=input_tokens, value=513)"
)
VLLM_IMAGES = (
    "The decoder prompt (length 8357) is longer than the maximum model length of 8192. Make sure that "
    "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens."
)
VLLM_ONLY = (
    "You passed 1025 input tokens and requested 16 output tokens. However, the model's context length is "
    "only 1024 tokens"
)
OPENAI = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. "
    "Please reduce the length of the messages."
)
OPENAI_NEW = (
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens."
)
LLAMA = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)
LLAMA_NEW = "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it"
NGINX = b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body></body>\r\n</html>\r\n"


def body(message, **more):
    return json.dumps({"error": {"message": message} | more}).encode()


def response(status, text=None, error=None):
    return Response(custom_id="q1", key="k", status=status, text=text, error=error)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (413, NGINX, "payload_too_large"),
        (413, body("Request body too large"), "payload_too_large"),
        (400, body(VLLM, type="BadRequestError", code=400), "context_overflow"),
        (400, body(VLLM_IMAGES, type="BadRequestError", code=400), "context_overflow"),
        (400, body(VLLM_ONLY, type="BadRequestError", code=400), "context_overflow"),
        (400, body(OPENAI, type="invalid_request_error", code="context_length_exceeded"), "context_overflow"),
        (400, body("Too long.", code="context_length_exceeded"), "context_overflow"),
        (400, body(OPENAI_NEW, type="invalid_request_error"), "context_overflow"),
        (400, body(LLAMA, code=400, type="invalid_request_error"), "context_overflow"),
        (400, body(LLAMA_NEW, code=400, type="exceed_context_size_error"), "context_overflow"),
        # llama.cpp before it became 400: asking five times would not make it shorter.
        (500, body(LLAMA, code=500, type="exceed_context_size_error"), "context_overflow"),
        (400, body("At most 2 image(s) may be provided in one prompt."), "rejected"),
        (400, body("top_p must be in (0, 1]"), "rejected"),
        # Words about a context alone are no overflow, and nor are they behind a status that passes.
        (400, body("context must be a string"), "rejected"),
        (503, body(VLLM), "server_error"),
        (400, body("odd", code=["context_length_exceeded"], type={}), "rejected"),
    ],
)
def test_a_request_that_is_too_large_has_a_class_of_its_own(status, said, kind):
    found = of_http(status, {}, said, ("m",))
    assert isinstance(found, Failure)
    assert (found.kind, found.status) == (kind, status)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (413, NGINX, "payload_too_large"),
        (400, body(VLLM), "context_overflow"),
        (400, body("bad"), "http_4xx"),
        (404, body("no such path"), "http_4xx"),
        (401, body("no such key"), "http_4xx"),
        (408, b"", "http_4xx"),
        (429, body("slow down"), "rate_limit"),
        (500, body("oops"), "http_5xx"),
        (501, body("cannot"), "http_5xx"),
        (307, b"", "bad_reply"),
        (402, body("pay"), "quota"),
        (200, b"", "empty"),
        (200, b"<html>busy</html>", "bad_reply"),
        (200, b"not json", "bad_reply"),
        (200, b"{}", "bad_reply"),
        (200, json.dumps({"choices": [{"message": {}, "finish_reason": "stop"}]}).encode(), "empty"),
    ],
)
def test_what_a_server_says_ends_as_a_class_of_the_table(status, said, kind):
    entry = entry_of("k", "q1", of_http(status, {}, said, ("m",)), attempts=1, seconds=0.0)
    assert failing.kind_of(response(entry.status, entry.text, entry.error)) == kind


def test_an_answer_that_a_filter_kept_back_is_refused():
    for found in (
        of_http(400, {}, body("no", code="content_policy_violation"), ("m",)),
        of_http(
            200,
            {},
            json.dumps(
                {"choices": [{"message": {"content": "I"}, "finish_reason": "content_filter"}]}
            ).encode(),
            ("m",),
        ),
    ):
        assert isinstance(found, Outcome)
        assert failing.kind_of(response(found.status, found.text, found.error)) == "refused"


@pytest.mark.parametrize(
    ("status", "text", "error", "kind"),
    [
        ("answered", "1. Fabry disease", None, None),
        ("answered", "", None, "empty"),
        ("answered", " \n", None, "empty"),
        ("answered", "<think>it may be Fabry</think>\n", None, "empty"),
        ("answered", "it may be Fabry</THINKING> ", None, "empty"),
        ("answered", "<Thinking>a</thinking>\n1. Fabry", None, None),
        ("answered", "it may be Fabry</think>1. Fabry", None, None),
        # Thinking that never ends is no answer, whatever stands before it (card, 4 and 9).
        ("answered", "<think>1. Fabry", None, "unfinished"),
        ("answered", "1. Fabry\n<THINKING>or not", None, "unfinished"),
        ("answered", "<think>a</think>b<think>", None, "unfinished"),
        ("cut_off", "<think>1. Fabry", "cut_off: 8192 tokens", "truncated"),
        # The toolkit's sentence as an answer (card, 11); the words alone are said by people too.
        ("answered", "Failed to obtain answer via API.", None, "marker"),
        ("answered", "\n Failed to obtain answer via API", None, "marker"),
        ("answered", "<think>a</think>Failed to obtain answer via API. 500", None, "marker"),
        ("answered", "Failed to obtain answer, sorry", None, None),
        ("answered", "1. Fabry. Failed to obtain answer via API.", None, None),
        ("cut_off", "1. Fabry", "cut_off: 8192 tokens", "truncated"),
        ("refused", None, "refused: content filter", "refused"),
        ("not_sent", None, "not_sent", "missing"),
        ("failed", None, "timeout: no reply within 60 s", "timeout"),
        ("failed", None, "connection: ClientConnectorError", "connection"),
        ("failed", None, "cut_stream: the reply ended before its end", "connection"),
        ("failed", None, "missing: vllm run-batch has written no line for the request", "missing"),
        ("failed", None, "expired: This request could not be executed", "timeout"),
        ("failed", None, "cancelled: no reason given", "missing"),
        ("failed", None, "wrong_model: asked 'a', 'b' answered", "wrong_model"),
        ("failed", None, "rejected: the reply is larger than 16777216 bytes", "bad_reply"),
        # What was kept before these had classes of their own.
        ("failed", None, "rejected: status 413: Request Entity Too Large", "payload_too_large"),
        ("failed", None, f"rejected: status 400: {VLLM}"[:300], "context_overflow"),
        # Imports: VLMEvalKit's marker, PixelRAG's exceptions and bare words, haiku.rag's cases.
        ("failed", "Failed to obtain answer via API.", "marker: Failed to obtain answer via API.", "marker"),
        ("failed", None, "empty: empty cell (a spreadsheet cannot tell an empty answer ...)", "empty"),
        ("failed", None, "APITimeoutError: Request timed out.", "timeout"),
        (
            "failed",
            None,
            f"BadRequestError: Error code: 400 - {{'message': \"{OPENAI}\"}}",
            "context_overflow",
        ),
        ("failed", None, "BadRequestError: Error code: 400 - {'message': 'bad'}", "http_4xx"),
        ("failed", None, "Error code: 503 - {'message': 'busy'}", "http_5xx"),
        ("failed", None, "no_retrieval", "no_retrieval"),
        ("failed", None, "raised: KeyError", "raised"),
        # Nobody knows this class: it stays; and what is no name is none.
        ("failed", None, "GpuOnFire: 900 degrees", "GpuOnFire"),
        ("failed", None, "<script>alert(1)</script>: x", "other"),
        ("failed", None, "a sentence that somebody wrote", "other"),
        ("failed", None, "x" * 5000, "other"),
        ("failed", None, None, "other"),
        ("failed", None, ": : status 503", "http_5xx"),
    ],
)
def test_a_response_has_the_class_of_what_became_of_it(status, text, error, kind):
    assert failing.kind_of(response(status, text, error)) == kind


def test_a_table_that_was_imported_and_a_server_agree_on_what_is_no_answer(tmp_path):
    """The same texts, once in a prediction table of VLMEvalKit, once from an endpoint."""
    texts = ["Failed to obtain answer via API.", "<think>1. Fabry", "<think>a</think>", "1. Fabry"]
    path = tmp_path / "m_MRareBench_Diagnosis.json"
    path.write_text(json.dumps([{"index": str(n), "prediction": text} for n, text in enumerate(texts)]))
    imported = [failing.kind_of(response(one.status, one.text, one.error)) for one in vlmevalkit.read(path)]
    said = []
    for text in texts:
        reply = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "m"}
        found = of_http(200, {}, json.dumps(reply).encode(), ("m",))
        entry = entry_of("k", "q1", found, attempts=1, seconds=0.0)
        said.append(failing.kind_of(response(entry.status, entry.text, entry.error)))
    assert imported == said == ["marker", "unfinished", "empty", None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. A", ("1. A", True, False)),
        ("<think>x</think>A", ("A", True, True)),
        ("x</Think>A", ("A", True, True)),
        ("<THINKING>x</THINKING> ", (" ", True, True)),
        ("<think>\n</think>A", ("A", True, False)),
        ("</think>A", ("A", True, False)),
        ("A<think>x", ("", False, True)),
        ("x</think>A<thinking>", ("", False, True)),
        ("<think><think>x</think>A", ("A", True, True)),
        ("think>A", ("think>A", True, False)),
        ("", ("", True, False)),
    ],
)
def test_an_answer_stands_behind_the_last_thinking(text, expected):
    assert tuple(thinking.behind(text)) == expected


def test_a_megabyte_of_tags_is_parted_at_once():
    started = time.process_time()
    assert thinking.behind("<think>" * 150_000).ends is False
    assert thinking.behind("</think>" * 150_000 + "A").text == "A"
    assert time.process_time() - started < 5


def test_classes_stand_in_the_order_of_the_list_and_unknown_ones_behind():
    kinds = ["zeta", "unfinished", "truncated", "timeout", "alpha", "timeout"]
    assert failing.in_order(kinds) == ["timeout", "truncated", "unfinished", "alpha", "zeta"]


def test_the_reader_and_the_judge_fail_apart():
    answer = response("answered", "1. Fabry")
    lost = response("failed", None, "timeout: no reply within 60 s")
    assert list(failing.failed("q1", answer, None)) == []
    found = [(one.role, one.kind, one.error) for one in failing.failed("q1", lost, None)]
    assert found == [("reader", "timeout", "timeout: no reply within 60 s")]
    found = [(one.role, one.kind) for one in failing.failed("q1", answer, lost)]
    assert found == [("judge", "timeout")]
