"""The HTTP executor against a real server on the loopback address that fails in every way."""

import base64
import threading
import time

import msgspec
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
    given = settings(server, **({"base_url": base_url} if base_url else {}), **more)
    keeper = MemoryKeeper()
    executor = HttpExecutor(given, "toy", root, given.base_url, given.api_key_env)
    executor.run(iter(calls), keeper)
    entries = keeper.entries
    assert len({entry.key for entry in entries}) == len(entries)
    return {entry.custom_id: entry for entry in entries}


def settings(server: Loopback, **more) -> HttpSettings:
    """Settings of a patient test."""
    given = {"base_url": server.base_url, "dialect": "embedded", "concurrency": 4, "timeout_s": 5.0}
    return HttpSettings(**(given | {"base_wait_s": 0.01, "max_wait_s": 0.05} | more))


def one(behaviour, n_times: int | None = None, **more) -> tuple[JournalEntry, Loopback]:
    """Ask once; the server behaves so for the first ``n_times`` calls, always where that is null."""
    with Loopback() as server:
        server.behave = lambda prompt, nth: behaviour if n_times is None or nth <= n_times else "ok"
        return run(server, [call("p")], **more)["p"], server


def test_an_answer_becomes_an_outcome_with_usage_and_the_raw_body():
    entry, server = one("ok")
    assert (entry.status, entry.text, entry.finish, entry.model) == ("answered", "answer to p", "stop", "toy")
    assert entry.usage == {"prompt_tokens": 1, "completion_tokens": 3} and entry.error is None
    assert msgspec.json.decode(entry.raw)["choices"][0]["finish_reason"] == "stop" and entry.attempts == 1
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
        ("html", "html: status 200, but a page instead of JSON, of a proxy perhaps: '<html>", 3),
        ("garbage", "not_json: status 200, but the body is not JSON: '{\"choices\": ['", 3),
        ("status 400", "rejected: status 400: told 400", 1),
        ("status 404", "rejected: status 404: told 404", 1),
        ("status 501", "rejected: status 501: told 501", 1),
        ("status 302", "rejected: status 302: told 302", 1),
        ("no_choices", "not_a_completion", 1),
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


def test_an_endpoint_that_is_not_there_is_one_line_before_anything_is_sent():
    with Loopback() as server:
        gone = server.base_url
    with pytest.raises(RemeasureError, match=f"no endpoint answers: {gone}: .*; start the server"):
        run(server, [call("p")], base_url=gone)


def test_an_outage_is_waited_out_and_uses_up_no_request():
    with Loopback() as server:
        port = server.port
        calls = (call(f"p{n}") for n in range(30))

        def behave(prompt, nth):
            if prompt == "p5":
                server.close_soon()
            return "ok"

        server.behave = behave
        again = Loopback(port=port)
        threading.Timer(1.5, again.__enter__).start()
        entries = run(server, calls, concurrency=2)
    assert {entry.status for entry in entries.values()} == {"answered"} and len(entries) == 30
    assert again.n_calls > 0
    again.__exit__()


def test_an_outage_that_lasts_stops_the_run_and_keeps_what_there_is():
    with Loopback() as server:
        server.behave = lambda prompt, nth: server.close_soon() or "ok" if prompt == "p2" else "ok"
        given = settings(server, concurrency=1, patience_s=1.0)
        keeper = MemoryKeeper()
        with pytest.raises(RemeasureError, match=r"not reachable for \d+ s .*finished answers are kept"):
            HttpExecutor(given, "toy", None, server.base_url).run(
                iter([call(f"p{n}") for n in range(9)]), keeper
            )
    assert {entry.status for entry in keeper.entries} == {"answered"} and len(keeper.entries) >= 2


def test_several_endpoints_share_the_work_and_the_least_loaded_is_first():
    with Loopback(delay_s=0.02) as fast, Loopback(delay_s=0.2) as slow:
        calls = (call(f"p{n}") for n in range(60))
        entries = run(fast, calls, base_url=(fast.base_url, slow.base_url), concurrency=4)
    assert len(entries) == 60 and fast.n_calls + slow.n_calls == 60
    assert fast.n_calls > 3 * slow.n_calls > 0
    assert fast.max_in_flight <= 4 and slow.max_in_flight <= 4


def test_an_endpoint_that_dies_is_taken_out_and_its_requests_go_to_the_other():
    with Loopback(delay_s=0.01) as good, Loopback(delay_s=0.01) as bad:
        bad.behave = lambda prompt, nth: bad.close_soon() or "ok" if bad.n_calls == 5 else "ok"
        calls = (call(f"p{n}") for n in range(60))
        entries = run(good, calls, base_url=(good.base_url, bad.base_url), concurrency=2)
    assert {entry.status for entry in entries.values()} == {"answered"} and len(entries) == 60
    assert bad.n_calls < 10


def test_an_endpoint_that_is_missing_at_the_start_does_not_matter_where_another_answers():
    with Loopback() as gone:
        pass
    with Loopback() as server:
        entries = run(server, [call(f"p{n}") for n in range(5)], base_url=(gone.base_url, server.base_url))
    assert len(entries) == 5 and server.n_calls == 5


def test_a_server_that_is_overloaded_gets_fewer_requests_at_a_time():
    with Loopback(delay_s=0.02) as server:
        server.behave = lambda prompt, nth: "status 503" if server.in_flight > 3 else "ok"
        entries = run(
            server, (call(f"p{n}") for n in range(120)), concurrency=16, attempts=Attempts(server_error=9)
        )
    assert {entry.status for entry in entries.values()} == {"answered"}
    n_refused = server.n_calls - 120
    # 16 at once, halved to 8 and 4; then a probe upwards now and then: far fewer than one refusal per answer.
    assert 13 <= n_refused < 60


def test_the_wait_that_a_server_asks_for_holds_for_all_requests():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 429 0.4" if server.n_calls == 3 else "ok"
        run(server, [call(f"p{n}") for n in range(12)], concurrency=1)
    gaps = [later - sooner for sooner, later in zip(server.times, server.times[1:], strict=False)]
    assert [gap >= 0.39 for gap in gaps].count(True) == 1 and server.n_calls == 13
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 429 0.6" if server.n_calls == 3 else "slow 0.05"
        run(server, [call(f"p{n}") for n in range(12)], concurrency=3)
    # Those that were sent with it arrive, and then nothing does for as long as was asked.
    refused = server.times[2]
    assert not [moment for moment in server.times if refused + 0.1 < moment < refused + 0.58]


def test_requests_per_minute_are_kept_from_the_first_second():
    with Loopback() as server:
        run(server, [call(f"p{n}") for n in range(30)], concurrency=30, requests_per_minute=600)
    # 10 a second, one second's worth at once.
    spent = server.times[-1] - server.times[0]
    assert 1.8 <= spent <= 4.0
    assert sum(moment - server.times[0] < 0.5 for moment in server.times) <= 16


def test_tokens_per_minute_are_guessed_before_and_counted_after():
    with Loopback() as server:
        began = time.monotonic()
        # 1,000 tokens are foreseen for each answer, 20,000 a second are allowed; 6 are counted in the end.
        run(server, [call(f"p{n}", max_tokens=1000) for n in range(40)], tokens_per_minute=1_200_000)
    assert time.monotonic() - began < 2.0 and server.n_calls == 40
    with Loopback() as server:
        began = time.monotonic()
        # 1,000 foreseen each, 1,000 a second, one second ahead; nothing tells what was used in the end.
        server.behave = lambda prompt, nth: "no_usage"
        run(server, [call(f"p{n}", max_tokens=1000) for n in range(4)], tokens_per_minute=60_000)
    assert time.monotonic() - began > 1.9


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("error 429 insufficient_quota", "the quota is spent .status 429: told insufficient_quota."),
        ("status 402", "the quota is spent .status 402: told 402."),
        ("error 404 model_not_found", "wrong model: status 404: told model_not_found; correct `served_name`"),
        ("wrong_model", "wrong model: asked 'toy', 'another' answered; correct `served_name`"),
    ],
)
def test_what_would_fail_for_every_request_stops_the_run_at_once(behaviour, message):
    with Loopback() as server:
        server.behave = lambda prompt, nth: behaviour
        with pytest.raises(RemeasureError, match=message):
            run(server, (call(f"p{n}") for n in range(50)), concurrency=2)
    assert server.n_calls <= 4


def test_what_is_in_flight_when_the_run_stops_is_waited_for_and_kept():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "error 429 insufficient_quota" if prompt == "p0" else "slow 0.3"
        keeper = MemoryKeeper()
        with pytest.raises(RemeasureError, match="quota"):
            HttpExecutor(settings(server, concurrency=5), "toy", None, server.base_url).run(
                (call(f"p{n}") for n in range(50)), keeper
            )
    assert sorted(entry.custom_id for entry in keeper.entries) == ["p1", "p2", "p3", "p4"]
    assert server.n_calls == 5


def test_a_server_of_another_model_is_found_out_before_anything_is_sent():
    with Loopback("toy-instruct") as server, pytest.raises(RemeasureError, match="toy-instruct"):
        run(server, [call("p")])
    assert server.n_calls == 0


def test_twenty_five_failures_in_a_row_are_an_outage_and_stop_the_run():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 400"
        keeper = MemoryKeeper()
        with pytest.raises(
            RemeasureError, match="25 requests failed one after the other, the last .'p24'. with"
        ):
            HttpExecutor(settings(server, concurrency=1), "toy", None, server.base_url).run(
                (call(f"p{n}") for n in range(100)), keeper
            )
    assert len(keeper.entries) == 25


def test_failures_between_answers_are_no_outage():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "ok" if server.n_calls % 20 == 0 else "status 400"
        entries = run(server, [call(f"p{n}") for n in range(60)], concurrency=1)
    assert len(entries) == 60 and [e.status for e in entries.values()].count("failed") == 57


def test_a_redirect_is_not_followed_so_that_a_key_goes_nowhere_else():
    with Loopback() as other, Loopback() as server:
        server.behave = lambda prompt, nth: f"redirect {other.base_url}/chat/completions"
        entry = run(server, [call("p")])["p"]
    assert entry.error.startswith("rejected: status 307") and other.n_calls == 0


def test_a_step_that_has_ended_does_not_wait_for_its_pace():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 401"
        began = time.monotonic()
        with pytest.raises(RemeasureError, match="refuses the key"):
            run(server, [call(f"p{n}") for n in range(20)], concurrency=4, requests_per_minute=6)
    assert time.monotonic() - began < 3


def test_a_reply_that_came_twice_is_not_the_answer_to_the_next_question():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "twice" if prompt == "p3" else "ok"
        # Two a second after the first three: the copy comes while the connection is idle.
        entries = run(server, [call(f"p{n}") for n in range(6)], concurrency=1, requests_per_minute=120)
    assert [entry.text for entry in entries.values()] == [f"answer to p{n}" for n in range(6)]


def test_a_compressed_reply_cannot_fill_memory():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "gzip 100000000"
        entry = run(server, [call("p")])["p"]
    assert entry.status == "failed" and "larger than" in entry.error and entry.raw is None


def test_an_address_that_comes_back_with_another_model_ends_the_step():
    with Loopback() as server:
        port = server.port
        server.behave = lambda prompt, nth: server.close_soon() or "ok" if prompt == "p2" else "ok"
        again = Loopback("another", port=port)
        threading.Timer(0.8, again.__enter__).start()
        with pytest.raises(RemeasureError, match="serves 'another' and not 'toy'"):
            run(server, [call(f"p{n}") for n in range(30)], concurrency=1)
    again.__exit__()
    assert again.n_calls == 0


@pytest.mark.parametrize("key", ["EMPTY", "none", "x", "1"])
def test_a_word_that_stands_for_a_key_changes_no_answer(monkeypatch, key):
    monkeypatch.setenv("TOY_API_KEY", key)
    with Loopback() as server:
        server.behave = lambda prompt, nth: f"say The set is {key}."
        entry = run(server, [call("p")], api_key_env="TOY_API_KEY")["p"]
    assert entry.text == f"The set is {key}."


def test_the_key_is_found_however_json_writes_it(monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", "sk-very/secret&key")
    for written in ("sk-very\\/secret&key", "sk-very/secret\\u0026key", "\\u0073k-very/secret&key"):
        with Loopback() as server:
            server.behave = lambda prompt, nth, written=written: f"raw {written}"
            entry = run(server, [call("p")], api_key_env="TOY_API_KEY")["p"]
        assert entry.status == "answered" and entry.text == "see [key]" and "secret" not in repr(entry)


@pytest.mark.parametrize(
    "value", ["nan", "inf", "1e400", "-5", "Mon, 01 Jan " + "9" * 30 + " 00:00:00 GMT", "\u00b2"]
)
def test_a_wait_that_makes_no_sense_is_no_wait(value):
    assert retry_after_s(value, 0.0) in (None, 0.0)


def test_enough_is_enough():
    with Loopback() as server:
        keeper = MemoryKeeper(enough=lambda: "10 USD spent" if server.n_calls >= 3 else None)
        with pytest.raises(RemeasureError, match="10 USD spent"):
            HttpExecutor(settings(server, concurrency=1), "toy", None, server.base_url).run(
                (call(f"p{n}") for n in range(100)), keeper
            )
    assert server.n_calls == 3 == len(keeper.entries)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_json_that_is_nested_without_end_is_a_failure_and_no_crash(depth):
    entry, _ = one(f"deep {depth}")
    assert entry.status == "failed" and entry.raw is None


def test_requests_that_wait_for_their_next_try_do_not_keep_others_from_being_sent():
    with Loopback() as server:
        server.behave = lambda prompt, nth: "status 500" if prompt in ("p0", "p1") and nth == 1 else "ok"
        calls = (call(f"p{n}") for n in range(20))
        run(server, calls, concurrency=2, base_wait_s=0.5, max_wait_s=0.5)
    # The other 18 are asked while the first two wait.
    assert sum(moment - server.times[0] < 0.4 for moment in server.times) == 20


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
