"""Show that every stage streams: ten times the items take ten times the time and the same memory.

Runs the real command line of every stage on synthetic inputs of n and of 10 n items and prints a table.
Ends with 1 if a stage does not stream and no reason is given for it here.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS, TESTS = ROOT / "scripts", ROOT / "tests"
FLAT = 1.2
"""Memory may grow by this factor with ten times the items."""
IDS_BYTES = 1000
"""What a stage may hold of each item, bytes: ids, keys, places and scores, but not the item."""
LINEAR = 1.3
"""CPU time per item may grow by this factor; above 1 for the noise of a shared machine."""
SHOWN_S, SURE_S = 0.05, 0.15
"""CPU seconds of work, without starting, from which a time per item can be shown, and relied on."""
REPEAT_BELOW_S = 1.5
HEADER = (
    "stage", "n, 10 n", "seconds", "items/s", "MB", "time per item", "memory", "bytes per item", "finding"
)  # fmt: skip


class Stage(NamedTuple):
    """A stage, how many items it is given, and what it may hold."""

    title: str
    maker: str
    """Function of ``streaming_inputs``."""
    n: int
    """Items of the smaller run; a twentieth of it is the run that tells what starting costs."""
    holds: str = ""
    """Why memory may grow, where that is what the stage is for or has an end that is known."""
    models: bool = False
    """Needs the weights under ``results/sources``."""
    server: bool = False
    """Talks to the answering server."""


STAGES = (
    Stage("build_requests, text", "requests_text", 2700),
    Stage("build_requests, tiles and images", "requests_tiles", 2700),
    Stage("build_requests, by passages of the corpus", "requests_passages", 2700),
    Stage("build_requests, by tiles of the corpus", "requests_manifest", 2700),
    Stage("collect_responses, an image in a tenth", "collect", 1000, server=True),
    Stage("build_judge_requests", "judge_requests", 2700),
    Stage("grade, exact match", "grade_em", 2700),
    Stage("grade, judged", "grade_judged", 2700),
    Stage("make_table, verdicts of 24 cells", "table", 24 * 200),
    Stage("make_table, 9 rates of 8 models", "table_of_rates", 8 * 500),
    Stage("build_agreement_requests, verdicts of 4 cells", "agreement", 4 * 700),
    Stage("build_items --own, an image in a tenth", "own_items", 2700),
    Stage("search", "search", 60, models=True),
    Stage("embed, passages", "embed", 20, models=True),
    Stage("build_index, flat", "index", 2000, "holds all: the index is the vectors", models=True),
    Stage("select_pages", "pages_chosen", 600),
    Stage("render_tiles, one browser", "rendered", 8),
    Stage("extract_text", "extracted", 200, "streams, fills the archive reader's cache first", models=True),
    Stage("read_tiles, OCR of small tiles", "tiles_read", 4),
    Stage("read_tiles, all tiles in the journal", "tiles_known", 1000),
)


class Run(NamedTuple):
    """What one process took: wall and CPU seconds, peak resident memory in bytes."""

    seconds: float
    cpu_s: float
    peak_bytes: int


class Row(NamedTuple):
    """Measurements of one stage."""

    stage: Stage
    few: int
    start: Run
    small: Run
    large: Run

    @property
    def worked_s(self) -> float:
        """CPU seconds of the smaller run without what starting costs."""
        return self.small.cpu_s - self.start.cpu_s

    def time_ratio(self, least_s: float) -> float:
        """Return CPU time per item with 10 n items over that with n, both without what starting costs.

        Args:
            least_s: the smaller run counts as at least that much work, so that noise is not a finding.
        """
        n, few = self.stage.n, self.few
        first = max(self.worked_s, least_s) / (n - few)
        return (self.large.cpu_s - self.start.cpu_s) / (10 * n - few) / first

    @property
    def memory_ratio(self) -> float:
        """Peak memory with 10 n items over that with n."""
        return self.large.peak_bytes / self.small.peak_bytes

    @property
    def bytes_per_item(self) -> float:
        """Growth of the peak per further item."""
        return (self.large.peak_bytes - self.small.peak_bytes) / (9 * self.stage.n)

    def finding(self) -> tuple[bool, str]:
        """Return whether the stage streams, or need not, and what to say about it."""
        slow = self.time_ratio(SURE_S) > LINEAR
        if self.memory_ratio <= FLAT:
            kept, text = True, "streams"
        elif self.bytes_per_item <= IDS_BYTES:
            kept, text = True, "streams, holds ids"
        elif self.stage.holds:
            kept, text = True, self.stage.holds
        else:
            kept, text = False, "**HOLDS ALL ITEMS**"
        return kept and not slow, text + (", **TIME GROWS FASTER THAN ITEMS**" if slow else "")

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, in the order of ``HEADER``."""
        n, small, large = self.stage.n, self.small, self.large
        return (
            self.stage.title,
            f"{n:,}, {10 * n:,}",
            f"{small.seconds:.1f}, {large.seconds:.1f}",
            f"{10 * n / large.seconds:,.0f}" if large.seconds < 2 * n else f"{10 * n / large.seconds:.1f}",
            f"{small.peak_bytes / 1e6:.0f}, {large.peak_bytes / 1e6:.0f}",
            f"× {self.time_ratio(SHOWN_S):.2f}" if self.worked_s >= SHOWN_S else "starting only",
            f"× {self.memory_ratio:.2f}",
            f"{self.bytes_per_item:,.0f}" if self.memory_ratio > FLAT else "flat",
            self.finding()[1],
        )


def make_inputs(stage: Stage, n: int, seed: int, sources: Path, folder: Path) -> list[str]:
    """Write a stage's inputs in a process of its own and return the command line.

    This process must stay small: a child's peak memory counts from what its parent held when it started it.
    """
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def work() -> None:
        import streaming_inputs

        os.chdir(folder)
        there.send(getattr(streaming_inputs, stage.maker)(n, random.Random(seed), sources))

    maker = multiprocessing.get_context("fork").Process(target=work)
    folder.mkdir()
    maker.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise SystemExit(f"{stage.title}: inputs could not be made; see above") from None
    finally:
        maker.join()


@contextlib.contextmanager
def answering(folder: Path) -> Iterator[str]:
    """Run the answering server of the tests; give its address."""
    port = folder / "port"
    command = [sys.executable, str(TESTS / "loopback.py"), "--port-file", str(port)]
    server = subprocess.Popen([*command, "--served-name", "page-reader-smollm2"], stdin=subprocess.PIPE)
    try:
        while not (port.is_file() and port.read_text()):
            if server.poll() is not None:
                raise SystemExit("the answering server ended at once; see above")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port.read_text()}/v1"
    finally:
        server.stdin.close()
        server.wait()


def measure(argv: list[str], folder: Path) -> Run:
    """Run a stage's script in a folder and measure its process, children included."""
    log = folder / "stage.log"
    with open(log, "wb") as stream:
        began = time.monotonic()
        command = [sys.executable, str(SCRIPTS / argv[0]), *argv[1:]]
        process = subprocess.Popen(command, cwd=folder, stdout=stream, stderr=stream)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv[0]} failed:\n{log.read_text(errors='replace')[-2000:]}")
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def run_stage(stage: Stage, n: int, seed: int, sources: Path, root: Path) -> Run:
    """Make inputs of n items and measure the stage; a short run is made twice and the quicker counts."""
    runs: list[Run] = []
    while True:
        with tempfile.TemporaryDirectory(dir=root) as name:
            folder = Path(name) / "work"
            argv = make_inputs(stage, n, seed, sources, folder)
            with answering(Path(name)) if stage.server else contextlib.nullcontext("") as base_url:
                runs.append(measure([word.replace("{base_url}", base_url) for word in argv], folder))
        if len(runs) == 2 or runs[-1].seconds > REPEAT_BELOW_S:
            return min(runs, key=lambda run: run.cpu_s)


def row_of(stage: Stage, seed: int, sources: Path, root: Path) -> Row:
    """Measure a stage with few, n and 10 n items."""
    few = max(1, stage.n // 20)
    if stage.maker == "table":
        few = 24 * (few // 24)
    start, small, large = (run_stage(stage, n, seed, sources, root) for n in (few, stage.n, 10 * stage.n))
    return Row(stage, few, start, small, large)


def line(cells: tuple[str, ...]) -> str:
    """Return a row of a markdown table."""
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="stages whose title holds one of the words")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply every n")
    parser.add_argument("--seed", type=int, default=1, help="of the synthetic inputs")
    parser.add_argument(
        "--sources", type=Path, default=ROOT / "results/sources", help="folder of the weights"
    )
    args = parser.parse_args()
    sys.path[:0] = [str(SCRIPTS), str(TESTS)]
    found = []
    print(line(HEADER), line(("---",) + ("---:",) * 7 + ("---",)), sep="\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="streaming-") as root:
        for stage in STAGES:
            if args.only and not any(word in stage.title for word in args.only):
                continue
            if stage.models and not (args.sources / "bge-small-en-v1.5.onnx").is_file():
                print(f"{stage.title}: left out, no weights in {args.sources}", file=sys.stderr)
                continue
            sized = stage._replace(n=round(stage.n * args.scale))
            found.append(row_of(sized, args.seed, args.sources.resolve(), Path(root)))
            print(line(found[-1].cells()), flush=True)
    return 0 if all(row.finding()[0] for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
