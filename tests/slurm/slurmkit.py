"""Copies of the project, drivers that run in them, and what the scheduler remembers of their jobs."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cluster_processes import wait_for
from virtual_cluster import VirtualCluster

import timekit

ROOT = Path(__file__).resolve().parents[2]
NOT_CLONED = (".git", ".venv", "results", ".snakemake", "__pycache__", ".*_cache", ".hypothesis")
# Snakemake first looks at jobs 40 s after their submission, and each look that finds none ended puts the next
# one off by 10 s more: the only thing that tests change. Our jobs take 8 to 14 s: looks after 2, 14 and 36 s.
FAST = ("--slurm-init-seconds-before-status-checks", "2")
TABLE = "results/table1.csv"


class Driver:
    """A Snakemake on the login node, started in the background; it never runs longer than it may."""

    def __init__(self, words: list[str], folder: Path, log: Path, **environment: str) -> None:
        self.log = log
        here = {**os.environ, **environment}
        # As in a shell where the environment is active: the literal command finds its programs.
        here["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{here['PATH']}"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                words,
                cwd=folder,
                env=here,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, limit_s: float) -> int:
        """Return the exit status; a driver that takes longer is killed and that is a failure of the test."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no end after {limit_s:g} s; it said:\n{self.said()[-3000:]}") from None

    def kill(self) -> None:
        """Kill it and what it started on this machine, jobs excepted, so that it can clean up nothing."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def said(self) -> str:
        """Return what it printed so far."""
        return self.log.read_text(errors="replace")

    def submitted(self) -> list[int]:
        """Return the numbers of the jobs that it sent to the scheduler."""
        return [int(n) for n in re.findall(r"with SLURM jobid (\d+)", self.said())]

    def says(self, pattern: str, limit_s: float) -> re.Match:
        """Wait until it prints something and return that."""
        found = None

        def there() -> bool:
            nonlocal found
            found = re.search(pattern, self.said())
            return found is not None or self.process.poll() is not None

        wait_for(there, limit_s)
        assert found, f"{pattern!r} was not said within {limit_s:g} s:\n{self.said()[-3000:]}"
        return found


@dataclass
class Clone:
    """A copy of the project with results of its own; commands run in its root, as a user types them."""

    folder: Path
    drivers: list[Driver] = field(default_factory=list)

    def start(self, *words: str, target: str = TABLE, run: str = "ci", **environment: str) -> Driver:
        """Start ``snakemake TARGET --profile slurm --config run=RUN WORDS`` in the background."""
        literal = ["snakemake", target, "--profile", "slurm", "--config", f"run={run}", *FAST, *words]
        return self.program(literal, **environment)

    def program(self, words: list[str], **environment: str) -> Driver:
        """Start a program in the root of the copy."""
        log = self.folder / f"driver-{len(self.drivers)}.log"
        self.drivers.append(Driver(words, self.folder, log, **environment))
        return self.drivers[-1]

    def run(self, *words: str, limit_s: float = 120, **environment: str) -> Driver:
        """Run a driver to its successful end."""
        driver = self.start(*words, **environment)
        status = driver.wait(limit_s)
        assert status == 0, driver.said()[-4000:]
        return driver

    def planned(self, *targets: str) -> dict[str, int]:
        """Return the number of jobs per rule that the next call would run."""
        driver = self.start("--dry-run", *targets[1:], target=targets[0] if targets else TABLE)
        assert driver.wait(60) == 0, driver.said()
        if "Nothing to be done" in driver.said():
            return {}
        table = driver.said().partition("Job stats:")[2].split("\n\n")[0]
        rows = re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)
        return {rule: int(count) for rule, count in rows if rule != "total"}

    def path(self, name: str) -> Path:
        """Return a path of the copy."""
        return self.folder / name

    def change(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands once in a file of the copy."""
        text = self.path(name).read_text()
        assert text.count(old) == 1, f"{name}: {old!r}"
        self.path(name).write_text(text.replace(old, new))


def clone(target: Path) -> Clone:
    """Copy the project without anything that was made; the verified sources are linked."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*NOT_CLONED), symlinks=True)
    (target / "results").mkdir()
    shutil.copytree(ROOT / "results/sources", target / "results/sources", copy_function=link_sources)
    return Clone(target)


def link_sources(source: str, target: str) -> None:
    """Link a verified source, copy anything else: logs are written in place."""
    linked = "/results/sources/" in source and "/logs/" not in source
    (os.link if linked else shutil.copy2)(source, target)


def bytes_of(folder: Path, pattern: str = "results/ci/**/*") -> dict[str, bytes]:
    """Return the bytes of all result files but logs, times, databases and journals."""
    return timekit.compared(folder, pattern)


@dataclass(frozen=True)
class Known:
    """A job as the controller remembers it."""

    job_id: int
    state: str
    rule: str
    wildcards: str
    partition: str
    node: str
    gpus: str
    """What was asked for: ``h100:1``, or empty."""
    mem_mb: int
    time_limit: str
    elapsed_s: int
    restarts: int
    folder: str


def known_jobs(cluster: VirtualCluster, folder: Path | None = None) -> list[Known]:
    """Return the jobs that the controller remembers, in order; those of a folder alone."""
    lines = cluster.control("show", "job", "-o", "--all").splitlines()
    found = [read_known(line) for line in lines if line.startswith("JobId=")]
    return sorted(
        (job for job in found if folder is None or job.folder == str(folder)), key=lambda job: job.job_id
    )


def read_known(line: str) -> Known:
    """Return a line of `scontrol show job -o`."""
    words = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
    rule, _, wildcards = words.get("Comment", "").removeprefix("rule_").partition("_wildcards_")
    return Known(
        int(words["JobId"]),
        words["JobState"],
        rule,
        wildcards,
        words["Partition"],
        words["NodeList"].replace("(null)", ""),
        words.get("TresPerJob", "").removeprefix("gres:gpu:"),
        megabytes(words["MinMemoryNode"]) if "MinMemoryNode" in words else 0,
        words["TimeLimit"],
        seconds(words["RunTime"]),
        int(words["Restarts"]),
        words["WorkDir"],
    )


def megabytes(text: str) -> int:
    """Return an amount of memory as SLURM writes it: 2000M, 3G, 2.50G."""
    return round(float(text[:-1]) * {"M": 1, "G": 1024}[text[-1]])


def seconds(text: str) -> int:
    """Return a time of less than a day as SLURM writes it: 01:02:03."""
    hours, minutes, rest = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + rest
