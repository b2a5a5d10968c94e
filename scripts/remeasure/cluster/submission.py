"""A driver that one may walk away from: started, watched, started again as long as it gets on.

Snakemake's exit code 1 says that something failed, not whether the next attempt would get further. What
decides here: why the driver ended (watchdog, killed, controller away), what its jobs ended with (time limit,
node), and whether the attempt finished a step or got an answer.
"""

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from remeasure.cluster import commands, driver, queue, standins
from remeasure.errors import RemeasureError
from remeasure.leases import Lease, holder_of

log = logging.getLogger("remeasure.submit")
_POLL_S = 0.3
# An interrupted driver cancels its jobs and sleeps to the end of its round, 180 s at most.
_END_S = 300.0
_PATIENCE_S = 6 * 3600.0
_CANCEL_S = 300.0
_KEPT_LOGS = 20
_FINISHED = re.compile(r"Finished jobid: \d+")
# What a job ends with that a further attempt may get past: its step goes on from where it stood.
_PASSING = re.compile(r"SLURM status is: '(TIMEOUT|NODE_FAIL|BOOT_FAIL|PREEMPTED)'|to be continued: ")
# Ends after which another attempt makes no difference.
_FINAL_KINDS = ("stuck",)


@dataclass
class Attempt:
    """What one run of the driver came to."""

    status: int = 0
    """Exit status; negative: ended by that signal."""
    n_finished: int = 0
    passing: str = ""
    """The line that speaks of a passing failure; empty for none."""
    kind: str = ""
    """How the watchdog or the start-up ended it: lost, away, stuck; empty for neither."""
    got_on: bool = False
    was_told: bool = False
    """Whether somebody interrupted it."""


def reason_to_go_on(attempt: Attempt, n_starts: int, n_idle: int, max_starts: int) -> str:
    """Return why another attempt is made; empty for none.

    Args:
        attempt: the last one.
        n_starts: attempts made so far.
        n_idle: how many of the last ones in a row finished nothing and got no answer.
        max_starts: attempts that may be made.
    """
    if attempt.status == 0 or attempt.was_told or n_starts >= max_starts or n_idle > 1:
        return ""
    if attempt.kind in _FINAL_KINDS:
        return ""
    if attempt.kind:
        return {"lost": "the driver had lost its jobs", "away": "the controller was away"}.get(
            attempt.kind, ""
        )
    if attempt.status < 0:
        return f"the driver was killed by signal {-attempt.status}"
    return f"a step may go on ({attempt.passing})" if attempt.passing and attempt.got_on else ""


@dataclass
class Submission:
    """One call of ``scripts/submit.py``.

    Args:
        root: the working directory of the workflow, which holds ``results/``.
        words: what Snakemake is called with, targets and options.
        max_starts: how many attempts may be made.
        called_in: where Snakemake is called, and looks for its profile; null: in ``root``.
    """

    root: Path
    words: list[str]
    max_starts: int = 20
    called_in: Path | None = None
    _child: subprocess.Popen | None = field(default=None, init=False)
    _told: int = field(default=0, init=False)
    _told_at: float = field(default=0.0, init=False)
    _waits_for_jobs: bool = field(default=False, init=False)
    _echoes: bool = field(default=True, init=False)

    @property
    def _folder(self) -> Path:
        return self.root / driver.FOLDER

    def run(self) -> int:
        """Submit until done; return Snakemake's exit status, 130 where it was told to end before it began.

        Raises:
            RemeasureError: somebody else submits from this folder, jobs that do not end, or a queue that does
                not answer for hours, or files below ``.snakemake`` that cannot be written.
        """
        try:
            return self._run()
        except OSError as error:
            raise driver.unwritable(error) from None

    def _run(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        lease = self._folder / "submit.lease"
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Lease(lease))
            except RemeasureError:
                raise RemeasureError(
                    f"{self.root}: {holder_of(lease) or 'another process'} runs scripts/submit.py here right "
                    "now; let it work, or stop it with `kill` and its number"
                ) from None
            before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
            try:
                return self._attempts()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _attempts(self) -> int:
        n_starts = n_idle = 0
        while True:
            if not self._prepare():
                return 130
            attempt = self._attempt()
            n_starts += 1
            n_idle = 0 if attempt.got_on else n_idle + 1
            why = reason_to_go_on(attempt, n_starts, n_idle, self.max_starts)
            if not why:
                if attempt.status < 0:
                    self._told = 0  # a further interruption ends the waiting
                    self._clean_up()
                return attempt.status if attempt.status >= 0 else 128 - attempt.status
            log.warning("%s: attempt %d of at most %d", why, n_starts + 1, self.max_starts)

    # -- before an attempt -----------------------------------------------------------------------------------

    def _prepare(self) -> bool:
        """Wait for the queue, end what a killed driver left; return whether to go on."""
        lease = self._folder / driver.LEASE
        if holder := holder_of(lease):
            raise driver.in_use(lease, holder)
        if not self._await_queue():
            return False
        self._clean_up()
        return not self._told

    def _await_queue(self) -> bool:
        began, said_at = time.monotonic(), None
        while not self._told:
            try:
                queue.jobs(name="none")
                return True
            except RemeasureError as error:
                if time.monotonic() - began > _PATIENCE_S:
                    raise
                if said_at is None or time.monotonic() - said_at > 600:
                    log.warning("%s; waiting for up to %.0f h", error, _PATIENCE_S / 3600)
                    said_at = time.monotonic()
            self._pause(10.0)
        return False

    def _clean_up(self) -> None:
        """Cancel jobs of a driver that was killed, wait until they are gone, and give its lock back."""
        lease = self._folder / driver.LEASE
        was_killed = lease.exists() and lease.stat().st_size > 0
        if not was_killed and not self._left_over():
            return
        # Held meanwhile: a driver that was started by hand since we looked has jobs of its own.
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Lease(lease))
            except RemeasureError:
                raise driver.in_use(lease) from None
            self._cancel()
            if was_killed:
                log.warning("the lock of the driver that was killed is given back")
                self._unlock()

    def _cancel(self) -> None:
        """Cancel what is left over, and wait until it is gone."""
        until, cancelled = time.monotonic() + _CANCEL_S, set()
        while left := self._left_over():
            new = [job.job_id for job in left if job.job_id not in cancelled]
            if new:
                log.warning("jobs of a driver that was killed are cancelled: %s", " ".join(new[:20]))
                with contextlib.suppress(RemeasureError):  # the queue shows what became of it
                    for start in range(0, len(new), 200):
                        commands.ask(["scancel", *new[start : start + 200]], 60.0)
                    cancelled |= set(new)
            if time.monotonic() > until:
                raise RemeasureError(
                    f"job {left[0].job_id} on {left[0].node or 'no node'} does not end ({left[0].state}); "
                    "tell the cluster's administrators, then run this again"
                )
            time.sleep(1.0)

    def _left_over(self) -> list[queue.Job]:
        """Return what a killed driver left, an outage waited out; nothing where somebody interrupts that."""
        while self._await_queue():
            with contextlib.suppress(RemeasureError):
                return driver.left_over(self.root)
        return []

    def _unlock(self) -> None:
        done = subprocess.run(
            [*_SNAKEMAKE, *self.words, "--unlock"],
            cwd=self.called_in or self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise RemeasureError(
                f"snakemake --unlock fails ({commands.last_line(done.stderr)}); run it by hand and look"
            )

    # -- an attempt ------------------------------------------------------------------------------------------

    def _attempt(self) -> Attempt:
        """Run the driver to its end."""
        path = self._new_log()
        log.info("driver: its words are kept in %s", path)
        (self._folder / "ended.json").unlink(missing_ok=True)
        answers = _answer_bytes(self.root)
        found = Attempt()
        with open(path, "wb") as sink:
            # A session of its own: neither a closed terminal nor its Ctrl-C reaches the driver past us.
            self._child = subprocess.Popen(
                [*_SNAKEMAKE, *self.words],
                cwd=self.called_in or self.root,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self._told:  # told while it was starting
            self._child.send_signal(signal.SIGINT)
        with open(path, "rb") as stream:
            rest = b""
            while True:
                is_over = self._child.poll() is not None
                rest = self._follow(stream, rest, found)
                if is_over:
                    break
                self._kill_late()
                time.sleep(_POLL_S)
        _take_in(rest, found)
        found.status, self._child = self._child.returncode, None
        ended = standins.read(self._folder / "ended.json")
        found.kind = str(ended.get("kind", ""))
        found.was_told = bool(self._told)
        found.got_on = found.n_finished > 0 or _answer_bytes(self.root) > answers
        return found

    def _new_log(self) -> Path:
        for old in sorted(self._folder.glob("driver-*.log"))[:-_KEPT_LOGS]:
            old.unlink(missing_ok=True)
        name = f"driver-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        path = self._folder / f"{name}.log"
        n = 1
        while path.exists():
            n += 1
            path = self._folder / f"{name}-{n}.log"
        return path

    def _follow(self, stream, rest: bytes, found: Attempt) -> bytes:
        """Read on, show it, take in whole lines; return the beginning of the last one."""
        while chunk := stream.read(65536):
            if self._echoes:
                try:
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.buffer.flush()
                except OSError:  # the terminal is gone; the log stays
                    self._echoes = False
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                _take_in(line, found)
            rest = rest[-10_000:]
        return rest

    def _kill_late(self) -> None:
        if self._told and time.monotonic() - self._told_at > _END_S and not self._waits_for_jobs:
            log.error("the driver does not end within %g s and is killed", _END_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def _on_signal(self, number: int, _) -> None:
        if number == signal.SIGHUP:
            return  # the terminal was closed: that is what this program is for
        # In a job SIGTERM comes shortly before the end of its time: no time to wait for running jobs.
        if number == signal.SIGTERM and "SLURM_JOB_ID" in os.environ:
            number = signal.SIGINT
        self._told, self._told_at = number, time.monotonic()
        self._waits_for_jobs = number == signal.SIGTERM
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._told and time.monotonic() < until:
            time.sleep(_POLL_S)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SNAKEMAKE = (sys.executable, "-m", "snakemake")


def _take_in(line: bytes, found: Attempt) -> None:
    """Note what a line of the driver says about progress and passing failures."""
    text = line[-10_000:].decode(errors="replace")
    found.n_finished += bool(_FINISHED.search(text))
    if passing := _PASSING.search(text):
        found.passing = passing[1] or commands.last_line(text[passing.start() :], 80)


def _answer_bytes(root: Path) -> int:
    """Return the size of all journals of answers below ``results``: it grows with each answer."""
    total = 0
    for path in root.glob("results/*/*/*/*/*/**/journal/*.jsonl"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total
