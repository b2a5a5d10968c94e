"""Train the adapter of an encoder on questions about train pages; dev pages decide when to stop."""

import argparse
import logging
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, provenance, ranking, vectors
from remeasure.encoders import TrainingSettings, adapter, check_training, training
from remeasure.encoders.text import TextEncoder
from remeasure.encoders.training import Pairs, Trained
from remeasure.errors import RemeasureError
from remeasure.records import Item

log = logging.getLogger("remeasure.train_adapter")


def read_questions(path: Path) -> list[Item]:
    """Read questions for training.

    Raises:
        RemeasureError: none at all, or one without a relevant page.
    """
    items = list(jsonl.unique(jsonl.read(path, Item), "item_id", path))
    lost = next((item.item_id for item in items if not item.relevant), None)
    if not items or lost is not None:
        raise RemeasureError(
            f"{path}: {'no questions' if not items else f'item {lost} names no relevant page'}; "
            "training needs questions whose pages are known: see the step that makes them"
        )
    return items


def pages_of(items: list[Item]) -> set[str]:
    """Return all relevant pages of questions."""
    return {page for item in items for page in item.relevant}


def make_pairs(
    items: list[Item], queries: np.ndarray, documents: vectors.Descriptors, pages: set[str], path: Path
) -> Pairs:
    """Pair questions with the tiles of ``pages``.

    Args:
        items: m questions.
        queries: their vectors, shape (m, dim).
        documents: all tiles of the corpus.
        pages: whose tiles the questions are ranked against.
        path: the question file, for messages.

    Raises:
        RemeasureError: a question none of whose pages has a tile.
    """
    kept = [row for row, name in enumerate(documents.order) if ranking.page_of(name) in pages]
    owners = [ranking.page_of(documents.order[row]) for row in kept]
    gold = np.array([[owner in item.relevant for owner in owners] for item in items], dtype=bool)
    gold = gold.reshape(len(items), len(owners))
    without = np.flatnonzero(~gold.any(axis=1))
    if len(without):
        item = items[int(without[0])]
        raise RemeasureError(
            f"{path}: item {item.item_id}: no tile of page {item.relevant[0]} is embedded; "
            "make questions and vectors from the same pages"
        )
    return Pairs(queries, documents.vectors[kept], gold)


def read_pairs(args: argparse.Namespace, encoder: TextEncoder) -> tuple[Pairs, Pairs]:
    """Return train pairs over train tiles, and dev pairs over the tiles of train and dev pages.

    Tiles of other pages (test, tuning) take no part, not even as wrong answers.

    Raises:
        RemeasureError: sets that share a page, or vectors of another encoder.
    """
    train, dev = read_questions(args.train), read_questions(args.dev)
    shared = sorted(pages_of(train) & pages_of(dev))
    if shared:
        raise RemeasureError(
            f"{args.dev}: page {shared[0]} and {len(shared) - 1} more are train pages too; the sets must be "
            "disjoint: make them again"
        )
    documents = vectors.read_descriptors(args.descriptors, args.order)
    if documents.identity.space() != encoder.identity().space():
        raise RemeasureError(
            f"{args.descriptors}: made by another encoder than {args.model}; delete it and rerun "
            "the embedding"
        )
    texts = [item.question for item in (*train, *dev)]
    queries = encoder.queries(texts)
    train_pages = pages_of(train)
    return (
        make_pairs(train, queries[: len(train)], documents, train_pages, args.train),
        make_pairs(dev, queries[len(train) :], documents, train_pages | pages_of(dev), args.dev),
    )


def report(trained: Trained, settings: TrainingSettings, pairs: tuple[Pairs, Pairs]) -> dict:
    """Return what people want to know about the training, ready for JSON."""
    before, after = trained.steps[0], trained.steps[trained.chosen]
    better = trained.chosen > 0
    numbers = (
        f"dev MRR {before.dev_mrr:.4f} before, {after.dev_mrr:.4f} after; "
        f"dev loss {before.dev_loss:.4f} before, {after.dev_loss:.4f} after"
    )
    unused = f"no step was better on dev than the base encoder (MRR {before.dev_mrr:.4f}): nothing changes"
    return {
        "outcome": f"step {trained.chosen} is used: {numbers}" if better else unused,
        "criterion": "highest MRR on dev, then lowest loss on dev, then earliest step",
        "is_identity": not better,
        "chosen_step": trained.chosen,
        "dev_mrr_before": before.dev_mrr,
        "dev_mrr_after": after.dev_mrr,
        "settings": msgspec.to_builtins(settings),
        "optimiser": {
            "name": "AdamW",
            "beta_1": training.BETA_1,
            "beta_2": training.BETA_2,
            "epsilon": training.EPSILON,
            "weight_decay": training.WEIGHT_DECAY,
        },
        "counts": {
            f"{name}_{what}": n
            for name, part in zip(("train", "dev"), pairs, strict=True)
            for what, n in (("questions", len(part.queries)), ("tiles", len(part.documents)))
        },
        "steps": [step._asdict() for step in trained.steps],
    }


def work(args: argparse.Namespace) -> None:
    """Embed questions, train, write adapter and report."""
    settings = options.decode(args.settings, TrainingSettings)
    check_training(settings)
    encoder = TextEncoder(settings.base_encoder, args.model, args.tokenizer, 1)
    pairs = read_pairs(args, encoder)
    log.info("%d train and %d dev questions", len(pairs[0].queries), len(pairs[1].queries))
    trained = training.train(*pairs, settings)
    base = encoder.identity().model_sha256
    adapter.write(args.out, adapter.Adapter(trained.down, trained.up, base))
    summary = report(trained, settings, pairs)
    jsonl.write_json(args.report, summary)
    provenance.write_stage(
        args.record,
        stage="train_adapter",
        script="train_adapter.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.train, args.dev, args.descriptors, args.order, args.model, args.tokenizer],
        outputs=[args.out, args.report],
        packages=["autograd", "numpy", "onnxruntime", "tokenizers"],
        counts=summary["counts"],
        facts={"outcome": summary["outcome"]},
    )
    log.info("%d steps, %s", len(trained.steps) - 1, summary["outcome"])


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--settings", required=True, help="JSON: rank, temperature, steps, seed, base encoder"
    )
    parser.add_argument("--train", type=Path, required=True, help="questions about train pages, items.jsonl")
    parser.add_argument("--dev", type=Path, required=True, help="questions about dev pages, items.jsonl")
    parser.add_argument("--descriptors", type=Path, required=True, help="tile vectors of the base encoder")
    parser.add_argument("--order", type=Path, required=True, help="their order.txt")
    parser.add_argument("--model", type=Path, required=True, help="ONNX text model")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    parser.add_argument("--out", type=Path, required=True, help="adapter.h5")
    parser.add_argument("--report", type=Path, required=True, help="every step, training.json")
    parser.add_argument("--record", type=Path, required=True, help="stage record, adapter.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
