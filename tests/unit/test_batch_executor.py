"""The batch executor against a real service on the loopback address that fails in every way."""

import base64
import json
import logging

import pytest

from keeper import MemoryKeeper
from loopback_batches import STRANGER, BatchLoopback
from remeasure import images, jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import BatchSettings, Call
from remeasure.executors.batch import BatchExecutor
from remeasure.files import sha256_bytes
from remeasure.records import ImageRef, JournalEntry

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
PROMPTS = [f"p{n}" for n in range(10)]


def call(prompt: str, **more) -> Call:
    body = {"model": "toy-slug", "messages": [{"role": "user", "content": prompt}], "max_tokens": 5} | more
    return Call(key=sha256_bytes(prompt.encode()), custom_id=f"q-{prompt}", body=body)


class Desk:
    """A service, a cell's folder, and runs of the executor on it."""

    def __init__(self, service: BatchLoopback, folder) -> None:
        self.service, self.folder, self.journal = service, folder, folder / "journal"

    def run(self, prompts=PROMPTS, keeper=None, calls=None, **more) -> dict[str, JournalEntry]:
        """Run once; return what was kept this time, by prompt."""
        keeper = keeper or MemoryKeeper()
        given = {"base_url": self.service.base_url, "dialect": "embedded", "poll_s": 0.03, "timeout_s": 5.0}
        executor = BatchExecutor(BatchSettings(**(given | more)), "toy", self.folder, self.journal)
        executor.run(iter(calls or map(call, prompts)), keeper)
        assert len({entry.key for entry in keeper.entries}) == len(keeper.entries)
        return {entry.custom_id.removeprefix("q-"): entry for entry in keeper.entries}

    def sizes(self) -> list[int]:
        return [len(lines) for lines in self.service.uploads()]

    def statuses(self) -> list[str]:
        return [part["status"] for part in json.loads((self.journal / "batches.json").read_text())["parts"]]

    def left(self) -> list[str]:
        return [path.name for path in (self.journal / "batches").iterdir()]

    def all_answered_once(self, entries: dict[str, JournalEntry], prompts=PROMPTS) -> bool:
        right = {prompt: f"answer to {prompt}" for prompt in prompts}
        return {prompt: entry.text for prompt, entry in entries.items()} == right and self.paid_once(prompts)

    def paid_once(self, prompts=PROMPTS) -> bool:
        return self.service.handed_in == dict.fromkeys(prompts, 1)


@pytest.fixture
def desk(tmp_path):
    with BatchLoopback() as service:
        yield Desk(service, tmp_path)


def test_every_request_is_handed_in_once_and_its_answer_found_whatever_the_order(desk):
    keeper = MemoryKeeper()
    entries = desk.run(keeper=keeper)
    assert desk.all_answered_once(entries) and desk.sizes() == [10]
    entry = entries["p3"]
    assert (entry.status, entry.finish, entry.model, entry.attempts) == ("answered", "stop", "toy", 1)
    assert entry.usage == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert entry.error is None and json.loads(bytes(entry.raw))["choices"][0]["index"] == 0
    assert keeper.n_sent == dict.fromkeys(map(lambda prompt: call(prompt).key, PROMPTS), 1)


def test_a_line_is_in_the_words_of_the_service_under_the_answers_key(desk):
    desk.run(["p"], calls=[call("p", temperature=0.5)], dialect="openai")
    assert desk.service.uploads() == [
        [
            {
                "custom_id": sha256_bytes(b"p"),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {
                    "model": "toy",
                    "messages": [{"role": "user", "content": "p"}],
                    "max_completion_tokens": 5,
                    "temperature": 0.5,
                },
            }
        ]
    ]


def test_files_are_split_by_requests_and_only_so_many_batches_are_open(desk):
    entries = desk.run(max_requests=3, max_open=2)
    assert desk.all_answered_once(entries) and desk.sizes() == [3, 3, 3, 1]
    assert desk.service.max_open == 2


def test_files_are_split_by_bytes(desk):
    # A line of such a request has 208 bytes: key 64, text of the line 144.
    entries = desk.run(max_bytes=208 * 4 + 207)
    assert desk.all_answered_once(entries) and desk.sizes() == [4, 4, 2]
    assert [file["bytes"] for file in desk.service.files.values()][:3] == [832, 832, 416]


def test_a_request_that_fits_into_no_file_fails_alone(desk):
    entries = desk.run(["p0", "x" * 300, "p1"], max_bytes=300)
    assert desk.paid_once(["p0", "p1"])
    failed = entries["x" * 300]
    assert failed.status == "failed" and failed.attempts == 0
    assert failed.error == "too_large: 506 bytes with its images, a batch file takes 300"


def test_images_are_sent_as_bytes(desk, tmp_path):
    (tmp_path / "a.jpg").write_bytes(PNG)
    images.write_store(tmp_path / "store.zip", [("b.png", PNG)])
    refs = [
        ImageRef(sha256=sha256_bytes(PNG), path="a.jpg"),
        ImageRef(sha256=sha256_bytes(PNG), path="store.zip", member="b.png"),
    ]
    parts = [{"type": "image_url", "image_url": {"url": images.to_url(ref)}} for ref in refs]
    content = [{"type": "text", "text": "p"}, *parts]
    assert desk.run(calls=[call("p", messages=[{"role": "user", "content": content}])])["p"].text
    sent = desk.service.uploads()[0][0]["body"]["messages"][0]["content"][1:]
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert sent == [{"type": "image_url", "image_url": {"url": url}}] * 2


def test_a_changed_image_stops_the_run_before_anything_is_handed_in(desk, tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    url = images.to_url(ImageRef(sha256="0" * 64, path="a.png"))
    content = [{"type": "image_url", "image_url": {"url": url}}]
    with pytest.raises(RemeasureError, match="a.png: image has SHA-256"):
        desk.run(calls=[call("p", messages=[{"role": "user", "content": content}])])
    assert not desk.service.calls and desk.left() == ["lock"]


@pytest.mark.parametrize(
    ("behaviour", "error", "n_times"),
    [
        ("status 429", "rate_limit: status 429: told 429", 3),
        ("status 500", "server_error: status 500: told 500", 3),
        ("silent", "missing: the batch has no line for the request", 3),
        ("status 400", "rejected: status 400: told 400", 1),
        ("status 403", "auth: status 403: told 403", 1),
        ("wrong_model", "wrong_model: asked 'toy', 'another' answered", 1),
    ],
)
def test_only_a_failure_that_passes_is_handed_in_again_and_not_for_ever(desk, behaviour, error, n_times):
    desk.service.behave = lambda prompt, nth: behaviour if prompt == "p3" else "ok"
    entries = desk.run()
    assert (entries["p3"].status, entries["p3"].error) == ("failed", error)
    assert entries["p3"].attempts == n_times and desk.sizes() == [10, 1, 1][:n_times]
    assert desk.service.handed_in == dict.fromkeys(PROMPTS, 1) | {"p3": n_times}
    assert sum(entry.status == "answered" for entry in entries.values()) == 9


def test_a_failure_that_passes_is_an_answer_in_the_end(desk):
    desk.service.behave = lambda prompt, nth: "status 500" if nth == 1 and prompt in "p1 p2 p5" else "ok"
    entries = desk.run(max_requests=4)
    assert {entry.status for entry in entries.values()} == {"answered"}
    # What failed in two batches goes back in one.
    assert desk.sizes() == [4, 4, 2, 3] and entries["p5"].attempts == 2 and entries["p0"].attempts == 1


def test_cut_off_and_refused_are_outcomes(desk):
    desk.service.behave = lambda prompt, nth: {"p1": "length", "p2": "refusal"}.get(prompt, "ok")
    entries = desk.run()
    assert (entries["p1"].status, entries["p1"].error) == ("cut_off", "cut_off: 3 tokens")
    assert (entries["p2"].status, entries["p2"].error) == ("refused", "refused: I will not")
    assert desk.sizes() == [10]


@pytest.mark.parametrize("word", ["expire", "expire_silent"])
def test_what_expired_is_handed_in_again_and_what_was_done_is_not(desk, word):
    desk.service.fate = lambda nth: f"{word} 4" if nth == 1 else "complete"
    entries = desk.run()
    assert {entry.status for entry in entries.values()} == {"answered"} and desk.sizes() == [10, 6]
    assert desk.service.answered == dict.fromkeys(PROMPTS, 1)


def test_a_service_where_everything_expires_is_told_and_left_after_the_last_round(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.service.fate = lambda nth: "expire 0"
    entries = desk.run(rounds=2)
    assert {entry.error for entry in entries.values()} == {
        "expired: This request could not be executed before the completion window expired."
    }
    assert desk.sizes() == [10, 10] and entries["p0"].attempts == 2
    assert (
        "batch batch_1 expired: 0 answered, 10 handed in again (expired 10); "
        "none of its requests was answered this time" in caplog.messages
    )


def test_a_batch_that_somebody_cancelled_is_not_handed_in_again(desk):
    desk.service.fate = lambda nth: "cancel 7"
    entries = desk.run()
    assert sorted(entry.status for entry in entries.values()) == ["answered"] * 7 + ["failed"] * 3
    assert entries["p9"].error == "cancelled: This request was cancelled." and desk.paid_once()


def test_where_nothing_was_answered_nothing_more_is_handed_in(desk):
    desk.service.behave = lambda prompt, nth: "status 400"
    match = (
        "batch batch_1: 0 of 4 requests were answered, first failure 'q-p3': rejected: status 400: told 400; "
        "nothing more is handed in"
    )
    keeper = MemoryKeeper()
    with pytest.raises(RemeasureError, match=match):
        desk.run(max_requests=4, max_open=1, keeper=keeper)
    assert desk.sizes() == [4] and len(keeper.entries) == 4


def test_odd_lines_are_counted_and_named_and_are_no_answers(desk, caplog):
    caplog.set_level(logging.INFO)
    words = {"p1": "doubled", "p2": "stranger", "p3": "junk", "p4": "junk"}
    desk.service.behave = lambda prompt, nth: words.get(prompt, "ok")
    assert desk.all_answered_once(desk.run())
    # Answers are written last to first: p9 in line 1 … p5 in line 5, then junk and p4.
    p1 = call("p1").key[:12]
    odd = f"2 unreadable (first line 6), 1 unasked (first '{STRANGER}'), 1 doubled (first {p1})"
    assert f"lines that count as no answer: {odd}" in caplog.text


def test_a_file_that_is_refused_as_a_whole_is_one_line_and_is_handed_in_again_after_the_repair(desk):
    desk.service.served_name = "gpt"
    match = (
        "batch batch_1 was refused as a whole: line 1, request 'q-p0': model_not_found: The provided model "
        "'toy' is not supported. and 9 more problems; repair the cause and run the same command again, its "
        "10 requests"
    )
    with pytest.raises(RemeasureError, match=match):
        desk.run()
    assert desk.service.deleted == ["file-1"] and desk.statuses() == ["refused"]
    desk.service.served_name = "toy"
    assert desk.all_answered_once(desk.run())


def test_answers_of_other_batches_are_kept_before_a_refusal_stops_the_run(desk):
    desk.service.fate = lambda nth: "fail" if nth == 1 else "complete"
    desk.service.n_polls = 1
    keeper = MemoryKeeper()
    with pytest.raises(RemeasureError, match="line 2, request 'q-p1': internal: Something was wrong"):
        desk.run(max_requests=5, keeper=keeper)
    assert [entry.custom_id for entry in keeper.entries] == ["q-p9", "q-p8", "q-p7", "q-p6", "q-p5"]


def test_a_full_queue_is_waited_for(desk, caplog):
    desk.service.max_queued = 4
    entries = desk.run(max_requests=3)
    assert desk.all_answered_once(entries) and desk.sizes() == [3, 3, 3, 1]
    assert "Enqueued token limit reached for toy" in caplog.text and "one of 1 open batches" in caplog.text


def test_a_full_queue_that_is_told_at_once_is_waited_for(desk):
    desk.service.faults["POST /batches"] = ["ok", "token_limit"]
    assert desk.all_answered_once(desk.run(max_requests=5))


def test_the_batches_of_another_cell_are_waited_for(desk):
    desk.service.fate = lambda nth: "late" if nth == 1 else "complete"
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "toy"}}
    line["body"]["messages"] = [{"role": "user", "content": "other"}]
    other = desk.service._store("other.jsonl", json.dumps(line).encode(), "batch")
    create = {"input_file_id": other["id"], "completion_window": "24h", "endpoint": "/v1/chat/completions"}
    desk.service._create(create)
    desk.service.max_queued = 10
    looks = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 5:
            desk.service.release()
            desk.service._look("batch_1"), desk.service._look("batch_1")

    desk.service.before["GET /batches"] = look
    entries = desk.run()
    assert len(entries) == 10 and desk.service.handed_in == dict.fromkeys([*PROMPTS, "other"], 1)
    assert len(desk.service.batches) == 3  # the other one, a refused one, and the one that was taken


def test_a_queue_that_takes_no_such_batch_is_one_line_and_smaller_ones_go(desk):
    desk.service.max_queued = 4
    with pytest.raises(RemeasureError, match="enqueues no batch of 10 requests although no other is open"):
        desk.run()
    assert desk.all_answered_once(desk.run(max_requests=4)) and desk.sizes() == [10, 4, 4, 2]


ENDPOINTS = ["POST /files", "POST /batches", "GET /batches/id", "GET /files/content"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("word", ["status 500", "status 429 0.01", "reset", "hang", "html", "junk"])
def test_a_service_that_stumbles_is_asked_again_and_paid_once(desk, endpoint, word):
    desk.service.faults[endpoint] = [word, word]
    timeout_s = 0.2 if word == "hang" else 5.0
    entries = desk.run(timeout_s=timeout_s)
    assert desk.all_answered_once(entries) and len(desk.service.batches) == 1


@pytest.mark.parametrize("keeps_notes", [True, False])
@pytest.mark.parametrize("page_size", [100, 1])
def test_a_batch_whose_reply_was_lost_is_found_and_not_submitted_again(desk, keeps_notes, page_size):
    desk.service.keeps_notes, desk.service.page_size = keeps_notes, page_size
    desk.service.faults["POST /batches"] = ["ok", "ok", "reset_after", "ok"]
    entries = desk.run(max_requests=3)
    assert desk.all_answered_once(entries) and len(desk.service.batches) == 4


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_service_that_stays_away_is_one_line_and_the_next_start_goes_on(desk, endpoint):
    desk.service.faults[endpoint] = ["status 502"] * 10
    match = r"failed after 10 tries \(server_error: status 502: told 502\); run the same command again"
    with pytest.raises(RemeasureError, match=match):
        desk.run(poll_s=0.003)
    assert desk.all_answered_once(desk.run())


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_spent_quota_is_one_line_at_once(desk, endpoint):
    desk.service.faults[endpoint] = ["quota"]
    with pytest.raises(RemeasureError, match="the quota is spent .status 429: You exceeded your current"):
        desk.run()
    assert desk.service.calls[endpoint] == 1
    assert desk.all_answered_once(desk.run())


def test_where_the_quota_is_spent_in_the_middle_of_a_batch_nothing_more_is_handed_in(desk):
    desk.service.behave = lambda prompt, nth: "quota" if prompt == "p3" else "ok"
    keeper = MemoryKeeper()
    match = "2 of 3 requests were answered, first failure 'q-p3': quota: status 429: told 429; nothing more"
    with pytest.raises(RemeasureError, match=match):
        desk.run(keeper=keeper, max_requests=3, max_open=1)
    assert sum(entry.status == "answered" for entry in keeper.entries) == 5 and desk.sizes() == [3, 3]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_one_line_that_names_its_variable(desk, monkeypatch, endpoint, status):
    monkeypatch.setenv("TOY_API_KEY", "sk-very-secret")
    desk.service.faults[endpoint] = [f"status {status}"]
    with pytest.raises(RemeasureError, match="refuses the key .*check environment variable TOY_API_KEY"):
        desk.run(api_key_env="TOY_API_KEY")
    assert desk.all_answered_once(desk.run(api_key_env="TOY_API_KEY"))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_key_is_sent_and_stands_nowhere_else(desk, monkeypatch, caplog, endpoint):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOY_API_KEY", "sk-very-secret\n")
    desk.service.faults[endpoint] = ["echo_key"]
    desk.service.behave = lambda prompt, nth: "say my key is sk-very-secret"
    with pytest.raises(RemeasureError) as raised:
        desk.run(api_key_env="TOY_API_KEY")
    assert "bad request with Bearer [key]" in str(raised.value)
    entries = desk.run(api_key_env="TOY_API_KEY")
    assert {entry.text for entry in entries.values()} == {"my key is [key]"}
    assert {headers["authorization"] for headers in desk.service.headers} == {"Bearer sk-very-secret"}
    kept = [path.read_text() for path in desk.journal.rglob("*") if path.is_file()]
    assert "secret" not in repr(entries) + caplog.text + "".join(kept)


def test_a_missing_key_is_one_line_before_anything_is_sent(desk, monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", " ")
    with pytest.raises(RemeasureError, match="variable TOY_API_KEY is not set"):
        desk.run(api_key_env="TOY_API_KEY")
    assert not desk.service.calls


def test_another_key_of_the_environment_is_not_sent_where_none_was_named(desk, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-somebody-else")
    desk.run()
    assert {headers["authorization"] for headers in desk.service.headers} == {"Bearer none"}


def test_a_file_of_results_that_breaks_off_is_fetched_again(desk):
    desk.service.faults["GET /files/content"] = ["cut", "cut"]
    assert desk.all_answered_once(desk.run())


@pytest.mark.parametrize("fate", ["complete", "expire 3"])
def test_a_page_in_place_of_the_results_stops_the_run_and_is_no_missing_answer(desk, fate):
    desk.service.fate = lambda nth: fate if nth == 1 else "complete"
    # Of an expired batch a second file comes, with the lines of what was not run; that one is whole.
    desk.service.faults["GET /files/content"] = ["html", "ok"] * 4 if fate == "expire 3" else ["html"] * 4
    match = "result files of batch batch_1 are not whole: .* nothing of it is handed in again"
    with pytest.raises(RemeasureError, match=match):
        desk.run()
    assert desk.paid_once()
    entries = desk.run()
    assert {entry.status for entry in entries.values()} == {"answered"}
    assert desk.service.answered == dict.fromkeys(PROMPTS, 1)


def test_a_result_file_that_is_named_late_is_waited_for(desk):
    hidden = {}

    def hide() -> None:
        batch = desk.service.batches["batch_1"]
        if batch["output_file_id"] and not hidden:
            hidden["id"], batch["output_file_id"] = batch["output_file_id"], None
        elif hidden:
            batch["output_file_id"] = hidden["id"]

    desk.service.after["GET /batches/id"] = hide
    desk.service.before["GET /batches/id"] = lambda: hidden and hide()
    assert desk.all_answered_once(desk.run()) and hidden


def test_results_that_are_gone_stop_the_run_and_are_not_paid_again(desk):
    desk.service.faults["GET /files/content"] = ["status 404"] * 4
    with pytest.raises(
        RemeasureError, match="fetching file file-2 failed after 4 tries .rejected: status 404"
    ):
        desk.run()
    assert desk.paid_once() and desk.statuses() == ["submitted"]


def test_a_file_that_is_not_known_yet_is_submitted_a_moment_later(desk):
    desk.service.faults["POST /batches"] = ["unknown_file", "unknown_file"]
    assert desk.all_answered_once(desk.run()) and desk.sizes() == [10]


def test_an_uploaded_file_that_has_vanished_is_sent_again_once(desk):
    desk.service.faults["POST /batches"] = ["status 401"]
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run()
    desk.service.deleted.append("file-1")
    assert desk.all_answered_once(desk.run()) and desk.sizes() == [10, 10]


def test_a_file_that_always_vanishes_is_one_line(desk):
    desk.service.faults["POST /batches"] = ["unknown_file"] * 50
    with pytest.raises(RemeasureError, match="failed after 4 tries .rejected: status 400: Cannot find file"):
        desk.run(poll_s=0.003)


def test_a_status_that_nobody_knows_is_one_line(desk):
    desk.service.after["POST /batches"] = lambda: desk.service.batches["batch_1"].update(status="odd")
    desk.service.fate = lambda nth: "late"
    desk.service.before["GET /batches/id"] = desk.service.after["POST /batches"]
    with pytest.raises(RemeasureError, match="batch batch_1 has status 'odd', known are validating, "):
        desk.run()


class JournalKeeper(MemoryKeeper):
    """Writes a journal, as long as there is room."""

    def __init__(self, desk: Desk, room_for: int = 1000) -> None:
        super().__init__()
        self.path, self.room_for = desk.journal / "answers.jsonl", room_for

    def keep(self, entry: JournalEntry) -> None:
        if len(self.entries) == self.room_for:
            raise RemeasureError("No space left on device")
        super().keep(entry)
        with open(self.path, "ab") as journal:
            journal.write(jsonl.encode(entry) + b"\n")


class Limited(MemoryKeeper):
    """Has enough after a number of sendings."""

    def __init__(self, n_most: int) -> None:
        super().__init__(lambda: "spent 1.00 of 1.00 USD" if self.n_sent.total() >= n_most else None)


def test_a_limit_hands_in_nothing_more_and_waits_for_what_is_under_way(desk):
    keeper = Limited(6)
    with pytest.raises(RemeasureError, match="spent 1.00 of 1.00 USD"):
        desk.run(max_requests=3, keeper=keeper)
    assert len(keeper.entries) == 6 and desk.sizes() == [3, 3]


def test_a_limit_that_is_reached_with_the_last_request_stops_nothing(desk):
    assert desk.all_answered_once(desk.run(keeper=Limited(10)))


def test_answers_that_nobody_asks_any_more_are_kept_and_failures_of_such_are_not_handed_in_again(desk):
    desk.service.behave = lambda prompt, nth: "status 500" if prompt in ("p0", "p5") and nth == 1 else "ok"
    desk.service.faults["GET /batches/id"] = ["status 401"]
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run()
    entries = desk.run(["new", *PROMPTS[5:]])
    assert {entry.status for entry in entries.values()} == {"answered"}
    assert set(entries) == {"new", *PROMPTS[1:]}
    assert desk.service.handed_in == dict.fromkeys([*PROMPTS, "new"], 1) | {"p5": 2}


def test_a_part_that_waited_uploaded_is_made_anew_without_what_nobody_asks_any_more(desk):
    desk.service.faults["POST /batches"] = ["status 401"]
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run()
    entries = desk.run(PROMPTS[:4])
    assert desk.all_answered_once(entries, PROMPTS[:4]) and desk.sizes() == [10, 4]
    assert desk.service.deleted == ["file-1", "file-2"]


def test_rounds_are_counted_over_restarts(desk):
    desk.service.behave = lambda prompt, nth: "status 500" if prompt == "p3" else "ok"
    desk.service.faults["POST /files"] = ["ok", "status 401"]
    keeper = MemoryKeeper()
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run(rounds=2, keeper=keeper)
    assert len(keeper.entries) == 9 and desk.statuses() == ["merged", "uploading"]
    entries = desk.run(["p3"], rounds=2)
    assert entries["p3"].attempts == 2 == desk.service.handed_in["p3"]


def test_limits_may_have_become_smaller_between_two_starts(desk):
    desk.service.fate = lambda nth: "expire 0" if nth == 1 else "complete"
    desk.service.faults["POST /files"] = ["ok", "status 401"]
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run()
    entries = desk.run(max_requests=4)
    assert {entry.attempts for entry in entries.values()} == {2} and desk.sizes() == [10, 4, 4, 2]


def test_input_files_are_removed_from_the_service_and_results_are_not(desk):
    desk.run(max_requests=5)
    names = {name for name, file in desk.service.files.items() if file["purpose"] == "batch"}
    assert set(desk.service.deleted) == names and len(names) == 2
    assert desk.left() == ["lock"] and desk.statuses() == ["merged", "merged"]


def test_a_file_that_cannot_be_removed_stops_nothing(desk, caplog):
    desk.service.faults["DELETE /files"] = ["status 500"]
    assert desk.all_answered_once(desk.run())
    assert "file file-1 stays at the service: status 500: told 500" in caplog.text


def stopped_with_an_open_batch(desk) -> None:
    desk.service.faults["GET /batches/id"] = ["status 401"]
    with pytest.raises(RemeasureError, match="refuses the key"):
        desk.run()


def test_one_permanent_failure_does_not_stop_a_cell_that_has_answers(desk):
    desk.run(["p0"], keeper=JournalKeeper(desk))
    desk.service.behave = lambda prompt, nth: "status 400" if prompt == "p1" else "ok"
    entries = desk.run(["p1", "p2", "p3"], max_requests=1, max_open=1)
    assert [entry.status for entry in entries.values()] == ["failed", "answered", "answered"]


def test_open_batches_at_another_address_are_not_forgotten(desk):
    stopped_with_an_open_batch(desk)
    with BatchLoopback() as other:
        with pytest.raises(RemeasureError, match=f"1 parts are under way at {desk.service.base_url}"):
            desk.run(base_url=other.base_url)
        assert desk.all_answered_once(desk.run()) and not other.calls
        assert set(desk.run(["new"], base_url=other.base_url)) == {"new"}


@pytest.mark.parametrize("name", ["batches.json", "batches/*.calls"])
def test_damaged_memory_is_one_line_and_nothing_is_handed_in_again(desk, name):
    stopped_with_an_open_batch(desk)
    path = next(desk.journal.glob(name))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(RemeasureError, match=f"{path}.* restore it"):
        desk.run()
    path.write_bytes(whole)
    assert desk.all_answered_once(desk.run())


def test_two_processes_do_not_share_the_batches_of_a_cell(desk):
    keeper = MemoryKeeper()

    def second() -> None:
        desk.service.before.clear()
        with pytest.raises(RemeasureError, match="is asking this cell right now"):
            desk.run()
        keeper.refused = True

    desk.service.before["POST /files"] = second
    assert desk.all_answered_once(desk.run(keeper=keeper)) and keeper.refused


def test_a_full_disk_is_one_line_and_nothing_that_was_paid_for_is_lost(desk):
    keeper = JournalKeeper(desk, room_for=4)
    with pytest.raises(RemeasureError, match="No space left"):
        desk.run(keeper=keeper)
    assert desk.statuses() == ["merging"]
    rest = desk.run([f"p{n}" for n in range(6)])
    assert len(keeper.entries) == 4 and len(rest) == 6
    assert not {entry.custom_id for entry in keeper.entries} & {entry.custom_id for entry in rest.values()}
    assert desk.paid_once()
