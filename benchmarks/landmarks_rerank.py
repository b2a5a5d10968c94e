"""Time reranking on a CPU against the published AMES module, on random weights and descriptors.

The published module is not part of this repository; its place is given:

    git clone https://github.com/pavelsuma/ames /tmp/ames
    .venv/bin/python benchmarks/landmarks_rerank.py --ames /tmp/ames

Both score the same pairs, with as many tokens of both sides as the published evaluation takes. The published
evaluation scores the shortlist of each difficulty by itself, ours each pair of their union once: seconds per
pair are multiplied by the pairs of each, which are counted on labels of the real sizes. Other work may share
the cores: CPU seconds of one thread are compared, wall seconds stand beside them. Ends with 1 if ours is
slower than it may be, or a logit differs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

FAST = 4.0
"""How many times as fast as the published module a whole evaluation must be."""
EXACT = 1e-5
SHORTLIST = 1600
N_QUERIES = 10


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a function returns, and its CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def counted_pairs() -> tuple[int, int]:
    """Return the pairs of two passes, and of one over the union, on made labels of the real sizes."""
    import landmarks

    from remeasure.instances import shortlist

    rng = np.random.default_rng(0)
    labels = landmarks.truths(rng)
    scores = landmarks.scores_of(rng, labels, landmarks.N_OWN)
    two = one = 0
    for query, row in enumerate(scores):
        top, settings = np.argsort(-row, kind="stable"), labels.settings(query)
        lists = [
            shortlist.shortlist(top, settings[name][1], SHORTLIST, len(top)) for name in shortlist.RERANKED
        ]
        two += sum(map(len, lists))
        one += len(shortlist.union(top, settings, SHORTLIST, len(top)))
    return two, one


class Inputs:
    """Random weights, descriptors, and pairs of every query with as many photographs.

    Args:
        n_pairs: about so many.
        n_one: descriptors of a query.
        n_other: descriptors of a photograph.
    """

    def __init__(self, n_pairs: int, n_one: int, n_other: int) -> None:
        from remeasure.instances.ames.weights import Shape

        rng = np.random.default_rng(1)
        self.shape = Shape(dim=768, width=128, heads=2, layers=5, ffn=1024)
        self.tensors = {
            name: self._weight(rng, name, size) for name, size in sorted(self.shape.tensors().items())
        }
        n_photos = max(1, n_pairs // N_QUERIES)
        self.queries, self.photos = (
            self._unit(self._spread(rng, n, length))
            for n, length in ((N_QUERIES, n_one), (n_photos, n_other))
        )
        self.pairs = np.array([(query, photo) for photo in range(n_photos) for query in range(N_QUERIES)])

    @staticmethod
    def _spread(rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        # With a direction of each photograph's own: else the means over 600 are alike, and so are all logits.
        own = rng.standard_normal((n, 1, 768), dtype=np.float32)
        return own + rng.standard_normal((n, length, 768), dtype=np.float32)

    @staticmethod
    def _unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    @staticmethod
    def _weight(rng: np.random.Generator, name: str, size: tuple[int, ...]) -> np.ndarray:
        z = rng.standard_normal(size, dtype=np.float32)
        if name == "mtc_token" or name.endswith("bias"):
            return 0.05 * z
        return 1 + 0.1 * z if len(size) == 1 else z / np.float32(np.sqrt(size[-1]))


def published(inputs: Inputs, folder: Path, batch: int) -> np.ndarray:
    """Score the pairs by the published module, in batches."""
    import torch

    sys.path.insert(0, str(folder / "src"))
    from models.matcher import AMES

    shape = inputs.shape
    model = AMES(
        "", shape.dim, shape.width, shape.heads, shape.layers, shape.ffn, "relu", False, binarized=False
    )
    state = {name: torch.from_numpy(value) for name, value in inputs.tensors.items()}
    model.load_state_dict(state, strict=True)
    model.eval()
    found = []
    with torch.inference_mode():
        for start in range(0, len(inputs.pairs), batch):
            one, other = inputs.pairs[start : start + batch].T
            sides = [torch.from_numpy(inputs.queries[one]), torch.from_numpy(inputs.photos[other])]
            masks = [torch.zeros(side.shape[:2], dtype=torch.bool) for side in sides]
            found.append(model(sides[0], masks[0], sides[1], masks[1]).numpy())
    return np.concatenate(found)


def ours(inputs: Inputs, threads: int) -> np.ndarray:
    """Score the pairs by ours, everything that is done once for each photograph included."""
    from remeasure.instances.ames import scoring
    from remeasure.instances.ames.layouts import Block
    from remeasure.instances.ames.tokens import remapped

    model = scoring.opened(inputs.tensors, inputs.shape, "fp32", "cpu", threads)
    sides = []
    for x, gallery in ((inputs.queries, False), (inputs.photos, True)):
        n_valid = np.full(len(x), x.shape[1])
        sides.append(scoring.ready(model, remapped(model, Block(x, n_valid), gallery), n_valid))
    return scoring.logits(model, *sides, inputs.pairs)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure both, compare."""
    import torch

    torch.set_num_threads(args.threads)
    inputs = Inputs(args.pairs, *args.tokens)
    few = Inputs(N_QUERIES, *args.tokens)
    ours(few, args.threads)
    published(few, args.ames, args.batch[0])
    tried = {size: timed(lambda size=size: published(few, args.ames, size))[1] for size in args.batch}
    batch = min(tried, key=lambda size: tried[size])
    n, (two, one) = len(inputs.pairs), counted_pairs()
    mine, my_cpu, my_wall = min(
        (timed(lambda: ours(inputs, args.threads)) for _ in range(args.repeat)), key=lambda found: found[1]
    )
    theirs, their_cpu, their_wall = min(
        (timed(lambda: published(inputs, args.ames, batch)) for _ in range(args.repeat)),
        key=lambda found: found[1],
    )
    return {
        "tokens": list(args.tokens),
        "threads": args.threads,
        "batch_of_published": batch,
        "pairs": n,
        "pairs_two_passes": two,
        "pairs_of_union": one,
        "ours": {"cpu_ms_per_pair": 1e3 * my_cpu / n, "wall_ms_per_pair": 1e3 * my_wall / n},
        "published": {"cpu_ms_per_pair": 1e3 * their_cpu / n, "wall_ms_per_pair": 1e3 * their_wall / n},
        "ratio_per_pair": their_cpu / my_cpu,
        "ratio": their_cpu / my_cpu * two / one,
        "hours": {"ours": my_wall / n * one / 3600, "published": their_wall / n * two / 3600},
        "largest_difference": float(np.abs(mine - theirs).max()),
        "spread_of_logits": float(theirs.std()),
    }


def told(found: dict[str, Any]) -> str:
    """Return the result as lines for people."""
    lines = [
        f"{found['pairs']} pairs, tokens {found['tokens']}, {found['threads']} thread(s), the published in "
        f"batches of {found['batch_of_published']}"
    ]
    for name in ("published", "ours"):
        numbers = found[name]
        lines.append(
            f"{name}: {numbers['cpu_ms_per_pair']:.1f} ms of CPU per pair, "
            f"{numbers['wall_ms_per_pair']:.1f} ms wall, {found['hours'][name]:.1f} h for Medium and Hard"
        )
    lines.append(
        f"per pair x {found['ratio_per_pair']:.2f}; pairs {found['pairs_two_passes']} in two passes, "
        f"{found['pairs_of_union']} in the union; together x {found['ratio']:.2f} (at least {FAST})"
    )
    lines.append(
        f"largest difference of a logit {found['largest_difference']:.2g} (at most {EXACT}; their spread is "
        f"{found['spread_of_logits']:.2g})"
    )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ames", type=Path, required=True, help="checkout of the published code")
    parser.add_argument("--pairs", type=int, default=200, help="about so many are scored")
    parser.add_argument("--tokens", type=int, nargs=2, default=(600, 600), help="of query and photograph")
    parser.add_argument(
        "--batch", type=int, nargs="+", default=[1, 2, 4, 8], help="pairs at once of the published: the best"
    )
    parser.add_argument("--repeat", type=int, default=1, help="times; the best counts")
    parser.add_argument("--threads", type=int, default=1, help="of both")
    parser.add_argument("--out", type=Path, help="a JSON file of everything that is printed")
    args = parser.parse_args(argv)
    if not (args.ames / "src" / "models" / "matcher.py").is_file():
        print(
            f"error: {args.ames}: has no src/models/matcher.py; give a checkout of pavelsuma/ames",
            file=sys.stderr,
        )
        return 2
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))
    found = measure(args)
    print(told(found))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return int(found["ratio"] < FAST or found["largest_difference"] > EXACT)


if __name__ == "__main__":
    raise SystemExit(main())
