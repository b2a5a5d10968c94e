"""The driver refuses what loses results before the first job, and survives a site without accounting."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import snakekit
from clusterkit import job_line, program
from remeasure.fingerprint import SCRIPTS

SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from remeasure.cluster import driver

driver.end_promptly()

rule all:
    input: "a.txt"

rule make:
    output: "a.txt"
    log: "a.log"
    RETRIES
    resources: mem_mb=MEM, runtime=5
    shell: "echo $PATH > {{output}}"

rule here:
    output: "here.txt"
    localrule: True
    shell: "true > {{output}}"

onstart:
    driver.attach(workflow)
    asks = workflow.executor_settings
    if hasattr(asks, "status_command"):
        print("asked with", asks.status_command, asks.status_attempts, file=sys.stderr)
"""
# How to ask for states is what loses jobs; the driver sets it right.
PROFILE = """
executor: slurm
jobs: 4
slurm-partition-config: partitions.yaml
# When a job has ended; the executor looks again ten seconds later.
slurm-init-seconds-before-status-checks: 4
slurm-status-command: squeue
slurm-status-attempts: 1
slurm-jobname-prefix: test
latency-wait: 3
default-resources: {mem_mb: 1000, runtime: 5}
"""
# A cluster of one file per job: sbatch starts the command at once, squeue tells what became of it.
SBATCH = """
import os, subprocess, sys
words = dict(zip(sys.argv[1:], sys.argv[2:]))
if "--test-only" in sys.argv:
    with open(BASE + "/tested", "a") as stream:
        stream.write(" ".join(sys.argv[1:]) + "\\n")
    sys.exit("sbatch: error: " + open(BASE + "/objects").read() if os.path.exists(BASE + "/objects") else 0)
if os.path.exists(BASE + "/refuses"):
    sys.exit("sbatch: error: QOSMaxSubmit\\nsbatch: error: Batch job submission failed: Job violates policy")
job = str(100 + len(os.listdir(BASE + "/jobs")))
wrap = sys.argv[-1].partition("=")[2]
with open(BASE + "/calls", "a") as stream:
    stream.write(" ".join(sys.argv[1:-1]) + "\\n")
command = f"({wrap}) > {words['--output'].replace('%j', job)} 2>&1; echo $? > {BASE}/jobs/{job}"
open(f"{BASE}/jobs/{job}", "w").write("R " + words["--job-name"] + " " + words["--comment"])
subprocess.Popen(["sh", "-c", command], env={**os.environ, "SLURM_JOB_ID": job}, stdin=subprocess.DEVNULL,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
print(job)
"""
SQUEUE = """
import os, sys
words = dict(word.partition("=")[::2] for word in sys.argv[1:])
if os.path.exists(BASE + "/away"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
if "--Format" in words:
    marks = [part.split(":")[1] for part in words["--Format"].split(",")]
    if os.path.exists(BASE + "/left"):
        sys.stdout.write(open(BASE + "/left").read().replace("<MARK>", marks[0]).replace("<END>", marks[-1]))
elif not os.path.exists(BASE + "/forgets"):
    for job in os.listdir(BASE + "/jobs"):
        said = open(f"{BASE}/jobs/{job}").read().split()
        state = "RUNNING" if said[0] == "R" else "COMPLETED" if said[0] == "0" else "FAILED"
        print(words["--format"].replace("%i", job).replace("%T", state).replace("%k", ""))
"""
SRUN = """
import os, sys
words = sys.argv[1:]
while words[0].startswith("-"):
    words = words[1:]
os.execvp(words[0], words)
"""


@pytest.fixture
def work(tmp_path):
    """A working directory with a profile, and a cluster without accounting on the PATH."""
    found, base = tmp_path / "work", tmp_path / "cluster"
    (base / "jobs").mkdir(parents=True)
    (found / "slurm").mkdir(parents=True)
    (found / "slurm" / "config.yaml").write_text(PROFILE)
    (found / "slurm" / "partitions.yaml").write_text(
        "partitions: {cpu: {max_mem_mb: 4000, max_runtime: 1h}}\n"
    )
    for name, body in {"sbatch": SBATCH, "squeue": SQUEUE, "srun": SRUN}.items():
        program(base / "bin", name, body.replace("BASE", repr(str(base))).replace("{repr", "{"), python=True)
    program(base / "bin", "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    program(base / "bin", "scontrol", "echo 'MinJobAge               = 60 sec'")
    program(base / "bin", "sinfo", "echo 'cpu*'")
    program(base / "bin", "scancel", f'echo "$*" >> {base}/cancelled')
    write(found)
    return found


def write(work, retries="", mem="1000"):
    (work / "Snakefile").write_text(SNAKEFILE.replace("RETRIES", retries).replace("MEM", mem))


def run(work, *words, targets=("a.txt",), profile=("--profile", "slurm"), **environment):
    path = f"{work.parent}/cluster/bin{os.pathsep}{os.environ['PATH']}"
    return snakekit.call([*targets, *profile, *words], work, os.environ | {"PATH": path} | environment)


def refused(work, *words, **more):
    """Return the one line with which a run is refused; no job was submitted, no lock is left."""
    done = run(work, *words, **more)
    assert done.returncode == 2, done.stderr
    assert not (work.parent / "cluster" / "calls").exists()
    assert not list((work / ".snakemake" / "locks").glob("*"))
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def test_a_job_is_seen_to_its_end_without_accounting(work):
    done = run(work)
    assert done.returncode == 0, done.stderr
    assert "cluster: jobs to submit: 1 or more, as test_" in done.stderr
    assert "counts as done when its files are there" in done.stderr  # MinJobAge 60
    assert "asked with sacct 60\n" in done.stderr  # not the profile's squeue, not its single attempt
    # The job's own PATH is the user's.
    assert "remeasure/bin" not in (work / "a.txt").read_text()
    assert (work / ".snakemake/remeasure/driver.lease").read_bytes() == b""


@pytest.mark.slow
def test_a_failed_job_is_seen(work):
    (work / "Snakefile").write_text((work / "Snakefile").read_text().replace("echo $PATH", "exit 4; echo"))
    done = run(work)
    assert done.returncode == 1 and "SLURM status is: 'FAILED'" in done.stderr


@pytest.mark.slow
def test_a_finished_job_that_the_queue_forgot_is_judged_by_its_files(work):
    (work.parent / "cluster" / "forgets").touch()
    done = run(work)
    assert done.returncode == 0, done.stderr


def test_an_outage_while_jobs_run_loses_nothing(work):
    away = work.parent / "cluster" / "away"
    program(
        work.parent / "cluster" / "bin",
        "outage",
        f"until test -e {work.parent}/cluster/jobs/100; do sleep 0.1; done; touch {away}; sleep 6; rm {away}",
    )
    outage = subprocess.Popen([work.parent / "cluster" / "bin" / "outage"])
    done = run(work)
    assert outage.wait(timeout=20) == 0
    assert done.returncode == 0, done.stderr


def test_a_driver_that_waits_for_nothing_ends_by_itself(work):
    # As without stand-ins: the queue knows nothing of the job, and nobody tells that it has ended.
    text = (work / "Snakefile").read_text()
    (work / "Snakefile").write_text(
        text + "    import os\n    os.environ['PATH'] = os.environ['PATH'].split(':', 1)[1]\n"
    )
    began = time.monotonic()
    done = run(work, REMEASURE_WATCHDOG_S="4")
    assert done.returncode == 1 and time.monotonic() - began < 60
    assert "error: watchdog: for " in done.stderr and "none is in the queue" in done.stderr
    assert json.loads((work / ".snakemake/remeasure/ended.json").read_text())["kind"] == "lost"
    assert not list((work / ".snakemake" / "locks").glob("*"))


def test_arrays_are_refused(work):
    assert "slurm-array-jobs: one failing task" in refused(work, "--slurm-array-jobs", "all")


def test_immediate_submission_is_refused(work):
    assert "--immediate-submit: reports success" in refused(work, "--immediate-submit", "--notemp")


def test_retries_in_a_rule_are_refused(work):
    write(work, retries="retries: 2")
    assert "rule make: `retries:` in a rule repeats the step inside its job" in refused(work)


@pytest.mark.slow
def test_retries_of_the_profile_are_not(work):
    assert run(work, "--retries", "2").returncode == 0


def test_a_need_that_no_partition_holds_is_refused(work):
    write(work, mem="9000")
    assert "no partition holds make: 1 thread, 9,000 MB, 5 min; add one" in refused(work)


def test_jobs_of_a_killed_driver_are_named(work):
    old = "test_0a1b2c3d-1111-4222-8333-0123456789ab"
    line = job_line(7, name=old, work_dir=str(work), comment="rule_make")
    (work.parent / "cluster" / "left").write_text(line)
    said = refused(work)
    assert "still run in this folder: 7 (make, RUNNING)" in said and f"scancel --name={old};" in said


def test_an_absent_controller_at_the_start_is_one_line(work):
    (work.parent / "cluster" / "away").touch()
    assert "Unable to contact slurm controller" in refused(work)
    assert json.loads((work / ".snakemake/remeasure/ended.json").read_text())["kind"] == "away"


def test_a_default_profile_that_takes_over_is_refused(work):
    (work / "profiles" / "default").mkdir(parents=True)
    (work / "profiles" / "default" / "config.yaml").write_text("executor: local\ncores: 2\n")
    assert "profiles/default/config.yaml: `executor` stands here and wins" in refused(work)
    # Without --profile it is the user's business.
    assert run(work, profile=()).returncode == 0


def test_dry_runs_local_targets_and_other_calls_are_left_alone(work):
    (work.parent / "cluster" / "away").touch()
    for words in (["-n"], ["--unlock"], ["--summary"]):
        assert run(work, *words).returncode == 0
    assert run(work, targets=("here.txt",)).returncode == 0
    assert run(work, "--cores", "1", profile=()).returncode == 0
    assert not (work / ".snakemake" / "remeasure").exists()


def test_an_interrupted_driver_leaves_no_lock_and_cancels_its_jobs(work):
    (work / "Snakefile").write_text((work / "Snakefile").read_text().replace("echo $PATH", "sleep 30; echo"))
    driver = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "a.txt", "--profile", "slurm"],
        cwd=work,
        env={**os.environ, "PATH": f"{work.parent}/cluster/bin{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    until = time.monotonic() + 60
    while "100" not in _text(work / ".snakemake/remeasure/waited.json"):
        assert driver.poll() is None and time.monotonic() < until, "the job was never told to the stand-in"
        time.sleep(0.1)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=60) == 1
    assert (work.parent / "cluster" / "cancelled").read_text() == "100\n"
    assert not list((work / ".snakemake" / "locks").glob("*"))
    assert (work / ".snakemake/remeasure/driver.lease").read_bytes() == b""


def _text(path):
    return path.read_text() if path.exists() else ""


def test_a_call_that_submits_nothing_ends_without_a_pause(work):
    """The executor's own pause before it looks again is 40 s here."""
    began = time.monotonic()
    done = run(work, "--slurm-init-seconds-before-status-checks", "40", targets=("here.txt",))
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 25


def test_a_job_that_the_scheduler_does_not_take_is_told_in_its_own_words_at_the_end(work):
    (work.parent / "cluster" / "refuses").touch()
    (work / "Snakefile").write_text(
        (work / "Snakefile").read_text()
        + "\nonerror:\n    from remeasure.status import failures\n"
        + "    failures.said_at_end(workflow.scheduler.failed, 0.0, True)\n"
    )
    done = run(work)
    assert done.returncode == 1
    at = done.stderr.index("Failed jobs (1):")
    assert done.stderr[at:].splitlines()[:4] == [
        "Failed jobs (1):",
        "  make: refused by sbatch",
        "    a.log",
        "      Batch job submission failed: Job violates policy",
    ]


def test_what_the_scheduler_would_not_take_is_refused_before_the_first_job(work):
    (work.parent / "cluster" / "objects").write_text("Batch job submission failed: Invalid qos")
    line = refused(work)
    assert "rule make: the scheduler would refuse it: " in line and "Invalid qos" in line
    assert "--partition=cpu --cpus-per-task=1 --mem=1000 --time=5" in line


def test_a_job_for_which_no_node_is_up_right_now_is_submitted(work):
    (work.parent / "cluster" / "objects").write_text(
        "allocation failure: Requested node configuration is not available: nodes are down"
    )
    assert run(work).returncode == 0


@pytest.mark.parametrize("in_the_way", ["a file", "a folder"])
def test_what_is_in_the_way_of_our_files_is_one_line(work, in_the_way):
    (work / ".snakemake").mkdir()
    place = work / ".snakemake" / "remeasure"
    if in_the_way == "a file":
        place.write_text("")
    else:
        (place / "driver.lease").mkdir(parents=True)
    line = refused(work)
    assert "cannot be written (" in line and line.endswith("make room, or delete .snakemake/remeasure")
