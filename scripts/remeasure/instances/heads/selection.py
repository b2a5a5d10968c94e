"""What a head is measured by: benchmarks with labels, and classes that were held out.

Source:
    Landmarks card, section 1.5: the published choice of the epoch is Medium mAP on the first benchmark, which
    is the table's own test set; the choice by held-out classes stands beside it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.instances import evaluation, ranking, torch_module
from remeasure.instances.heads.model import mean_of_scales
from remeasure.instances.heads.sampling import Chosen
from remeasure.instances.heads.vectors import TrainingVectors
from remeasure.instances.labels import Labels
from remeasure.instances.labels import read as read_labels
from remeasure.instances.score_row import ScoreRow
from remeasure.instances.vector_checks import check_audit, check_names, check_rows
from remeasure.instances.vectors_file import Rows

BLOCK_ROWS = 8192
MAX_QUERIES = 4096
"""Held-out photographs that are asked for; with GLDv2 there are 79,000, each a row of scores to sort."""
_ROWS_OF_SCORES = 64

Project = Callable[[np.ndarray], np.ndarray]
"""From float32 [n, width] to descriptors, float32 [n, d] of length 1."""


def projection(head, device: str) -> Project:
    """Return what a head makes of vectors in its evaluation mode; a row of zeros stays one.

    Args:
        head: as ``network.build`` makes it, on a device.
        device: torch's name of that.
    """
    torch = torch_module.load()

    def project(vectors: np.ndarray) -> np.ndarray:
        blocks = []
        with torch.no_grad():
            for start in range(0, len(vectors), BLOCK_ROWS):
                block = torch.from_numpy(vectors[start : start + BLOCK_ROWS]).to(device)
                found = torch.nn.functional.normalize(head(block), dim=1)
                blocks.append((found * block.any(dim=1, keepdim=True)).cpu().numpy())
        return np.concatenate(blocks)

    return project


class Bench(NamedTuple):
    """A benchmark: labels, and a vector of every query and every photograph of its gallery."""

    labels: Labels
    queries: np.ndarray
    """float32 [nq, width], the crops."""
    gallery: np.ndarray
    """float32 [n, width]."""

    def measure(self, project: Project) -> dict[str, float]:
        """Return mAP by difficulty, 0 to 1."""
        # As ``rank_first`` ranks: what could not be decoded comes last.
        unreadable = np.flatnonzero(~self.gallery.any(axis=1))
        gallery = ranking.Gallery([ranking.Source(None, project(self.gallery), unreadable)])
        labelled = [self.labels.labelled(query) for query in range(len(self.queries))]
        kept = ranking.Kept(0, labelled, default_ties=False)
        return evaluation.mean_ap(
            ranking.first_stage(project(self.queries), gallery, kept).labelled, self.labels
        )


def read_bench(
    labels: Path, audit: Path, queries: Path, gallery: Path, width: int
) -> tuple[Bench, list[Rows]]:
    """Read a benchmark and check that its files belong together.

    Returns:
        The benchmark, and the files of its vectors.

    Raises:
        RemeasureError: an audit that did not pass, photographs in another order than the labels have them, or
            vectors that are not of length 1.
    """
    check_audit(audit)
    truth = read_labels(labels)
    files = []
    for path, names in ((queries, truth.qimlist), (gallery, truth.imlist)):
        rows = Rows(path)
        check_rows(rows, width)
        check_names(rows, names, labels)
        files.append(rows)
    found = [mean_of_scales(rows.read("cls")) for rows in files]
    return Bench(truth, *found), files


class HeldOut(NamedTuple):
    """Photographs of classes that a head never saw: each is looked for among the others."""

    vectors: np.ndarray
    """float32 [n, width]."""
    label: np.ndarray
    """int64 [n]."""
    queries: np.ndarray
    """int64 [q], the places of those that are asked for."""

    def measure(self, project: Project) -> float:
        """Return the mAP of finding a photograph's class among all held-out photographs, without itself."""
        return mean_ap(project(self.vectors), self.label, self.queries)


def held_out(vectors: TrainingVectors, chosen: Chosen) -> HeldOut:
    """Return held-out photographs with their vectors."""
    blocks = [
        mean_of_scales(vectors.take(chosen.row[start : start + BLOCK_ROWS]))
        for start in range(0, len(chosen.row), BLOCK_ROWS)
    ]
    return HeldOut(np.concatenate(blocks), chosen.label, take_turns(chosen.label, MAX_QUERIES))


def take_turns(label: np.ndarray, n: int) -> np.ndarray:
    """Return at most n places: the first of every class, then the second of every class, and so on.

    Returns:
        int64, ascending.
    """
    turn = np.empty(len(label), dtype=np.int64)
    order = np.argsort(label, kind="stable")
    begins = np.searchsorted(label[order], label[order], side="left")
    turn[order] = np.arange(len(label)) - begins
    return np.sort(np.lexsort((label, turn))[:n])


def mean_ap(descriptors: np.ndarray, label: np.ndarray, queries: np.ndarray) -> float:
    """Return the mean average precision of classes; ties by place, as everywhere.

    Args:
        descriptors: float32 [n, d] of length 1.
        label: int64 [n].
        queries: places of those that are asked for; each is itself left out of its ranking.
    """
    found = []
    for start in range(0, len(queries), _ROWS_OF_SCORES):
        block = queries[start : start + _ROWS_OF_SCORES]
        for place, row in zip(block, descriptors[block] @ descriptors.T, strict=True):
            alike = np.flatnonzero(label == label[place])
            ranks = ScoreRow(row).ranks(alike)
            where = evaluation.positions(ranks.of(alike[alike != place]), ranks.of([place]))
            found.append(evaluation.average_precision(where, len(alike) - 1))
    return evaluation.mean(found)
