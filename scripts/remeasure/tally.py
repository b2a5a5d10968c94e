"""What asking says while it works: a line every ten seconds, a bar where somebody watches."""

import logging
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

log = logging.getLogger("remeasure.tally")
_EVERY_S = 10.0
_BAR_EVERY_S = 0.5
_BAR_WIDTH = 24


class Tally:
    """Counts outcomes and tells how far the work is; a context manager.

    Args:
        n_done: how many were done before.
        n_total: how many there are in all.
        money: what was spent, as text; empty where nothing is charged.
    """

    def __init__(self, n_done: int, n_total: int, money: Callable[[], str] = lambda: "") -> None:
        self._start, self._total, self._money = n_done, n_total, money
        self._ok: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._has_bar = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Tally":
        if self._has_bar:
            for handler in logging.getLogger().handlers:
                handler.addFilter(_clear_line)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()
        for handler in logging.getLogger().handlers:
            handler.removeFilter(_clear_line)

    def count(self, status: str, error: str | None = None) -> None:
        """Note one outcome; of a failure its class, which is what stands before the colon."""
        if status == "failed":
            self._failed[(error or "unknown").partition(":")[0]] += 1
        else:
            self._ok[status] += 1

    @property
    def n_now(self) -> int:
        """How many outcomes came in this time."""
        return self._ok.total() + self._failed.total()

    def line(self) -> str:
        """Return the state as one line: ``420/1000 ok=417 failed=3 (timeout=3) 12.1/s eta 48 s``."""
        seconds = time.monotonic() - self._began
        rate = self.n_now / seconds if seconds > 0 else 0.0
        left = self._total - self._start - self.n_now
        words = [f"{self._start + self.n_now}/{self._total}", f"ok={self._ok['answered']}"]
        words += [f"{name}={n}" for name, n in sorted(self._ok.items()) if name != "answered"]
        classes = ", ".join(f"{name}={n}" for name, n in sorted(self._failed.items()))
        words.append(f"failed={self._failed.total()}" + (f" ({classes})" if classes else ""))
        words += [f"{rate:.1f}/s", f"eta {_duration(left / rate)}" if rate else "eta ?", self._money()]
        return " ".join(word for word in words if word)

    def bar(self) -> str:
        """Return the state for a terminal."""
        share = (self._start + self.n_now) / max(1, self._total)
        full = int(share * _BAR_WIDTH)
        return f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {100 * share:3.0f} % {self.line()}"

    def _watch(self) -> None:
        said = time.monotonic()
        while not self._ended.wait(_BAR_EVERY_S if self._has_bar else _EVERY_S):
            if self._has_bar:
                width = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r\x1b[K{self.bar()[:width]}")
                sys.stderr.flush()
            elif time.monotonic() - said >= _EVERY_S:
                log.info(self.line())
                said = time.monotonic()
        if self._has_bar:
            sys.stderr.write("\r\x1b[K")


def _clear_line(record: logging.LogRecord) -> bool:
    """Wipe the bar before a line is logged over it."""
    sys.stderr.write("\r\x1b[K")
    return True


def _duration(seconds: float) -> str:
    """Return a time that is left in the unit that a person would choose."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
