"""One line of progress every ten seconds."""

import logging
import time

EVERY_S = 10.0


class Progress:
    """Counts finished things and logs ``name done/total rate time-left`` at most every ten seconds."""

    def __init__(self, log: logging.Logger, name: str, total: int | None) -> None:
        self._log, self._name, self._total = log, name, total
        self._begin = self._last = time.monotonic()
        self.done = 0

    def add(self, n: int = 1) -> None:
        """Count ``n`` more; log when the last line is ten seconds old."""
        self.done += n
        now = time.monotonic()
        if now - self._last < EVERY_S:
            return
        self._last = now
        rate = self.done / (now - self._begin)
        if self._total is None:
            self._log.info("%s %d %.3g/s", self._name, self.done, rate)
        else:
            left = (self._total - self.done) / rate
            self._log.info("%s %d/%d %.3g/s eta %.0f s", self._name, self.done, self._total, rate, left)

    def finish(self) -> None:
        """Log the last line: how many in how many seconds."""
        seconds = time.monotonic() - self._begin
        self._log.info("%s %d done in %.1f s", self._name, self.done, seconds)
