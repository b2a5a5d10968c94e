"""Where a story about a failure takes place: a copied finished run, one cell of which is asked again."""

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cluster_processes import command_of, wait_for
from slurmkit import Clone, Driver, Known, bytes_of, known_jobs, link_sources
from virtual_cluster import VirtualCluster

CELL = "results/ci/pixelrag/nq/naive/stand-in"
N_QUESTIONS = 4


@dataclass(frozen=True)
class Stage:
    """One story's own copy of the run that nobody disturbed."""

    cluster: VirtualCluster
    made: Clone
    undisturbed: Clone

    @property
    def heard(self) -> Path:
        """A line per question that the model was asked, whatever became of the answer."""
        return self.made.path("heard.txt")

    def start(self, *words: str, seconds: float = 0, hunger_mb: int = 0) -> Driver:
        """Start the literal command; an answer takes so many seconds and so much memory."""
        return self.made.start(*words, **self.environment(seconds, hunger_mb))

    def environment(self, seconds: float = 0, hunger_mb: int = 0) -> dict[str, str]:
        """Return what makes the stand-in slow or hungry."""
        return {
            "STANDIN_HEARD": str(self.heard),
            "STANDIN_SECONDS": str(seconds),
            "STANDIN_HUNGER_MB": str(hunger_mb),
        }

    def jobs(self) -> list[Known]:
        """Return the jobs of this story, in order."""
        return known_jobs(self.cluster, self.made.folder)

    def job(self, job_id: int) -> Known:
        """Return one job of this story as it is now."""
        (found,) = (job for job in self.jobs() if job.job_id == job_id)
        return found

    def asked(self) -> list[str]:
        """Return what the model was asked so far."""
        return self.heard.read_text().split() if self.heard.exists() else []

    def until_asked(self, n: int, limit_s: float = 90) -> Known:
        """Wait until the model was asked so many questions; return the job that runs."""
        assert wait_for(lambda: len(self.asked()) >= n, limit_s), self.made.drivers[-1].said()[-3000:]
        return [job for job in self.jobs() if job.state == "RUNNING"][-1]

    def ends_well(self, driver: Driver, limit_s: float = 200) -> None:
        """Wait for the driver's success and compare what it made with the undisturbed run."""
        status = driver.wait(limit_s)
        assert status == 0, driver.said()[-4000:]
        self.same_as_undisturbed()

    def same_as_undisturbed(self) -> None:
        """Compare all results, look for answers paid for twice and for processes that stayed."""
        expected, found = (bytes_of(it.folder) for it in (self.undisturbed, self.made))
        assert sorted(found) == sorted(expected)
        assert [name for name in expected if found[name] != expected[name]] == []
        table = "results/table1.csv"
        assert self.made.path(table).read_bytes() == self.undisturbed.path(table).read_bytes()
        keys = Counter(json.loads(line)["key"] for line in self.journal())
        assert len(keys) == N_QUESTIONS and set(keys.values()) == {1}
        self.no_process_left()

    def journal(self) -> list[str]:
        """Return the lines of the cell's journal."""
        files = sorted(self.made.path(f"{CELL}/journal").glob("*.jsonl"))
        return [line for file in files for line in file.read_text().splitlines()]

    def no_process_left(self) -> None:
        """Make sure that no model server and no step of this story's jobs lives.

        Snakemake's own processes are left out: without cgroups the scheduler loses sight of orphans.
        """
        ids = {job.job_id for job in self.jobs()}
        assert ids

        def living() -> list[str]:
            commands = [command_of(pid) for pid in self.cluster.job_processes(ids)]
            return [command for command in commands if "/scripts/" in command.partition(" --")[0]]

        if not wait_for(lambda: not living(), 15):
            raise AssertionError(living())


def set_stage(cluster: VirtualCluster, undisturbed: Clone, folder: Path) -> Stage:
    """Copy the undisturbed run and remove the answers of one cell."""
    logs = shutil.ignore_patterns("driver-*.log")
    shutil.copytree(undisturbed.folder, folder, ignore=logs, copy_function=link_sources, symlinks=True)
    shutil.rmtree(folder / CELL / "journal")
    for name in ("responses.jsonl", "answers.json"):
        (folder / CELL / name).unlink()
    return Stage(cluster, Clone(folder), undisturbed)
