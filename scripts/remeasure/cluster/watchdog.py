"""A driver that waits for jobs which are nowhere any more is ended, with one clear sentence.

The executor can lose its jobs: one failed round of questions makes it forget all of them, and then it waits
for ever without a word. The watchdog does not trust it. It compares what the scheduler of Snakemake holds for
running with what the queue of the cluster says.
"""

import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from remeasure.cluster import commands, queue, standins
from remeasure.errors import RemeasureError

SILENT_S = 600.0
# The executor asks every 3 minutes at most, and its files may take a minute to appear. An outage is longer.
_AWAY_FACTOR = 9
_LOOK_S = 15.0
_NOTE_S = 2.0
# What nobody reads is not waited for.
_SAY_S = 2.0
# An interrupted executor sleeps to the end of its round, 180 s at most, before it lets go.
HARD_S = 240.0
# Reasons for waiting that pass only when somebody changes the job, the limits or the account.
_STUCK = re.compile(
    r"PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|BadConstraints|DependencyNeverSatisfied"
    r"|InvalidAccount|InvalidQOS|Account\w*NotAllowed|QOS\w*NotAllowed|JobHoldMaxRequeue"
    r"|launch.failed.requeued.held|\w*Max\w+PerJob(Limit)?\Z"
)


@dataclass
class Judge:
    """Decides, from what is seen at one moment after the other, whether the driver must be ended.

    Args:
        silent_s: how long jobs may be held for running while none of them is in the queue.
        away_s: how long the controller may give no answer.
    """

    silent_s: float
    away_s: float
    _silent_since: float | None = field(default=None, init=False)
    _away_since: float | None = field(default=None, init=False)

    def look(self, now: float, n_running: int, found: list[queue.Job] | None) -> tuple[str, str] | None:
        """Take in what is seen.

        Args:
            now: seconds, a clock that never goes back.
            n_running: submitted jobs that the driver waits for.
            found: jobs of this driver in the queue; null where the queue does not answer.

        Returns:
            Null as long as all is well; else a word for the kind (lost, stuck, away) and the sentence to say.
        """
        if found is None:
            self._silent_since = None
            self._away_since = now if self._away_since is None else self._away_since
            if now - self._away_since < self.away_s:
                return None
            return "away", f"the cluster's controller has not answered for {_long(now - self._away_since)}"
        self._away_since = None
        alive = [job for job in found if job.is_alive]
        stuck = [job for job in alive if job.is_waiting and _STUCK.match(job.reason)]
        if not n_running or len(stuck) < len(alive):
            self._silent_since = None
            return None
        self._silent_since = now if self._silent_since is None else self._silent_since
        if now - self._silent_since < self.silent_s:
            return None
        for_s = _long(now - self._silent_since)
        if stuck:
            first = f"job {stuck[0].job_id} ({stuck[0].rule}, partition {stuck[0].partition})"
            said = f"for {for_s} nothing runs, and {first} waits for what never comes: {stuck[0].reason}"
            return "stuck", f"{said}; correct its needs or slurm/partitions.yaml"
        return (
            "lost",
            f"for {for_s} the driver has waited for jobs ({n_running}) of which none is in the queue",
        )


def limits() -> tuple[float, float]:
    """Return the two limits in seconds; REMEASURE_WATCHDOG_S shortens them, for tests.

    Raises:
        RemeasureError: that variable is not a positive number.
    """
    said = os.environ.get("REMEASURE_WATCHDOG_S", "")
    try:
        silent_s = float(said) if said else SILENT_S
    except ValueError:
        silent_s = -1.0
    if not 0 < silent_s < 1e6:
        raise RemeasureError(f"REMEASURE_WATCHDOG_S: {said[:40]!r} is no number of seconds; unset it")
    return silent_s, silent_s * _AWAY_FACTOR


class Watchdog:
    """Watches from a thread of its own.

    Args:
        run: name that all jobs of this driver bear.
        folder: where the files for the stand-ins lie.
        waited: returns how many submitted jobs the driver waits for, and the ids that are known of them.
        judge: decides.
    """

    def __init__(
        self, run: str, folder: Path, waited: Callable[[], tuple[int, list[str]]], judge: Judge
    ) -> None:
        self._run, self._folder, self._waited, self._judge = run, folder, waited, judge
        self._noted: list[str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._note(self._waited()[1])
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()

    def _watch(self) -> None:
        every_s = min(_LOOK_S, self._judge.silent_s / 4)
        looked, told, n_running = time.monotonic(), False, 0
        while not self._ended.wait(min(_NOTE_S, every_s)):
            try:
                n_running, ids = self._waited()
                self._note(ids)
                if time.monotonic() - looked < every_s:
                    continue
                found = queue.jobs(name=self._run)
                if told:
                    _say("watchdog: the cluster's controller answers again")
                told = False
            except Exception as error:  # whatever it is: without this thread the driver may wait for ever
                found = None
                if not told:
                    _say(f"watchdog: {error} (the driver waits)")
                told = True
            looked = time.monotonic()
            if verdict := self._judge.look(looked, n_running, found):
                self._end(*verdict)
                return

    def _note(self, ids: list[str]) -> None:
        """Tell the stand-in which jobs are waited for."""
        if ids != self._noted:
            with contextlib.suppress(OSError):  # a full disk: it is tried again in a moment
                standins.write(self._folder / "waited.json", {"run": self._run, "ids": ids})
                self._noted = ids

    def _end(self, kind: str, said: str) -> None:
        """Say why, interrupt the driver, and end it where it does not end by itself."""
        line = f"watchdog: {said}; the driver is ended, the same command goes on from where it stands"
        with contextlib.suppress(OSError):
            standins.write(self._folder / "ended.json", {"kind": kind, "said": line})
        _say(f"error: {line}")
        os.kill(os.getpid(), signal.SIGINT)
        if self._ended.wait(HARD_S):
            return
        _say(
            f"error: the driver did not end within {HARD_S:g} s and is killed; before the same command: "
            "`snakemake --unlock`"
        )
        with contextlib.suppress(Exception):
            commands.ask(["scancel", f"--name={self._run}"])
        os._exit(1)


def _say(line: str) -> None:
    """Print to standard error where that is possible: a full disk or a stopped terminal changes nothing."""

    def say() -> None:
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    saying = threading.Thread(target=say, daemon=True)
    saying.start()
    saying.join(_SAY_S)


def _long(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
