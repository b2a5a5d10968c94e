"""Run a released package's own ``embed_image``: a program of its own, for code that is not ours.

    python released.py PACKAGE MODEL pictures.npz out.json precision

Nothing of ours is imported, and what comes back is numbers in JSON.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np

ENTRY, OPEN = "embed_image", "from_pretrained"


def find(package: Path):
    """Return the one public class that opens a model and embeds images, of a package or of modules."""
    if (package / "__init__.py").is_file():
        where, names = package.parent, [package.name]
    else:
        where, names = package, sorted(path.stem for path in package.glob("*.py"))
    sys.path.insert(0, str(where))
    members = [pair for name in names for pair in vars(importlib.import_module(name)).items()]
    classes = {id(v): v for n, v in members if isinstance(v, type) and not n.startswith("_")}
    found = [one for one in classes.values() if hasattr(one, ENTRY) and hasattr(one, OPEN)]
    if len(found) != 1:
        names = ", ".join(sorted(one.__name__ for one in found)) or "none"
        raise SystemExit(f"{package}: classes with {OPEN} and {ENTRY}: {names}; expected one")
    return found[0]


def main(package: str, model: str, pictures: str, out: str, precision: str) -> None:
    """Embed the pictures of an archive, one by one."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    released = find(Path(package))
    import torch
    from PIL import Image

    embedder = getattr(released, OPEN)(model)
    target = getattr(embedder, "model", embedder)
    if hasattr(target, "to") and torch.cuda.is_available():
        target.to("cuda", getattr(torch, precision))
    with np.load(pictures, allow_pickle=False) as store:
        images = [Image.fromarray(store[name]) for name in store.files]
    rows = []
    for image in images:
        found = getattr(embedder, ENTRY)(image)
        found = found.detach().float().cpu().numpy() if hasattr(found, "detach") else np.asarray(found)
        rows.append(np.asarray(found, dtype=np.float64).reshape(-1).tolist())
    Path(out).write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
