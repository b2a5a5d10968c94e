"""Whatever happens to a run on a real cluster, the same command ends in the table of an undisturbed run.

The stories need minutes of waiting and seconds of work, so they are told side by side.
"""

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from cluster_processes import kill, wait_for
from slurmkit import FAST, TABLE
from stage import CELL, N_QUESTIONS, Stage, set_stage

SUBMIT = (sys.executable, "scripts/submit.py", TABLE, "--", "--config", "run=ci", *FAST)
ON_CPU = ("config/runs/ci.yaml", "gpu: 1, gpu_model: h100, ", "")
ON_A10G = ("config/runs/ci.yaml", "gpu_model: h100", "gpu_model: a10g")


def scancel_by_hand(stage: Stage) -> None:
    """A cancelled job counts as failed and is sent again; finished answers are kept."""
    driver = stage.start(seconds=3)
    job = stage.until_asked(2)
    assert (job.partition, job.gpus) == ("h100", "h100:1")
    subprocess.run(["scancel", str(job.job_id)], env=stage.cluster.environment, check=True)
    stage.ends_well(driver)
    assert [job.state for job in stage.jobs()] == ["CANCELLED", "COMPLETED"]
    assert len(stage.asked()) <= N_QUESTIONS + 1, "but the one that was under way nothing is asked twice"


def time_limit(stage: Stage) -> None:
    """Before the limit asking is told to end: what it has is kept, and the next attempt goes on."""
    stage.made.change("slurm/config.yaml", '  ask: {slurm_extra: "--signal=TERM@120"}', TERM_AT_30_S)
    driver = stage.start(seconds=10)
    job = stage.until_asked(1)
    # The smallest limit that does not end it at once; the scheduler looks at limits every 30 s.
    minutes = math.ceil((job.elapsed_s + 40) / 60)
    stage.cluster.control("update", f"jobid={job.job_id}", f"timelimit={minutes}")
    stage.ends_well(driver, 300)
    first, second = stage.jobs()
    assert (first.state, second.state) == ("FAILED", "COMPLETED")
    assert second.time_limit == "00:10:00", "the second attempt has twice the time of the first"
    assert re.search(r"to be continued: [1-3] of 4 answered", driver.said()), driver.said()[-3000:]
    assert Counter(stage.asked()).most_common(1)[0][1] == 1, "nothing is asked twice"


TERM_AT_30_S = '  ask: {slurm_extra: "--signal=TERM@30"}'


def out_of_memory(stage: Stage) -> None:
    """A job that is killed for its memory is sent again with more."""
    stage.made.change(*ON_CPU)
    # Memory is looked at once a second.
    driver = stage.start(seconds=4, hunger_mb=1800)
    stage.ends_well(driver)
    jobs = stage.jobs()
    assert [job.mem_mb for job in jobs] == [1500, 3000]
    assert [job.state for job in jobs] == ["FAILED", "COMPLETED"]


def node_down(stage: Stage) -> None:
    """The scheduler itself starts the job of a lost node again; the driver waits."""
    stage.made.change(*ON_A10G)
    driver = stage.start(seconds=4)
    job = stage.until_asked(2)
    assert (job.node, job.gpus) == ("a10g-01", "a10g:1")
    stage.cluster.set_node(job.node, "down")
    time.sleep(2)
    # Without cgroups some live on, which those of a lost node do not.
    kill(stage.cluster.job_processes({job.job_id}))
    stage.cluster.set_node(job.node, "resume")
    stage.ends_well(driver)
    assert [(job.state, job.restarts) for job in stage.jobs()] == [("COMPLETED", 1)]
    states = [ended.state for ended in stage.cluster.ended() if ended.job_id == job.job_id]
    assert states == ["NODE_FAIL", "COMPLETED"]
    assert len(stage.asked()) <= N_QUESTIONS + 1


def driver_killed(stage: Stage) -> None:
    """The same command says what is in the way and ends; submit.py clears it away and goes on."""
    killed = stage.start(seconds=6)
    stage.until_asked(2)
    killed.kill()
    bare = stage.start(seconds=6)
    assert bare.wait(60) != 0
    assert "--unlock" in bare.said() or "scancel" in bare.said(), bare.said()
    submitted = stage.made.program(list(SUBMIT), **stage.environment())
    stage.ends_well(submitted)
    assert len(stage.asked()) <= N_QUESTIONS + 1


def interrupted(stage: Stage) -> None:
    """Ctrl-C cancels the jobs; the same command goes on."""
    stage.made.change(*ON_CPU)
    driver = stage.start(seconds=3)
    job = stage.until_asked(2)
    os.killpg(driver.process.pid, signal.SIGINT)
    assert driver.wait(60) != 0
    assert wait_for(lambda: stage.job(job.job_id).state == "CANCELLED", 60)
    stage.no_process_left()
    stage.ends_well(stage.start())
    assert len(stage.asked()) <= N_QUESTIONS + 1


def disk_full(stage: Stage) -> None:
    """A full disk fails the job with one line that says so; with room again the same command goes on."""
    stage.made.change(*ON_CPU)
    cell, kept = stage.made.path(CELL), stage.made.path("kept")
    shutil.copytree(cell, kept)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", cell], check=True)
    try:
        shutil.copytree(kept, cell, dirs_exist_ok=True)
        ballast = cell / "ballast"
        try:
            ballast.write_bytes(b"x" * (1 << 20))
        except OSError:
            pass  # as full as it gets
        driver = stage.start("--retries", "0")
        assert driver.wait(120) == 1
        assert "No space left on device" in driver.said(), driver.said()[-3000:]
        stage.no_process_left()
        ballast.unlink()
        stage.ends_well(stage.start())
    finally:
        subprocess.run(["umount", "--lazy", cell], check=True)


STORIES = (
    time_limit,
    scancel_by_hand,
    out_of_memory,
    node_down,
    driver_killed,
    interrupted,
    disk_full,
)


@pytest.fixture(scope="module")
def told(request, cluster, undisturbed, tmp_path_factory):
    """All stories that were asked for, running side by side, by name."""
    asked = [item.callspec.params.get("story") for item in request.session.items if hasattr(item, "callspec")]
    stages = {
        story: set_stage(cluster, undisturbed, tmp_path_factory.mktemp(story.__name__) / "project")
        for story in STORIES
        if story in asked
    }
    with ThreadPoolExecutor(len(STORIES)) as pool:
        yield {story: pool.submit(story, stage) for story, stage in stages.items()}
        # Where a test failed or was interrupted, nothing that is still told goes on.
        for stage in stages.values():
            for driver in stage.made.drivers:
                driver.kill()


@pytest.mark.timeout(500)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_disturbed_run_ends_in_the_same_table(story, told):
    told[story].result()


@pytest.mark.timeout(300)
def test_an_outage_of_the_controller_is_waited_out(told, cluster, undisturbed, tmp_path):
    for future in told.values():
        future.exception()
    stage = set_stage(cluster, undisturbed, tmp_path / "project")
    driver = stage.start(seconds=4)
    job = stage.until_asked(2)
    cluster.stop_controller()
    stopped = time.monotonic()
    # The job ends meanwhile, and nobody can be told.
    assert wait_for(lambda: (stage.made.path(CELL) / "responses.jsonl").exists(), 40)
    time.sleep(max(0.0, 45 - (time.monotonic() - stopped)))
    cluster.start_controller()
    stage.ends_well(driver)
    assert [(it.job_id, it.state) for it in stage.jobs()] == [(job.job_id, "COMPLETED")]
    assert len(stage.asked()) == N_QUESTIONS
