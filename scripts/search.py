"""Rank the units of a corpus for every question of an arm."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, provenance, retrieval, vectors
from remeasure.encoders import adapter, check_backend
from remeasure.encoders.text import TextEncoder
from remeasure.errors import RemeasureError
from remeasure.progress import Progress
from remeasure.records import Item, Ranked, RenderedPage
from remeasure.retrieval import Hits, OpenIndex, PhotoRoute, SearchSettings

log = logging.getLogger("remeasure.search")


def check_arguments(settings: SearchSettings, args: argparse.Namespace) -> list[Path]:
    """Return the files that the ranking depends on.

    Raises:
        RemeasureError: a file that the settings need is missing, or one that they do not know is given.
    """
    if settings.n_docs < 1 or (settings.photo is None) != (settings.fusion is None):
        raise RemeasureError(
            f"--settings: n_docs is {settings.n_docs} and starts at 1; photo and fusion are given together "
            "or not at all; correct the configuration"
        )
    photo = ("photo_index", "photo_record", "photo_order", "photo_model", "manifest")
    wanted = (photo if settings.photo else ()) + (("adapter",) if settings.text.trained else ())
    wanted += ("tokenizer",)
    wrong = [
        f"--{name.replace('_', '-')}"
        for name in (*photo, "adapter", "tokenizer")
        if (getattr(args, name) is None) == (name in wanted)
    ]
    if wrong:
        raise RemeasureError(
            f"{', '.join(wrong)}: missing, or given although the arm's settings do not use it; "
            "photo files belong to arms with a photo route, an adapter to a trained encoder"
        )
    always = ("items", "text_index", "text_record", "text_order", "model")
    return [getattr(args, name) for name in (*always, *wanted)]


def open_photo_route(settings: SearchSettings, args: argparse.Namespace, tiles: OpenIndex) -> PhotoRoute:
    """Open the picture index with its encoder and the way from pictures to tiles."""
    from remeasure.encoders import photo
    from remeasure.images import ImageReader

    encoder = photo.PhotoEncoder(settings.photo, args.photo_model, 1)
    index = retrieval.open_index(args.photo_index, args.photo_record, args.photo_order)
    retrieval.check_same_space(index, encoder.identity(), args.photo_index)
    reader = ImageReader()

    def encode(item: Item) -> np.ndarray:
        return encoder.pictures(
            [photo.decode(reader.read(ref), f"item {item.item_id}") for ref in item.images]
        )

    pages = jsonl.read(args.manifest, RenderedPage)
    return PhotoRoute(index, encode, retrieval.tiles_of_pictures(pages, index, tiles))


def work(args: argparse.Namespace) -> None:
    """Open indexes and encoders, rank, write."""
    settings = options.decode(args.settings, SearchSettings)
    check_backend(settings.text)
    inputs = check_arguments(settings, args)
    trained = adapter.read(args.adapter) if settings.text.trained else None
    encoder = TextEncoder(settings.text, args.model, args.tokenizer, 1, trained)
    index = retrieval.open_index(args.text_index, args.text_record, args.text_order)
    retrieval.check_same_space(index, encoder.identity(), args.text_index)
    photo = open_photo_route(settings, args, index) if settings.photo else None
    log.info("%s: %d %s to search", args.items, len(index.order), index.identity.unit)
    items = jsonl.unique(jsonl.read(args.items, Item), "item_id", args.items)
    hits, progress = Hits(settings.n_docs), Progress(log, "questions", None)

    def counted() -> Iterator[Ranked]:
        for item, ranked in retrieval.rank(items, settings, index, encoder.queries, photo):
            hits.add(item, ranked)
            progress.add()
            yield ranked

    n_items = jsonl.write(args.out, counted())
    progress.finish()
    if not n_items:
        args.out.unlink()
        raise RemeasureError(f"{args.items}: holds no questions; see the step that makes them")
    # Hashed when they were opened; a large index takes minutes.
    hashed = {args.text_index: index.sha256} | ({args.photo_index: photo.index.sha256} if photo else {})
    known = {str(path): sha256 for path, sha256 in hashed.items() if sha256}
    write_record(args, settings, inputs, index, hits, known)


def write_record(
    args: argparse.Namespace,
    settings: SearchSettings,
    inputs: list[Path],
    index: OpenIndex,
    hits: Hits,
    known: dict[str, str],
) -> None:
    """Write the stage record, with how many questions have a relevant page up to each rank."""
    provenance.write_stage(
        args.record,
        stage="search",
        script="search.py",
        settings=msgspec.to_builtins(settings),
        inputs=inputs,
        outputs=[args.out],
        packages=["faiss-cpu", "onnxruntime", "tokenizers", "numpy"],
        counts={
            "items": hits.n_items,
            "with_images": hits.n_with_images,
            "with_relevant": hits.n_with_relevant,
            "units": len(index.order),
        },
        facts={
            "hits_at": {str(k): n for k, n in hits.at.items()},
            "identity": msgspec.to_builtins(index.identity),
            # Equal in arms that may be compared: they search the same units.
            "order_sha256": vectors.order_sha256(index.order),
        },
        known=known,
    )
    log.info(
        "%s: relevant page found at 1: %d, at %d: %d, of %d questions",
        args.out, hits.at[1], settings.n_docs, hits.at[settings.n_docs], hits.n_with_relevant,
    )  # fmt: skip


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: n_docs, text and photo encoder, fusion")
    parser.add_argument("--items", type=Path, required=True, help="questions, items.jsonl")
    parser.add_argument("--text-index", type=Path, required=True, help="index.faiss of tiles or passages")
    parser.add_argument("--text-record", type=Path, required=True, help="its index.json")
    parser.add_argument("--text-order", type=Path, required=True, help="its order.txt")
    parser.add_argument("--model", type=Path, required=True, help="ONNX text model for the questions")
    parser.add_argument("--tokenizer", type=Path, help="its tokenizer.json")
    parser.add_argument("--adapter", type=Path, help="adapter.h5 of a trained encoder")
    parser.add_argument("--photo-index", type=Path, help="index.faiss of pictures")
    parser.add_argument("--photo-record", type=Path, help="its index.json")
    parser.add_argument("--photo-order", type=Path, help="its order.txt")
    parser.add_argument("--photo-model", type=Path, help="ONNX photo model for the query images")
    parser.add_argument("--manifest", type=Path, help="pages with tiles and pictures, manifest.jsonl")
    parser.add_argument(
        "--images", type=Path, help="store that the questions' images lie in; hashed with them"
    )
    parser.add_argument("--out", type=Path, required=True, help="ranking.jsonl")
    parser.add_argument("--record", type=Path, required=True, help="stage record, retrieval.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
