"""A program with all that it starts, in a group of processes that cannot outlive us.

Between us and the program stands a warden, a small process in a session of its own: it ends the whole group
when the program ends, and when its pipe to us breaks, which happens even where we are killed. vLLM needs it:
its engine lives on, with all of the graphics memory, where only the process that was started is killed.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from typing import IO

# Less than a caller grants us between SIGTERM and SIGKILL (``model_server``).
GRACE_S = 3.0
_POLL_S = 0.1
# In front of the program's words: number of the pipe that breaks when we are gone.
_LIFE = "--life"


class Group:
    """A running program with all that it has started; its output goes to the pipe ``output``."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        # -I: nothing beside this file is taken for a module of the standard library.
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self.output = self._warden.stdout

    def exit_status(self) -> int | None:
        """Return how the program ended, 128 + n after signal n, when nothing of it is left; null before."""
        return self._warden.poll()

    def stop(self) -> None:
        """End the group and wait until it is gone; may be called again."""
        with contextlib.suppress(OSError):
            self._warden.stdin.close()
        self._warden.wait()


class Talking:
    """As ``Group``, of a program that is spoken to: its standard input and output are pipes to us.

    Args:
        words: command line of the program.
        environment: of the program.
        errors: an open file for its standard error.
    """

    def __init__(self, words: list[str], environment: dict[str, str], errors: IO[bytes]) -> None:
        life, self._alive = os.pipe()
        try:
            self._warden = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, _LIFE, str(life), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
                pass_fds=(life,),
            )
        except BaseException:
            os.close(self._alive)
            raise
        finally:
            os.close(life)
        self.input, self.output = self._warden.stdin, self._warden.stdout

    def exit_status(self, wait_s: float) -> int | None:
        """Return how the program ended, as ``Group.exit_status``, waiting for it; null where it goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warden.wait(wait_s)
        return self._warden.poll()

    def stop(self) -> None:
        """End the group and wait until it is gone; may be called again."""
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None
        with contextlib.suppress(OSError):
            self.input.close()
        self._warden.wait()
        self.output.close()


def _watch(words: list[str]) -> int:
    """Be the warden: run a program until it ends or our pipe is closed; return its exit status."""
    told = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: told.append(True))
    life, stdin = 0, subprocess.DEVNULL
    if words[0] == _LIFE:
        life, stdin, words = int(words[1]), None, words[2:]
    program = subprocess.Popen(words, stdin=stdin, process_group=0)
    if life:  # the pipes are the program's alone: its end is seen at once
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
    while program.poll() is None and not told:
        if select.select([life], [], [], _POLL_S)[0]:
            break
    _end(program)
    code = program.wait()
    return code if code >= 0 else 128 - code


def _end(program: subprocess.Popen) -> None:
    """Ask a group to end, and kill what is left of it after the grace."""
    deadline = time.monotonic() + GRACE_S
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            program.poll()
            os.killpg(program.pid, 0)  # raises when nothing is left
            time.sleep(0.05)
        os.killpg(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(_watch(sys.argv[1:]))
