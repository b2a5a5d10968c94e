"""What the published reading makes of cells that we read otherwise: counted, never repeated.

Source:
    MRareBench card, section 2 (table of cells, read with type and missing-value inference) and 2.2 (images).
"""

import json
import os.path
import re
from collections import Counter
from collections.abc import Mapping

from remeasure.eight_bits import is_deep
from remeasure.roundtrip import MISSING
from remeasure.studies import mrarebench_text
from remeasure.studies.mrarebench_cases import DiagnosisCase, EvidenceCase
from remeasure.studies.mrarebench_rows import FINDINGS, Broken, parsed

_READS = "published reading: "
_MISSING: dict[str, str] = {
    "index": "the id becomes 'nan'",
    "question": "the question is left out",
    "question_open": "the column `question` is asked instead",
    "context": "the context is left out",
    "answer": "the reference becomes 'nan', which hits every list with these letters",
    "answer_aliases": "there is no alias",
    "final_diagnosis": "the judge is told 'nan'",
    "gold_rationale": "the rationale becomes 'nan'",
    "task_type": "there is no task type",
}
_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_ID_COLUMNS = ("decisive_image_ids", "supporting_image_ids")


class Facts:
    """Counts over the good rows of one table."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._columns: dict[str, _Numbers] = {}

    def add(self, cells: Mapping[str, str], case: DiagnosisCase | EvidenceCase) -> None:
        """Count what there is to say of a row."""
        for column, effect in _MISSING.items():
            cell = cells.get(column)
            # An empty cell is the same to both, but for the rationale: we take the other column then.
            if cell in MISSING and (cell or column == "gold_rationale"):
                self._counts[f"{_READS}column {column} is read as missing: {effect}"] += 1
        for column in ("index", *_ID_COLUMNS):
            if column in cells:
                self._columns.setdefault(column, _Numbers()).add(cells[column])
        self._images(case)
        if isinstance(case, DiagnosisCase):
            self._diagnosis(cells, case)
        else:
            self._evidence(cells, case)

    def _images(self, case: DiagnosisCase | EvidenceCase) -> None:
        deep = [one for one in case.images if one.converted is not None and is_deep(one.converted.mode)]
        if deep:
            said = "images that cannot become JPEG are left out, and later ones take their labels"
            self._counts[f"{_READS}{said}"] += len(deep)

    def _diagnosis(self, cells: Mapping[str, str], case: DiagnosisCase) -> None:
        cell = cells["answer_aliases"]
        names = [] if cell in MISSING else parsed(cell)
        names = names if isinstance(names, list) else [names]
        if n := sum(not isinstance(name, str | Broken) for name in names):
            self._counts["further names that are no text stand as Python writes them"] += n
        if FINDINGS in cells and (n := mrarebench_text.findings_block(cells[FINDINGS]).n_skipped):
            self._counts["findings without text, or told twice, are left out"] += n
        if n := _labelled(cells.get("figure_mapping", ""), case):
            self._counts[f"{_READS}images have a label of figure_mapping"] += n

    def _evidence(self, cells: Mapping[str, str], case: EvidenceCase) -> None:
        entries = parsed(cells["acceptable_evidence_points"])
        if n := len(entries) - len(case.points):
            self._counts["evidence points without text are left out"] += n
        if n := sum(type(entry.get("image")) is int for entry in entries if isinstance(entry, dict)):
            self._counts["evidence points name their image by a number alone, which belongs to no image"] += n
        if n := _null_labels(cells.get("image_slot_map", "")):
            self._counts[f"{_READS}images whose public_slot is null are called 'None'"] += n
        outside = [number for number in case.supporting if not 1 <= number <= len(case.images)]
        self._counts["supporting ids name an image that there is not"] += bool(outside)
        if not mrarebench_text.names(case.diagnosis, mrarebench_text.cut_off(case.context)):
            self._counts["the established diagnosis is worded otherwise than final_diagnosis"] += 1

    def counted(self) -> dict[str, int]:
        """Return what was counted, by sentence."""
        found = +self._counts
        index = self._columns.get("index")
        if index is not None and index.n_changed and index.n_other == index.n_empty == 0:
            found[f"{_READS}column index is read as numbers: ids with zeros or a sign in front change"] = (
                index.n_changed
            )
        for column in _ID_COLUMNS:
            ids = self._columns.get(column)
            if ids is not None and ids.n_numbers and ids.n_empty and not ids.n_other:
                said = f"column {column} is read as decimals: 1 becomes 1.0, which names the images 1 and 0"
                found[f"{_READS}{said}"] = ids.n_numbers
        return dict(sorted(found.items()))


class _Numbers:
    """How many cells of a column look like whole numbers."""

    def __init__(self) -> None:
        self.n_numbers = self.n_changed = self.n_empty = self.n_other = 0

    def add(self, cell: str) -> None:
        if cell in MISSING:
            self.n_empty += 1
        elif _NUMBER.match(cell):
            self.n_numbers += 1
            digits = cell.lstrip("+-")
            self.n_changed += cell[0] == "+" or (digits != "0" and digits[0] == "0")
        else:
            self.n_other += 1


def _null_labels(cell: str) -> int:
    """Return how many slots have a label of null, which we take for none."""
    entries = parsed(cell) if cell.strip() else []
    return sum("public_slot" in entry and entry["public_slot"] is None for entry in entries)


def _labelled(cell: str, case: DiagnosisCase) -> int:
    """Return how many images the published prompt labels: by the names of its own files, which do not fit."""
    try:
        mapping = json.loads(cell) if cell.strip() else {}
    except (ValueError, RecursionError):
        return 0
    if not isinstance(mapping, dict):
        return 0
    names = {os.path.basename(path) for path in mapping.values() if isinstance(path, str)}
    return sum(f"{case.index}--{one.slot}.jpg" in names for one in case.images)
