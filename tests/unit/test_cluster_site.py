"""A site's file, and the same choice of a partition as the executor's."""

import importlib
import logging
import random
from types import SimpleNamespace

import pytest

from remeasure.cluster import site
from remeasure.errors import RemeasureError
from remeasure.needs import Needs

FILE = """
partitions:
  cpu:  {max_runtime: 24h, max_mem_mb: 32000, max_threads: 8}
  big:  {max_runtime: 2-00:00:00, max_mem_mb: 500000, max_threads: 64}
  h100: {max_runtime: 12h, max_mem_mb: 128000, max_threads: 16, max_gpu: 1, available_gpu_models: [h100]}
  a10g: {max_runtime: 720, max_mem_mb: 64000, max_threads: 16, max_gpu: 2, available_gpu_models: [a10g]}
"""


def needs(gpu=None, gpu_model=None, threads=1, mem_mb=1000, runtime_min=30):
    return SimpleNamespace(
        gpu=gpu, gpu_model=gpu_model, threads=threads, mem_mb=mem_mb, runtime_min=runtime_min
    )


def load(tmp_path, text: str) -> site.Site:
    path = tmp_path / "partitions.yaml"
    path.write_text(text)
    return site.load(path)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (needs(), "cpu"),
        (needs(mem_mb=40000), "big"),
        (needs(runtime_min=1441), "big"),
        (needs(gpu=1, gpu_model="h100", threads=16, mem_mb=128000, runtime_min=720), "h100"),
        (needs(gpu=2, gpu_model="a10g"), "a10g"),
        (needs(gpu=2, gpu_model="h100"), None),
        (needs(gpu=1, gpu_model="H100"), None),
        (needs(threads=65), None),
        (needs(runtime_min=2881), None),
        (needs(gpu=None, threads=None, mem_mb=None, runtime_min=None), "cpu"),
    ],
)
def test_a_need_goes_to_the_partition_that_it_fills_best(tmp_path, asked, expected):
    assert load(tmp_path, FILE).fits(asked) == expected


def test_the_choice_is_the_executors(tmp_path):
    plugin = importlib.import_module("snakemake_executor_plugin_slurm.partitions")
    here = load(tmp_path, FILE)
    theirs = plugin.read_partition_file(tmp_path / "partitions.yaml")
    draw = random.Random(4)
    chosen = []
    for _ in range(400):
        gpu = draw.choice([0, 0, 1, 2, 3])
        asked = needs(
            gpu=gpu,
            gpu_model=draw.choice(["h100", "a10g", None, "v100"]) if gpu else None,
            threads=draw.choice([1, 2, 8, 9, 16, 64, 65]),
            mem_mb=draw.choice([500, 32000, 32001, 64000, 128000, 500001]),
            runtime_min=draw.choice([1, 720, 721, 1440, 2881]),
        )
        resources = {"mem_mb": asked.mem_mb, "runtime": asked.runtime_min, "gpu": gpu}
        resources |= {"gpu_model": asked.gpu_model} if asked.gpu_model else {}
        job = SimpleNamespace(name="x", threads=asked.threads, resources=resources)
        chosen.append(here.fits(asked))
        assert chosen[-1] == plugin.get_best_partition(theirs, job, logging.getLogger("none")), asked
    assert set(chosen) == {"cpu", "big", "h100", "a10g", None}


def test_times_are_the_executors():
    plugin = importlib.import_module("snakemake_executor_plugin_slurm.utils")
    for said in (
        90,
        90.5,
        "90",
        "12h",
        "2d12h30m",
        "90s",
        "1:30:45",
        "2-12",
        "2-12:30",
        "2-12:30:45",
        "60:30",
    ):
        assert site.minutes(said) == plugin.parse_time_to_minutes(said), said


def test_a_repeated_job_grows_up_to_what_its_partition_gives(tmp_path):
    here = load(tmp_path, FILE)
    assert here.cap(needs(), 2000, 60) == (2000, 60)
    assert here.cap(needs(), 900000, 60) == (500000, 60)
    # on h100 only, though `big` would give more
    asked = needs(gpu=1, gpu_model="h100", mem_mb=96000, runtime_min=480)
    assert here.cap(asked, 192000, 960) == (128000, 720)
    # the partition that gives the larger share of both wishes: big has all of the time and memory
    assert here.cap(needs(mem_mb=30000, runtime_min=1000), 60000, 2000) == (60000, 2000)
    assert here.cap(needs(threads=99), 5, 5) == (5, 5)


def test_what_is_capped_fits_one_partition(tmp_path):
    text = "partitions: {wide: {max_mem_mb: 100, max_runtime: 10}, long: {max_mem_mb: 10, max_runtime: 100}}"
    here = load(tmp_path, text)
    mem_mb, runtime = here.cap(needs(mem_mb=5, runtime_min=5), 90, 50)
    assert (mem_mb, runtime) == (90, 10)
    assert here.fits(needs(mem_mb=mem_mb, runtime_min=runtime)) == "wide"


def test_a_site_without_types_is_told_partition_and_constraint(tmp_path):
    here = load(tmp_path, FILE + "gpus: {typed: false, features: {h100: 'h100&80g'}}\n")
    h100, a10g = needs(gpu=1, gpu_model="h100"), needs(gpu=1, gpu_model="a10g")
    assert here.extra_resources(h100) == {"slurm_partition": "h100", "constraint": "h100&80g"}
    assert here.extra_resources(a10g) == {"slurm_partition": "a10g", "constraint": None}
    assert here.extra_resources(needs()) == {"slurm_partition": None, "constraint": None}
    assert (here.sent_model(h100), load(tmp_path, FILE).sent_model(h100)) == (None, "h100")
    assert load(tmp_path, FILE).extra_resources(h100) == {"slurm_partition": None, "constraint": None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "partitions: {cpu: {max_memory_mb: 5}}",
            r"partitions.cpu: .*unknown field `max_memory_mb`.*'max_mem_mb'",
        ),
        ("partitons: {cpu: {}}", "unknown key 'partitons' .*did you mean 'partitions'"),
        ("partitions: {cpu: {}}\ngpus: {typd: true}", "gpus: .*`typd`.*'typed'"),
        ("partitions: {cpu: {max_runtime: soon}}", "partitions.cpu.max_runtime: 'soon' is no time"),
        ("partitions: {cpu: {max_runtime: 0}}", "no time of a minute or more"),
        ("partitions: {cpu: {max_mem_mb: lots}}", "max_mem_mb|Expected `float"),
        ("partitions: {}", "names no partitions"),
        ("partitions: {1: {}}", "partitions: 1 is no name"),
        ("partitions: {'--help': {}}", "'--help' is the name of no partition"),
        ('partitions: {"\\e[2Jx": {}}', "is the name of no partition"),
        ('partitions: {"a\\nb": {}}', "is the name of no partition"),
        ("partitions: {cpu: {max_runtime: 0.2}}", "'0.2' is no time of a minute or more"),
        ("partitions: {cpu: {max_runtime: 20s}}", "'20s' is no time of a minute or more"),
        ("partitions: {cpu: }", "partitions.cpu: says nothing"),
        ("partitions: {g: {available_gpu_models: [h100]}}", "no max_gpu"),
        ("partitions: {cpu: {}, cpu: {}}", "stands twice"),
        (
            "partitions: {g: {max_gpu: 1, available_gpu_models: [h100]}}\ngpus: {features: {h10: x}}",
            "no partition",
        ),
        ("gpus: {typed: true}", "names no partitions"),
        ("[]", "expected keys"),
        ("partitions: {cpu: {max_runtime: " + "9" * 5000 + "}}", "partitions.yaml"),
        ("a: &a [*a]\npartitions: *a", "partitions.yaml"),
        ("a: " + "[" * 3000, "partitions.yaml"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(tmp_path, text, said):
    with pytest.raises(RemeasureError, match=said) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    assert str(tmp_path / "partitions.yaml") in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(RemeasureError, match="nowhere.yaml: No such file"):
        site.load(tmp_path / "nowhere.yaml")


MIXED = "partitions: {gpu: {max_gpu: 4, available_gpu_models: [h100, a10g]}}\n"


def test_without_types_every_model_of_a_mixed_partition_needs_its_feature(tmp_path):
    with pytest.raises(
        RemeasureError, match="partitions.gpu: has h100, a10g, but without types .* a10g; name"
    ):
        load(tmp_path, MIXED + "gpus: {typed: false, features: {h100: hopper}}")
    load(tmp_path, MIXED + "gpus: {typed: false, features: {h100: hopper, a10g: ampere}}")
    load(tmp_path, MIXED + "gpus: {typed: true}")


@pytest.mark.parametrize("time", ["4:00:00", "12:30"])
def test_a_time_that_yaml_reads_to_base_60_is_refused(tmp_path, time):
    with pytest.raises(RemeasureError, match=f"max_runtime: {time} is read to base 60 by YAML"):
        load(tmp_path, f"partitions: {{cpu: {{max_runtime: {time}, max_threads: 8}}}}")
    quoted = load(tmp_path, "partitions:\n  cpu:\n    max_runtime: '4:00:00'\n")
    assert quoted.partitions["cpu"].max_runtime_min() == 240


def test_a_site_says_what_it_has_in_place_of_a_model(tmp_path):
    instead = "gpus: {instead: {h100: nvidia_h100_80gb_hbm3}}"
    found = load(tmp_path, MIXED.replace("h100", "nvidia_h100_80gb_hbm3") + instead)
    asked = Needs(gpu=1, gpu_model="h100")
    assert found.here(asked) == Needs(gpu=1, gpu_model="nvidia_h100_80gb_hbm3")
    assert found.here(Needs(gpu=1, gpu_model="a10g")).gpu_model == "a10g"
    assert found.here(Needs()).gpu_model is None
    assert (found.fits(asked), found.fits(found.here(asked))) == (None, "gpu")
    with pytest.raises(RemeasureError, match="'a100': no partition lists that model"):
        load(tmp_path, MIXED + "gpus: {instead: {h100: a100}}")
