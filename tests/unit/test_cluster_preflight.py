"""Everything that stands in the way on a cluster is named at once, and nothing is submitted."""

from types import SimpleNamespace

import pytest

from clusterkit import on_path, program
from remeasure.cluster import driver, site
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan
from remeasure.preflight import cluster

FILE = """
partitions:
  cpu: {max_runtime: 24h, max_mem_mb: 32000, max_threads: 8}
  gpu: {max_runtime: 12h, max_mem_mb: 128000, max_threads: 16, max_gpu: 4, available_gpu_models: [h100]}
"""
# sinfo of SLURM 22.05.8 with two kinds of nodes in one partition.
CPU = ("cpu", "1-00:00:00", "32000", "8", "(null)", "(null)")
GPU = ("gpu", "12:00:00", "128000+", "16+", "gpu:h100:2(S:0-1)", "h100,80g")
BIG = ("gpu", "12:00:00", "256000", "64", "gpu:h100:4(S:0-1),shard:8", "h100")


def needs(gpu=None, gpu_model=None, threads=1, mem_mb=1000, runtime_min=30):
    return SimpleNamespace(
        gpu=gpu, gpu_model=gpu_model, threads=threads, mem_mb=mem_mb, runtime_min=runtime_min
    )


def real(folder, *lines):
    """Write a sinfo that knows some partitions."""
    printed = "".join(f"print(mark.join({line!r}))\n" for line in lines)
    body = "import re, sys\nmark = re.split('%[Rlm]', sys.argv[-1])[2]\n" + printed
    program(folder, "sinfo", body, python=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A cluster that has what the file says and takes every job."""
    folder = tmp_path / "bin"
    real(folder, CPU, GPU, BIG)
    program(folder, "squeue", "true")
    program(folder, "scontrol", "echo 'MinJobAge               = 300 sec'")
    program(
        folder,
        "sbatch",
        f'echo "$*" >> {tmp_path}/asked\n'
        "echo 'sbatch: Job 18 to start at 2026-11-30T04:50:01 using 1 processors on nodes cpu01' >&2",
    )
    on_path(monkeypatch, folder)
    (tmp_path / "partitions.yaml").write_text(FILE)
    return tmp_path


def check(here, scratch=None, **asked):
    group = cluster.check(cluster.Profile(here / "partitions.yaml", scratch), asked)
    assert not any("\n" in text for text in (*group.said, *group.problems))
    return group


def test_a_cluster_that_fits_has_no_problems(here):
    group = check(here, "/local/$SLURM_JOB_ID", ask=needs(gpu=1, gpu_model="h100"), render=needs())
    assert group.problems == ()
    said = "; ".join(group.said)
    assert (
        "0 jobs of yours" in said and "MinJobAge 300 s" in said and "2 of 2 partitions used, 2 needs" in said
    )
    assert "not checked: that nodes see" in said
    asked = (here / "asked").read_text().splitlines()
    assert asked[1:] == [
        "--test-only --partition=gpu --cpus-per-task=1 --mem=1000 --time=30 --gpus=h100:1 --wrap=true",
        "--test-only --partition=cpu --cpus-per-task=1 --mem=1000 --time=30 --wrap=true",
    ]
    assert all("--test-only" in line for line in asked)


def test_equal_needs_are_asked_once(here):
    check(here, a=needs(), b=needs(), c=needs())
    assert len((here / "asked").read_text().splitlines()) == 2


def test_all_problems_are_named_at_once(here):
    (here / "partitions.yaml").write_text(
        """
partitions:
  cpus: {max_mem_mb: 1000}
  cpu: {max_runtime: 48h, max_mem_mb: 64000, max_threads: 9}
  gpu: {max_gpu: 8, available_gpu_models: [h1000]}
"""
    )
    group = check(here, "local", ask=needs(gpu=1, gpu_model="h100"))
    assert len(group.problems) == 8
    text = "\n".join(group.problems)
    for said in (
        "partitions.cpus: the cluster has none of that name (did you mean 'cpu'?)",
        "partitions.cpu.max_runtime: 2,880, but its largest node or limit is 1,440 min",
        "partitions.cpu.max_mem_mb: 64,000, but its largest node or limit is 32,000 MB",
        "partitions.cpu.max_threads: 9, but its largest node or limit is 8 processors",
        "partitions.gpu.max_gpu: 8, but its largest node or limit is 4 GPUs",
        "partitions.gpu: no node has GPU 'h1000' (did you mean 'h100'?); there are: h100",
        "ask: needs 1 GPU h100, 1 thread, 1,000 MB, 30 min, which no partition",
        "scratch 'local' is a relative path",
    ):
        assert said in text


def test_a_cluster_without_types_is_told_how_to_say_so(here):
    real(here / "bin", CPU, ("gpu", "infinite", "128000", "16", "gpu:4", "h100,80g"))
    group = check(here, ask=needs(gpu=1, gpu_model="h100"))
    assert [problem for problem in group.problems if "`gpus: {typed: false}`" in problem]
    (here / "partitions.yaml").write_text(FILE + "gpus: {typed: false, features: {h100: 'h100&80gb'}}\n")
    group = check(here, ask=needs(gpu=1, gpu_model="h100"))
    assert group.problems == (
        f"{here}/partitions.yaml: gpus.features.h100: no node has the feature '80gb' (did you mean '80g'?)",
    )
    assert "--gpus=1 --constraint=h100&80gb" in (here / "asked").read_text()


def test_what_the_scheduler_would_refuse_is_quoted(here):
    said = "allocation failure: Requested node configuration is not available"
    program(here / "bin", "sbatch", f"case $* in *partition*) echo '{said}' >&2; exit 1;; esac")
    [problem] = check(here, ask=needs(), render=needs()).problems
    assert problem.startswith(
        f"ask (1 thread, 1,000 MB, 30 min): the scheduler would refuse it: {said} (sbatch"
    )


def test_a_wrapper_around_sbatch_that_counts_is_found(here):
    program(here / "bin", "sbatch", "echo 'You have used 812 of 1000 hours'")
    [problem] = check(here).problems
    assert "sbatch prints numbers of its own ('You have used 812 of 1000 hours')" in problem


def test_programs_that_are_away_are_each_one_line(here, monkeypatch):
    for name in ("squeue", "sinfo", "sbatch", "scontrol"):
        program(here / "bin", name, f"echo '{name}: no controller' >&2; exit 1")
    group = check(here, ask=needs())
    assert len(group.problems) == 3 and all("no controller" in problem for problem in group.problems)
    assert "MinJobAge is not said" in "; ".join(group.said)
    monkeypatch.setenv("PATH", str(here))
    group = check(here)
    assert [problem.split(" ")[0] for problem in group.problems] == ["squeue", "sbatch", "scontrol", "sinfo"]


def test_an_answer_of_sinfo_that_is_something_else_is_one_line(here):
    program(here / "bin", "sinfo", "echo PARTITION AVAIL; yes | head -1000")
    assert any("sinfo: its answer is not what --format asks for" in found for found in check(here).problems)


def test_a_file_that_cannot_be_read_is_one_problem(here):
    (here / "partitions.yaml").write_text("partitions: {cpu: {max_mem: 1}}")
    [problem] = check(here).problems
    assert "partitions.cpu" in problem and "did you mean 'max_mem_mb'" in problem


def test_a_configuration_that_jobs_would_not_find_is_named(here, monkeypatch):
    program(here / "bin", "scontrol", 'test -n "$SLURM_CONF" && echo "MinJobAge = 300 sec"')
    monkeypatch.setenv("SLURM_CONF", "/home/me/slurm.conf")
    [problem] = check(here).problems
    assert problem.startswith("SLURM_CONF=/home/me/slurm.conf: srun inside a job does not get this variable")
    monkeypatch.delenv("SLURM_CONF")
    program(here / "bin", "scontrol", 'test -z "$SLURM_CONF" && echo "MinJobAge = 300 sec"')
    assert check(here).problems == ()


def test_a_profile_without_partitions_is_named(here):
    [problem] = cluster.check(cluster.Profile(None), {}).problems
    assert "slurm-partition-config: partitions.yaml" in problem


def test_a_sinfo_that_says_nothing_is_a_problem(here):
    program(here / "bin", "sinfo", "exit 0")
    assert "sinfo: shows no partition at all; try it by hand" in check(here).problems


def test_times_of_sinfo_are_minutes():
    assert [cluster._minutes(text) for text in ("infinite", "30:00", "1:00:00", "2-00:00:00")] == [
        float("inf"),
        30,
        60,
        2880,
    ]


def test_the_words_of_sbatch_follow_the_site():
    typed = site.Site({"gpu": site.Partition(max_gpu=2, available_gpu_models=["h100"])})
    asked = needs(gpu=2, gpu_model="h100", threads=None, mem_mb=None, runtime_min=None)
    assert cluster.sbatch_words(typed, asked, "gpu") == (
        "--partition=gpu",
        "--cpus-per-task=1",
        "--gpus=h100:2",
    )


def test_what_the_profile_says_becomes_options_of_the_script():
    plugin = SimpleNamespace(name="slurm")
    workflow = SimpleNamespace(
        executor_plugin=plugin, executor_settings=SimpleNamespace(partition_config="slurm/partitions.yaml")
    )
    resources = {"slurm_account": "a b", "scratch": "/local/$SLURM_JOB_ID", "mem_mb": 5}
    assert driver.preflight_options(workflow, resources) == (
        "--cluster --partitions slurm/partitions.yaml '--sbatch=--account=a b' "
        "'--scratch=/local/$SLURM_JOB_ID'"
    )
    plugin.name = "local"
    assert driver.preflight_options(workflow, resources) == ""
    assert driver.preflight_options(SimpleNamespace(executor_plugin=None), {}) == ""


def test_the_needs_of_a_run_are_those_of_steps_that_go_to_nodes():
    found = cluster.needs_of(Plan(SCRIPTS.parent / "config"), "embedded")
    assert found["models.page-reader-smollm2"].gpu == 1
    assert {"corpora.factbook.render", "corpora.factbook.ocr", "corpora.factbook.text"} <= set(found)


def test_a_corpus_that_a_single_bench_uses_has_needs_too():
    """The paper asks about news in one bench alone."""
    found = cluster.needs_of(Plan(SCRIPTS.parent / "config"), "paper")
    assert [place for place in found if place.startswith("corpora.")] == [
        "corpora.wikipedia.render",
        "corpora.wikipedia.ocr",
        "corpora.wikipedia.text",
        "corpora.news.render",
        "corpora.news.ocr",
        "corpora.news.text",
    ]
    assert found["corpora.news.render"].mem_mb == 12000
