"""From the result files of an ended batch to outcomes, and to the calls that are handed in again."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from remeasure import kept
from remeasure.executors import Keeper
from remeasure.executors.batch_lines import AGAIN, Results
from remeasure.executors.batch_parts import Part, Pending
from remeasure.executors.keys import Key
from remeasure.executors.replies import Failure, Outcome, entry_of
from remeasure.journal import FINAL

# What became of the requests without a line, by the status of their batch.
_ABSENT = {
    "expired": Failure(kind="expired", message="the batch ended before the request was run"),
    "cancelled": Failure(kind="cancelled", message="the batch was cancelled at the service"),
}
_MISSING = Failure(kind="missing", message="the batch has no line for the request")


def kept_already(journal: Path, keys: Collection[str]) -> set[str]:
    """Return which of the keys have a final outcome in a journal folder.

    A merge that was killed has kept a part of its answers; whoever goes on with it must not keep, and count
    the price of, an answer twice.
    """
    found = itertools.chain.from_iterable(map(kept.outcomes, sorted(journal.glob("*.jsonl"))))
    return {outcome.key for outcome in found if outcome.status in FINAL and outcome.key in keys}


def has_answers(journal: Path) -> bool:
    """Return whether a journal folder holds any final outcome."""
    found = itertools.chain.from_iterable(map(kept.outcomes, sorted(journal.glob("*.jsonl"))))
    return any(outcome.status in FINAL for outcome in found)


def bring_to_disk(journal: Path) -> None:
    """Bring the answers in a journal folder to the disk.

    A journal does so once a second; a part that is written down as merged must not outlive its answers when
    the power fails.
    """
    for path in journal.glob("*.jsonl"):
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())


class Merged:
    """What became of the requests of one batch."""

    def __init__(self) -> None:
        self.n_answered = 0
        """With an outcome of the model's: answered, cut off or refused."""
        self.failed: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self.n_kept_before = 0
        self.first_failure: str | None = None
        self.oddities: str | None = None

    def __str__(self) -> str:
        words = [f"{self.n_answered} answered"]
        for name, counts in (("handed in again", self.again), ("failed", self.failed)):
            if counts:
                kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items()))
                words.append(f"{counts.total()} {name} ({kinds})")
        if self.n_kept_before:
            words.append(f"{self.n_kept_before} kept before")
        return ", ".join(words) + (f"; {self.oddities}" if self.oddities else "")


class Merger:
    """Hands the results of a part to the keeper, and what is worth it to ``again``.

    Args:
        calls_path: the file with the part's calls.
        places: where each call stands in it, by key.
        part: the part.
        keeper: takes the outcomes.
        key: what must stand in none of them.
        rounds: how often a request is handed in, in all.
    """

    def __init__(
        self,
        calls_path: Path,
        places: Mapping[str, int],
        part: Part,
        keeper: Keeper,
        key: Key,
        rounds: int,
    ) -> None:
        self._calls_path, self._places = calls_path, places
        self._part, self._keeper, self._key = part, keeper, key
        self._rounds, self._now = rounds, time.time()
        self._decoder = msgspec.json.Decoder(Pending)

    def merge(
        self,
        files: list[Path],
        batch_status: str,
        names: Collection[str],
        journal: Path | None,
        again: Callable[[Pending], object],
    ) -> Merged:
        """Deal with every request of the part exactly once.

        Args:
            files: result files, output first.
            batch_status: how the batch ended.
            names: model names that are right.
            journal: where an earlier merge of this part may have kept answers; null for a first one.
            again: takes the calls that are to be handed in again.

        Raises:
            RemeasureError: an outcome cannot be kept.
        """
        before = kept_already(journal, self._places) if journal is not None else set()
        results = Results(self._places, names, self._key)
        merged = Merged()
        with open(self._calls_path, "rb") as calls:
            for key, result in self._all(files, results, _ABSENT.get(batch_status, _MISSING)):
                if key in before:
                    merged.n_kept_before += 1
                else:
                    self._one(self._call(calls, key), result, merged, again)
        merged.oddities = results.oddities()
        return merged

    def _all(
        self, files: list[Path], results: Results, absent: Failure
    ) -> Iterator[tuple[str, Outcome | Failure]]:
        for path in files:
            yield from results.read(path)
        for key in self._places:
            if key not in results.seen:
                yield key, absent

    def _call(self, calls: BinaryIO, key: str) -> Pending:
        calls.seek(self._places[key])
        return self._decoder.decode(calls.readline())

    def _one(
        self, call: Pending, result: Outcome | Failure, merged: Merged, again: Callable[[Pending], object]
    ) -> None:
        began = call.first_at or self._part.submitted_at or self._now
        n_handed_in = call.n_handed_in + 1
        if isinstance(result, Failure) and result.kind in AGAIN and n_handed_in < self._rounds:
            merged.again[result.kind] += 1
            again(msgspec.structs.replace(call, n_handed_in=n_handed_in, first_at=began))
            return
        entry = entry_of(call.key, call.custom_id, result, attempts=n_handed_in, seconds=self._now - began)
        if isinstance(result, Failure):
            merged.failed[result.kind] += 1
            merged.first_failure = merged.first_failure or f"{call.custom_id!r}: {entry.error}"
        else:
            merged.n_answered += 1
        self._keeper.keep(entry)
