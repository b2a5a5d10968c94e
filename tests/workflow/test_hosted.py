"""A hosted judge in the workflow: its key stays in the environment, and its money has limits."""

import os
import threading
from pathlib import Path

import pytest
import yaml

from loopback import Loopback

KEY = "sk-never-to-be-seen-4711"
JUDGED = "results/ci/pixelrag/{}/page-reader-smollm2/judge/responses.jsonl"
CELLS = ("sqa/naive", "sqa/traf", "sqa/base", "mms/base", "evqa/base")


def with_hosted_judge(checkout, server: Loopback, **limits) -> None:
    """Let run ci be judged by an endpoint."""
    judge = {
        "title": "A hosted judge",
        "base_url": server.base_url,
        "served_name": server.served_name,
        "dialect": "openai",
        "api_key_env": "REMEASURE_TEST_KEY",
        "concurrency": 2,
        "timeout_s": 20,
        "price": "gpt-4.1",
    }
    path = checkout.project / "config" / "runs" / "ci.yaml"
    run = yaml.safe_load(path.read_text())
    if "models" not in run:
        # What other judges answered here before, in however many tries, counts as spent.
        for journal in checkout.directory.glob("results/ci/pixelrag/*/*/*/judge/journal/*.jsonl"):
            journal.unlink()
    run["models"] = {"hosted": judge}
    run["studies"]["pixelrag"]["judge"] = "hosted"
    if limits:
        run["limits"] = limits
    path.write_text(yaml.safe_dump(run))


def judge(checkout):
    return checkout.call(
        *(JUDGED.format(cell) for cell in CELLS),
        "--config",
        "run=ci",
        env=os.environ | {"REMEASURE_TEST_KEY": KEY},
    )


@pytest.fixture
def server():
    with Loopback("toy-judge") as running:
        running.secret = KEY
        running.behave = lambda prompt, nth: "slow 0.05"
        yield running


def command_lines_with_the_key(ended: threading.Event, found: list[str]) -> None:
    """Look through the process list until told to stop."""
    while not ended.wait(0.05):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if KEY.encode() in words:
                found.append(words.decode("utf-8", "replace"))


def test_the_key_of_an_endpoint_is_in_no_file_log_or_process_list(checkout, server):
    with_hosted_judge(checkout, server)
    server.behave = lambda prompt, nth: "echo_key" if nth == 1 and server.n_calls == 3 else "slow 0.05"
    found: list[str] = []
    ended = threading.Event()
    watching = threading.Thread(target=command_lines_with_the_key, args=(ended, found))
    watching.start()
    done = judge(checkout)
    ended.set()
    watching.join()
    # The endpoint echoed the key in one refusal: that cell failed, its log says so, and not with the key.
    assert done.returncode == 1 and "[key]" in done.stderr and KEY not in done.stderr + done.stdout
    assert judge(checkout).returncode == 0 and server.n_calls >= 20
    assert {headers.get("authorization") for headers in server.headers} == {f"bearer {KEY}"}
    files = [path for path in checkout.directory.rglob("*") if path.is_file()]
    assert len(files) > 500 and found == []
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_nothing_is_sent_where_a_cell_is_estimated_above_the_limit(checkout, server):
    with_hosted_judge(checkout, server, estimate_usd=0.0001)
    done = judge(checkout)
    assert done.returncode == 1 and server.n_calls == 0
    assert "0.00 USD are spent: above limits.estimate_usd 0.0001; nothing was sent" in done.stderr
    with_hosted_judge(checkout, server, estimate_usd=5.0)
    done = judge(checkout)
    assert done.returncode == 0, done.stderr
    assert server.n_calls == 20
    assert checkout.planned(*(JUDGED.format(cell) for cell in CELLS)) == {}


def test_a_run_stops_when_its_cells_together_have_spent_enough(checkout, server):
    # The loopback server counts the characters of a prompt as its tokens: some 500 to 3,000 of them, 2 USD a
    # million: a thousandth of a dollar and more for each answer.
    with_hosted_judge(checkout, server, spend_usd=0.005)
    done = judge(checkout)
    assert done.returncode == 1 and "spend_usd" in done.stderr
    assert 0 < server.n_calls < 20
    n_before = server.n_calls
    assert judge(checkout).returncode == 1 and server.n_calls - n_before <= 2
    with_hosted_judge(checkout, server, spend_usd=5.0)
    assert judge(checkout).returncode == 0 and server.n_calls == 20
