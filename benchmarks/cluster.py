"""What a cluster costs: seconds per submitted job, what groups save, the small table against one computer.

Runs on the virtual cluster of tests/slurm (root), which it starts and stops. The nodes share this machine's
processors, so every second of Snakemake's own starts is in the numbers.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "slurm")]

from slurmkit import FAST, TABLE, Clone, bytes_of, clone, known_jobs  # noqa: E402
from virtual_cluster import VirtualCluster  # noqa: E402

LIMIT_S = 1800
TRIVIAL = """
rule all:
    input:
        expand("{n}.txt", n=range(N)),


for n in range(N):

    rule:
        name:
            f"write_{n}"
        input:
            f"{n - 1}.txt" if CHAIN and n else [],
        output:
            f"{n}.txt",
        shell:
            "echo > {output}"
"""
RANKINGS = [
    f"results/ci/pixelrag/{bench}/{arm}/ranking.jsonl"
    for bench in ("nq", "nqt", "sqa", "livevqa", "mms", "evqa")
    for arm in ("traf", "base", "lora")
]


def trivial(cluster: VirtualCluster, folder: Path) -> list[str]:
    """Jobs that do nothing: one after another, and eight at a time."""
    rows = []
    for title, n, chain in (("one at a time", 5, True), ("eight at a time", 16, False)):
        here = folder / title.replace(" ", "_")
        here.mkdir()
        (here / "Snakefile").write_text(f"N, CHAIN = {n}, {chain}\n{TRIVIAL}")
        words = ["snakemake", "--executor", "slurm", "--jobs", "8", "--slurm-status-command", "squeue", *FAST]
        words += ["--default-resources", "mem_mb=1000", "runtime=5", "slurm_partition=cpu"]
        seconds, cpu_s = measured(lambda words=words, here=here: Clone(here).program(words).wait(LIMIT_S))
        said = cluster.control("show", "job", "-o", "--all")
        lines = [line for line in said.splitlines() if f"WorkDir={here}" in line]
        took = sorted(moment(line, "EndTime") - moment(line, "StartTime") for line in lines)
        assert len(took) == n
        rows.append(
            f"| {n} trivial jobs, {title} | {seconds:.0f} s | {took[n // 2]:.0f} s | {cpu_s / n:.1f} s |"
        )
    return rows


def grouped(cluster: VirtualCluster, folder: Path) -> list[str]:
    """The 18 searches of the small run as 18 jobs, and as groups of six."""
    rows = []
    for title, groups in (("18 searches, a job each", False), ("18 searches, groups of 6", True)):
        made = clone(folder / ("grouped" if groups else "single"))
        shutil.copytree(ROOT / "results/ci", made.path("results/ci"))
        shutil.copytree(ROOT / ".snakemake/metadata", made.path(".snakemake/metadata"))
        # Members of a group must ask for the same model of GPU: none of the searches asks for one here.
        made.change("config/runs/embedded.yaml", ", search: {gpu: 1, gpu_model: a10g}}", "}")
        made.change("config/runs/embedded.yaml", "\n      search: {gpu: 1, gpu_model: a10g}", "")
        if groups:
            with open(made.path("slurm/config.yaml"), "a") as profile:
                profile.write("\ngroups: {search: searches}\ngroup-components: {searches: 6}\n")
        before = {name: made.path(name).read_bytes() for name in RANKINGS}
        for name in RANKINGS:
            made.path(name).unlink()
        words = ["--forcerun", "search", "--until", "search"]
        seconds, cpu_s = measured(lambda made=made, words=words: made.run(*words, limit_s=LIMIT_S))
        assert {name: made.path(name).read_bytes() for name in RANKINGS} == before
        n = len(known_jobs(cluster, made.folder))
        rows.append(f"| {title} | {n} | {seconds:.0f} s | {cpu_s:.0f} s |")
    return rows


def whole(cluster: VirtualCluster, folder: Path) -> list[str]:
    """The small table from a fresh clone, on the cluster and on this computer alone."""
    rows, made = [], {}
    for title in ("cluster", "one computer"):
        made[title] = here = clone(folder / title.replace(" ", "_"))
        if title == "cluster":
            seconds, cpu_s = measured(lambda here=here: here.run(limit_s=LIMIT_S))
        else:
            words = ["snakemake", "--cores", "2", TABLE, "--config", "run=ci"]
            seconds, cpu_s = measured(lambda here=here, words=words: here.program(words).wait(LIMIT_S))
        n = len(known_jobs(cluster, here.folder))
        rows.append(f"| {title} | {n} | {seconds:.0f} s | {cpu_s:.0f} s |")
    same = bytes_of(made["cluster"].folder) == bytes_of(made["one computer"].folder)
    return [*rows, "", f"Results: {'the same bytes' if same else 'DIFFERENT bytes'}."]


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Run something; return wall seconds and the processor seconds that the whole machine spent meanwhile."""
    started, busy = time.monotonic(), busy_s()
    call()
    return time.monotonic() - started, busy_s() - busy


def busy_s() -> float:
    """Return the seconds that all processors together have been busy since the machine started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def moment(line: str, name: str) -> float:
    """Return a time of a job as seconds."""
    return time.mktime(time.strptime(re.search(rf"\b{name}=(\S+)", line)[1], "%Y-%m-%dT%H:%M:%S"))


PARTS = {
    "trivial": (trivial, "| jobs | wall | start to end of a job, median | processor time per job |"),
    "grouped": (grouped, "| searches | jobs submitted | wall | processor time |"),
    "whole": (whole, "| small table | jobs submitted | wall | processor time |"),
}


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--folder", type=Path, help="state of the virtual cluster; and with --port, its ports"
    )
    parser.add_argument("--port", type=int)
    args = parser.parse_args()
    place = {"folder": args.folder, "first_port": args.port}
    cluster = VirtualCluster(**{name: value for name, value in place.items() if value})
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        try:
            for name in args.only:
                cluster.up()
                measure, head = PARTS[name]
                (Path(folder) / name).mkdir()
                rows = measure(cluster, Path(folder) / name)
                print("\n".join(["", head, "| --- |" + " ---: |" * (head.count("|") - 2), *rows]), flush=True)
        finally:
            cluster.down()
    load = subprocess.run(["uptime"], capture_output=True, text=True).stdout.strip()
    print(f"\n{load}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
