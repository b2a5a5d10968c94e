"""Time the description of photographs against a plain loop of transformers, at equal output.

Photographs are made from a seed in the sizes of ROxford, the network has random weights: neither changes the
time of a photograph. Each measurement runs in a process of its own. Ends with 1 if outputs are not the same.

    .venv/bin/python benchmarks/landmarks_extraction.py                 # DINOv2 ViT-B/14 and ViT-L/14
    .venv/bin/python benchmarks/landmarks_extraction.py --model small --photographs 32
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

MODELS = {"tiny": (64, 2, 2), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
"""Width, layers and heads of DINOv2's sizes."""
SIZES = ((1024, 768), (768, 1024), (1024, 683), (1024, 768))
SAME = 0.99999
"""The cosine that every vector of ours must have with the loop's."""


def photographs(n: int, shrink: int = 1) -> list[bytes]:
    """Return JPEG files of smooth noise in the sizes of the benchmark."""
    from PIL import Image

    found, rng = [], np.random.default_rng(0)
    for i in range(n):
        width, height = (side // shrink for side in SIZES[i % len(SIZES)])
        coarse = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(coarse).resize((width, height)).save(out, "JPEG", quality=90)
        found.append(out.getvalue())
    return found


def make_model(folder: Path, size: str) -> None:
    """Write a DINOv2 with random weights."""
    import torch
    import transformers

    width, layers, heads = MODELS[size]
    torch.manual_seed(0)
    config = transformers.Dinov2Config(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, image_size=518, patch_size=14
    )
    from remeasure.instances.torches import quiet

    with quiet():
        transformers.Dinov2Model(config).save_pretrained(folder)


def told(size: str, batch: int, shrink: int) -> Any:
    """Return the settings of the backbone."""
    from remeasure.instances.backbones import Told

    return Told(
        name="dinov2",
        backend="dinov2",
        revision=None,
        dim=MODELS[size][0],
        scales=(1.0, 1.414, 2.0),
        size_px=224 // shrink // 14 * 14,
        patch_px=14,
        max_px=1022,
        precision="float32",
        batch=batch,
    )


class Clock:
    """Wall and CPU seconds since it was made; the latter hardly depend on what else a machine does."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Return both."""
        return {"wall": time.perf_counter() - self._wall, "cpu": time.process_time() - self._cpu}


def ours(args: argparse.Namespace) -> tuple[np.ndarray, dict[str, float]]:
    """Describe a piece as the step does, its file included."""
    import torch

    from remeasure.instances import describing
    from remeasure.instances.backbones.dinov2 import Dinov2
    from remeasure.instances.pieces import Piece
    from remeasure.instances.vectors_file import Rows

    data = photographs(args.photographs, args.shrink)
    encoder = Dinov2(told(args.size, args.batch, args.shrink), args.folder, args.threads)
    warm_up(encoder)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        piece = Piece("1of1", [str(i) for i in range(len(data))], lambda i: data[i])
        out = Path(folder) / "cls.h5"
        describing.describe(piece, encoder, out, {}, rule="rounded", threads=args.threads)
        seconds = clock.read()
        assert torch.get_num_threads() == args.threads
        return Rows(out).read("cls"), seconds


def warm_up(encoder: Any) -> None:
    """Let the libraries do what they do once."""
    for size, pixels in encoder.prepare(np.zeros((224, 224, 3), np.uint8)):
        encoder.run(size, [pixels])


def loop(args: argparse.Namespace) -> tuple[np.ndarray, dict[str, float]]:
    """Describe photographs one after the other, one scale after the other, as transformers' examples do."""
    import torch
    import transformers
    from PIL import Image

    from remeasure.instances import sizes

    torch.set_num_threads(args.threads)
    data, settings = photographs(args.photographs, args.shrink), told(args.size, 1, args.shrink)
    model = transformers.Dinov2Model.from_pretrained(args.folder).eval()
    processor = transformers.BitImageProcessor(
        do_resize=False,
        do_center_crop=False,
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )
    found: list[np.ndarray] = []
    with torch.no_grad():
        model(torch.zeros(1, 3, 224, 224))
        clock = Clock()
        for one in data:
            picture = Image.open(io.BytesIO(one)).convert("RGB")
            for scale in settings.scales:
                wanted = sizes.scaled(
                    sizes.Size(*picture.size), scale, settings.size_px, settings.patch_px, settings.max_px
                )
                scaled = picture.resize(wanted, Image.Resampling.BICUBIC)
                inputs = processor(images=scaled, return_tensors="pt")
                token = model(**inputs).last_hidden_state[:, 0]
                found.append(torch.nn.functional.normalize(token, dim=-1)[0].numpy())
        seconds = clock.read()
    return np.array(found).reshape(len(data), len(settings.scales), -1), seconds


def child(args: argparse.Namespace) -> None:
    """Measure one of the two, in a process of its own."""
    found, seconds = {"ours": ours, "loop": loop}[args.child](args)
    np.save(args.folder / f"{args.child}.npy", found)
    print(json.dumps(seconds))


def measure(args: argparse.Namespace, size: str, folder: Path) -> bool:
    """Print a row for a size of the network; return whether outputs are the same."""
    make_model(folder, size)
    rates: dict[str, list[dict[str, float]]] = {"ours": [], "loop": []}
    for _ in range(args.repeat):
        for which in rates:  # in turn, so that what else the machine does meets both
            words = [sys.executable, __file__, "--child", which, "--size", size, "--folder", str(folder)]
            words += ["--photographs", str(args.photographs), "--threads", str(args.threads)]
            words += ["--batch", str(args.batch), "--shrink", str(args.shrink)]
            told_ = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            seconds = json.loads(told_.splitlines()[-1])
            rates[which].append({kind: args.photographs / value for kind, value in seconds.items()})
    one, other = (np.load(folder / f"{which}.npy").astype(np.float64) for which in rates)
    cosines = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
    for kind in ("wall", "cpu"):
        best = {which: max(one[kind] for one in found) for which, found in rates.items()}
        print(
            f"| DINOv2, {size}, {kind} | {best['ours']:.4f} | {best['loop']:.4f} "
            f"| × {best['ours'] / best['loop']:.2f} | {cosines.min():.7f} |",
            flush=True,
        )
    return bool(cosines.min() >= SAME)


def main(argv: list[str] | None = None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", nargs="+", default=["base", "large"], choices=list(MODELS))
    parser.add_argument("--photographs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3, help="times; the best of each counts")
    parser.add_argument("--shrink", type=int, default=1, help="photographs and inputs so many times smaller")
    parser.add_argument("--child", choices=("ours", "loop"), help=argparse.SUPPRESS)
    parser.add_argument("--size", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        child(args)
        return 0
    print("| network | photographs/s, ours | the loop | ratio | smallest cosine |\n|---|---:|---:|---:|---:|")
    same = True
    for size in args.model:
        with tempfile.TemporaryDirectory() as folder:
            same &= measure(args, size, Path(folder))
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
