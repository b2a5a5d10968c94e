"""Score every pair of a query and a shortlisted photograph by a reranker; a killed job goes on."""

import argparse
import logging
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.instances import first_file, gallery_order
from remeasure.instances import labels as labels_file
from remeasure.instances.ames import gallery, pairs, scoring, weights
from remeasure.instances.ames.gallery import GalleryTokens
from remeasure.instances.ames.model import Ames
from remeasure.instances.ames.scoring import Ready
from remeasure.instances.ames.settings import Scoring
from remeasure.instances.ames.tokens import Tokens
from remeasure.instances.labels import Labels
from remeasure.progress import Progress

log = logging.getLogger("remeasure.score_pairs")
PHOTOS_AT_ONCE = {"cpu": 32, "cuda": 2048}
"""Photographs of a block: what is made of them once lies in memory until their pairs are scored."""
N_COMPARED = 256
"""Pairs that are scored with 32 bits as well where a coarser mode is asked for."""
_MAX_QUERIES, _MAX_GALLERY = 1 << 15, 1 << 31


class Opened(NamedTuple):
    """What the job reads."""

    model: Ames
    queries: Ready
    gallery: GalleryTokens
    wanted: np.ndarray
    """Pairs, [p, 2], sorted by gallery."""
    key: dict[str, Any]
    """What a logit depends on beside the tokens of the gallery."""


def read_wanted(paths: list[Path], labels: Labels, n_gallery: int, settings: Scoring) -> np.ndarray:
    """Return the pairs that reranking of all first stages needs, sorted by gallery.

    Raises:
        RemeasureError: a first stage of another gallery, or one that is too short.
    """
    found = []
    for path in paths:
        first = first_file.read(path)
        n, n_queries = first.n_gallery, len(first.top_id)
        if n != n_gallery or n_queries != len(labels.qimlist):
            raise RemeasureError(
                f"{path}: ranks {n} photographs for {n_queries} queries, the tokens are of {n_gallery} for "
                f"{len(labels.qimlist)}; give distractors both as descriptors and as tokens, or not at all"
            )
        found.append(pairs.wanted(first, labels, settings.shortlist))
    return pairs.unique(found)


def open_all(args: argparse.Namespace, settings: Scoring) -> Opened:
    """Check that everything belongs together, before any model is loaded; then load it.

    Raises:
        RemeasureError: tokens of other weights, of mixed extractors, or missing; a ranking of something else.
    """
    if not args.first:
        raise RemeasureError("--first: no first stage to rerank; give at least one")
    labels = labels_file.read(args.labels)
    queries = Tokens(args.queries, settings.width)
    pieces = [Tokens(path, settings.width) for path in args.tokens]
    order = gallery_order.read(args.order) if args.order else None
    checkpoint = sha256_file(args.checkpoint)
    reports = [jsonl.read_json(path, dict[str, Any]) for path in args.checked]
    gallery.check_alike([queries, *pieces], checkpoint, reports)
    tokens = GalleryTokens(pieces, labels.imlist, order)
    queries.check_names(labels.qimlist)
    if (
        len(queries.row) != len(labels.qimlist)
        or len(labels.qimlist) >= _MAX_QUERIES
        or tokens.n >= _MAX_GALLERY
    ):
        raise queries.refused(f"{len(queries.row)} queries, and {args.labels} has {len(labels.qimlist)}")
    wanted = read_wanted(args.first, labels, tokens.n, settings)
    tokens.check(np.unique(wanted[:, 1]))
    where = scoring.device()
    model = scoring.opened(
        weights.read(args.checkpoint, settings), settings, settings.numeric, where, args.threads
    )
    ready = scoring.ready(model, *queries.take(np.arange(len(queries.row)), settings.tokens_query))
    key = {
        "checkpoint_sha256": checkpoint,
        "queries_sha256": sha256_file(args.queries),
        "tokens_query": settings.tokens_query,
        "tokens_gallery": settings.tokens_gallery,
        "numeric": settings.numeric,
        "device": where,
    }
    return Opened(model, ready, tokens, wanted, key)


def difference(args: argparse.Namespace, settings: Scoring, opened: Opened, found: np.ndarray) -> float:
    """Return how far some logits are from those of 32 bits, at most: what a coarser mode costs."""
    rows = np.unique(np.linspace(0, len(found) - 1, N_COMPARED).astype(int))
    (query, one), (photo, other) = (np.unique(ids, return_inverse=True) for ids in opened.wanted[rows].T)
    tensors = weights.read(args.checkpoint, settings)
    exact = scoring.opened(tensors, settings, "fp32", opened.key["device"], args.threads)
    queries = Tokens(args.queries, settings.width).take(query, settings.tokens_query)
    photos = opened.gallery.take(photo, settings.tokens_gallery)
    sides = [scoring.ready(exact, *side) for side in (queries, photos)]
    return float(np.abs(scoring.logits(exact, *sides, np.stack([one, other], 1)) - found[rows]).max())


def read_known(paths: list[Path], key: dict[str, Any]) -> dict[tuple[int, int], float]:
    """Return the logits of pairs that a gallery of the same benchmark has, by query and photograph."""
    found: dict[tuple[int, int], float] = {}
    for path in paths:
        columns, other = pairs.read(path)
        if other != key:
            log.warning("%s: scored by other weights or tokens; its pairs are scored again", path)
            continue
        ids = zip(columns["query"].tolist(), columns["gallery"].tolist(), strict=True)
        found.update(zip(ids, columns["logit"].tolist(), strict=True))
    return found


def score(
    opened: Opened, settings: Scoring, known: dict[tuple[int, int], float], blocks: pairs.Blocks
) -> tuple[np.ndarray, int]:
    """Score what is not known, block by block.

    Returns:
        The logit of every wanted pair, [p] float32, and how many were scored now.
    """
    queries, photos = opened.wanted.T
    found = np.full(len(photos), np.nan, np.float32)
    if known:
        found[:] = [known.get(pair, np.nan) for pair in zip(queries.tolist(), photos.tolist(), strict=True)]
    left = np.flatnonzero(np.isnan(found))
    progress, n_scored = Progress(log, "pairs", len(left)), 0
    ids = np.unique(photos[left])
    at_once = PHOTOS_AT_ONCE[opened.key["device"]]
    for start in range(0, len(ids), at_once):
        here = ids[start : start + at_once]
        rows = left[np.searchsorted(photos[left], here[0]) : np.searchsorted(photos[left], here[-1], "right")]
        tokens, n_valid = opened.gallery.take(here, settings.tokens_gallery)
        marks = pairs.digests(tokens, n_valid)
        place = np.searchsorted(here, photos[rows])
        kept = [
            blocks.known(int(photos[row]), int(marks[i])).get(int(queries[row]))
            for row, i in zip(rows, place, strict=True)
        ]
        new = np.array([logit is None for logit in kept], bool)
        found[rows[~new]] = [logit for logit in kept if logit is not None]
        if new.any():
            fresh, at = rows[new], place[new]
            used, at = np.unique(at, return_inverse=True)
            ready = scoring.ready(opened.model, tokens[used], n_valid[used])
            logits = scoring.logits(opened.model, opened.queries, ready, np.stack([queries[fresh], at], 1))
            found[fresh] = logits
            blocks.keep(
                queries[fresh].astype(np.int16), photos[fresh].astype(np.int32), logits, marks[place[new]]
            )
            n_scored += len(fresh)
        progress.add(len(rows))
    progress.finish()
    return found, n_scored


def work(args: argparse.Namespace) -> None:
    """Open, score, write."""
    settings = options.decode(args.settings, Scoring)
    opened = open_all(args, settings)
    benchmark = {"gallery_sha256": sha256_file(args.tokens[0])}
    known = read_known(args.known, opened.key | benchmark)
    n_known = sum(pair in known for pair in map(tuple, opened.wanted.tolist()))
    log.info("%s: %d pairs, %d of them known", settings.gallery, len(opened.wanted), n_known)
    found, n_scored = score(opened, settings, known, pairs.Blocks(args.blocks, opened.key))
    facts: dict[str, Any] = {"device": opened.key["device"], "numeric": settings.numeric}
    if settings.numeric != "fp32":
        facts["largest_difference_from_fp32"] = difference(args, settings, opened, found)
    query, photo = opened.wanted.T
    order = np.lexsort([photo, query])
    columns = {
        "query": query[order].astype(np.int16),
        "gallery": photo[order].astype(np.int32),
        "logit": found[order],
    }
    pairs.write(args.out, columns, opened.key | benchmark)
    inputs = [
        args.labels,
        args.checkpoint,
        args.queries,
        *args.first,
        *args.tokens,
        *args.known,
        *args.checked,
    ]
    provenance.write_stage(
        args.record,
        stage="score_pairs",
        script="score_pairs.py",
        settings=msgspec.to_builtins(settings),
        inputs=inputs + ([args.order] if args.order else []),
        outputs=[args.out],
        packages=["torch", "numpy", "pyarrow", "h5py"],
        counts={"pairs": len(order), "photographs": len(np.unique(photo)), "queries": len(np.unique(query))},
        facts=facts,
    )
    log.info("%d pairs, %d scored now", len(order), n_scored)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--settings", required=True, help="JSON: sizes, tokens of each side, shortlist, numbers"
    )
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument("--checkpoint", type=Path, required=True, help="weights, .safetensors")
    parser.add_argument("--first", type=Path, nargs="+", required=True, help="first stages to rerank, .h5")
    parser.add_argument("--queries", type=Path, required=True, help="tokens of the queries, .h5")
    parser.add_argument(
        "--tokens", type=Path, nargs="+", required=True, help="tokens of the gallery, in order, .h5"
    )
    parser.add_argument("--order", type=Path, help="order.json of the distractors, if there are any")
    parser.add_argument(
        "--known", type=Path, nargs="*", default=[], help="pairs that are scored already, .parquet"
    )
    parser.add_argument(
        "--checked", type=Path, nargs="*", default=[], help="reports of check_locals, check.json"
    )
    parser.add_argument("--threads", type=int, default=1, help="of the processor")
    parser.add_argument("--blocks", type=Path, required=True, help="folder of finished blocks; not declared")
    parser.add_argument("--out", type=Path, required=True, help="pairs, .parquet")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
