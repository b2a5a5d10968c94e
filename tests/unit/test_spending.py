import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remeasure import spending
from remeasure.executors import Money, Price
from remeasure.spending import Spending

SCRIPTS = Path(spending.__file__).resolve().parent.parent


def money(ledger: Path, limit: float | None = 1.0, price: tuple[float, float] = (2.0, 8.0)) -> Money:
    each = Price(input_usd_per_mtok=price[0], output_usd_per_mtok=price[1])
    return Money(price=each, spend_usd=limit, ledger=str(ledger))


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


@pytest.fixture
def at_once(monkeypatch):
    """Let every call look at the ledger, so that no test waits for seconds."""
    monkeypatch.setattr(spending, "EVERY_S", 0.0)


def test_prompt_and_completion_tokens_are_charged_at_their_prices(tmp_path):
    with Spending(money(tmp_path), "s/b/a/m") as own:
        # 100,000 * 2 + 50,000 * 8 millionths.
        own.add(usage(100_000, 50_000) | {"cached_tokens": 90_000, "reasoning_tokens": 40_000}, "answered")
        assert own.spent_usd == 0.6


def test_a_hundred_thousand_small_sums_do_not_drift(tmp_path):
    own = Spending(money(tmp_path, price=(0.1, 0.4)), "s/b/a/m")
    for _ in range(100_000):
        own.add(usage(1, 1), "answered")
    assert own.spent_usd == 0.05


@pytest.mark.parametrize(
    "said",
    [None, {}, {"total_tokens": 7}, usage(-5, 3), {"prompt_tokens": True, "completion_tokens": 1}, "many"],
)
def test_outcomes_that_say_nothing_usable_are_counted_apart_and_take_nothing_away(tmp_path, said):
    own = Spending(money(tmp_path), "s/b/a/m")
    own.add(usage(100, 100), "answered")
    before = own.spent_usd
    own.add(said, "failed")
    assert own.n_without_usage == 1 and own.spent_usd >= before


def test_what_was_never_sent_costs_nothing_and_is_not_counted(tmp_path):
    own = Spending(money(tmp_path), "s/b/a/m")
    own.add(None, "not_sent")
    assert own.n_without_usage == 0


def test_the_limit_stops_with_one_line_that_says_what_is_not_counted(tmp_path, at_once):
    own = Spending(money(tmp_path, limit=0.6), "s/b/a/m")
    assert own.reason() is None
    own.add(usage(100_000, 49_999), "answered")
    assert own.reason() is None
    own.add(None, "failed")
    own.add(usage(0, 1), "cut_off")
    assert own.reason() == (
        "spend limit reached: the run has spent 0.60 USD of limits.spend_usd 0.60 USD, this cell 0.60 USD; "
        "not counted: 1 without usage; answers are kept, raise the limit and rerun to go on"
    )


def test_all_cells_of_a_run_share_one_limit(tmp_path, at_once):
    with Spending(money(tmp_path), "study/nq/base/reader") as first:
        first.add(usage(0, 75_000), "answered")  # 0.60
    second = Spending(money(tmp_path), "study/nq/naive/reader")
    assert second.reason() is None
    second.add(usage(0, 50_000), "answered")  # 0.40, together 1.00
    assert "has spent 1.00 USD of limits.spend_usd 1.00 USD, this cell 0.40 USD" in second.reason()
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "study%2Fnq%2Fbase%2Freader.json",
        "study%2Fnq%2Fnaive%2Freader.json",
    ]


def test_cells_with_other_prices_are_added_in_money(tmp_path, at_once):
    with Spending(money(tmp_path, price=(0.0, 80.0)), "judge") as judge:
        judge.add(usage(10, 10_000), "answered")  # 0.80
    reader = Spending(money(tmp_path), "reader")
    reader.add(usage(100_000, 0), "answered")  # 0.20
    assert "has spent 1.00 USD" in reader.reason()


def test_a_limit_of_nothing_stops_what_charges_and_lets_pass_what_is_free(tmp_path):
    assert "spent 0.00 USD of limits.spend_usd 0.00 USD" in Spending(money(tmp_path, limit=0.0), "a").reason()
    assert Spending(money(tmp_path, limit=0.0, price=(0.0, 0.0)), "a").reason() is None


def test_without_price_or_limit_nothing_stops(tmp_path):
    own = Spending(None, "a")
    own.add(usage(10**8, 10**8), "answered")
    own.publish()
    assert own.reason() is None and own.spent_usd is None and not list(tmp_path.iterdir())
    endless = Spending(money(tmp_path, limit=None), "a")
    endless.add(usage(10**8, 10**8), "answered")
    assert endless.reason() is None and endless.spent_usd == 1000.0


def test_the_ledger_is_looked_at_seldom_and_written_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(spending, "EVERY_S", 3600.0)
    reads, writes = [], []
    monkeypatch.setattr(
        Spending, "_read", lambda self, money: (reads.append(1), setattr(self, "_read_at", time.monotonic()))
    )
    plain = Spending._write
    monkeypatch.setattr(Spending, "_write", lambda self, money: (writes.append(1), plain(self, money)))
    with Spending(money(tmp_path), "a") as own:
        for _ in range(1000):
            assert own.reason() is None
            own.add(usage(1, 1), "answered")
    assert len(reads) == 1 and len(writes) == 2
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "cell": "a",
        "usd": 0.01,
        "input_tokens": 1000,
        "output_tokens": 1000,
        "n_with_usage": 1000,
        "n_without_usage": 0,
    }


def journal(path: Path, *completions: int | None) -> Path:
    """Write a journal with one outcome for each number of tokens."""
    with open(path, "ab") as stream:
        for n in completions:
            said = {"usage": usage(0, n), "status": "answered"} if n else {"usage": None, "status": "failed"}
            entry = {"key": "k", "custom_id": "q", "text": None, "attempts": 1, "seconds": 1.0}
            stream.write(json.dumps(entry | said).encode() + b"\n")
    return path


def test_a_cell_starts_from_what_its_journal_says_and_not_from_its_old_file(tmp_path, at_once):
    with Spending(money(tmp_path / "spend"), "a") as killed:
        killed.add(usage(0, 25_000), "answered")
    again = Spending(money(tmp_path / "spend"), "a")
    # An outcome that was superseded was paid as well; a torn line is asked again.
    again.add_kept(journal(tmp_path / "answers.jsonl", 25_000, 50_000, None))
    assert (again.spent_usd, again.n_without_usage) == (0.6, 1) and again.reason() is None
    other = Spending(money(tmp_path / "spend"), "b")
    other.add(usage(0, 50_000), "answered")
    assert "has spent 1.00 USD" in other.reason()


def test_a_cell_that_was_never_asked_starts_from_nothing(tmp_path):
    own = Spending(money(tmp_path), "a")
    own.add_kept(tmp_path / "journal" / "answers.jsonl")
    assert own.spent_usd == 0.0 and (tmp_path / "a.json").exists()


def test_a_changed_number_of_shards_counts_no_outcome_twice(tmp_path, at_once):
    for name in ("1of2", "2of2"):
        with Spending(money(tmp_path / "spend"), f"cell/journal/{name}") as shard:
            shard.add_kept(journal(tmp_path / f"{name}.jsonl", 25_000))  # 0.20 each
    whole = Spending(money(tmp_path / "spend", limit=0.5), "cell/journal/answers")
    whole.add_kept(tmp_path / "answers.jsonl")
    assert whole.reason() is None
    whole.add(usage(0, 12_500), "answered")
    assert "has spent 0.50 USD" in whole.reason()


def test_progress_says_what_was_spent_and_what_is_unknown(tmp_path):
    own = Spending(money(tmp_path), "a")
    assert (own.words(), Spending(None, "b").words()) == ("0.00 USD", "")
    own.add(usage(0, 100), "answered")
    assert own.words() == "0.0008 USD"
    own.add(None, "failed")
    own.add(usage(0, 100_000), "answered")
    assert own.words() == "0.80 USD (1 without usage)"


def test_names_of_any_length_and_kind_become_files_in_the_folder(tmp_path):
    names = ["../up", "a" * 300, "a" * 299 + "b", "Grönland", "x@1of4"]
    for name in names:
        Spending(money(tmp_path / "spend"), name).publish()
    assert len(list((tmp_path / "spend").glob("*.json"))) == 5 and list(tmp_path.iterdir()) == [
        tmp_path / "spend"
    ]


def test_a_damaged_ledger_stops_with_one_line(tmp_path, at_once):
    (tmp_path / "other.json").write_text('{"cell": "other"')
    said = Spending(money(tmp_path), "a").reason()
    assert (
        said.startswith(f"{tmp_path}/other.json: not a valid Spent")
        and "delete it" in said
        and "\n" not in said
    )


KILLED = """
import sys
from remeasure import spending
from remeasure.executors import Money, Price
spending.EVERY_S = 0.0
money = Money(price=Price(input_usd_per_mtok=0.0, output_usd_per_mtok=1.0), ledger=sys.argv[1])
own = spending.Spending(money, "a")
print("ready", flush=True)
while True:
    own.add({"prompt_tokens": 0, "completion_tokens": 1}, "answered")
"""


def test_a_kill_in_the_middle_leaves_a_whole_file(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert json.loads((tmp_path / "a.json").read_text())["output_tokens"] > 0
    reader = Spending(money(tmp_path), "b")
    assert reader.reason() is None
