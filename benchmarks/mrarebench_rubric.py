"""Time the grading of evidence points against the published functions, and compare every value with theirs.

    .venv/bin/python benchmarks/mrarebench_rubric.py --peer PATH/vlmeval/dataset/mrarebench.py

The peer is the published module: the functions that need no judge and no toolkit are taken out of the file
and run with their lexical similarity. Cases are made from a seed: seven points, answers of fifteen sentences,
as many cases as the benchmark has; vectors are measured on the first sixty. CPU seconds are those of the
process, because other work may share the cores. Ends with 1 if a value differs by more than 1e-12, or an
answer four times as long takes much more than four times as long.
"""

import argparse
import ast
import functools
import os
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

SOURCES = ROOT / "results" / "sources"
N_CASES = 608
N_VECTORS = 60
SAME = 1e-12
LINEAR = 2.0
"""CPU time per character may grow by this factor with four times the characters; above 1 for noise."""
PEER = (
    "_SIM_BACKEND",
    "_get_sim_backend",
    "DET_TAUS",
    "DET_HEADLINE_TAU",
    "_SENT_SPLIT_RE",
    "_split_sentences",
    "_image_token",
    "_det_open_metrics",
    "_referenced_image_ids",
    "_labeled_image_ids",
    "_det_image_attribution_metrics",
    "T2_HIER_LEVEL",
    "T2_HIER_WEIGHT",
    "T2_VISUAL_CATS",
    "T2_CROSS_CATS",
    "_all_hit",
    "_hier_required_score",
)
WORDS = (
    "image shows axial coronal ct mri histology section the a of in with and without left right kidney femur "
    "lung liver wall mass nodule lesion thick diffuse focal bilateral symmetric sclerotic lytic fat "
    "infiltration enhancement signal hyperintense foamy histiocytes giant cells cd68 positive margin ill "
    "defined calcified consistent suggests supports diagnosis finding pattern cortex marrow cyst septa ring "
    "sign 3 12 mm cm"
).split()
BUCKETS = ("modality", "macro_pattern", "micro_pattern", "cross_image_integration", "diagnostic_attribution")


def sentence(draw: random.Random, low: int = 6, high: int = 24) -> str:
    """Return some words."""
    return " ".join(draw.choices(WORDS, k=draw.randint(low, high)))


def case(draw: random.Random, n_sentences: int = 15) -> dict[str, Any]:
    """Return points, a rationale, an answer in which some points are told, and images."""
    n_images = draw.randint(2, 5)
    points = [
        {
            "point": sentence(draw, 4, 14),
            "image": f"Image {draw.randint(1, n_images)}" if draw.random() < 0.7 else "",
            "credit": draw.choice(("required", "required", "required", "optional")),
            "category": draw.choice(BUCKETS),
        }
        for _ in range(7)
    ]
    said = [f"Image {draw.randint(1, n_images + 1)}: {sentence(draw)}." for _ in range(n_sentences)]
    for place, point in enumerate(points[:3]):
        said[place] = f"{point['image']} {point['point']} {sentence(draw, 1, 4)}."
    return {
        "points": points,
        "rationale": ". ".join(sentence(draw) for _ in range(4)),
        "answer": "\n".join(said),
        "n_images": n_images,
        "decisive": {1},
        "supporting": {1, 2},
    }


def load_peer(path: Path) -> dict[str, Any]:
    """Return the published functions, by name."""
    import numpy

    os.environ["T2_EMBED_MODEL"] = "tfidf"  # as the module documents it: words instead of vectors
    kept = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [getattr(target, "id", "") for target in getattr(node, "targets", [])]
        if getattr(node, "name", None) in PEER or set(names) & set(PEER):
            kept.append(node)
    found: dict[str, Any] = {"re": re, "os": os, "np": numpy}
    exec(compile(ast.Module(kept, []), str(path), "exec"), found)  # noqa: S102 - the file that was named
    return found


def theirs(peer: dict[str, Any], one: dict[str, Any]) -> dict[str, float]:
    """Return the published values of a case."""
    from remeasure.rubrics.points import rubric_of

    rubric = rubric_of(one["points"])
    required, optional = ([point.text for point in part] for part in (rubric.required, rubric.optional))
    values = peer["_det_open_metrics"](one["answer"], required, optional, one["rationale"])
    cosines = values["det_required_maxsims"]
    gated = (
        peer["_hier_required_score"]([int(c >= 0.5) for c in cosines], rubric.buckets) if cosines else None
    )
    values |= {"det_hierarchical_required_recall": gated["hierarchical_required_recall"]} if gated else {}
    values |= peer["_det_image_attribution_metrics"](
        one["answer"], one["n_images"], one["decisive"], one["supporting"]
    )
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, float | int) and name not in ("det_n_sentences", "det_n_ref_images")
    }


def ours(similar: Any, one: dict[str, Any]) -> dict[str, float]:
    """Return our values of a case."""
    from remeasure.rubrics import overlap
    from remeasure.rubrics.attribution import attribution
    from remeasure.rubrics.points import rubric_of

    rubric = rubric_of(one["points"])
    said, gold = overlap.sentences(one["answer"]), overlap.sentences(one["rationale"])
    values, _ = overlap.scores(overlap.overlap(said, rubric, gold, similar), rubric.buckets)
    return values | attribution(one["answer"], one["n_images"], one["decisive"], one["supporting"])


def timed(work: Callable[[dict[str, Any]], Any], cases: list[dict[str, Any]]) -> tuple[float, list[Any]]:
    """Return CPU seconds and results."""
    started = time.process_time()
    found = [work(one) for one in cases]
    return time.process_time() - started, found


def compare(found: list[dict[str, float]], expected: list[dict[str, float]]) -> tuple[int, float]:
    """Return how many values were compared, and the largest difference; infinite where one is missing."""
    pairs = [
        (one.get(name, float("inf")), value)
        for one, other in zip(found, expected, strict=True)
        for name, value in other.items()
    ]
    return len(pairs), max(abs(first - second) for first, second in pairs)


def graded(backends: dict[str, Any], one: dict[str, Any]) -> Any:
    """Return the whole verdict: two similarities, three readings, a judge's lines, what the page shows."""
    from remeasure.graders import by_name
    from remeasure.graders.base import Unit
    from remeasure.records import Item, Response
    from remeasure.rubrics.points import rubric_of

    meta = {name: one[name] for name in ("points", "rationale", "n_images")}
    meta |= {name: sorted(one[name]) for name in ("decisive", "supporting")}
    lines = "\n".join(["YES", "NO"] * rubric_of(one["points"]).n_lines)
    unit = Unit(
        unit_id="x",
        items=(Item(item_id="x", question="", group="x", meta=meta),),
        responses=(Response(custom_id="x", key="k", status="answered", text=one["answer"]),),
        judge=(Response(custom_id="x", key="j", status="answered", text=lines),),
        thinking=False,
    )
    return by_name("judge_rubric").grade(unit, backends=backends)


def foreseen(similar: Any, cases: list[dict[str, Any]]) -> float:
    """Return CPU seconds where the texts of 32 cases are shown to the model together, as when grading."""
    from remeasure.rubrics import overlap
    from remeasure.rubrics.points import rubric_of

    started = time.process_time()
    for first in range(0, len(cases), 32):
        part = cases[first : first + 32]
        texts = [
            text for one in part for name in ("answer", "rationale") for text in overlap.sentences(one[name])
        ]
        for one in part:
            rubric = rubric_of(one["points"])
            texts += [point.text for point in (*rubric.required, *rubric.optional)]
        similar.foresee(texts)
        for one in part:
            ours(similar, one)
    return time.process_time() - started


def with_vectors(cases: list[dict[str, Any]]) -> list[tuple[str, float, int]]:
    """Time vectors, and whole verdicts, where the model is there."""
    from remeasure.rubrics.similarity import EMBEDDING, LEXICAL, Embedding, Lexical

    model, tokenizer = SOURCES / "all-minilm-l6-v2-int8.onnx", SOURCES / "bge-small-en-v1.5.tokenizer.json"
    if not model.exists():
        return []
    alone = timed(functools.partial(ours, Embedding(model, tokenizer)), cases)[0]
    together = foreseen(Embedding(model, tokenizer), cases)
    backends = {LEXICAL: Lexical(), EMBEDDING: Embedding(model, tokenizer)}
    whole = timed(functools.partial(graded, backends), cases)[0]
    named = {"vectors, case by case": alone, "vectors, 32 cases together": together, "whole verdicts": whole}
    return [(f"ours, {name}", seconds, len(cases)) for name, seconds in named.items()]


def main() -> int:
    """Measure, print tables, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="the published module; without it only ours is measured")
    parser.add_argument("--cases", type=int, default=N_CASES, help="number of cases")
    args = parser.parse_args()
    from remeasure.rubrics.similarity import Lexical

    draw = random.Random(1)
    cases = [case(draw) for _ in range(args.cases)]
    words, problems, compared = Lexical(), [], ""
    words(["warm"], ["up"])
    seconds, found = timed(functools.partial(ours, words), cases)
    rows = [("ours, words", seconds, len(cases))]
    if args.peer:
        seconds, expected = timed(functools.partial(theirs, load_peer(args.peer)), cases)
        rows.append(("published functions, words", seconds, len(cases)))
        n, worst = compare(found, expected)
        compared = f"\n{n} values, largest difference {worst:.1e}"
        problems += [f"values differ by {worst}"] if worst > SAME else []
    rows += with_vectors(cases[:N_VECTORS])
    print("| | cases | CPU s | ms per case |\n| --- | ---: | ---: | ---: |")
    for name, seconds, n in rows:
        print(f"| {name} | {n} | {seconds:.2f} | {1000 * seconds / n:.1f} |")
    print(compared)
    long = [[case(draw, n) for _ in range(4)] for n in (2000, 8000)]
    first, second = (timed(functools.partial(ours, Lexical()), each)[0] for each in long)
    growth = second / (4 * first)
    print(
        f"answers of 2,000 and 8,000 sentences: {first:.2f} s, {second:.2f} s, x {growth:.2f} per character"
    )
    problems += [f"time grows by {growth:.2f} per character"] if growth > LINEAR else []
    print("\n".join(problems), file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    raise SystemExit(main())
