"""A run that is killed again and again ends in the same bytes as one that nobody disturbed."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from conftest import CI_TARGETS, Checkout, copy_project, link_sources


def kill_tree(process: subprocess.Popen) -> None:
    """SIGKILL a process and everything that it started, children first seen to last."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split("\n")[1:]
    parents = {int(pid): int(ppid) for pid, ppid in (line.split() for line in listed if line.strip())}
    doomed = {process.pid}
    while True:
        more = {pid for pid, ppid in parents.items() if ppid in doomed} - doomed
        if not more:
            break
        doomed |= more
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_kills_at_random_moments_change_no_byte(finished, tmp_path):
    checkout = Checkout(copy_project(tmp_path / "project"), tmp_path / "work")
    link_sources(checkout.directory)
    command = [sys.executable, "-m", "snakemake", "-s", str(checkout.project / "Snakefile")]
    command += ["--directory", str(checkout.directory), "--cores", "2", "--config", "run=ci"]
    command += ["--profile", str(checkout.project / "profiles" / "default"), *CI_TARGETS]
    moments = random.Random(20261129)
    for _ in range(5):
        process = subprocess.Popen(
            command, cwd=checkout.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(4, 40))
        kill_tree(process)
        subprocess.run([*command, "--unlock"], cwd=checkout.project, capture_output=True)
    checkout.run(*CI_TARGETS)
    assert checkout.bytes_of() == finished.bytes_of()
    torn = [path for path in checkout.directory.rglob("*.part") if path.is_file()]
    assert all(path.name.startswith(".") for path in torn), "no half-written file under a final name"
