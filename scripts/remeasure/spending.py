"""What a run has spent, counted from what the endpoint says it used; stops it at a limit."""

import math
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from remeasure import jsonl, kept
from remeasure.errors import RemeasureError
from remeasure.executors import Money
from remeasure.files import sha256_bytes
from remeasure.records import Record

EVERY_S = 2.0


class Spent(Record, kw_only=True):
    """What one cell has spent: one file of the ledger folder."""

    cell: str
    usd: float
    input_tokens: int
    output_tokens: int
    n_with_usage: int
    n_without_usage: int


class Spending:
    """Counts one cell's spending, and that of the run's other cells through the ledger folder.

    Tokens are counted, money is worked out when it is asked for: no sum of small fractions drifts. Cached
    and reasoning tokens are part of prompt and completion tokens and are charged at the full price, so what
    is counted is never less than what is billed for outcomes with usage.

    Each process writes only its own file, whole or not at all, at most every ``EVERY_S`` seconds, and reads
    the others' as often: a limit is noticed after at most twice that time. A run goes beyond its limit by at
    most what all its cells spend in these seconds plus the requests that are in flight then. After a kill
    the file is older than the journal by as much, until ``add_kept`` has put it right.

    A context manager: leaving writes the file. One thread adds; any thread may ask.

    Args:
        money: price, limit and ledger folder; null: nothing is counted in money and there is no limit.
        ledger_name: names the journal file whose outcomes are counted, the same in every try. One name for
            each file: two shards never share one, and after a change of their number no outcome counts twice.
    """

    def __init__(self, money: Money | None, ledger_name: str) -> None:
        self._money = money
        self._cell = ledger_name
        self._input_tokens = self._output_tokens = 0
        self._n_with_usage = self._n_without_usage = 0
        self._others_usd = 0.0
        self._written_at = self._read_at = -math.inf
        self._trouble: str | None = None

    def __enter__(self) -> "Spending":
        return self

    def __exit__(self, *_) -> None:
        self.publish()

    def add_kept(self, journal: Path) -> None:
        """Count the outcomes of earlier tries; call it once, before anything is sent.

        Args:
            journal: the file that this process appends to; where it is missing there is nothing to count.

        Raises:
            RemeasureError: it is damaged, or the ledger cannot be written.
        """
        for outcome in kept.outcomes(journal) if journal.exists() else ():
            self._count(outcome.usage, outcome.status)
            if outcome.wasted:
                self._count(outcome.wasted, outcome.status)
        self.publish()

    def publish(self) -> None:
        """Write this process's file of the ledger now."""
        if self._money is not None:
            self._write(self._money)

    def add(self, usage: dict[str, Any] | None, status: str) -> None:
        """Count an outcome.

        Args:
            usage: what the endpoint says; null, or without the two counts, where it says nothing usable.
            status: the outcome's; ``not_sent`` costs nothing and is not counted.
        """
        self._count(usage, status)
        if self._money is not None and time.monotonic() - self._written_at >= EVERY_S:
            self._write(self._money)

    def _count(self, usage: Any, status: str) -> None:
        if status == "not_sent":
            return
        prompt, completion = (_tokens(usage, name) for name in ("prompt_tokens", "completion_tokens"))
        if prompt is None or completion is None:
            self._n_without_usage += 1
        else:
            self._n_with_usage += 1
        self._input_tokens += prompt or 0
        self._output_tokens += completion or 0

    @property
    def n_without_usage(self) -> int:
        """How many outcomes said nothing of tokens; some may have been billed, none is estimated."""
        return self._n_without_usage

    @property
    def spent_usd(self) -> float | None:
        """What this cell has spent in US dollars; null where it has no price."""
        if self._money is None:
            return None
        price = self._money.price
        spent = (
            self._input_tokens * price.input_usd_per_mtok + self._output_tokens * price.output_usd_per_mtok
        )
        return spent / 1e6

    def run_usd(self) -> float:
        """Return what the run has spent, this cell included, US dollars; 0 where nothing has a price."""
        if self._money is None:
            return 0.0
        self._read(self._money)
        return (self.spent_usd or 0.0) + self._others_usd

    def words(self) -> str:
        """Return what this cell has spent for a line of progress; empty where it has no price."""
        spent = self.spent_usd
        if spent is None:
            return ""
        return _usd(spent) + (f" ({self._n_without_usage} without usage)" if self._n_without_usage else "")

    def reason(self) -> str | None:
        """Return why nothing more may be sent, null while all is well; cheap enough to ask before each call.

        Edges:
            A limit of 0 stops a model that charges anything before its first call; one that is free goes on.
        """
        money = self._money
        if money is None or money.spend_usd is None:
            return None
        if money.price.input_usd_per_mtok == money.price.output_usd_per_mtok == 0:
            return None
        if time.monotonic() - self._read_at >= EVERY_S:
            self._read(money)
        if self._trouble:
            return self._trouble
        own = self.spent_usd or 0.0
        total = own + self._others_usd
        if total < money.spend_usd:
            return None
        unknown = f"; not counted: {self._n_without_usage} without usage" if self._n_without_usage else ""
        return (
            f"spend limit reached: the run has spent {_usd(total)} of limits.spend_usd "
            f"{_usd(money.spend_usd)}, this cell {_usd(own)}{unknown}; answers are kept, raise the limit and "
            "rerun to go on"
        )

    def _path(self, money: Money) -> Path:
        name = quote(self._cell, safe="")
        # File names end at 255 bytes.
        short = name if len(name) <= 200 else f"{name[:120]}-{sha256_bytes(self._cell.encode())[:16]}"
        return Path(money.ledger) / f"{short}.json"

    def _write(self, money: Money) -> None:
        try:
            jsonl.write_json(
                self._path(money),
                Spent(
                    cell=self._cell,
                    usd=self.spent_usd or 0.0,
                    input_tokens=self._input_tokens,
                    output_tokens=self._output_tokens,
                    n_with_usage=self._n_with_usage,
                    n_without_usage=self._n_without_usage,
                ),
            )
        except OSError as error:
            raise RemeasureError(
                f"{money.ledger}: what the run spends cannot be written there ({error.strerror}); make room "
                "or make the folder writable and rerun, all answers are kept"
            ) from None
        self._written_at = time.monotonic()

    def _read(self, money: Money) -> None:
        """Read what the other cells have spent; what cannot be read stops this one: a limit is a limit."""
        self._read_at = time.monotonic()
        own = self._path(money)
        self._trouble = None
        amounts = []
        for path in sorted(Path(money.ledger).glob("*.json")):
            if path != own:
                try:
                    amounts.append(jsonl.read_json(path, Spent).usd)
                except RemeasureError as error:
                    self._trouble = f"{error}; delete it, its cell writes it again when it goes on"
        self._others_usd = math.fsum(amounts)


def _tokens(usage: Any, name: str) -> int | None:
    """Return a token count of a usage block; null where it is missing or no count that a model can reach."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value < 10**9 else None


def _usd(amount: float) -> str:
    """Return an amount for a message: cents, or three digits of less than one cent."""
    return f"{amount:.2f} USD" if amount >= 0.01 or amount == 0 else f"{amount:.3g} USD"
