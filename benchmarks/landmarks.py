"""Time the evaluation of rankings and the first stage against the published evaluator.

One score matrix, made from a seed, is evaluated by both: numbers must agree to 1e-12. The published evaluator
is not part of this repository; its place is given, and each measurement is a process of its own:

    git clone https://github.com/filipradenovic/revisitop /tmp/revisitop
    .venv/bin/python benchmarks/landmarks.py --revisitop /tmp/revisitop

Other work may share the cores: CPU seconds of one thread are compared, wall seconds stand beside them. Ends
with 1 if something is slower than it may be, or differs.
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from remeasure.instances import evaluation, ranking  # noqa: E402
from remeasure.instances.evaluation import DIFFICULTIES  # noqa: E402
from remeasure.instances.labels import Labels, Truth  # noqa: E402
from remeasure.instances.ranking import Gallery, Kept, Source  # noqa: E402

N_QUERIES, N_OWN = 70, 6_322
SIZES = (6_322, 100_000, 1_007_323)
DIM, SHORTLIST = 512, 1600
KAPPAS = [1, 5, 10]
FAST = {"stable": 30.0, "default": 12.0}
"""How many times as fast as the published evaluator ours must be with the largest gallery, by its sort."""
FAST_AT_100K = 5.0
EXACT = 1e-12
MOST_MB = 1000
"""That the first stage may hold, without what is mapped from a file."""
NONE = np.empty(0, np.int64)


def truths(rng: np.random.Generator) -> Labels:
    """Return labels of the sizes that the card's section 7 has; two queries have no easy one."""
    found = []
    for query in range(N_QUERIES):
        n_easy, n_hard, n_junk = (int(rng.integers(*range_)) for range_ in ((1, 121), (1, 91), (0, 161)))
        n_easy = 0 if query in (3, 40) else n_easy
        ids = rng.choice(N_OWN, n_easy + n_hard + n_junk, replace=False)
        parts = np.split(ids, [n_easy, n_easy + n_hard])
        easy, hard, junk = (tuple(sorted(part.tolist())) for part in parts)
        found.append(Truth(bbx=(0, 0, 1, 1), easy=easy, hard=hard, junk=junk))
    stems = tuple(f"photo_{row}" for row in range(N_OWN)), tuple(f"query_{row}" for row in range(N_QUERIES))
    return Labels(
        schema=1, dataset="made", source_sha256="0" * 64, imlist=stems[0], qimlist=stems[1], gnd=tuple(found)
    )


def scores_of(rng: np.random.Generator, labels: Labels, n: int) -> np.ndarray:
    """Return scores as those of random directions of 512 numbers, of positives higher; float32 [nq, n]."""
    found = rng.standard_normal((N_QUERIES, n), dtype=np.float32) / np.float32(np.sqrt(DIM))
    for row, truth in zip(found, labels.gnd, strict=True):
        row[list(truth.easy)] += rng.uniform(0, 0.6, len(truth.easy)).astype(np.float32)
        row[list(truth.hard)] += rng.uniform(0, 0.4, len(truth.hard)).astype(np.float32)
    return found


class Clock:
    """CPU and wall seconds, the best of several times."""

    def __init__(self, times: int) -> None:
        self._times = times

    def best(self, function: Callable[[], Any]) -> tuple[Any, float, float]:
        """Return what a function returns, and its seconds: CPU, wall."""
        cpu = wall = float("inf")
        result = None
        for _ in range(self._times):
            begin, began = time.process_time(), time.perf_counter()
            result = function()
            cpu, wall = min(cpu, time.process_time() - begin), min(wall, time.perf_counter() - began)
        return result, cpu, wall


# -- measurements, each in a process of its own --------------------------------------------------------------


def measure_map(way: str, n: int, revisitop: str, times: int) -> dict[str, Any]:
    """Evaluate one score matrix; return seconds, numbers and memory."""
    rng = np.random.default_rng(7)
    labels = truths(rng)
    scores = scores_of(rng, labels, n)
    # Each has the matrix as it uses it: theirs has a column per query.
    theirs = np.ascontiguousarray(scores.T) if way != "ours" else None
    if theirs is not None:
        del scores
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if way == "ours":
        run = lambda: ours(scores, labels)  # noqa: E731
    else:
        compute_map = published(revisitop)
        run = lambda: reference(theirs, labels, compute_map, way)  # noqa: E731
    numbers, cpu, wall = Clock(times).best(run)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu": cpu, "wall": wall, "mb": (after - before) / 1000, "numbers": numbers}


def ours(scores: np.ndarray, labels: Labels) -> dict[str, Any]:
    """Return mAP, AP and mP@k by difficulty, by ours."""
    ids = [labels.labelled(query) for query in range(N_QUERIES)]
    found: dict[str, Any] = {name: {"ap": [], "p": []} for name in DIFFICULTIES}
    for query, ranks in enumerate(evaluation.rank_rows(scores, ids)):
        settings = labels.settings(query)
        for name, at in evaluation.positions_of(ranks, settings).items():
            n_positives = len(settings[name][0])
            found[name]["ap"].append(evaluation.average_precision(at, n_positives))
            if n_positives:
                found[name]["p"].append([evaluation.precision_at(at, k, published=True) for k in KAPPAS])
    for one in found.values():
        one["map"] = evaluation.mean(one["ap"])
        one["p"] = np.mean(one["p"], axis=0).tolist()
    return found


def published(revisitop: str) -> Callable:
    """Import the published function from a checkout; numpy 2.4 lacks a name that it uses."""
    if not hasattr(np, "in1d"):
        np.in1d = np.isin  # what the old name called
    spec = importlib.util.spec_from_file_location("evaluate", Path(revisitop) / "python" / "evaluate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compute_map


def reference(scores: np.ndarray, labels: Labels, compute_map: Callable, kind: str) -> dict[str, Any]:
    """Return the same by the published function, called as its example does."""
    ranks = np.argsort(-scores, axis=0, **({"kind": "stable"} if kind == "stable" else {}))
    found = {}
    for name in DIFFICULTIES:
        gnd = [dict(zip(("ok", "junk"), labels.settings(q)[name], strict=True)) for q in range(N_QUERIES)]
        value, aps, precisions, _ = compute_map(ranks, gnd, KAPPAS)
        found[name] = {"map": value, "ap": aps.tolist(), "p": _without_nan(aps, _, precisions)}
    return found


def _without_nan(aps: np.ndarray, by_query: np.ndarray, precisions: np.ndarray) -> list[float]:
    return by_query[~np.isnan(aps)].mean(axis=0).tolist()


@contextmanager
def held() -> Iterator[list[float]]:
    """Sample what this process holds in memory of its own, in MB; the list has the most at the end."""
    most, over = [0.0], threading.Event()

    def sample() -> None:
        while not over.wait(0.01):
            text = Path("/proc/self/status").read_text()
            most[0] = max(most[0], int(text.partition("RssAnon:")[2].split()[0]) / 1000)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def measure_first(way: str, n: int, folder: str, times: int) -> dict[str, Any]:
    """Rank a gallery by 512 numbers each, in memory or from a file; return seconds and memory."""
    rng = np.random.default_rng(7)
    labels = truths(rng)
    ids = [labels.labelled(query) for query in range(N_QUERIES)]
    kept = Kept(SHORTLIST + 281, ids, default_ties=way == "default ties")
    queries = _unit(rng.standard_normal((N_QUERIES, DIM), dtype=np.float32))
    path = Path(folder) / f"{'float16' if way == 'float16' else 'float32'}.bin"
    vectors = np.memmap(path, np.float16 if way == "float16" else np.float32, "r", shape=(n, DIM))
    if way not in ("float16", "float32"):
        vectors = np.array(vectors)
    gallery = Gallery([Source(None, vectors[:N_OWN], NONE), Source(None, vectors[N_OWN:], NONE)])
    if way == "GEMM":
        scores = np.empty((N_QUERIES, n), np.float32)
        _, cpu, wall = Clock(times).best(lambda: np.matmul(queries, vectors.T, out=scores))
        blocks = Clock(times).best(lambda: ranking.scored(queries, gallery))
        return {"cpu": min(cpu, blocks[1]), "wall": min(wall, blocks[2]), "mb": 0.0}
    with held() as most:
        at_start = most[0]
        _, cpu, wall = Clock(times).best(lambda: ranking.first_stage(queries, gallery, kept, 2))
    resident = vectors.nbytes / 1e6 if way not in ("float16", "float32") else 0.0
    return {"cpu": cpu, "wall": wall, "mb": most[0] - resident - at_start}


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return vectors


def write_vectors(folder: str, n: int) -> dict[str, Any]:
    """Write unit vectors as float32 and float16; return how long reading the larger file takes."""
    rng = np.random.default_rng(11)
    paths = Path(folder) / "float32.bin", Path(folder) / "float16.bin"
    with open(paths[0], "wb") as full, open(paths[1], "wb") as half:
        for begin in range(0, n, 50_000):
            block = _unit(rng.standard_normal((min(50_000, n - begin), DIM), dtype=np.float32))
            full.write(block)
            half.write(block.astype(np.float16))
    began = time.perf_counter()
    buffer = bytearray(1 << 24)
    with open(paths[0], "rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass
    return {"cpu": 0.0, "wall": time.perf_counter() - began, "mb": 0.0}


# -- the comparison ------------------------------------------------------------------------------------------


def child(what: str, *words: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", what, *words], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the largest difference of two evaluations over mAP, AP and mP@k."""
    found = []
    for name in DIFFICULTIES:
        for key in ("map", "ap", "p"):
            a, b = np.atleast_1d(one[name][key]), np.atleast_1d(other[name][key])
            assert (np.isnan(a) == np.isnan(b)).all(), (name, key)
            found.append(float(np.nanmax(np.abs(a - b))))
    return max(found)


def compare_map(revisitop: str, times: int) -> list[str]:
    """Print the table of evaluations; return what is not as it must be."""
    wrong = []
    print("| gallery | evaluator | CPU s | wall s | times ours (CPU) | MB more | differs by |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for n in SIZES:
        mine = child("map", "ours", str(n), revisitop, str(times))
        print(
            f"| {n:,} | ours | {mine['cpu']:.3f} | {mine['wall']:.3f} | | {mine['mb']:,.0f} | |", flush=True
        )
        for kind in ("default", "stable"):
            peer = child("map", kind, str(n), revisitop, str(min(times, 3)))
            ratio, apart = peer["cpu"] / mine["cpu"], difference(mine["numbers"], peer["numbers"])
            title = f"published, {kind} sort"
            row = f"{peer['cpu']:.3f} | {peer['wall']:.3f} | {ratio:.1f} | {peer['mb']:,.0f} | {apart:.1e}"
            print(f"| {n:,} | {title} | {row} |", flush=True)
            # The default sort orders ties as it likes: numbers differ by these.
            if kind == "stable" and apart > EXACT:
                wrong.append(f"{n:,}: differs by {apart:.1e}, at most {EXACT:.0e}")
            least = {SIZES[-1]: FAST[kind], SIZES[1]: FAST_AT_100K}.get(n, 0.0)
            if ratio < least:
                wrong.append(f"{n:,}: {ratio:.1f} times as fast as the {kind} sort, expected {least:.0f}")
    return wrong


def compare_first(folder: str, times: int) -> list[str]:
    """Print the table of the first stage; return what is not as it must be."""
    n = SIZES[-1]
    read = child("write", folder, str(n))
    titles = {
        "GEMM": "multiplication alone: the floor",
        "memory": "in memory, float32",
        "default ties": "in memory, also ties as numpy's default sort",
        "float32": "from a file, float32",
        "float16": "from a file, float16",
    }
    print(f"\nReading {n * DIM * 4 / 1e9:.2f} GB takes {read['wall']:.2f} s here.\n")
    print("| first stage | CPU s | wall s | MB beside the vectors |\n| --- | ---: | ---: | ---: |")
    wrong = []
    for way, title in titles.items():
        found = child("first", way, str(n), folder, str(times))
        print(f"| {title} | {found['cpu']:.2f} | {found['wall']:.2f} | {found['mb']:,.0f} |", flush=True)
        if found["mb"] > MOST_MB:
            wrong.append(f"{title}: {found['mb']:,.0f} MB, at most {MOST_MB}")
    return wrong


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--revisitop", help="checkout of the published evaluator; without it only the first stage"
    )
    parser.add_argument("--times", type=int, default=5, help="the best of so many")
    parser.add_argument("--folder", help="where 3 GB of vectors are written; the system's place for such")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, *words = args.child
        run = {"map": measure_map, "first": measure_first, "write": write_vectors}[what]
        print(json.dumps(run(*(int(word) if word.isdigit() else word for word in words))))
        return 0
    wrong = compare_map(args.revisitop, args.times) if args.revisitop else []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        wrong += compare_first(folder, args.times)
    for line in wrong:
        print(f"NOT MET: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
