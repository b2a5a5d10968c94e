"""Measure the asking engine against the least that can be done and against other people's clients.

A server in a process of its own (``asking_server.py``) gives one fixed reply 100 ms after each request. Every
client runs in a process of its own, round after round in turn, and all are timed in one way: the rate is by
the server's clock, from the first request to the last reply; CPU is user and system time of the whole client
process without what a run with a single request takes, which is shown as start.

Peers live in an environment of their own, ``asking_requirements.txt`` says what is in it:

    uv venv /tmp/peers && uv pip install -p /tmp/peers -r benchmarks/asking_requirements.txt
    .venv/bin/python benchmarks/asking.py --peers /tmp/peers/bin/python
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
MODULE_OF = {
    "openai": "openai",
    "openai_aiohttp": "openai",
    "inspect_ai": "inspect_ai",
    "lm_eval": "lm_eval",
}
TITLES = {
    "floor": "floor: bare aiohttp loop",
    "image_floor": "floor: read, SHA-256, base64, send",
    "openai": "openai, gather and semaphore",
    "openai_aiohttp": "openai on aiohttp",
    "inspect_ai": "inspect-ai",
    "lm_eval": "lm-evaluation-harness",
    "ours_kept_nowhere": "ours, nothing kept",
    "ours": "ours, everything on",
}
HEADER = (
    "client", "requests/s", "of floor's rate", "CPU ms per request", "× floor's CPU", "start, CPU s",
    "peak MB", "outcomes",
)  # fmt: skip


class Run(NamedTuple):
    """One client process: its rate by the server, its CPU seconds and peak bytes, what it says of itself."""

    rate: float
    cpu_s: float
    peak_bytes: int
    said: dict[str, Any]
    seen: dict[str, Any]
    """The server's counts."""


class Bench(NamedTuple):
    """What all runs have in common."""

    args: argparse.Namespace
    folder: Path
    base_url: str

    def counts(self) -> dict[str, Any]:
        """Return the server's counts and begin new ones."""
        with urllib.request.urlopen(self.base_url.removesuffix("v1") + "counts") as reply:
            return json.load(reply)

    def command(self, client: str, requests: Path, scratch: Path) -> list[str]:
        """Return the command line of a client.

        Args:
            client: name in ``TITLES``, or ``counted``: ours with counters.
            requests: the request file.
            scratch: an empty folder of this run.
        """
        if client in ("ours", "counted"):
            counting = [str(HERE / "asking_counting.py")] if client == "counted" else []
            settings = {"model": "toy", "served_name": "toy", "identity": {"revision": "synthetic"}}
            words = {
                "requests": requests,
                "settings": json.dumps(settings),
                "executor": self.folder / "executor.json",
                "images-root": self.folder,
                "journal": scratch / "journal",
                "out": scratch / "responses.jsonl",
                "record": scratch / "answers.json",
            }
            options = [str(word) for pair in words.items() for word in (f"--{pair[0]}", pair[1])]
            return [sys.executable, *counting, str(self.args.scripts / "collect_responses.py"), *options]
        python = str(self.args.peers) if client in MODULE_OF else sys.executable
        options = [
            "--base-url",
            self.base_url,
            "--requests",
            str(requests),
            "--scripts",
            str(self.args.scripts),
        ]
        return [
            python,
            str(HERE / "asking_peers.py"),
            client,
            "--in-flight",
            str(self.args.in_flight),
            *options,
        ]

    def run(self, client: str, name: str = "requests.jsonl") -> Run:
        """Run a client once over a request file of the folder and measure its process, children included."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            self.counts()
            log = Path(scratch) / "stderr.log"
            command = self.command(client, self.folder / name, Path(scratch))
            # Large buffers one by one from the kernel, so that asking_counting.py can count what is written.
            tunables = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=65536"} if client == "counted" else {}
            with open(log, "wb") as stderr:
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=stderr, cwd=self.folder, env=os.environ | tunables
                )
                output = process.stdout.read()
                _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{client} failed:\n{log.read_text(errors='replace')[-3000:]}")
            said = ours_said(Path(scratch)) if client == "ours" else json.loads(output.splitlines()[-1])
        seen = self.counts()
        rate = seen["n"] / seen["seconds"] if seen["seconds"] else 0.0
        return Run(rate, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, said, seen)


def ours_said(folder: Path) -> dict[str, Any]:
    """Return what our files say of a run: statuses, sendings beyond the first, slowest answer in seconds."""
    n_again, slowest_s = 0, 0.0
    for path in (folder / "journal").glob("*.jsonl"):
        with open(path, "rb") as lines:
            for entry in map(json.loads, lines):
                if "attempts" in entry:
                    n_again += entry["attempts"] - 1
                    slowest_s = max(slowest_s, entry["seconds"])
    statuses = json.loads((folder / "answers.json").read_bytes())["counts"]
    return {"statuses": statuses, "n_again": n_again, "slowest_s": slowest_s}


@contextlib.contextmanager
def serving(python: Path, delay_s: float) -> Iterator[str]:
    """Run the server; give its address."""
    with tempfile.TemporaryDirectory(prefix="asking-") as folder:
        port_file = Path(folder) / "port"
        words = [str(HERE / "asking_server.py"), "--port-file", str(port_file), "--delay", str(delay_s)]
        server = subprocess.Popen([str(python), *words])
        try:
            while not (port_file.is_file() and port_file.read_text()):
                if server.poll() is not None:
                    raise SystemExit("the server ended at once; see above")
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port_file.read_text()}/v1"
        finally:
            server.terminate()
            server.wait()


def make_inputs(bench: Bench, n_images: int) -> None:
    """Write the inputs in a process of its own: a child's peak counts from what its parent held."""

    def work() -> None:
        sys.path.insert(0, str(bench.args.scripts))
        import asking_inputs

        n_distinct = min(bench.args.distinct, bench.args.requests)
        asking_inputs.write(
            bench.folder, bench.base_url, bench.args.requests, bench.args.in_flight, n_images, n_distinct
        )

    maker = multiprocessing.get_context("fork").Process(target=work)
    maker.start()
    maker.join()
    if maker.exitcode:
        raise SystemExit("inputs could not be made; see above")


def installed(python: Path, module: str) -> bool:
    """Return whether an interpreter has a module."""
    test = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return subprocess.run([str(python), "-c", test, module]).returncode == 0


def chosen(args: argparse.Namespace, names: list[str]) -> list[str]:
    """Return the clients that can be measured; name those that are left out."""
    found = []
    for name in names:
        if name in MODULE_OF and not installed(args.peers, MODULE_OF[name]):
            print(
                f"{TITLES[name]}: left out, {MODULE_OF[name]} is not installed in {args.peers}",
                file=sys.stderr,
            )
        elif not args.only or name in args.only:
            found.append(name)
    return found


def per_request_ms(run: Run, start: Run) -> float:
    """Return CPU milliseconds per request without starting."""
    return 1e3 * (run.cpu_s - start.cpu_s) / max(1, run.seen["n"] - start.seen["n"])


def row(name: str, runs: dict[str, list[Run]], starts: dict[str, Run], floor: str | None) -> tuple[str, ...]:
    """Return a client's medians over the rounds; ratios are taken within a round."""
    mine = runs[name]
    cpu_ms = [per_request_ms(run, starts[name]) for run in mine]
    rate_share = cpu_ratio = "–"
    if floor in runs:
        theirs = [per_request_ms(run, starts[floor]) for run in runs[floor]]
        rate_share = (
            f"{statistics.median(a.rate / b.rate for a, b in zip(mine, runs[floor], strict=True)):.1%}"
        )
        cpu_ratio = f"{statistics.median(a / b for a, b in zip(cpu_ms, theirs, strict=True)):.2f}"
    said = mine[-1].said
    return (
        TITLES[name],
        f"{statistics.median(run.rate for run in mine):,.0f}",
        rate_share,
        f"{statistics.median(cpu_ms):.3f}",
        cpu_ratio,
        f"{starts[name].cpu_s:.2f}",
        f"{max(run.peak_bytes for run in mine) / 1e6:.0f}",
        ", ".join(f"{n:,} {status}" for status, n in sorted(said["statuses"].items())),
    )


def line(cells: tuple[str, ...]) -> str:
    """Return a row of a markdown table."""
    return "| " + " | ".join(cells) + " |"


def measure(bench: Bench, names: list[str], floor: str | None) -> None:
    """Run all clients in turn, round after round, and print the table."""
    runs: dict[str, list[Run]] = {name: [] for name in names}
    begun: dict[str, list[Run]] = {name: [] for name in names}
    for number in range(bench.args.rounds):
        for name in names:
            begun[name].append(bench.run(name, "one.jsonl"))
            runs[name].append(bench.run(name))
            print(f"round {number + 1}: {TITLES[name]} {runs[name][-1].rate:,.0f}/s", file=sys.stderr)
    # Peers start for seconds, and not always for as long: the median is what is taken off every run.
    starts = {
        name: sorted(found, key=lambda run: run.cpu_s)[len(found) // 2] for name, found in begun.items()
    }
    print(line(HEADER), line(("---",) + ("---:",) * 6 + ("---",)), sep="\n")
    for name in names:
        print(line(row(name, runs, starts, floor)))
    n, in_flight, delay_s = bench.args.requests, bench.args.in_flight, bench.args.delay
    every = [run for found in runs.values() for run in found]
    print(f"\n{n:,} requests, {in_flight} in flight, rounds: {bench.args.rounds}")
    if delay_s:
        print(f"- no client can be faster than {n / (-(-n // in_flight) * delay_s):,.0f} requests/s")
    server_ms = statistics.median(1e3 * run.seen["cpu_s"] / run.seen["n"] for run in every)
    print(f"- the server took {server_ms:.3f} ms CPU per request")
    if "ours" in names:
        say_ours(runs, starts)


def say_ours(runs: dict[str, list[Run]], starts: dict[str, Run]) -> None:
    """Print what only our runs tell."""
    ours = runs["ours"]
    again, slowest_s = sum(run.said["n_again"] for run in ours), max(run.said["slowest_s"] for run in ours)
    most = max(run.seen["most_in_flight"] for run in ours)
    print(f"- ours: {again} requests sent again, slowest answer {slowest_s:.2f} s, at most {most} in flight")
    if "ours_kept_nowhere" in runs:
        pairs = list(zip(ours, runs["ours_kept_nowhere"], strict=True))
        rate = statistics.median(b.rate / a.rate - 1 for a, b in pairs)
        cost_ms = statistics.median(
            per_request_ms(a, starts["ours"]) - per_request_ms(b, starts["ours_kept_nowhere"])
            for a, b in pairs
        )
        print(
            f"- journal, plan and responses cost {rate:.1%} of the rate and {cost_ms:.3f} ms CPU per request"
        )


def count_bytes(bench: Bench) -> None:
    """Print how many bytes ours handles per request with an image."""
    one, all_of_them = bench.run("counted", "one.jsonl"), bench.run("counted")
    n = all_of_them.seen["n"] - one.seen["n"]
    sent = (all_of_them.seen["n_bytes"] - one.seen["n_bytes"]) / n
    found = {name: (all_of_them.said[name] - one.said.get(name, 0)) / n for name in all_of_them.said}
    sized = bench.folder / "images.zip"
    print(
        "\nOurs, kB per request:",
        ", ".join(f"{name} {found[name] / 1e3:,.0f}" for name in sorted(found)),
        end="",
    )
    print(f", sent {sent / 1e3:,.0f} (store of {sized.stat().st_size / 1e6:,.0f} MB)")
    print("- written: into new buffers of 64 kB or more; least is read + encoded, the rest is copying")


def arguments() -> argparse.Namespace:
    """Return the command line, with what the kind of measurement leaves open filled in."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here, scripts = Path(sys.executable), HERE.parent / "scripts"
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--images", action="store_true", help="one image of 300 kB per request")
    kind.add_argument("--memory", action="store_true", help="ours alone, 27,000 requests of three images")
    parser.add_argument("--quick", action="store_true", help="400 requests, one round")
    parser.add_argument("--requests", type=int, help="default 10,000")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--rounds", type=int, help="default 3")
    parser.add_argument("--delay", type=float, help="of the server, seconds; default 0.1, 0 with --memory")
    parser.add_argument("--distinct", type=int, default=400, help="images in the store")
    parser.add_argument("--only", nargs="+", choices=TITLES, help="clients")
    parser.add_argument("--peers", type=Path, default=here, help="Python of the peers' environment")
    parser.add_argument("--scripts", type=Path, default=scripts, help="scripts folder to measure")
    args = parser.parse_args()
    args.requests = args.requests or (400 if args.quick else 27_000 if args.memory else 10_000)
    args.rounds = args.rounds or (1 if args.quick or args.memory else 3)
    args.delay = (0.0 if args.memory else 0.1) if args.delay is None else args.delay
    args.scripts = args.scripts.resolve()
    return args


def main() -> int:
    """Command-line entry."""
    args = arguments()
    names, floor = [name for name in TITLES if name != "image_floor"], "floor"
    if args.memory:
        names, floor = ["ours"], None
    elif args.images:
        names, floor = ["image_floor", "ours"], "image_floor"
    with serving(args.peers, args.delay) as base_url, tempfile.TemporaryDirectory(prefix="asking-") as root:
        bench = Bench(args, Path(root) / "work", base_url)
        make_inputs(bench, 3 if args.memory else int(args.images))
        measure(bench, chosen(args, names), floor)
        if args.images:
            count_bytes(bench)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
