"""What destroys or loses results on a cluster, refused before the first job is submitted.

Source: what was seen with Snakemake 9.27 and snakemake-executor-plugin-slurm 2.8.0.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from remeasure.cluster import commands, site
from remeasure.errors import RemeasureError
from remeasure.needs import Needs
from remeasure.yaml_files import read_yaml

# Nothing of this may stand in profiles/default: it wins over --profile without a word.
_TAKES_OVER = (
    "executor",
    "cores",
    "jobs",
    "default-resources",
    "local-cores",
    "cluster",
    "slurm-partition-config",
)


def check_profiles(workflow, is_slurm: bool) -> None:
    """Refuse a profiles/default that silently takes over from the profile that was asked for."""
    asked = any(word == "--profile" or word.startswith("--profile=") for word in sys.argv)
    if not (asked or os.environ.get("SNAKEMAKE_PROFILE") or is_slurm):
        return
    for path in default_profiles(Path.cwd(), Path(workflow.basedir)):
        for key in taken_over(path):
            raise RemeasureError(
                f"{path}: `{key}` stands here and wins over --profile without a word; remove it, or say it "
                "in slurm/config.yaml"
            )


def default_profiles(*folders: Path) -> Iterator[Path]:
    """Yield the files of ``profiles/default`` below the folders where Snakemake looks for them."""
    for folder in dict.fromkeys(path.resolve() for path in folders):
        here = folder / "profiles" / "default"
        yield from sorted(
            path for path in here.glob("*.yaml") if path.name.startswith(("config.", "profile."))
        )


def taken_over(path: Path) -> list[str]:
    """Return the settings of a profile that decide where jobs run; none where it cannot be read."""
    try:
        keys = {str(key).replace("_", "-") for key in read_yaml(path)}
    except RemeasureError:  # empty, or Snakemake has said already what is wrong with it
        return []
    return [key for key in _TAKES_OVER if key in keys]


def check_settings(workflow) -> None:
    """Refuse what destroys or loses results with this executor."""
    if workflow.executor_settings.array_jobs:
        raise RemeasureError(
            "slurm-array-jobs: one failing task of an array removes the results of others (executor 2.8.0); "
            "remove it from the profile and the command line"
        )
    if workflow.remote_execution_settings.immediate_submit:
        raise RemeasureError(
            "--immediate-submit: reports success while jobs are still queued, and sets no dependencies "
            "between them; leave it away"
        )
    # A rule without `retries:` has null or 0 here; null takes the profile's.
    repeating = [rule.name for rule in workflow.rules if getattr(rule, "_restart_times", None)]
    if repeating:
        raise RemeasureError(
            f"rule {repeating[0]}: `retries:` in a rule repeats the step inside its job, without more memory "
            "or time, and then again outside; remove it, the profile's `retries` counts"
        )


def check_needs(jobs: list, here: site.Site, file: Path) -> None:
    """Refuse jobs that no partition can hold: the executor would only warn and take the default partition."""
    misfits: dict[str, Needs] = {}
    for job in jobs:
        if job.resources.get("slurm_partition"):
            continue
        asked = _asked(job)
        # Without types in the scheduler we name the partition of each GPU job; none named: none fits.
        if here.fits(asked) is None or (asked.gpu and not here.gpus.typed):
            misfits.setdefault(job.rule.name, asked)
    if misfits:
        said = "; ".join(f"{rule}: {described(asked)}" for rule, asked in misfits.items())
        raise RemeasureError(
            f"{file}: no partition holds {said}; add one, raise its limits, or correct the needs in "
            "config/runs/"
        )


# What passes by itself: such a job waits until nodes are there, or is sent when the controller answers.
_PASSING = re.compile(
    r"not available|\b(busy|down|drained|draining|reserved)\b|slurm controller|timed out|connection",
    re.IGNORECASE,
)
_MOST_KINDS = 60


def check_refused(jobs: list, here: site.Site) -> None:
    """Refuse to begin where the scheduler would not take a job: account, partition, limits, constraint.

    Each kind of job is shown to it once (``sbatch --test-only``); nothing is submitted.
    """
    kinds: dict[tuple[str, ...], str] = {}
    for job in jobs:
        kinds.setdefault(_words(job, here), job.rule.name)
    for words, rule in list(kinds.items())[:_MOST_KINDS]:
        try:
            answer = commands.ask(["sbatch", "--test-only", *words, "--wrap=true"])
        except RemeasureError:  # busy or away: submissions themselves are waited for
            return
        if answer.status != 0 and not _PASSING.search(answer.complaint):
            raise RemeasureError(
                f"rule {rule}: the scheduler would refuse it: {answer.complaint} (sbatch {' '.join(words)}); "
                "correct slurm/config.yaml or slurm/partitions.yaml, `snakemake preflight --profile slurm` "
                "says more"
            )


def _words(job, here: site.Site) -> tuple[str, ...]:
    """Return the arguments that decide whether a job is taken, as the executor gives them."""
    asked, given = _asked(job), job.resources.get
    words = [f"--partition={given('slurm_partition') or here.fits(asked)}"]
    words += [f"--account={given('slurm_account')}"] if given("slurm_account") else []
    words += [f"--qos={given('qos')}"] if given("qos") else []
    words += [f"--constraint={given('constraint')}"] if given("constraint") else []
    words += [f"--cpus-per-task={asked.threads or 1}"]
    words += [f"--mem={asked.mem_mb}"] if asked.mem_mb else []
    words += [f"--time={asked.runtime_min}"] if asked.runtime_min else []
    if asked.gpu:
        words.append(f"--gpus={asked.gpu_model}:{asked.gpu}" if asked.gpu_model else f"--gpus={asked.gpu}")
    return tuple(words)


def _asked(job) -> Needs:
    """Return a job's first request as plain numbers; what is not known yet counts as nothing."""

    def number(name: str) -> int | None:
        value = job.resources.get(name)
        return int(value) if isinstance(value, int | float) else None

    model = job.resources.get("gpu_model")
    threads = number("cpus_per_task") or (job.threads if isinstance(job.threads, int) else None)
    return Needs(
        gpu=number("gpu") or 0,
        gpu_model=model if isinstance(model, str) else None,
        threads=threads,
        mem_mb=number("mem_mb"),
        runtime_min=number("runtime"),
    )


def described(needs: Needs) -> str:
    """Return a need in words: ``2 GPUs h100, 8 threads, 64,000 MB, 120 min``."""
    words = []
    if needs.gpu:
        words.append(f"{needs.gpu} GPU{'s' if needs.gpu > 1 else ''} {needs.gpu_model or ''}".strip())
    words += [f"{needs.threads or 1} thread{'s' if (needs.threads or 1) > 1 else ''}"]
    words += [f"{needs.mem_mb:,} MB"] if needs.mem_mb else []
    words += [f"{needs.runtime_min} min"] if needs.runtime_min else []
    return ", ".join(words)
