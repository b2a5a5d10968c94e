"""What a line of a result file means, in the words of OpenAI's service and of ``vllm run-batch``."""

import json

import pytest

from remeasure.executors.batch_lines import Results, line_of, of_line, results_in
from remeasure.executors.keys import Key
from remeasure.executors.replies import Failure, Outcome, entry_of

NAMES = ("toy", "toy-2026")


def result(response, error=None, custom_id="k") -> bytes:
    return json.dumps({"id": "x", "custom_id": custom_id, "response": response, "error": error}).encode()


def completion(**more) -> dict:
    choice = {"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}
    return {"model": "toy-2026", "choices": [choice], "usage": {"prompt_tokens": 2}} | more


def test_a_request_is_one_line_with_the_key_and_the_body_as_it_is():
    line = line_of("a" * 64, [b'{"model":"m","n":', b"1}"])
    assert line.endswith(b"}\n") and line.count(b"\n") == 1
    assert json.loads(line) == {
        "custom_id": "a" * 64,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "n": 1},
    }


def test_an_answer_keeps_the_body_as_it_came():
    body = completion(extra={"z": 1, "a": 2})
    key, found = of_line(result({"status_code": 200, "request_id": "r", "body": body}), NAMES)
    assert key == "k" and isinstance(found, Outcome)
    assert (found.status, found.text, found.model, found.usage) == (
        "answered",
        "yes",
        "toy-2026",
        {"prompt_tokens": 2},
    )
    assert bytes(found.raw) == json.dumps(body).encode()


@pytest.mark.parametrize(
    ("response", "error", "kind", "message"),
    [
        # OpenAI: an HTTP error in the error file, its body as over HTTP
        ({"status_code": 400, "body": {"error": {"message": "bad"}}}, None, "rejected", "status 400: bad"),
        ({"status_code": 429, "body": {"error": {"message": "no"}}}, None, "rate_limit", "status 429: no"),
        (
            {"status_code": 429, "body": {"error": {"message": "no money", "code": "insufficient_quota"}}},
            None,
            "quota",
            "status 429: no money",
        ),
        # OpenAI: a request that was never run
        (None, {"code": "batch_expired", "message": "too late"}, "expired", "too late"),
        (None, {"code": "batch_cancelled", "message": "stopped"}, "cancelled", "stopped"),
        (None, {"code": "odd", "message": "who knows"}, "server_error", "who knows"),
        # vLLM: an error object inside another, or a text; the body is empty
        (
            {"status_code": 400, "request_id": "r", "body": None},
            {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}},
            "rejected",
            "status 400: too long",
        ),
        ({"status_code": 400, "body": None}, "no stream", "rejected", "status 400: no stream"),
        # vLLM before 0.10
        (
            {"status_code": 500, "body": None},
            {"object": "error", "message": "engine died", "code": 500},
            "server_error",
            "status 500: engine died",
        ),
        # what contradicts itself or says nothing is no answer
        ({"status_code": 200, "body": completion()}, "no", "not_a_completion", "status 200 with an error"),
        ({"status_code": 200, "body": None}, None, "not_a_completion", "JSON without choices"),
        ({"status_code": 200}, None, "not_a_completion", "JSON without choices"),
        ({"status_code": 200, "body": "yes"}, None, "not_a_completion", "JSON without choices"),
        ({"status_code": "200", "body": completion()}, None, "not_a_completion", "a line with neither"),
        ({"status_code": True, "body": completion()}, None, "not_a_completion", "a line with neither"),
        (None, None, "not_a_completion", "a line with neither response nor error"),
        ({"status_code": 200, "body": completion(model="b")}, None, "wrong_model", "asked 'toy', 'b'"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_answer_has_the_class_of_its_failure(response, error, kind, message):
    _, found = of_line(result(response, error), NAMES)
    assert isinstance(found, Failure) and found.kind == kind and found.message.startswith(message)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[1]",
        b'"text"',
        b"{}",
        b'{"custom_id": 7}',
        b'{"custom_id": "k", "response": "text"}',
        b'{"custom_id": "k", "respon',
        b'{"custom_id": "\xff"}',
        b'{"custom_id": "k", "error": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_result_line_is_an_error_of_its_own(line):
    with pytest.raises(ValueError):
        of_line(line, NAMES)


def test_results_are_read_against_what_was_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", "sk-very-secret")
    good = {"status_code": 200, "body": completion()}
    leaky = {"status_code": 400, "body": {"error": {"message": "your key sk-very-secret"}}}
    lines = [
        result(good, custom_id="a"),
        b"",
        b"<html>",
        result(good, custom_id="stranger"),
        result(None, {"code": "batch_expired"}, custom_id="a"),
        result(leaky, custom_id="b"),
    ]
    (tmp_path / "out").write_bytes(b"\n".join(lines))
    results = Results({"a", "b", "c"}, NAMES, Key("TOY_API_KEY"))
    found = dict(results.read(tmp_path / "out"))
    assert list(found) == ["a", "b"] and results.seen == {"a", "b"}
    assert found["a"].text == "yes" and found["b"].message == "status 400: your key [key]"
    assert results.oddities() == (
        "lines that count as no answer: 1 unreadable (first line 3), 1 unasked (first 'stranger'), "
        "1 doubled (first a)"
    )
    assert results_in(tmp_path / "out", {"a", "b", "c"}) == {"a", "b"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", set()),
        (result(None, "x", "a") + b"\n" + result(None, "x", "b"), {"a", "b"}),
        (result(None, "x", "a") + b"\ntorn\n" + result(None, "x", "b") + b"\n\n", {"a", "b"}),
        (result(None, "x", "a") + b"\n" + result(None, "x", "b")[:-9], None),
        (b"<html>Please log in</html>", None),
        (result(None, "x", "stranger"), None),
        (b"\n\n", None),
    ],
)
def test_a_file_that_is_not_whole_is_no_file_of_results(tmp_path, data, expected):
    (tmp_path / "out").write_bytes(data)
    assert results_in(tmp_path / "out", {"a", "b"}) == expected


def test_a_line_without_end_is_passed_over_and_fills_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("remeasure.executors.batch_lines._LONGEST_LINE", 400)
    good = result({"status_code": 200, "body": completion()}, custom_id="a")
    assert len(good) < 399
    (tmp_path / "out").write_bytes(b"x" * 1000 + b"\n" + good + b"\n" + b"y" * 800)
    results = Results({"a"}, NAMES, Key(None))
    assert [key for key, _ in results.read(tmp_path / "out")] == ["a"]
    assert results.oddities() == "lines that count as no answer: 2 unreadable (first line 1)"


def test_a_failure_is_kept_with_its_class():
    failure = Failure(kind="expired", message="too late")
    entry = entry_of("k", "q-1", failure, attempts=3, seconds=1.23456)
    assert (entry.status, entry.text, entry.error) == ("failed", None, "expired: too late")
    assert (entry.custom_id, entry.attempts, entry.seconds) == ("q-1", 3, 1.235)
