"""Measures of ranked lists by one of two other packages, in an environment of its own (``ragbench.py``).

    python benchmarks/ragbench_peers.py PACKAGE LISTS

Reads lists and gold documents (JSON), evaluates them some rounds and prints JSON: seconds of each round from
the lists, seconds of the evaluation alone, and the means.
"""

import json
import sys
import time

NAMES = ("map", "recall_5", "recall_10", "ndcg_5", "ndcg_10")
ROUNDS = 5


def by_pytrec_eval(lists, gold):
    """Return seconds of the evaluation and means, from lists."""
    import pytrec_eval

    labels = {str(n): dict.fromkeys(wanted, 1) for n, wanted in enumerate(gold)}
    # Ranks are what counts: scores that strictly decrease say nothing else.
    run = {str(n): {uri: -float(rank) for rank, uri in enumerate(one)} for n, one in enumerate(lists)}
    began = time.perf_counter()
    evaluator = pytrec_eval.RelevanceEvaluator(labels, {"map", "recall.5,10", "ndcg_cut.5,10"})
    found = evaluator.evaluate(run)
    names = ("map", "recall_5", "recall_10", "ndcg_cut_5", "ndcg_cut_10")
    means = [sum(one[name] for one in found.values()) / len(lists) for name in names]
    return time.perf_counter() - began, means


def by_ranx(lists, gold):
    """Return seconds of the evaluation and means, from lists."""
    from ranx import Qrels, Run, evaluate

    labels = Qrels({str(n): dict.fromkeys(wanted, 1) for n, wanted in enumerate(gold)})
    scored = ({uri: float(1000 - rank) for rank, uri in enumerate(one)} for one in lists)
    run = Run({str(n): one for n, one in enumerate(scored)})
    began = time.perf_counter()
    found = evaluate(labels, run, ["map", "recall@5", "recall@10", "ndcg@5", "ndcg@10"])
    return time.perf_counter() - began, [float(value) for value in found.values()]


def main() -> int:
    """Evaluate and print."""
    package, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    measure = {"pytrec-eval-terrier": by_pytrec_eval, "ranx": by_ranx}[package]
    measure(told["lists"][:100], told["gold"][:100])  # ranx compiles at its first call
    from_lists, alone = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        seconds, means = measure(told["lists"], told["gold"])
        from_lists.append(time.perf_counter() - began)
        alone.append(seconds)
    json.dump(
        {"from_lists": from_lists, "alone": alone, "means": dict(zip(NAMES, means, strict=True))}, sys.stdout
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
