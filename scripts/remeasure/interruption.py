"""SIGTERM: the time of a job is nearly up, or somebody has ended it; the work goes on another time."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator

# Told again within this time is told once: a job system tells a process directly and through its parents.
_SAME_TELLING_S = 1.0


class Terminated(KeyboardInterrupt):
    """The process was told to end by SIGTERM; what Ctrl-C raises is a plain ``KeyboardInterrupt``."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let the first SIGTERM raise ``Terminated``, so that servers are stopped and locks given back.

    Later ones are passed over: a job system tells a process more than once, itself and through its parents,
    and what is left to do then takes seconds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_told = False

    def told(*_) -> None:
        nonlocal is_told
        if is_told:
            return
        is_told = True
        if not _is_in_event_loop():
            raise Terminated
        # An exception would strike inside the event loop. As SIGINT, asyncio ends its tasks in order. A shell
        # lets what it starts in the background ignore SIGINT; SIGTERM must end it all the same.
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    except KeyboardInterrupt as error:
        if is_told and not isinstance(error, Terminated):
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def told_in_loop(told: Callable[[KeyboardInterrupt], None], drain_s: float) -> Iterator[None]:
    """While an event loop runs, let SIGINT and SIGTERM call a function instead of raising.

    Args:
        told: gets what is to be raised in the end; called once.
        drain_s: how long the running task may go on then, before it is cancelled, seconds. A second signal
            cancels it at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio

    loop, task, told_at = asyncio.get_running_loop(), asyncio.current_task(), None

    def came(reason: KeyboardInterrupt) -> None:
        nonlocal told_at
        if told_at is None:
            told_at = loop.time()
            told(reason)
            loop.call_later(drain_s, task.cancel)
        elif loop.time() - told_at > _SAME_TELLING_S:
            task.cancel()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    loop.add_signal_handler(signal.SIGINT, came, KeyboardInterrupt())
    loop.add_signal_handler(signal.SIGTERM, came, Terminated())
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _is_in_event_loop() -> bool:
    # Importing it costs every script a part of its start; where nobody has, there is no loop.
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Hold SIGTERM and SIGINT back until a block has ended that must not be left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
