"""A keeper that remembers in memory: for tests of executors alone."""

from collections import Counter

from remeasure.records import JournalEntry


class MemoryKeeper:
    """Collects outcomes and counts sendings."""

    def __init__(self, enough=lambda: None) -> None:
        self.entries: list[JournalEntry] = []
        self.n_sent: Counter[str] = Counter()
        self.enough = enough

    def sent(self, key: str) -> None:
        self.n_sent[key] += 1

    def keep(self, entry: JournalEntry) -> None:
        self.entries.append(entry)
