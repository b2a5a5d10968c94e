"""What the scripts that describe photographs have in common: options, and what they say of their files."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, sha256_of
from remeasure.instances import decode, pieces
from remeasure.instances.pieces import Piece

_PACKAGES = {
    "given": ("h5py", "numpy"),
    "efficientnet-lite0": ("h5py", "numpy", "onnxruntime", "opencv-python-headless", "pillow"),
}
_OF_TORCH = ("h5py", "numpy", "opencv-python-headless", "pillow", "torch", "transformers", "safetensors")
# Settings that change how work is packed, not what comes out beyond the last bit.
_ASIDE = ("name", "batch")


def packages(backend: str) -> tuple[str, ...]:
    """Return the packages whose versions can change what a backend makes."""
    return _PACKAGES.get(backend, _OF_TORCH)


def add_piece(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which photographs are described."""
    parser.add_argument(
        "--piece", required=True, help="1of1, queries, whole or instructed; 2of100 of a shard"
    )
    parser.add_argument("--pictures", type=Path, help="of a benchmark: folder or zip of its photographs")
    parser.add_argument("--labels", type=Path, help="of a benchmark: labels.json")
    parser.add_argument("--shard", type=Path, help="of a large set: tar of its photographs")
    parser.add_argument("--index", type=Path, help="of a large set: where they lie in it, .parquet")


def open_piece(args: argparse.Namespace) -> Piece:
    """Open the photographs that the options of ``add_piece`` say.

    Raises:
        RemeasureError: neither of the two kinds is complete, or ``open_benchmark`` and ``open_shard`` refuse.
    """
    if args.pictures and args.labels and not args.shard and not args.index:
        return pieces.open_benchmark(args.piece, args.pictures, args.labels)
    if args.shard and args.index and not args.pictures and not args.labels:
        return pieces.open_shard(args.piece, args.shard, args.index, getattr(args, "wanted", None))
    raise RemeasureError(
        "photographs: give --pictures and --labels of a benchmark, or --shard and --index of a large set"
    )


def pictures_of(args: argparse.Namespace) -> list[Path]:
    """Return the files of the photographs, for the record."""
    named = (args.pictures, args.labels, args.shard, args.index, getattr(args, "wanted", None))
    return [path for path in named if path is not None]


def files_of(args: argparse.Namespace, needed: Iterable[str]) -> dict[str, Path]:
    """Return the weights that a backend needs, by option."""
    return {name: path for name in needed if (path := getattr(args, name, None)) is not None}


def about(settings: Mapping[str, Any], files: Mapping[str, Path], piece: Piece) -> dict[str, Any]:
    """Return what a file of vectors says of what made it.

    ``extractor`` is equal for files whose vectors may be compared: same settings, weights, decoding.
    """
    weights = {name: sha256_of(path) for name, path in files.items()}
    decides = {name: value for name, value in settings.items() if name not in _ASIDE}
    identity = {"settings": decides, "weights": weights, "decoding": decode.RULE}
    return {
        "settings": dict(settings),
        "weights": weights,
        "extractor": sha256_bytes(jsonl.encode(identity)),
        "piece": piece.name,
        "cropped": piece.boxes is not None,
        "device": device(settings["backend"]),
    }


def device(backend: str) -> str:
    """Return what a backend computes on: "cpu", or "cuda" where torch has a GPU."""
    if backend == "efficientnet-lite0":
        return "cpu"
    from remeasure.instances.torches import device_of

    return device_of()
