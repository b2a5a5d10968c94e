"""When a server program must end: told to by a signal, left alone by its parent, or its input is closed.

A job that is ended tells all of its processes at once. Whoever asks this server then waits for what is in
flight and closes our input; until it does, a server that can still answer should.
"""

import contextlib
import logging
import os
import signal
import stat
import threading
from collections.abc import Callable

log = logging.getLogger("remeasure.ending")
_POLL_S = 0.25


class Ending:
    """Watches for the reasons to end; made at the start, in the main thread.

    SIGTERM, SIGINT, the end of the parent process, or the end of standard input where that is a pipe: so not
    even a killed parent leaves an orphan.

    Args:
        grace_s: how long after a signal the server goes on where its input is a pipe that is still open,
            seconds.
    """

    def __init__(self, grace_s: float = 0.0) -> None:
        self._parent = os.getppid()
        self._event = threading.Event()
        self._grace_s = grace_s
        self._is_told = False
        is_pipe = _input_is_pipe()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told if is_pipe and grace_s else lambda *_: self._event.set())
        if is_pipe:
            threading.Thread(target=self._read, daemon=True).start()

    def within(self, seconds: float) -> bool:
        """Wait, and return whether it is time to end."""
        if os.getppid() != self._parent:
            log.info("the parent process is gone")
            self._event.set()
        return self._event.wait(seconds)

    def wait(self, gone: Callable[[], bool] = lambda: False) -> None:
        """Wait until it is time to end, or until what is watched is gone."""
        while not self.within(_POLL_S) and not gone():
            pass

    def _told(self, *_) -> None:
        if self._is_told:
            return
        self._is_told = True
        timer = threading.Timer(self._grace_s, self._event.set)
        timer.daemon = True
        timer.start()

    def _read(self) -> None:
        while os.read(0, 4096):
            pass
        self._event.set()


def _input_is_pipe() -> bool:
    """Return whether standard input is a pipe; a terminal or a file says nothing."""
    with contextlib.suppress(OSError):
        return stat.S_ISFIFO(os.fstat(0).st_mode)
    return False
