"""Ground truth of a landmark benchmark in one open form: which photographs answer a query, how hard each is.

Source:
    The published ``gnd_*.pkl`` of the revisited Oxford and Paris benchmarks (revisitop): gallery and query
    names, and per query a box and three lists of gallery rows. Here it is JSON, which runs no code when it
    is read.
"""

import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import atomic_open, open_regular
from remeasure.image_tree import printable

# A published file is about 0.5 MB; a gallery of a million names about 40 MB.
MAX_BYTES = 500_000_000
# A stem plus ".jpg" is a file name, which may have 255 bytes on the usual file systems.
_MAX_STEM_BYTES = 200
_N_TOLD = 5
DIFFICULTIES = ("easy", "medium", "hard")
"""Settings of the protocol, in the order in which they are told."""


class Truth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one query."""

    bbx: tuple[float, float, float, float]
    """Left, top, right, bottom of the landmark in the query photograph: pixels from 0, fractions occur."""
    easy: tuple[int, ...]
    """Rows of the gallery that show the landmark plainly; ascending, like the other two."""
    hard: tuple[int, ...]
    """Rows that show it small, covered or from the side."""
    junk: tuple[int, ...]
    """Rows that show so little of it that they count neither for nor against a ranking."""


class Labels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark: its queries, its gallery, and what belongs together."""

    schema: Literal[1]
    dataset: str
    source_sha256: str
    """SHA-256 of the file that this was made from; empty where it was made from none."""
    imlist: tuple[str, ...]
    """Stems of the gallery; the photograph is ``<stem>.jpg``. A row of the gallery is a position in
    this list."""
    qimlist: tuple[str, ...]
    """Stems of the queries."""
    gnd: tuple[Truth, ...]
    """One for every query, in their order."""

    def settings(self, query: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return what counts as an answer to a query and what is passed over, by difficulty.

        Args:
            query: position in ``qimlist``.

        Returns:
            For easy, medium and hard: positive rows and ignored rows, int64, ascending.

        Source:
            revisitop: easy asks for easy alone, hard for hard alone; what a setting does not ask for is
            ignored with junk.
        """
        truth = self.gnd[query]
        asked = {
            "easy": (truth.easy, truth.junk + truth.hard),
            "medium": (truth.easy + truth.hard, truth.junk),
            "hard": (truth.hard, truth.junk + truth.easy),
        }
        return {name: (_sorted(positive), _sorted(ignored)) for name, (positive, ignored) in asked.items()}

    def labelled(self, query: int) -> np.ndarray:
        """Return all rows that a query says anything about, int64, ascending."""
        truth = self.gnd[query]
        return _sorted(truth.easy + truth.hard + truth.junk)


def _sorted(rows: tuple[int, ...]) -> np.ndarray:
    return np.array(sorted(rows), dtype=np.int64)


def decode(path: Path) -> Labels:
    """Read a file of labels; only its form is checked.

    Raises:
        RemeasureError: it is missing, too large, or of another form.
    """
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            data = stream.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    if size > MAX_BYTES or len(data) > MAX_BYTES:
        raise RemeasureError(f"{path}: has {size} bytes, at most {MAX_BYTES} are read; it is no ground truth")
    try:
        return msgspec.json.decode(data, type=Labels)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemeasureError(
            f"{path}: not a ground truth of our form: {printable(str(error))}; expected "
            '{"schema": 1, "dataset": …, "source_sha256": …, "imlist": […], "qimlist": […], '
            '"gnd": [{"bbx": [x1, y1, x2, y2], "easy": […], "hard": […], "junk": […]}, …]}: correct it'
        ) from None


def read(path: Path) -> Labels:
    """Read a file of labels and check everything that can be checked without the photographs.

    Raises:
        RemeasureError: names the first problems and says how many there are.
    """
    labels = decode(path)
    refuse(check(labels), path)
    return labels


def refuse(problems: list[str], path: Path) -> None:
    """Raise one error that tells the first problems of a file; without any it passes.

    Raises:
        RemeasureError: there is at least one.
    """
    if problems:
        rest = len(problems) - _N_TOLD
        more = f"; and {rest} more" if rest > 0 else ""
        raise RemeasureError(
            f"{path}: wrong in {len(problems)} place{'s' * (len(problems) > 1)}: "
            f"{'; '.join(problems[:_N_TOLD])}{more}; correct the ground truth, then import it again"
        )


def write(path: Path, labels: Labels) -> None:
    """Write labels as canonical JSON: equal labels are equal bytes."""
    with atomic_open(path, "wb") as stream:
        stream.write(jsonl.encode(labels) + b"\n")


def check(labels: Labels) -> list[str]:
    """Return what is wrong with labels, every problem with its place; an empty list where nothing is.

    Edges:
        A query without any positive is allowed: it leaves the averages.
    """
    found: list[str] = []
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", labels.dataset):
        found.append(
            f"dataset {printable(labels.dataset)!r}: expected small letters, digits, _ and -, at most 64"
        )
    if not re.fullmatch(r"([0-9a-f]{64})?", labels.source_sha256):
        found.append("source_sha256: expected 64 hexadecimal digits, or none")
    if len(labels.gnd) != len(labels.qimlist):
        found.append(
            f"gnd has {len(labels.gnd)} entries, qimlist {len(labels.qimlist)}; expected as many of both"
        )
    for name, stems in (("imlist", labels.imlist), ("qimlist", labels.qimlist)):
        found += _problems_of_stems(name, stems)
    both = sorted(set(labels.imlist) & set(labels.qimlist))
    found += [f"{printable(stem)!r} is both a query and in the gallery" for stem in both]
    for number, truth in enumerate(labels.gnd):
        found += [f"gnd[{number}] {problem}" for problem in _problems_of(truth, len(labels.imlist))]
    return found


def _problems_of_stems(name: str, stems: tuple[str, ...]) -> list[str]:
    found = [] if stems else [f"{name} is empty"]
    counted = Counter(stems)
    found += [f"{name}: {printable(stem)!r} stands {n} times" for stem, n in counted.items() if n > 1]
    found += [f"{name}: {printable(stem)!r} {why}" for stem in counted if (why := problem_of_stem(stem))]
    return found


def problem_of_stem(stem: str) -> str | None:
    """Return why a stem cannot be the name of a photograph; null where it can."""
    if not stem or stem.startswith(".") or not stem.isprintable() or {"/", "\\"} & set(stem):
        return "is no name of a file without its ending"
    if stem != stem.strip() or len(stem.encode()) > _MAX_STEM_BYTES:
        return f"begins or ends with a space, or has more than {_MAX_STEM_BYTES} bytes"
    return None


def _problems_of(truth: Truth, n_gallery: int) -> list[str]:
    found = []
    left, top, right, bottom = truth.bbx
    if not all(math.isfinite(number) for number in truth.bbx):
        found.append("bbx: holds a number that is not finite")
    elif right <= left or bottom <= top:
        found.append(
            f"bbx {list(truth.bbx)}: expected left, top, right, bottom with right > left, bottom > top"
        )
    for name in ("easy", "hard", "junk"):
        rows = getattr(truth, name)
        outside = [row for row in rows if not 0 <= row < n_gallery]
        if outside:
            found.append(f"{name}: row {outside[0]} is not in a gallery of {n_gallery}")
        if any(a >= b for a, b in zip(rows, rows[1:], strict=False)):
            found.append(f"{name}: rows do not ascend, or one stands twice")
    for one, other in (("easy", "hard"), ("easy", "junk"), ("hard", "junk")):
        both = sorted(set(getattr(truth, one)) & set(getattr(truth, other)))
        if both:
            found.append(f"row {both[0]} is in {one} and in {other}")
    return found
