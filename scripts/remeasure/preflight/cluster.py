"""What must hold on a SLURM cluster before the first job: programs, partitions, GPUs, a place for each need.

Nothing is submitted: ``sbatch --test-only`` asks the scheduler whether it would take a job.
"""

import importlib.util
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from remeasure import reach
from remeasure.cluster import commands, driver, hazards, queue, site
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.instances.settings import PhotoNeeds
from remeasure.needs import CorpusNeeds, EncoderNeeds, Needs
from remeasure.plan import Plan
from remeasure.preflight.report import Group, plural

_SINFO = ("%R", "%l", "%m", "%c", "%G", "%f")
# gpu:h100:4(S:0-1), gpu:2, gpu:nvidia_a10g:1,shard:8
_GRES = re.compile(r"(?:\A|,)gpu(?::(?P<model>[A-Za-z_][\w.-]*))?:(?P<n>\d{1,6})")
# What the executor takes for the id of a job where sbatch says more than the id.
_NUMBER = re.compile(r"\d")


@dataclass
class _Real:
    """A partition as the cluster has it; sizes of its largest node."""

    runtime_min: float = 0.0
    mem_mb: int = 0
    threads: int = 0
    gpus: dict[str, int] = field(default_factory=dict)
    """Most GPUs of a model in one node; the model is empty where the scheduler knows none."""
    features: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Profile:
    """What the profile says about the cluster."""

    file: Path | None
    """``partitions.yaml``; null where the profile names none."""
    scratch: str | None = None
    """Node-local folder, null for none."""
    words: tuple[str, ...] = ()
    """Further arguments that each job is submitted with, such as ``--account=x``."""


def needs_of(plan: Plan, run: str) -> dict[str, Needs]:
    """Return what the steps of a run that go to nodes ask for, by the place where it stands in its file."""
    settings, reached = plan.run(run), reach.of(plan, run)
    found = {
        f"models.{name}": settings.models[name].needs
        for name in reached.models
        if not settings.models[name].on_login()
    }
    for name in reached.encoders:
        found |= _each(f"encoders.{name}", settings.encoders[name].needs)
    for name in reached.corpora:
        found |= _each(f"corpora.{name}", settings.corpora[name].needs)
    for name in reached.photo_sets:
        found |= _each(f"photo_sets.{name}", settings.photo_sets[name].needs)
    for section, names in reached.described.items():
        found |= {f"{section}.{name}": getattr(settings, section)[name].needs for name in names}
    return found


def _each(place: str, needs: CorpusNeeds | EncoderNeeds | PhotoNeeds) -> dict[str, Needs]:
    return {f"{place}.{step}": getattr(needs, step) for step in needs.__struct_fields__}


def check(profile: Profile, needs: Mapping[str, Needs]) -> Group:
    """Check everything that can be known of the cluster from here.

    Args:
        profile: what ``slurm/`` says.
        needs: what each submitted step of the run asks for, by a name that a person knows.
    """
    said, problems = [], []
    for part in (
        _programs(profile.words),
        _partitions(profile.file, needs, profile.words),
        _surroundings(profile.scratch),
    ):
        for kind, text in part:
            (problems if kind == "problem" else said).append(text)
    return Group(title="cluster", said=tuple(said), problems=tuple(problems))


_Found = Iterator[tuple[str, str]]


def _programs(words: tuple[str, ...]) -> _Found:
    try:
        yield "said", f"{plural(sum(job.is_alive for job in queue.jobs()), 'job')} of yours queued or running"
    except RemeasureError as error:
        yield "problem", str(error)
    try:
        answer = commands.ask(["sbatch", "--test-only", "--parsable", *words, "--wrap=true"])
    except RemeasureError as error:
        yield "problem", str(error)
    else:
        if answer.status != 0:
            yield "problem", f"sbatch would take no job at all: {answer.complaint}; see slurm/config.yaml"
        elif _NUMBER.search(answer.text):
            said = commands.last_line(answer.text, 120)
            yield (
                "problem",
                f"sbatch prints numbers of its own ({said!r}), in which the id of a job cannot be found; ask "
                "the administrators how to call the plain program",
            )
    try:
        age_s = driver.min_job_age_s()
    except RemeasureError as error:
        yield "problem", str(error)
    else:
        known = "is not said" if age_s is None else f"{age_s} s"
        short = age_s is not None and age_s < driver.LONGEST_ROUND_S
        yield (
            "said",
            f"MinJobAge {known}" + (" (short: ended jobs are judged by their files)" if short else ""),
        )


def _surroundings(scratch: str | None) -> _Found:
    if importlib.util.find_spec("snakemake") is None:
        yield "said", "jobstep plugin not checked (this environment has no snakemake)"
    elif importlib.util.find_spec("snakemake_executor_plugin_slurm_jobstep") is None:
        yield (
            "problem",
            "snakemake-executor-plugin-slurm-jobstep is not installed, jobs cannot start; run `make setup`",
        )
    yield from _configuration()
    if scratch is not None and not scratch.startswith(("/", "$")):
        yield (
            "problem",
            f"slurm/config.yaml: scratch {scratch[:80]!r} is a relative path; name a folder of the node, "
            "like /local/$SLURM_JOB_ID",
        )
    yield "said", f"not checked: that nodes see {os.getcwd()}"


def _configuration() -> _Found:
    """Look whether SLURM finds its configuration without help: a job's own srun is not told SLURM_CONF."""
    if "SLURM_CONF" not in os.environ:
        return
    try:
        answer = commands.ask(["env", "-u", "SLURM_CONF", "scontrol", "show", "config"], 90.0)
    except RemeasureError as error:
        answer = commands.Answer(1, "", str(error))
    if answer.status != 0:
        yield (
            "problem",
            f"SLURM_CONF={os.environ['SLURM_CONF']}: srun inside a job does not get this variable, and "
            "without it SLURM finds no configuration here; ask for one at its usual place on all nodes, "
            "/etc/slurm/slurm.conf",
        )


def _partitions(file: Path | None, needs: Mapping[str, Needs], words: tuple[str, ...]) -> _Found:
    if file is None:
        yield (
            "problem",
            "slurm/config.yaml names no partitions; add `slurm-partition-config: partitions.yaml`",
        )
        return
    try:
        here = site.load(file)
    except RemeasureError as error:
        yield "problem", str(error)
        return
    try:
        real = real_partitions()
    except RemeasureError as error:
        yield "problem", str(error)
        real = {}
    used = sum(partition in real for partition in here.partitions)
    yield "said", f"{used} of {plural(len(real), 'partition')} used, {plural(len(needs), 'need')}"
    if real:
        for name, partition in here.partitions.items():
            place = f"{file}: partitions.{name}"
            if name not in real:
                known = ", ".join(list(real)[:20])
                yield (
                    "problem",
                    f"{place}: the cluster has none of that name{did_you_mean(name, real)}; it has: {known}",
                )
            else:
                yield from _limits(place, partition, real[name], here.gpus)
        yield from _features(file, here, real)
    yield from _needs(file, here, needs, words if real else None)


def _limits(place: str, told: site.Partition, real: _Real, gpus: site.Gpus) -> _Found:
    """Compare what the file promises with what the largest node of the partition has."""
    pairs = (
        ("max_runtime", told.max_runtime_min(), real.runtime_min, "min"),
        ("max_mem_mb", told.max_mem_mb, real.mem_mb, "MB"),
        ("max_threads", told.max_threads, real.threads, "processors"),
        ("max_gpu", told.max_gpu, max(real.gpus.values(), default=0), "GPUs"),
    )
    for key, promised, there, unit in pairs:
        if promised is None or promised == float("inf"):
            continue
        if promised > there:
            yield (
                "problem",
                f"{place}.{key}: {promised:,.0f}, but its largest node or limit is {there:,.0f} {unit}; "
                "such jobs would wait for ever: correct it",
            )
    if not told.max_gpu or not real.gpus or not gpus.typed:
        return
    models = [model for model in real.gpus if model]
    if not models:
        yield (
            "problem",
            f"{place}: the scheduler knows no models of GPU there; say `gpus: {{typed: false}}` "
            "at the end of the file",
        )
    for model in told.available_gpu_models or ():
        if models and model not in models:
            hint = did_you_mean(model, models)
            yield "problem", f"{place}: no node has GPU {model!r}{hint}; there are: {', '.join(models)}"


def _features(file: Path, here: site.Site, real: dict[str, _Real]) -> _Found:
    known = set().union(*(real[name].features for name in here.partitions if name in real))
    for model, constraint in here.gpus.features.items():
        for word in re.findall(r"[\w.-]+", re.sub(r"\*\d+", "", constraint)):  # h100*2: on two nodes
            if word not in known:
                hint = did_you_mean(word, known)
                yield "problem", f"{file}: gpus.features.{model}: no node has the feature {word!r}{hint}"


def _needs(file: Path, here: site.Site, needs: Mapping[str, Needs], words: tuple[str, ...] | None) -> _Found:
    """Find a partition for each need and ask the scheduler whether it takes such a job."""
    asked: dict[tuple[str, ...], str] = {}
    for name, named in needs.items():
        need = here.here(named)
        partition = here.fits(need)
        if partition is None:
            yield (
                "problem",
                f"{name}: needs {hazards.described(need)}, which no partition of {file} holds; add one "
                "there, or correct the needs in config/runs/",
            )
        elif words is not None:
            asked.setdefault(sbatch_words(here, need, partition), f"{name} ({hazards.described(need)})")
    for wanted, name in asked.items():
        try:
            answer = commands.ask(["sbatch", "--test-only", *wanted, *words, "--wrap=true"])
        except RemeasureError as error:
            yield "problem", str(error)
            return
        if answer.status != 0:
            yield (
                "problem",
                f"{name}: the scheduler would refuse it: {answer.complaint} (sbatch {' '.join(wanted)})",
            )


def sbatch_words(here: site.Site, need: Needs, partition: str) -> tuple[str, ...]:
    """Return the arguments of sbatch that a need comes to."""
    words = [f"--partition={partition}", f"--cpus-per-task={need.threads or 1}"]
    words += [f"--mem={need.mem_mb}"] if need.mem_mb else []
    words += [f"--time={need.runtime_min}"] if need.runtime_min else []
    if need.gpu:
        model = here.sent_model(need)
        words.append(f"--gpus={model}:{need.gpu}" if model else f"--gpus={need.gpu}")
        constraint = here.extra_resources(need)["constraint"]
        words += [f"--constraint={constraint}"] if constraint else []
    return tuple(words)


def real_partitions() -> dict[str, _Real]:
    """Return the partitions of the cluster, each with its largest node.

    Raises:
        RemeasureError: sinfo is missing, does not answer, or says something else than was asked for.
    """
    mark = f"_{secrets.token_hex(8)}_"
    answer = commands.ask(["sinfo", "--noheader", "--all", f"--format={mark.join(_SINFO)}"])
    if answer.status != 0:
        raise RemeasureError(f"sinfo cannot say what the cluster has ({answer.complaint}); try it by hand")
    found: dict[str, _Real] = {}
    for line in answer.text.splitlines():
        fields = [part.strip() for part in line.split(mark)]
        if len(fields) != len(_SINFO):
            said = commands.last_line(line)
            raise RemeasureError(
                f"sinfo: its answer is not what --format asks for ({said!r}); try it by hand"
            )
        name, runtime, mem_mb, threads, gres, features = fields
        one = found.setdefault(name, _Real())
        one.runtime_min = max(one.runtime_min, _minutes(runtime))
        one.mem_mb = max(one.mem_mb, _number(mem_mb))
        one.threads = max(one.threads, _number(threads))
        for gpu in _GRES.finditer(gres):
            model = gpu["model"] or ""
            one.gpus[model] = max(one.gpus.get(model, 0), int(gpu["n"]))
        one.features |= set(features.split(",")) - {"(null)", ""}
    if not found:
        raise RemeasureError("sinfo: shows no partition at all; try it by hand")
    return found


def _number(text: str) -> int:
    """Return a size; ``128000+`` says that some nodes have more."""
    found = re.match(r"\d{1,15}", text, re.ASCII)
    return int(found[0]) if found else 0


def _minutes(text: str) -> float:
    if text.lower() in ("infinite", "unlimited", "n/a"):
        return float("inf")
    # sinfo writes 30:00 for half an hour, where the executor reads hours and minutes.
    return queue.seconds(text) / 60
