"""The HTTP executor against a real server on the loopback address that fails in every way."""

import base64
import time

import pytest

from keeper import MemoryKeeper
from loopback import Loopback
from remeasure import images
from remeasure.errors import RemeasureError
from remeasure.executors import Attempts, Call, HttpSettings
from remeasure.executors.http import HttpExecutor, wait_s
from remeasure.executors.replies import Failure, of_completion, of_http, retry_after_s
from remeasure.files import sha256_bytes
from remeasure.records import ImageRef, JournalEntry

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff" + b"pixels"


def call(prompt: str, **more) -> Call:
    body = {"model": "toy-slug", "messages": [{"role": "user", "content": prompt}], "max_tokens": 5} | more
    return Call(key=sha256_bytes(prompt.encode()), custom_id=prompt.replace(" ", "_"), body=body)


def run(server: Loopback, calls, root=None, base_url=None, **more) -> dict[str, JournalEntry]:
    settings = {
        "base_url": base_url or server.base_url,
        "dialect": "embedded",
        "concurrency": 4,
        "timeout_s": 5.0,
        "base_wait_s": 0.01,
        "max_wait_s": 0.05,
    }
    given = HttpSettings(**(settings | more))
    keeper = MemoryKeeper()
    executor = HttpExecutor(given, "toy", root, given.base_url, given.api_key_env)
    executor.run(iter(calls), keeper)
    entries = keeper.entries
    assert len({entry.key for entry in entries}) == len(entries)
    return {entry.custom_id: entry for entry in entries}


def one(behaviour, n_times: int | None = None, **more) -> tuple[JournalEntry, Loopback]:
    """Ask once; the server behaves so for the first ``n_times`` calls, always where that is null."""
    with Loopback() as server:
        server.behave = lambda prompt, nth: behaviour if n_times is None or nth <= n_times else "ok"
        return run(server, [call("p")], **more)["p"], server


def test_an_answer_becomes_an_outcome_with_usage_and_the_raw_body():
    entry, server = one("ok")
    assert (entry.status, entry.text, entry.finish, entry.model) == ("answered", "answer to p", "stop", "toy")
    assert entry.usage == {"prompt_tokens": 1, "completion_tokens": 3} and entry.error is None
    assert entry.raw["choices"][0]["finish_reason"] == "stop" and entry.attempts == 1
    assert server.bodies == [
        {"model": "toy", "messages": [{"role": "user", "content": "p"}], "max_tokens": 5}
    ]


@pytest.mark.parametrize(
    ("behaviour", "kind", "n_sent"),
    [
        ("status 500", "server_error: status 500: told 500", 5),
        ("status 429", "rate_limit: status 429: told 429", 8),
        ("reset", "connection: ClientOSError", 6),
        ("cut", "cut_stream: the reply ended before its end", 3),
        ("empty", "empty: status 200 with an empty body", 3),
        ("null", "empty: finish_reason 'stop' without a text", 3),
        ("html", "not_json: status 200, but the body is not JSON: '<html><body>Please", 3),
        ("status 400", "rejected: status 400: told 400", 1),
        ("status 404", "rejected: status 404: told 404", 1),
        ("status 501", "rejected: status 501: told 501", 1),
        ("status 302", "rejected: status 302: told 302", 1),
        ("no_choices", "not_a_completion", 1),
        ("wrong_model", "wrong_model: asked 'toy', 'another' answered", 1),
    ],
)
def test_a_failure_has_its_class_and_its_number_of_sendings(behaviour, kind, n_sent):
    entry, server = one(behaviour)
    assert entry.status == "failed" and entry.text is None
    if behaviour == "reset":  # the connection may be found broken in two ways
        assert entry.error in (kind, "connection: ServerDisconnectedError")
    else:
        assert entry.error.startswith(kind)
    assert entry.attempts == n_sent == server.n_calls


@pytest.mark.parametrize("behaviour", ["status 503", "reset", "cut", "empty", "html", "status 429"])
def test_a_failure_that_passes_is_an_answer_in_the_end(behaviour):
    entry, server = one(behaviour, n_times=2)
    assert entry.status == "answered" and entry.attempts == 3 == server.n_calls


def test_the_clock_of_a_request_starts_when_it_is_sent():
    # 6 requests of 0.2 s, one after the other: later ones wait 1 s in line, longer than the limit.
    with Loopback() as server:
        server.behave = lambda prompt, nth: "slow 0.2"
        entries = run(server, [call(f"p{n}") for n in range(6)], concurrency=1, timeout_s=0.5)
    assert {entry.status for entry in entries.values()} == {"answered"}


def test_a_request_that_hangs_is_a_timeout_and_is_tried_again():
    entry, server = one("hang", n_times=1, timeout_s=0.2)
    assert entry.status == "answered" and server.n_calls == 2
    entry, server = one("hang", timeout_s=0.1, attempts=Attempts(timeout=2))
    assert entry.error == "timeout: no reply within 0.1 s" and server.n_calls == 2


def test_each_class_of_failure_has_its_own_count():
    turns = {1: "cut", 2: "status 500", 3: "cut", 4: "reset"}
    with Loopback() as server:
        server.behave = lambda prompt, nth: turns.get(nth, "ok")
        entry = run(server, [call("p")], attempts=Attempts(cut_stream=3, server_error=2, connection=2))["p"]
    assert entry.status == "answered" and entry.attempts == 5


def test_the_wait_that_a_server_asks_for_is_kept():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 429 0.3" if nth == 1 else "ok"
        run(server, [call("p")])
    assert 0.3 <= server.times[1] - server.times[0] < 1.0


def test_a_server_that_asks_for_an_hour_fails_the_request_at_once():
    began = time.monotonic()
    entry, server = one("status 429 3600")
    assert entry.status == "failed" and server.n_calls == 1 and time.monotonic() - began < 2


def test_retry_after_is_seconds_or_a_date():
    assert retry_after_s("7", 0.0) == 7.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:40 GMT", 40.0) == 60.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:40 GMT", 500.0) == 0.0
    assert retry_after_s("soon", 0.0) is None and retry_after_s(None, 0.0) is None


def test_waits_double_up_to_the_longest_and_differ_a_little():
    failure = Failure(kind="server_error", message="")
    waits = [wait_s(failure, n, "0000" + "a" * 60, 1.0, 5.0) for n in (1, 2, 3, 4)]
    assert waits == [1.0, 2.0, 4.0, 5.0]
    assert wait_s(failure, 1, "ffff" + "a" * 60, 1.0, 5.0) == 1.25


@pytest.mark.parametrize(
    ("behaviour", "status", "text", "error"),
    [
        ("length", "cut_off", "answer to p", "cut_off: 3 tokens"),
        ("filter", "refused", "answer to p", "refused: content filter"),
        ("refusal", "refused", None, "refused: I will not"),
        ("say ", "answered", "", None),
    ],
)
def test_an_outcome_that_is_no_failure_is_not_tried_again(behaviour, status, text, error):
    entry, server = one(behaviour)
    assert (entry.status, entry.text, entry.error) == (status, text, error) and server.n_calls == 1


def test_a_content_filter_that_answers_400_is_a_refusal():
    reply = of_http(400, {}, b'{"error": {"code": "content_filter", "message": "no"}}', ("m",))
    assert reply.status == "refused" and reply.text is None


@pytest.mark.parametrize("finish", [None, "tool_calls"])
def test_a_reply_without_a_regular_end_is_no_answer(finish):
    document = {"choices": [{"message": {"content": "x"}, "finish_reason": finish}]}
    assert of_completion(document, ("m",)).kind == "not_a_completion"


def test_a_name_behind_an_alias_is_right_where_it_is_given():
    document = {"model": "m-2025", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    assert of_completion(document, ("m",)).kind == "wrong_model"
    assert of_completion(document, ("m", "m-2025")).status == "answered"


def test_no_more_requests_than_allowed_are_in_flight():
    with Loopback(delay_s=0.02) as server:
        entries = run(server, (call(f"p{n}") for n in range(40)), concurrency=5)
    assert len(entries) == 40 and server.max_in_flight == 5


def test_calls_are_taken_one_by_one_so_that_memory_stays_flat():
    taken = []

    def calls():
        for n in range(30):
            taken.append(n)
            assert len(taken) - sum(server.finished.values()) <= 4
            yield call(f"p{n}")

    with Loopback(delay_s=0.01) as server:
        assert len(run(server, calls(), concurrency=3)) == 30


def test_images_are_sent_as_bytes_with_their_true_type(tmp_path):
    (tmp_path / "wrong_suffix.png").write_bytes(JPEG)
    images.write_store(tmp_path / "store.zip", [("a.jpg", PNG)])
    refs = [
        ImageRef(sha256=sha256_bytes(JPEG), path="wrong_suffix.png"),
        ImageRef(sha256=sha256_bytes(PNG), path="store.zip", member="a.jpg"),
    ]
    parts = [{"type": "text", "text": "p"}]
    parts += [{"type": "image_url", "image_url": {"url": images.to_url(ref)}} for ref in refs]
    with Loopback() as server:
        entries = run(server, [call("p", messages=[{"role": "user", "content": parts}])], root=tmp_path)
    assert [entry.status for entry in entries.values()] == ["answered"]
    urls = [part["image_url"]["url"] for part in server.bodies[0]["messages"][0]["content"][1:]]
    assert urls == [
        "data:image/jpeg;base64," + base64.b64encode(JPEG).decode(),
        "data:image/png;base64," + base64.b64encode(PNG).decode(),
    ]


def test_a_changed_image_stops_the_run_with_one_line(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    url = images.to_url(ImageRef(sha256="0" * 64, path="a.png"))
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    with Loopback() as server, pytest.raises(RemeasureError, match="a.png: image has SHA-256"):
        run(server, [call("p", messages=[{"role": "user", "content": parts}])], root=tmp_path)
    assert server.n_calls == 0


def test_the_key_is_sent_and_stands_nowhere_else(monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", "sk-very-secret\n")
    with Loopback() as server:
        server.behave = lambda prompt, nth: "echo_key"
        entry = run(server, [call("p")], api_key_env="TOY_API_KEY")["p"]
    assert server.headers[0]["authorization"] == "bearer sk-very-secret"
    assert entry.status == "failed" and "[key]" in entry.error
    assert "secret" not in repr(entry)


def test_a_missing_key_is_one_line_before_anything_is_sent(monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", " ")
    with Loopback() as server, pytest.raises(RemeasureError, match="variable TOY_API_KEY is not set"):
        run(server, [call("p")], api_key_env="TOY_API_KEY")
    assert server.n_calls == 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_the_run_at_once(status):
    with Loopback() as server:
        server.behave = lambda prompt, nth: f"status {status}"
        with pytest.raises(RemeasureError, match="refuses the key .status 40[13]: told 40[13]"):
            run(server, (call(f"p{n}") for n in range(50)), concurrency=2)
    assert server.n_calls <= 4


def test_an_endpoint_that_is_not_there_is_a_connection_failure():
    with Loopback() as server:
        gone = server.base_url
    entry = run(server, [call("p")], base_url=gone, attempts=Attempts(connection=2))["p"]
    assert entry.error == "connection: ClientConnectorError" and entry.attempts == 2


def test_a_failure_of_the_journal_stops_the_run():
    class Full(MemoryKeeper):
        def keep(self, entry):
            raise RemeasureError("disk full")

    given = HttpSettings(base_url="", dialect="embedded", concurrency=2, timeout_s=5)
    with Loopback() as server, pytest.raises(RemeasureError, match="disk full"):
        HttpExecutor(given, "toy", None, server.base_url).run(iter([call("a"), call("b")]), Full())


def test_many_requests_at_once_neither_starve_nor_fail():
    with Loopback(delay_s=0.1, keep=False) as server:
        began = time.monotonic()
        entries = run(server, (call(f"p{n}") for n in range(1000)), concurrency=256, timeout_s=20)
    assert {entry.status for entry in entries.values()} == {"answered"} and len(entries) == 1000
    assert all(entry.attempts == 1 for entry in entries.values())
    assert time.monotonic() - began < 10
