"""Embed the units of a corpus: tiles (OCR + text encoder), passages, candidate lines, or pictures."""

import argparse
import itertools
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from remeasure import cli, jsonl, options, parts, provenance, vectors
from remeasure.encoders import EncoderSettings, adapter, batched, check_backend
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.progress import Progress
from remeasure.records import ImageRef, OcrImage, Passage, RenderedPage, TileRef

log = logging.getLogger("remeasure.embed")

BLOCK = 256
NEEDED = {
    "tiles": ("manifest", "ocr", "tokenizer"),
    "passages": ("passages", "tokenizer"),
    "lines": ("ocr", "passages", "tokenizer"),
    "pictures": ("manifest", "tiles"),
}


def tile_texts(manifest: Path, ocr: Path) -> Iterator[tuple[str, str]]:
    """Yield (tile id, recognised text) of every tile that was read, checked against the manifest.

    Raises:
        RemeasureError: a tile that the manifest does not know or knows with other content.
    """
    from remeasure.ocr import text_of

    known = {tile.tile_id: tile.sha256 for page in jsonl.read(manifest, RenderedPage) for tile in page.tiles}
    for image in jsonl.read(ocr, OcrImage):
        if known.get(image.tile_id) != image.sha256:
            raise RemeasureError(
                f"{ocr}: tile {image.tile_id} was read from other bytes than {manifest} names; "
                f"delete {ocr} and rerun read_tiles"
            )
        yield image.tile_id, text_of(image)


def line_texts(ocr: Path, passages: Path) -> Iterator[tuple[str, str]]:
    """Yield (SHA-256 of the text, text) of every distinct candidate line, in order of first appearance."""
    from remeasure.embedded.lines import text_lines, tile_lines

    seen: set[str] = set()
    from_tiles = (tile_lines(image) for image in jsonl.read(ocr, OcrImage))
    from_text = (text_lines(passage.text) for passage in jsonl.read(passages, Passage))
    for line in itertools.chain.from_iterable(itertools.chain(from_tiles, from_text)):
        digest = sha256_bytes(line.encode())
        if digest not in seen:
            seen.add(digest)
            yield digest, line


def page_pictures(manifest: Path, tiles: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (picture id, pixels) of every picture on a rendered page."""
    from remeasure.encoders import photo, pictures
    from remeasure.images import ImageReader

    with ImageReader() as reader:
        for page in jsonl.read(manifest, RenderedPage):
            decoded: dict[str, np.ndarray] = {}

            def pixels_of(tile: TileRef, decoded=decoded) -> np.ndarray:
                if tile.tile_id not in decoded:
                    ref = ImageRef(sha256=tile.sha256, path=str(tiles), member=tile.member)
                    decoded[tile.tile_id] = photo.decode(reader.read(ref), f"tile {tile.tile_id}")
                return decoded[tile.tile_id]

            for picture in page.pictures:
                yield picture.picture_id, pictures.crop(page, picture, pixels_of)


def blocks(units: Iterable[tuple[str, object]], encode, progress: Progress):
    """Yield (ids, vectors) of ``BLOCK`` units at a time: memory does not grow with the corpus."""
    for block in batched(units, BLOCK):
        yield [name for name, _ in block], encode([content for _, content in block])
        progress.add(len(block))


def check_arguments(settings: EncoderSettings, args: argparse.Namespace) -> list[Path]:
    """Return the files that the unit needs.

    Raises:
        RemeasureError: one is missing, or adapter and settings contradict.
    """
    needed = ("model", *NEEDED[settings.unit], *(("adapter",) if settings.trained else ()))
    missing = [f"--{name}" for name in needed if getattr(args, name) is None]
    if missing or (args.adapter is not None and not settings.trained) or args.threads < 1:
        raise RemeasureError(
            f"encoder {settings.name} of {settings.unit}: missing {', '.join(missing) or 'nothing'}, trained "
            f"is {str(settings.trained).lower()}, --adapter is {args.adapter}, --threads is {args.threads}; "
            "give all files of the unit, an adapter exactly for a trained encoder, and at least one thread"
        )
    return [getattr(args, name) for name in needed]


def open_encoder(settings: EncoderSettings, args: argparse.Namespace):
    """Return (identity, function from contents to vectors, units) of what the settings name."""
    if settings.unit == "pictures":
        from remeasure.encoders.photo import PhotoEncoder

        photos = PhotoEncoder(settings, args.model, args.threads)
        return photos.identity(), photos.pictures, page_pictures(args.manifest, args.tiles)
    from remeasure.encoders.text import TextEncoder

    trained = adapter.read(args.adapter) if settings.trained else None
    texts = TextEncoder(settings, args.model, args.tokenizer, args.threads, trained)
    if settings.unit == "tiles":
        units = tile_texts(args.manifest, args.ocr)
    elif settings.unit == "lines":
        units = line_texts(args.ocr, args.passages)
    else:
        units = ((passage.passage_id, passage.text) for passage in jsonl.read(args.passages, Passage))
    return texts.identity(), texts.documents, units


def work(args: argparse.Namespace) -> None:
    """Read units, embed them, write vectors and order."""
    settings = options.decode(args.settings, EncoderSettings)
    check_backend(settings)
    part = parts.read_part(args.part) if args.part else None
    inputs = check_arguments(settings, args)
    identity, encode, units = open_encoder(settings, args)
    log.info("%s: %s with %d threads", settings.name, identity.encoder, args.threads)
    progress = Progress(log, settings.unit, None)
    n = vectors.write_descriptors(
        args.out, args.order, blocks(units, encode, progress), identity, may_be_empty=part is not None
    )
    progress.finish()
    provenance.write_stage(
        args.record,
        stage="embed",
        script="embed.py",
        settings=msgspec.to_builtins(settings),
        inputs=inputs,
        outputs=[args.out, args.order],
        packages=["onnxruntime", "numpy", "h5py"]
        + (["opencv-python-headless"] if settings.unit == "pictures" else ["tokenizers"]),
        counts={settings.unit: n},
        facts={"identity": msgspec.to_builtins(identity)},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: the encoder, with its unit and model")
    parser.add_argument("--model", type=Path, required=True, help="ONNX model")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of a text model")
    parser.add_argument("--manifest", type=Path, help="pages and their tiles, manifest.jsonl")
    parser.add_argument("--tiles", type=Path, help="tiles.zip (pictures)")
    parser.add_argument("--ocr", type=Path, help="recognised text, ocr.jsonl (tiles, lines)")
    parser.add_argument("--passages", type=Path, help="passages.jsonl (passages, lines)")
    parser.add_argument("--adapter", type=Path, help="adapter.h5 of a trained encoder")
    parser.add_argument("--part", help="which part of the corpus the files are of, such as 2of3")
    parser.add_argument("--threads", type=int, required=True, help="texts in work at once; changes no value")
    parser.add_argument("--out", type=Path, required=True, help="vectors, descriptors.h5")
    parser.add_argument("--order", type=Path, required=True, help="ids of the rows, order.txt")
    parser.add_argument("--record", type=Path, required=True, help="stage record, descriptors.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
