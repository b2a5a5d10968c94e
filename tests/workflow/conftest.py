"""A finished small run to play with, and ways to ask Snakemake what it would do."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import snakekit
import timekit

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ("Snakefile", "rules", "scripts", "config", "envs", "profiles", "slurm", "requirements.txt")

# What `make ci` builds.
CI_TARGETS = tuple(
    f"results/ci/tables/{name}"
    for name in (
        *("table1.csv", "table1.html", "judges.csv", "tosc.csv", "tosc.html"),
        *("mrarebench.csv", "mrarebench.html"),
        *("ragbench.csv", "ragbench.html", "ragbench.judges.csv"),
        *("landmarks.csv", "landmarks.html"),
    )
)


def jobs(said: str) -> dict[str, int]:
    """Return the number of jobs per rule that a call has run, or would run, by what it said."""
    if "Nothing to be done" in said:
        return {}
    table = said[said.index("Job stats:") :].split("\n\n")[0]
    rows = re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)
    return {rule: int(count) for rule, count in rows if rule != "total"}


@dataclass(frozen=True)
class Checkout:
    """A copy of the project beside a copy of a finished run, both free to be changed."""

    project: Path
    directory: Path

    def command(self, *words: str) -> list[str]:
        """Return the words of a call of Snakemake on the copy."""
        return [sys.executable, "-m", "snakemake", *self.words(*words)]

    def words(self, *words: str) -> list[str]:
        """Return what Snakemake is told in a call on the copy."""
        told = ["-s", str(self.project / "Snakefile"), "--directory", str(self.directory)]
        told += ["--profile", str(self.project / "profiles" / "default"), "--cores", "2"]
        return [*told, *words]

    def call(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess:
        """Run Snakemake on the copy and return what it said."""
        return snakekit.call(self.words(*words), self.project, env)

    def planned(self, *targets: str, config: tuple[str, ...] = ("run=ci",)) -> dict[str, int]:
        """Return the number of jobs per rule that a call would run."""
        done = self.call(*targets, "--dry-run", "--config", *config)
        assert done.returncode == 0, done.stderr
        return jobs(done.stdout + done.stderr)

    def run(self, *targets: str, config: tuple[str, ...] = ("run=ci",)) -> str:
        """Run to the end and return what Snakemake wrote to standard error."""
        done = self.call(*targets, "--config", *config)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def path(self, name: str) -> Path:
        """Return a path of the copied results."""
        return self.directory / name

    def bytes_of(self, pattern: str = "results/ci/**/*") -> dict[str, bytes]:
        """Return the bytes of all result files but logs, times, databases and journals."""
        return timekit.compared(self.directory, pattern)


def copy_project(target: Path) -> Path:
    """Copy what a checkout holds, without results and environments.

    What Python has compiled and what fingerprints were found comes along, both made again where a source is
    another: every copy would begin with seconds of that. What another process is just writing stays behind.
    """
    target.mkdir()
    for name in PROJECT:
        source = ROOT / name
        ignore = shutil.ignore_patterns("*.pyc.*", ".*.part")
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore)
        else:
            shutil.copy2(source, target / name)
    return target


def link_sources(directory: Path) -> None:
    """Give a working directory verified sources and environments of this checkout, without copying 1 GB."""
    (directory / "results").mkdir(parents=True)
    shutil.copytree(ROOT / "results" / "sources", directory / "results" / "sources", copy_function=os.link)
    here, there = ROOT / "results" / "environments", directory / "results" / "environments"
    there.mkdir()
    for record in here.glob("*.json"):
        shutil.copy2(record, there)
        (there / record.stem).symlink_to(here / record.stem)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Checkout:
    """The finished run `ci` of this checkout, copied with Snakemake's memory of it; do not change it."""
    if not (ROOT / "results/ci/tables/table1.csv").exists():
        pytest.fail("the small run is not there; run: make ci")
    base = tmp_path_factory.mktemp("finished")
    checkout = Checkout(copy_project(base / "project"), base / "work")
    link_sources(checkout.directory)
    shutil.copytree(ROOT / "results" / "ci", checkout.directory / "results" / "ci")
    shutil.copytree(ROOT / ".snakemake" / "metadata", checkout.directory / ".snakemake" / "metadata")
    return checkout


@pytest.fixture
def checkout(finished, tmp_path) -> Checkout:
    """A fresh copy of the finished run that a test may change, all but the bytes and times of its sources."""
    copied = Checkout(copy_project(tmp_path / "project"), tmp_path / "work")
    link_sources(copied.directory)
    for part in ("results/ci", ".snakemake/metadata"):
        shutil.copytree(finished.path(part), copied.path(part))
    return copied


@pytest.fixture
def edited(finished, tmp_path) -> Checkout:
    """A fresh copy of the project beside the finished run itself: for plans, which leave it as it is."""
    return Checkout(copy_project(tmp_path / "project"), finished.directory)
