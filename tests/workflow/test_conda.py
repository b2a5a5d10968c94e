"""Told to use conda, every step runs in its environment of envs/, here with one package more in each."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from condakit import Conda
from conftest import CI_TARGETS, Checkout, copy_project, link_sources
from zimkit import Given, write_zim

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason=f"the environments are for Python 3.11 and borrow packages from this {sys.version.split()[0]}",
)

CORPUS = "results/toy/corpora/toy"
PAGES, TILES = f"{CORPUS}/pages.jsonl", f"{CORPUS}/tiles/manifest.jsonl"
RUN = """\
extends: embedded
title: "Two pages"
corpora:
  toy:
    archive: {archive}
    pages: {{all: 2}}
    render: {{width_px: 875, tile_height_px: 1024, jpeg_quality: 85, page_timeout_s: 30, max_height_px: 9000}}
    ocr: {{engine: rapidocr, tiles_per_page: 1}}
    text: {{max_tokens: 256, tables: true, comments: false}}
"""


@dataclass(frozen=True)
class Site(Checkout):
    """A checkout where there is conda; core.yaml and render.yaml ask for different versions of `probe`."""

    conda: Conda
    log: Path

    def call(self, *words: str, **options) -> subprocess.CompletedProcess:
        """Run Snakemake as a user does who has this conda."""
        return super().call(*words, env=self.conda.environment(self.log), **options)

    def made(self, *words: str) -> str:
        """Run to the end and return everything that Snakemake said."""
        done = self.call(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def ran(self) -> dict[str, dict]:
        """Return what `probe` last wrote of each script."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {line["script"]: line for line in map(json.loads, lines)}

    def environments(self) -> list[Path]:
        """Return the folders of the environments that are there."""
        return [path for path in self.path(".snakemake/conda").glob("*_") if path.is_dir()]


def site_in(folder: Path) -> Site:
    """Make a site in an empty folder."""
    site = Site(copy_project(folder / "project"), folder / "work", Conda(folder / "conda"), folder / "probe")
    channel = site.conda.channel("conda-forge")
    channel.add_python()
    for name, version in (("core", 1), ("render", 2)):
        channel.add_probe(version)
        path = site.project / "envs" / f"{name}.yaml"
        path.write_text(path.read_text().replace("  - pip\n", f"  - pip\n  - probe ={version}\n", 1))
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """A site with two pages to render; the tests of this file go on from each other."""
    site = site_in(tmp_path_factory.mktemp("site"))
    site.directory.mkdir()
    archive = site.directory / "toy.zim"
    write_zim(archive, [Given(name, f"<html><body><h1>Page {name}</h1></body></html>") for name in "ab"])
    (site.project / "config/runs/toy.yaml").write_text(RUN.format(archive=archive))
    return site


def toy(*words: str) -> tuple[str, ...]:
    return (*words, "--sdm", "conda", "--config", "run=toy")


def test_environments_are_made_beforehand_and_only_those_of_the_target(site):
    site.made(*toy(PAGES, "--conda-create-envs-only"))
    assert site.conda.n_created() == len(site.environments()) == 1
    assert not site.path(PAGES).exists() and site.ran() == {}


def test_every_step_runs_in_its_own_environment_and_not_in_the_drivers(site):
    site.made(*toy(TILES))
    assert site.conda.n_created() == 2
    ran = site.ran()
    assert {name: line["probe"] for name, line in ran.items()} == {"select_pages.py": 1, "render_tiles.py": 2}
    assert {line["prefix"] for line in ran.values()} == {str(path) for path in site.environments()}


def test_a_second_run_takes_the_environments_that_are_there_without_any_channel(site):
    before = site.ran()
    shutil.rmtree(site.path(CORPUS))
    shutil.rmtree(site.conda.root / "channels")
    site.log.unlink()
    site.made(*toy(TILES))
    assert site.conda.n_created() == 2 and site.ran() == before


def test_the_core_environment_is_enough_to_start_the_workflow_on_a_cluster(site):
    folder = site.ran()["select_pages.py"]["prefix"]
    words = [f"{folder}/bin/python", "-m", "snakemake", "-s", str(site.project / "Snakefile"), "-n", TILES]
    words += ["--directory", str(site.directory), "--executor", "slurm", "--jobs", "1", "--config", "run=toy"]
    done = subprocess.run(words, capture_output=True, text=True, env=site.conda.environment(site.log))
    assert done.returncode == 0, done.stderr


def test_what_another_environment_made_is_made_again_unless_told_otherwise(site):
    without = (TILES, "--config", "run=toy", "--dry-run")
    assert "Software environment definition has changed" in site.made(*without)
    assert "Nothing to be done" in site.made(*without, "--rerun-triggers", "code", "input", "mtime", "params")


def test_a_package_that_no_channel_has_ends_the_call_and_leaves_no_environment(tmp_path):
    site = site_in(tmp_path)
    path = site.project / "envs" / "core.yaml"
    path.write_text(path.read_text().replace("probe =1", "probe =3"))
    done = site.call("results/ci/pixelrag/executors/page-reader-smollm2.json", "--sdm", "conda")
    assert done.returncode == 1 and "Could not create conda environment" in done.stderr
    assert "probe" in done.stderr and site.environments() == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_small_run_in_environments_is_the_small_run(finished, tmp_path):
    site = site_in(tmp_path)
    link_sources(site.directory)
    site.made(*CI_TARGETS, "--sdm", "conda", "--config", "run=ci")
    assert site.conda.n_created() == 2
    assert site.bytes_of() == finished.bytes_of()
    prefixes = {line["prefix"] for line in site.ran().values()}
    assert prefixes == {str(path) for path in site.environments()}
    assert {"embed.py", "search.py", "collect_responses.py", "serve_page_reader.py"} <= set(site.ran())
