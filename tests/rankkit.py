"""Small benchmarks of photographs that are ranked: labels, descriptors, and a slow evaluator of its own.

The evaluator is written from the card's text (section 2.4), one list and one query at a time, and shares
nothing with the code that it checks.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from remeasure.instances import labels as labels_file
from remeasure.instances import vectors_file
from remeasure.instances.labels import Labels, Truth
from remeasure.instances.score_row import Ranks

NAN = float("nan")
BOX = (0.0, 0.0, 8.0, 8.0)


def labels(n_gallery: int, *queries: tuple[tuple[int, ...], ...]) -> Labels:
    """Return the labels of a benchmark: of every query the ids that are easy, hard and junk."""
    return Labels(
        schema=1,
        dataset="small",
        source_sha256="0" * 64,
        imlist=tuple(f"photo_{row:04d}" for row in range(n_gallery)),
        qimlist=tuple(f"query_{row:03d}" for row in range(len(queries))),
        gnd=tuple(Truth(bbx=BOX, easy=easy, hard=hard, junk=junk) for easy, hard, junk in queries),
    )


def random_labels(rng: np.random.Generator, n_gallery: int, n_queries: int, most: int = 12) -> Labels:
    """Return labels at random; the second query has no easy one, the third no positive at all."""
    queries = []
    for number in range(n_queries):
        ids = rng.permutation(n_gallery)
        sizes = rng.integers(1, most, 3)
        if number in (1, 2):
            sizes[0] = 0
        if number == 2:
            sizes[1] = 0
        ends = np.cumsum(sizes)
        parts = np.split(ids[: ends[-1]], ends[:-1])
        queries.append(tuple(tuple(sorted(part.tolist())) for part in parts))
    return labels(n_gallery, *queries)


def asked(truth: Truth) -> dict[str, tuple[set[int], set[int]]]:
    """Return positives and junk by difficulty (card, section 2.2)."""
    easy, hard, junk = set(truth.easy), set(truth.hard), set(truth.junk)
    return {"easy": (easy, junk | hard), "medium": (easy | hard, junk), "hard": (hard, junk | easy)}


def slow_ap(ranking: list[int], positives: set[int], junk: set[int]) -> float:
    """Return average precision of a whole ranking, step by step."""
    if not positives:
        return NAN
    total, found, place = 0.0, 0, 0
    for photo in ranking:
        if photo in junk:
            continue
        if photo in positives:
            before = 1.0 if place == 0 else found / place
            total += (before + (found + 1) / (place + 1)) / (2 * len(positives))
            found += 1
        place += 1
    return total


def slow_precision(ranking: list[int], positives: set[int], junk: set[int], k: int) -> float:
    """Return precision at k as published: divided by the last positive's place where that is before k."""
    counted = [photo for photo in ranking if photo not in junk]
    places = [place for place, photo in enumerate(counted, 1) if photo in positives]
    if not positives:
        return NAN
    reach = min(max(places), k)
    return sum(place <= reach for place in places) / reach


def slow_map(rankings: list[list[int]], found: Labels) -> dict[str, float]:
    """Return mAP by difficulty of whole rankings."""
    values: dict[str, list[float]] = {"easy": [], "medium": [], "hard": []}
    for ranking, truth in zip(rankings, found.gnd, strict=True):
        for name, (positives, junk) in asked(truth).items():
            if positives:
                values[name].append(slow_ap(ranking, positives, junk))
    return {name: sum(one) / len(one) if one else NAN for name, one in values.items()}


def by_score(scores: np.ndarray) -> list[list[int]]:
    """Return whole rankings of rows of scores: score descending, then id."""
    return [sorted(range(len(row)), key=lambda photo, row=row: (-float(row[photo]), photo)) for row in scores]


def unit(rng: np.random.Generator, n: int, dim: int = 16) -> np.ndarray:
    """Return vectors of length 1 at random."""
    found = rng.standard_normal((n, dim)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def ones(*shape: int) -> np.ndarray:
    """Return float32 ones."""
    return np.ones(shape, np.float32)


def put_labels(folder: Path, found: Labels) -> Path:
    """Write labels."""
    path = folder / "labels.json"
    labels_file.write(path, found)
    return path


def put_descriptors(path: Path, names, vectors: np.ndarray, status=(), **about) -> Path:
    """Write descriptors as the stage that projects does; rows whose status is 2 are zeros."""
    status = np.array(status or [0] * len(vectors), np.uint8)
    vectors = np.where(status[:, None] == 2, 0, vectors).astype(vectors.dtype)
    told = {"projection": "p", "head": "h", "extractor": "e"} | about
    path.parent.mkdir(parents=True, exist_ok=True)
    vectors_file.write(path, list(names), about=told, descriptor=vectors, status=status)
    return path


def put_order(folder: Path, pieces: dict[str, list[str]]) -> Path:
    """Write the order of distractors, whose names are given by piece."""
    shards, start = [], 0
    for name, members in pieces.items():
        digest = hashlib.sha256("".join(f"{member}\n" for member in members).encode()).hexdigest()
        shards.append({"name": name, "rows": len(members), "start": start, "list_sha256": digest})
        start += len(members)
    path = folder / "order.json"
    path.write_text(json.dumps({"n": start, "shards": shards}))
    return path


def ranks(places: dict[int, int]) -> Ranks:
    """Return where photographs stand, by id."""
    ids = sorted(places)
    rank = np.array([places[i] for i in ids])
    return Ranks(np.array(ids), rank, rank, np.zeros(len(ids), np.float32), 0)


def put_columns(path: Path, query, gallery, logit) -> Path:
    """Write a file of pairs from its columns."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"query": pa.int16(), "gallery": pa.int32(), "logit": pa.float32()}
    columns = dict(zip(kinds, (query, gallery, logit), strict=True))
    parquet.write_table(pa.table({name: pa.array(columns[name], kinds[name]) for name in kinds}), path)
    return path


def put_pairs(path: Path, logits: dict[tuple[int, int], float]) -> Path:
    """Write a file of pairs: logits by query and photograph."""
    pairs = sorted(logits)
    return put_columns(path, [q for q, _ in pairs], [g for _, g in pairs], [logits[pair] for pair in pairs])
