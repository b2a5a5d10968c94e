"""A cell is asked once, whatever happens in between; what is written is complete and in request order."""

import base64
import io
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

import collect_responses
from cellkit import LOOPBACK, PROMPTS, Cell
from loopback import Loopback
from remeasure import collecting, executors, images, jsonl, request_plan
from remeasure.files import sha256_bytes, sha256_file
from remeasure.fingerprint import SCRIPTS
from remeasure.records import ImageRef, Request

TO_BE_CONTINUED = r"to be continued: \d+ of 12 answered, \d+ not sent; the next attempt goes on from here"
GOES_ON = "finished items are kept, the same command goes on"
# One grey pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def cell(tmp_path) -> Cell:
    return Cell(tmp_path, PROMPTS)


@pytest.fixture
def server():
    with Loopback() as running:
        yield running


def test_responses_are_complete_and_in_request_order(cell, server):
    server.behave = lambda prompt, nth: f"slow {random.random() / 50}"
    assert cell.ask(server) == 0
    assert [row.custom_id for row in cell.responses()] == [f"q-{prompt}" for prompt in PROMPTS]
    assert [row.text for row in cell.responses()] == [f"answer to {prompt}" for prompt in PROMPTS]
    assert cell.record()["counts"] == {"answered": 12}
    assert cell.record()["outputs"][str(cell.folder / "responses.jsonl")] == sha256_file(
        cell.folder / "responses.jsonl"
    )


def test_deleted_responses_are_assembled_from_the_journal_and_nothing_is_asked(cell, server, capsys):
    cell.ask(server)
    files = [cell.folder / "responses.jsonl", cell.folder / "answers.json"]
    before = [path.read_bytes() for path in files]
    for path in files:
        path.unlink()
    server.behave = lambda prompt, nth: "status 400"
    assert cell.ask(server) == 0
    assert server.n_calls == 12
    assert before == [path.read_bytes() for path in files]
    assert capsys.readouterr().err.rstrip().endswith("12 responses answered=12, 0 asked this time")


def test_no_server_is_started_when_nothing_is_missing(cell, server):
    cell.ask(server)
    assert collect_responses.main(cell.arguments({"kind": "server", "program": "is_not_there.py"})) == 0


def test_only_what_is_new_is_asked_and_order_and_ids_do_not_matter(cell, server):
    cell.ask(server)
    cell.write([*reversed(PROMPTS), "new"])
    assert cell.ask(server) == 0
    assert server.n_calls == 13 and server.calls["new"] == 1
    assert [row.text for row in cell.responses()][:2] == ["answer to p11", "answer to p10"]


def test_a_changed_identity_or_sample_is_asked_again(cell, server):
    cell.ask(server)
    assert cell.ask(server, identity={"weights": "2"}) == 0 and server.n_calls == 24
    assert cell.ask(server, sample=1) == 0 and server.n_calls == 36
    assert cell.ask(server) == 0 and server.n_calls == 36


def test_equal_requests_are_asked_once_and_answered_twice(tmp_path, server):
    rows = [msg := Cell.request("same"), Request(custom_id="q-other", body=msg.body)]
    cell = Cell(tmp_path, [])
    jsonl.write(tmp_path / "requests.jsonl", rows)
    assert cell.ask(server) == 0 and server.n_calls == 1
    assert [row.custom_id for row in cell.responses()] == ["q-same", "q-other"]
    assert [row.text for row in cell.responses()] == ["answer to same"] * 2


def test_failures_stop_the_cell_but_keep_the_answers_and_only_they_are_asked_again(cell, server, capsys):
    server.behave = lambda prompt, nth: "status 400" if prompt in ("p3", "p7") else "ok"
    assert cell.ask(server) == 2
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith(
        "error: 2 of 12 requests failed, allowed is a share of 0; first 'q-p3': rejected: status 400"
    )
    assert not (cell.folder / "responses.jsonl").exists() and not (cell.folder / "answers.json").exists()
    server.behave = lambda prompt, nth: "ok"
    assert cell.ask(server) == 0
    assert server.n_calls == 14 and server.calls["p3"] == server.calls["p7"] == 2
    assert [row.status for row in cell.responses()] == ["answered"] * 12


def test_a_share_of_failures_may_be_allowed_and_is_then_recorded(cell, server):
    server.behave = lambda prompt, nth: "status 400" if prompt == "p3" else "ok"
    assert cell.ask(server, max_failed_share=0.1) == 0
    failed = cell.responses()[3]
    assert (failed.status, failed.text, failed.error) == ("failed", None, "rejected: status 400: told 400")
    assert cell.record()["counts"] == {"answered": 11, "failed": 1}


def test_cut_off_and_refused_are_outcomes_and_are_not_asked_again(cell, server):
    server.behave = lambda prompt, nth: {"p1": "length", "p2": "refusal"}.get(prompt, "ok")
    assert cell.ask(server) == 0 and cell.ask(server) == 0
    assert server.n_calls == 12
    assert cell.record()["counts"] == {"answered": 10, "cut_off": 1, "refused": 1}


def test_nothing_that_differs_between_runs_stands_in_the_responses(cell, server, tmp_path):
    server.behave = lambda prompt, nth: "reset" if nth == 1 and prompt in ("p2", "p5") else "ok"
    cell.ask(server)
    first = (cell.folder / "responses.jsonl").read_bytes()
    shutil.rmtree(cell.folder / "journal")
    assert cell.ask(server, concurrency=1) == 0
    assert (cell.folder / "responses.jsonl").read_bytes() == first


def test_a_file_may_say_how_the_model_is_reached(cell, server):
    words = cell.arguments({"kind": "http", "base_url": server.base_url})
    place = words.index("--executor") + 1
    (cell.folder / "executor.json").write_text(words[place] + "\n")
    words[place] = str(cell.folder / "executor.json")
    assert collect_responses.main(words) == 0 and server.n_calls == 12


def with_image(path: str, member: str | None = None) -> Request:
    url = images.to_url(ImageRef(sha256=sha256_bytes(PNG), path=path, member=member))
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    messages = [{"role": "user", "content": content}]
    return Request(custom_id="q-image", body={"model": "toy-slug", "messages": messages, "max_tokens": 9})


def bad_files() -> dict:
    good, twice = Cell.request("p0"), Cell.request("p0")
    unknown = Request(custom_id="q", body=good.body | {"temprature": 1.0})
    switch = Request(custom_id="q", body=good.body | {"thinking": True})
    return {
        "doubled": ([good, twice], "line 2: custom_id 'q-p0' stands already in line 1"),
        "unknown word": ([good, unknown], "line 2, request 'q'"),
        "missing image": (
            [good, with_image("no.png")],
            "request 'q-image': image no.png cannot be read",
        ),
        "missing member": (
            [good, with_image("store.zip", "b.png")],
            "line 2, request 'q-image': image store.zip member 'b.png' is not there",
        ),
        "empty image": ([good, with_image("empty.png")], "image empty.png is empty"),
        "empty": ([], "holds no request"),
        "dialect": ([good, switch], "request 'q': dialect 'openai' cannot express thinking=True"),
    }


@pytest.mark.parametrize("name", bad_files())
def test_a_wrong_request_file_is_one_line_before_anything_is_sent(cell, server, capsys, name):
    rows, message = bad_files()[name]
    jsonl.write(cell.folder / "requests.jsonl", rows)
    images.write_store(cell.folder / "store.zip", [("a.png", PNG)])
    (cell.folder / "empty.png").write_bytes(b"")
    executor = {"kind": "http", "base_url": server.base_url, "dialect": "openai"}
    assert collect_responses.main(cell.arguments(executor)) == 2
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("error: ") and message in last and server.n_calls == 0


def picture(name: str, mode: str = "RGB", **options) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (8, 6)).save(out, name, **options)
    return out.getvalue()


def rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return picture("JPEG", exif=exif)


def huge() -> bytes:
    """A PNG that says it has 20,000 x 20,000 pixels."""
    head = b"IHDR" + (20_000).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    return PNG[:8] + (13).to_bytes(4, "big") + head + zlib.crc32(head).to_bytes(4, "big") + PNG[33:]


def ask_with_image(cell: Cell, server: Loopback, name: str, data: bytes) -> int:
    (cell.folder / name).write_bytes(data)
    url = images.to_url(ImageRef(sha256=sha256_bytes(data), path=name))
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "toy-slug", "messages": [{"role": "user", "content": content}], "max_tokens": 9}
    jsonl.write(cell.folder / "requests.jsonl", [Request(custom_id="q-image", body=body)])
    return cell.ask(server)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"<html>404</html>", "PNG, JPEG, GIF"),
        (PNG[:20], "a.png"),
        (huge(), "megapixels"),
    ],
)
def test_an_image_that_nobody_could_read_is_one_line_before_anything_is_sent(
    cell, server, capsys, data, message
):
    assert ask_with_image(cell, server, "a.png", data) == 2 and server.n_calls == 0
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("error: ") and "line 1, request 'q-image'" in last and message in last


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("a.jpg", picture("JPEG", "CMYK"), "cmyk"),
        ("a.png", picture("PNG", "I;16"), "16-bit"),
        ("a.jpg", rotated(), "exif-rotated"),
        ("a.png", picture("JPEG"), "wrong-suffix"),
    ],
)
def test_an_odd_image_is_sent_as_it_is_and_said(cell, server, capsys, name, data, word):
    assert ask_with_image(cell, server, name, data) == 0
    assert f"1 images are {word} (first: " in capsys.readouterr().err
    sent = server.bodies[0]["messages"][0]["content"][1]["image_url"]["url"].partition(",")
    assert base64.b64decode(sent[2]) == data
    assert sent[0] == f"data:image/{'png' if data.startswith(PNG[:4]) else 'jpeg'};base64"


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ({"kind": "carrier pigeon"}, "--executor: Invalid value 'carrier pigeon'"),
        ({"kind": "http", "base_url": "x", "dialect": "opanai"}, "did you mean 'openai'"),
        ({"kind": "http", "base_url": "x", "colour": "red"}, "unknown field `colour`"),
        ({"kind": "server", "program": "is_not_there.py"}, "ended with exit status 2 before it was ready"),
    ],
)
def test_a_wrong_executor_is_one_line(cell, capsys, executor, message):
    assert collect_responses.main(cell.arguments(executor)) == 2
    assert message in capsys.readouterr().err.rstrip().split("\n")[-1]


def test_a_started_server_answers_the_cell_and_is_gone_afterwards(cell, tmp_path):
    files = {"pid_file": str(tmp_path / "pid")}
    assert (
        collect_responses.main(cell.arguments({"kind": "server", "program": LOOPBACK, "files": files})) == 0
    )
    assert [row.text for row in cell.responses()] == [f"answer to {prompt}" for prompt in PROMPTS]
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_a_server_that_dies_in_the_middle_is_one_line_with_its_log_and_answers_are_kept(cell, capsys):
    executor = {"kind": "server", "program": LOOPBACK, "options": {"die_after": 5}, "concurrency": 1}
    assert collect_responses.main(cell.arguments(executor)) == 2
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert "model server ended with exit status 3; its log" in last and "out of memory" in last
    assert len(cell.journal()) == 4
    executor = {"kind": "server", "program": LOOPBACK}
    assert collect_responses.main(cell.arguments(executor)) == 0
    assert len(cell.journal()) == 12


def test_two_runs_at_once_on_one_cell(cell, server):
    server.behave = lambda prompt, nth: "slow 4" if server.n_calls == 1 else "ok"
    first = cell.start({"kind": "http", "base_url": server.base_url})
    while not server.n_calls and first.poll() is None:
        time.sleep(0.01)
    second = cell.start({"kind": "http", "base_url": server.base_url})
    said = second.communicate()[1]
    assert second.returncode == 2 and "is asking this cell right now" in said
    assert len(said.strip().split("\n")) == 1
    first.communicate()
    assert first.returncode == 0 and server.n_calls == 12


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_run_keeps_its_answers_and_stops_its_server(cell, tmp_path, number):
    files = {"pid_file": str(tmp_path / "pid")}
    executor = {"kind": "server", "program": LOOPBACK, "files": files, "options": {"delay": 0.1}}
    run = cell.start(executor | {"concurrency": 2})
    journal = cell.folder / "journal" / "answers.jsonl"
    while not (journal.exists() and journal.stat().st_size) and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(number)
    said = run.communicate()[1]
    last = said.rstrip().split("\n")[-1]
    if number == signal.SIGTERM:
        assert run.returncode == 75 and re.fullmatch(TO_BE_CONTINUED, last), said
    else:
        assert run.returncode == 130 and last == "interrupted; " + GOES_ON, said
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
    n_kept = len(cell.journal())
    assert 0 < n_kept < 12 and not (cell.folder / "responses.jsonl").exists()
    assert cell.start(executor | {"options": {}}).wait() == 0
    assert len(cell.journal()) == 12


def test_what_is_in_flight_when_the_run_is_told_to_end_is_waited_for_and_kept(cell, server):
    server.behave = lambda prompt, nth: "slow 0.5"
    run = cell.start({"kind": "http", "base_url": server.base_url, "concurrency": 3})
    while server.n_calls < 3 and run.poll() is None:
        time.sleep(0.01)
    run.terminate()
    said = run.communicate()[1]
    assert run.returncode == 75 and "told to end: waiting up to 10 s for what is in flight" in said
    assert server.n_calls == 3 == len(cell.journal())


def test_a_run_in_the_background_of_a_shell_ends_with_sigterm_too(cell, server):
    # Such a process ignores SIGINT; here it is told to end while it waits for its model to be ready.
    executor = {"kind": "server", "program": LOOPBACK, "options": {"health_after": 60}}
    words = [sys.executable, str(SCRIPTS / "collect_responses.py"), *cell.arguments(executor)]
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    run = subprocess.Popen([sys.executable, "-c", ignoring, *words], stderr=subprocess.PIPE, text=True)
    while not (cell.folder / "journal" / "server.log").exists() and run.poll() is None:
        time.sleep(0.02)
    run.terminate()
    last = run.communicate(timeout=10)[1].rstrip().split("\n")[-1]
    assert last == "to be continued: 0 of 12 answered, 12 not sent; the next attempt goes on from here"
    assert run.returncode == 75


def test_the_second_signal_ends_a_run_at_once(cell, server):
    server.behave = lambda prompt, nth: "hang"
    run = cell.start({"kind": "http", "base_url": server.base_url, "concurrency": 3})
    while server.n_calls < 3 and run.poll() is None:
        time.sleep(0.01)
    run.terminate()
    time.sleep(1.3)
    assert run.poll() is None
    run.terminate()
    said = run.communicate(timeout=3)[1]
    assert run.returncode == 75 and "Traceback" not in said and not cell.journal()
    # What was under way is known to have been sent.
    server.behave = lambda prompt, nth: "ok"
    assert cell.start({"kind": "http", "base_url": server.base_url}).wait() == 0
    assert sorted(entry.attempts for entry in cell.journal()) == [1] * 9 + [2] * 3


def test_a_full_disk_loses_nothing_that_was_kept(cell, server):
    limited = (
        "import resource, signal, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import collect_responses; sys.exit(collect_responses.main(sys.argv[1:]))"
    )
    words = cell.arguments({"kind": "http", "base_url": server.base_url, "concurrency": 1})
    run = subprocess.run([sys.executable, "-c", limited, *words], stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2 and "cannot be kept (File too large); make room and rerun" in run.stderr
    assert 0 < len(cell.journal()) < 12
    assert cell.start({"kind": "http", "base_url": server.base_url}).wait() == 0
    assert server.n_calls == 13 and len(cell.journal()) == 12  # the one that could not be kept, once more


def priced(cell: Cell, server: Loopback, **limits) -> dict:
    """A model that takes 1 USD for each token that it writes; the loopback server writes 3."""
    price = {"input_usd_per_mtok": 0.0, "output_usd_per_mtok": 1e6}
    money = {"price": price, "ledger": str(cell.folder / "spend")} | limits
    return {"kind": "http", "base_url": server.base_url, "concurrency": 1, "money": money}


def test_a_spend_limit_stops_cleanly_and_a_higher_one_goes_on(cell, server, capsys):
    assert collect_responses.main(cell.arguments(priced(cell, server, spend_usd=10.0))) == 2
    # After 3, 6 and 9 USD one more may be sent, after 12 none.
    assert server.n_calls == 4 == len(cell.journal())
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("error: ") and "12" in last and "10" in last and "spend_usd" in last
    # What was spent before counts when the cell goes on.
    assert collect_responses.main(cell.arguments(priced(cell, server, spend_usd=10.0))) == 2
    assert server.n_calls == 4
    assert collect_responses.main(cell.arguments(priced(cell, server, spend_usd=1000.0))) == 0
    assert server.n_calls == 12


def test_nothing_is_sent_where_the_estimate_is_above_the_limit(cell, server, capsys):
    assert collect_responses.main(cell.arguments(priced(cell, server, estimate_usd=1.0))) == 2
    assert server.n_calls == 0
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert last.startswith("error: ") and "estimate_usd" in last


def test_a_request_file_that_is_changed_while_it_is_asked_stops_the_step(cell, server, capsys):
    def behave(prompt, nth):
        if server.n_calls == 1:
            other = [Request(custom_id=f"q-{p}", body=Cell.request(f"other {p}").body) for p in PROMPTS]
            jsonl.write(cell.folder / "late.jsonl", other)
            # In place, longer than what has been read ahead.
            (cell.folder / "requests.jsonl").write_bytes((cell.folder / "late.jsonl").read_bytes())
        return "slow 0.1"

    server.behave = behave
    jsonl.write(cell.folder / "requests.jsonl", [cell.request(p) for p in PROMPTS])
    rows = [Request(custom_id=f"q-{n}", body=Cell.request(f"p{n} " + "x" * 9000).body) for n in range(40)]
    jsonl.write(cell.folder / "requests.jsonl", rows)
    assert cell.ask(server, concurrency=1) == 2
    said = capsys.readouterr().err
    assert "was changed while it was asked" in said or "not a valid Request record" in said
    for entry in cell.journal():
        assert entry.text.startswith(f"answer to p{entry.custom_id.removeprefix('q-')} x")


def test_a_file_that_a_stage_made_for_the_server_belongs_to_the_identity(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Path("results/mine/notes.txt")
    made.parent.mkdir(parents=True)
    notes = {"environment_file": str(made)}  # any file option of the toy server
    executor = executors.ServerSettings(
        program="x.py", files=notes, dialect="embedded", concurrency=1, timeout_s=1
    )
    assert collecting.made_files(executor) == {}
    made.write_text("one")
    first = collecting.made_files(executor)
    assert first == {"made": {"environment_file": sha256_bytes(b"one")}}
    made.write_text("two")
    assert collecting.made_files(executor) != first
    weights = {"llm": "results/sources/weights.gguf", "model": "/models/qwen"}
    assert collecting.made_files(executors.ReplaySettings(folder="old", files=weights)) == {}


def test_what_a_reply_without_an_answer_has_used_is_paid_for(cell, server, capsys):
    server.behave = lambda prompt, nth: "null"
    arguments = cell.arguments(priced(cell, server, spend_usd=20.0))
    assert collect_responses.main(arguments) == 2
    # 3 USD for each of 3 sendings of a request: 9, 18, 27; others may be on their way then.
    n_calls, wasted = server.n_calls, [entry.wasted["completion_tokens"] for entry in cell.journal()]
    assert 9 <= n_calls <= 14 and wasted[:3] == [9] * 3
    assert "spend_usd" in capsys.readouterr().err.rstrip().split("\n")[-1]
    assert collect_responses.main(arguments) == 2 and server.n_calls == n_calls


def test_a_wrong_part_of_a_message_is_one_line(cell, server, capsys):
    good = {"type": "text", "text": "look"}
    for part in ("a", None, ["b"], {"type": "image_url"}, {"type": "image_url", "image_url": {"url": 5}}):
        messages = [{"role": "user", "content": [good, part]}]
        body = {"model": "toy-slug", "messages": messages, "max_tokens": 9}
        jsonl.write(cell.folder / "requests.jsonl", [Request(custom_id="q", body=body)])
        assert cell.ask(server) == 2
        assert "line 1, request 'q'" in capsys.readouterr().err.rstrip().split("\n")[-1]
    assert server.n_calls == 0


def kill_at_random_moments(folder: Path, n_rounds: int, seed: int) -> None:
    """Kill a cell of 500 requests again and again, finish it, and compare with what the server counted."""
    chance = random.Random(seed)
    prompts = [f"p{n}" for n in range(500)]
    cell = Cell(folder, prompts)
    in_flight: Counter[str] = Counter()
    with Loopback(delay_s=0.02, keep=False) as server:
        executor = {"kind": "http", "base_url": server.base_url, "concurrency": 3}
        for _ in range(n_rounds):
            before = Counter(server.calls)
            run = cell.start(executor)
            while server.calls == before and run.poll() is None:
                time.sleep(0.002)
            # Sometimes at once and sometimes in the middle.
            time.sleep(chance.choice([0, chance.uniform(0, 0.03), chance.uniform(0, 0.2)]))
            run.kill()
            run.communicate()
            time.sleep(0.05)  # what was sent before the kill reaches the server
            # A line without its end does not count; the next run sets it aside.
            whole = (cell.folder / "journal" / "answers.jsonl").read_bytes().rpartition(b"\n")[0].splitlines()
            kept = {json.loads(line)["custom_id"].removeprefix("q-") for line in whole}
            lost = Counter(prompt for prompt in server.calls - before if prompt not in kept)
            assert lost.total() <= 3 and not (folder / "responses.jsonl").exists()
            in_flight += lost
        assert cell.start(executor).wait() == 0
        assert [row.text for row in cell.responses()] == [f"answer to {prompt}" for prompt in prompts]
        assert server.calls - in_flight == Counter(prompts)
        attempts = {entry.custom_id.removeprefix("q-"): entry.attempts for entry in cell.journal()}
        # A sending is noted before it happens: one that a kill cut off there never reached the server.
        assert all(server.calls[prompt] <= attempts[prompt] for prompt in prompts)
        assert sum(attempts.values()) - server.calls.total() <= 3 * n_rounds
        assert {prompt for prompt, n in attempts.items() if n > 1} >= set(in_flight)
    assert not [path for path in folder.rglob("*") if path.suffix == ".part"]


def test_eight_kills_ask_twice_only_what_was_in_flight(tmp_path):
    kill_at_random_moments(tmp_path, n_rounds=8, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_kills_ask_twice_only_what_was_in_flight(tmp_path):
    kill_at_random_moments(tmp_path, n_rounds=100, seed=2)


def ask_in_shards(cell: Cell, server: Loopback, n: int) -> list[int]:
    """Ask a cell in n jobs and put it together; return the exit codes."""
    codes, records = [], []
    for number in range(1, n + 1):
        words = cell.arguments({"kind": "http", "base_url": server.base_url})
        records.append(str(cell.folder / f"{number}of{n}.json"))
        place = words.index("--out")
        words[place:] = ["--shard", f"{number}of{n}", "--record", records[-1]]
        codes.append(collect_responses.main(words))
    words = cell.arguments({"kind": "http", "base_url": server.base_url})
    return [*codes, collect_responses.main([*words, "--shards", *records])]


def test_a_cell_in_shards_gives_the_bytes_of_the_whole_and_another_number_asks_nothing(cell, server):
    assert cell.ask(server) == 0
    whole = [(cell.folder / name).read_bytes() for name in ("responses.jsonl", "answers.json")]
    shutil.rmtree(cell.folder / "journal")
    assert ask_in_shards(cell, server, 4) == [0] * 5
    assert [(cell.folder / name).read_bytes() for name in ("responses.jsonl", "answers.json")] == whole
    assert server.n_calls == 24 and set(server.calls.values()) == {2}
    # 12 requests fall into 4 parts, each in a journal of its own.
    sizes = [len((cell.folder / "journal" / f"{n}of4.jsonl").read_text().splitlines()) for n in (1, 2, 3, 4)]
    assert sum(sizes) == 12 and max(sizes) < 12
    assert ask_in_shards(cell, server, 3) == [0] * 4 and cell.ask(server) == 0 and server.n_calls == 24
    assert (cell.folder / "responses.jsonl").read_bytes() == whole[0]


def test_what_failed_in_a_shard_is_counted_for_the_cell_and_not_asked_once_more(cell, server, capsys):
    server.behave = lambda prompt, nth: "status 400" if prompt == "p3" else "ok"
    assert ask_in_shards(cell, server, 2).count(2) == 2 and server.calls["p3"] == 1
    last = capsys.readouterr().err.rstrip().split("\n")[-1]
    assert "1 of 12 requests failed, allowed is a share of 0; first 'q-p3': rejected: status 400" in last


@pytest.mark.parametrize("name", ["0of2", "3of2", "1of", "of", "1/2", "01of2", "1of2 "])
def test_a_wrong_shard_is_one_line(cell, server, capsys, name):
    words = cell.arguments({"kind": "http", "base_url": server.base_url})
    place = words.index("--out")
    words[place : place + 2] = ["--shard", name]
    assert collect_responses.main(words) == 2 and server.n_calls == 0
    assert "expected NofM with N from 1 to M" in capsys.readouterr().err


def test_every_request_belongs_to_exactly_one_shard():
    keys = [sha256_bytes(str(n).encode()) for n in range(500)]
    for n in (1, 2, 3, 8):
        shards = [request_plan.read_shard(f"{number}of{n}") for number in range(1, n + 1)]
        assert {sum(shard.holds(key) for shard in shards) for key in keys} == {1}
    # The first twelve digits of the key, as a number, modulo the number of shards.
    assert request_plan.read_shard("2of8").holds("000000000009" + "f" * 52)


def test_two_divisions_of_a_cell_are_not_asked_at_once_and_shards_of_one_are(cell, server):
    server.behave = lambda prompt, nth: "slow 4" if server.n_calls == 1 else "ok"
    executor = {"kind": "http", "base_url": server.base_url, "concurrency": 1}
    first = cell.start(executor, shard="1of2")
    while not server.n_calls and first.poll() is None:
        time.sleep(0.01)
    second = cell.start(executor)
    assert "asking this cell right now, as 1of2" in second.communicate()[1] and second.returncode == 2
    third = cell.start(executor, shard="2of2")
    third.communicate()
    first.communicate()
    assert first.returncode == third.returncode == 0 and server.n_calls == 12


def test_a_mixture_of_servers_is_said_and_recorded(cell, server, capsys):
    cell.write(PROMPTS[:6])
    assert cell.ask(server) == 0
    first = {"model": "toy", "n": 6, "server": None}
    assert cell.record()["facts"]["answered_by"] == [first] and "MIXED" not in capsys.readouterr().err
    cell.write(PROMPTS)
    with Loopback() as newer:
        newer.pages["/version"] = (200, b'{"version": "9.9"}', {})
        assert cell.ask(newer) == 0
    second = {"model": "toy", "n": 6, "server": "version 9.9"}
    assert cell.record()["facts"]["answered_by"] == [first, second]
    assert "MIXED: answers come from 2 models or servers: toy on unknown: 6; toy on version 9.9: 6" in (
        capsys.readouterr().err
    )


def test_the_key_is_in_no_file_and_in_no_command_line(cell, server, monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", "sk-very-secret")
    server.behave = lambda prompt, nth: "echo_key" if prompt == "p3" else "slow 0.05"
    executor = {"kind": "http", "base_url": server.base_url, "api_key_env": "TOY_API_KEY", "concurrency": 2}
    run = cell.start(executor, max_failed_share=0.1)
    while server.n_calls < 3 and run.poll() is None:
        time.sleep(0.01)
    assert b"sk-very-secret" not in Path(f"/proc/{run.pid}/cmdline").read_bytes()
    said = run.communicate()[1]
    assert run.returncode == 0 and "secret" not in said
    assert server.headers[0]["authorization"] == "bearer sk-very-secret"
    files = [path for path in cell.folder.rglob("*") if path.is_file()]
    assert len(files) >= 5 and not [path for path in files if b"secret" in path.read_bytes()]


def test_a_kill_leaves_no_orphan_server(cell, tmp_path):
    files = {"pid_file": str(tmp_path / "pid")}
    executor = {"kind": "server", "program": LOOPBACK, "files": files, "options": {"delay": 0.1}}
    run = cell.start(executor)
    journal = cell.folder / "journal" / "answers.jsonl"
    while not (journal.exists() and journal.stat().st_size) and run.poll() is None:
        time.sleep(0.01)
    run.kill()
    run.communicate()
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    deadline = time.monotonic() + 5
    while stat.exists() and " Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not stat.exists() or " Z " in stat.read_text()
