"""A known answer: public descriptors of the benchmarks, and the numbers that their page gives for them."""

import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances.auditing import Check, skipped
from remeasure.instances.labels import DIFFICULTIES, Labels
from remeasure.instances.parity import ours

_MAX_BYTES = 2_000_000_000


class Known(NamedTuple):
    """Percent with two decimals, by difficulty."""

    map: tuple[float, float, float]
    mp: tuple[tuple[float, float, float], ...]
    """mP@1, 5 and 10."""


KNOWN = {
    "roxford5k": Known(
        (84.81, 64.67, 38.47), ((97.06, 92.06, 86.49), (97.14, 90.67, 84.67), (81.43, 63.00, 53.00))
    ),
    "rparis6k": Known(
        (92.12, 77.20, 56.32), ((100.0, 97.14, 96.14), (100.0, 98.86, 98.14), (94.29, 90.29, 89.14))
    ),
}
"""What R101-GeM trained on SfM-120k gives.

Source:
    README of the revisitop benchmarks.
"""


def read_features(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read public descriptors from a MATLAB file: gallery ``X`` and queries ``Q``, a column each.

    Returns:
        Gallery float32 [n, dim] and queries float32 [nq, dim].

    Raises:
        RemeasureError: missing, too large, or of another form.
        ImportError: SciPy is missing.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    refused = (OSError, ValueError, TypeError, KeyError, NotImplementedError, zlib.error, MatReadError)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES} bytes")
        raw = loadmat(path, variable_names=("X", "Q"), mat_dtype=False, squeeze_me=False)
        gallery, queries = raw["X"], raw["Q"]
        if gallery.ndim != 2 or queries.ndim != 2 or len(gallery) != len(queries):
            raise ValueError(f"X has the shape {gallery.shape}, Q {queries.shape}")
        if gallery.dtype.kind != "f" or queries.dtype.kind != "f":
            raise ValueError("X or Q holds no floats")
    except refused as error:
        raise RemeasureError(
            f"{path}: no public descriptors "
            f"({str(error).splitlines()[0] if str(error) else type(error).__name__}); expected X and Q of "
            "a .mat file: fetch it again, or take `features` out of `anchor`"
        ) from None
    return np.ascontiguousarray(gallery.T, np.float32), np.ascontiguousarray(queries.T, np.float32)


def anchor(labels: Labels, features: Path | None) -> list[Check]:
    """Compare what public descriptors give with what is known of them.

    Edges:
        Without descriptors, or for a benchmark of which nothing is known, the check is skipped with the
        reason.

    Source:
        Landmarks card, section 1.2, check 7.
    """
    if features is None:
        return [skipped("anchor", "no public descriptors are named (anchor: {features: …})")]
    if labels.dataset not in KNOWN:
        return [skipped("anchor", f"nothing is known of {labels.dataset}")]
    try:
        gallery, queries = read_features(features)
    except ImportError:
        return [skipped("anchor", "SciPy is missing, which reads .mat files")]
    if (len(gallery), len(queries)) != (len(labels.imlist), len(labels.qimlist)):
        return [skipped("anchor", "the public descriptors are of another number of photographs", ok=False)]
    found, known = ours(queries @ gallery.T, labels), KNOWN[labels.dataset]
    checks = []
    for i, name in enumerate(DIFFICULTIES):
        values = [found[name].map, *found[name].mean_precisions]
        for word, value, limit in zip(
            ("map", "mp1", "mp5", "mp10"), values, (known.map[i], *known.mp[i]), strict=True
        ):
            percent = float(np.around(100 * value, 2))
            same = abs(percent - limit) < 1e-9
            checks.append(Check(name=f"anchor_{word}_{name}", ok=same, value=percent, limit=limit))
    return checks
