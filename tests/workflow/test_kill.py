"""A run that is killed again and again ends in the same bytes as one that nobody disturbed."""

import random
import subprocess
import time

import pytest

from conftest import CI_TARGETS, Checkout, copy_project, link_sources
from killkit import kill_tree


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_kills_at_random_moments_change_no_byte(finished, tmp_path):
    checkout = Checkout(copy_project(tmp_path / "project"), tmp_path / "work")
    link_sources(checkout.directory)
    command = [*checkout.command(*CI_TARGETS), "--config", "run=ci"]
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
