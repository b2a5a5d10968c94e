"""Call the published evaluator on a rank matrix; run as a process of its own, with nothing of ours imported.

``python -I upstream_peer.py evaluate.py FOLDER`` reads ``ranks.npy`` and ``asked.json`` of the folder, and
prints what ``compute_map`` returns, as JSON with null for NaN.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main(module: str, folder: str) -> None:
    """Load the module, call it for every setting, print."""
    import numpy as np

    if not hasattr(np, "in1d"):  # numpy 2.4 took it out; the published module calls it
        np.in1d = np.isin
    spec = importlib.util.spec_from_file_location("published_evaluate", module)
    assert spec is not None and spec.loader is not None, module
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    ranks = np.load(Path(folder) / "ranks.npy", allow_pickle=False)
    asked, kappas = json.loads((Path(folder) / "asked.json").read_text(encoding="utf-8"))
    found = []
    for gnd in asked:
        if not any(one["ok"] for one in gnd):  # it would divide by zero
            empty = np.full((len(gnd), len(kappas)), np.nan)
            results = (np.nan, empty[:, 0], empty[0], empty)
        else:
            results = published.compute_map(ranks, gnd, kappas)
        names = ("map", "aps", "pr", "prs")
        found.append({name: _plain(np.asarray(value)) for name, value in zip(names, results, strict=True)})
    json.dump(found, sys.stdout)


def _plain(values):
    """Return numbers as lists, NaN as null."""
    if values.ndim:
        return [_plain(value) for value in values]
    return None if values != values else float(values)


if __name__ == "__main__":
    main(*sys.argv[1:])
