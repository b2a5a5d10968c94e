"""The index of MRareBench: the cases of both tracks, and everything that keeps a table from being used.

Source:
    MRareBench card, sections 2 (files) and 2.3 (what fails).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from remeasure.data_tables import Columns
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.held_images import Images
from remeasure.studies.mrarebench_cases import DiagnosisCase, EvidenceCase
from remeasure.studies.mrarebench_facts import Facts
from remeasure.studies.mrarebench_rows import (
    DIAGNOSIS_COLUMNS,
    EVIDENCE_COLUMNS,
    diagnosis_case,
    evidence_case,
)
from remeasure.table_indexing import Wrong

# What stands in the files of the index; config/schema/ describes it.
RECORDS = (DiagnosisCase, EvidenceCase)
_COLUMNS = {"diagnosis.jsonl": DIAGNOSIS_COLUMNS, "evidence.jsonl": EVIDENCE_COLUMNS}


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the index."""

    expected: dict[str, Annotated[int, msgspec.Meta(ge=1)] | None]
    """Rows of the table behind each index file, excluded ones among them; null: not known."""
    exclude: dict[str, Annotated[str, msgspec.Meta(min_length=1)]]
    """Rows that are not used, by index, each with its reason."""


def check(settings: Settings, files: Sequence[str]) -> None:
    """Check what can be checked before a table is read.

    Args:
        settings: options of the index.
        files: the index files that are made from tables.

    Raises:
        RemeasureError: there is an index file that nothing is known about, or `expected` names none.
    """
    for name in files:
        if name not in _COLUMNS:
            raise RemeasureError(
                f"index.tables.files: {name!r} is no index file of MRareBench; use {', '.join(_COLUMNS)}"
            )
    for name in settings.expected:
        if name not in files:
            raise RemeasureError(
                f"index.options.expected: {name!r} is no index file that is made from a table"
                f"{did_you_mean(name, files)}; there are: {', '.join(files)}"
            )


class Reader:
    """Reads rows of both tables (``table_indexing.Reader``)."""

    def __init__(self) -> None:
        self._facts = {file: Facts() for file in _COLUMNS}

    def columns(self, file: str) -> Columns:
        """Return what the header must hold, and may."""
        return _COLUMNS[file]

    def case(
        self, file: str, cells: Mapping[str, str], images: Images, wrong: Wrong
    ) -> DiagnosisCase | EvidenceCase | None:
        """Return the case of a row; null after it has said what is wrong."""
        is_good = True

        def noted(column: str | None, problem: str) -> None:
            nonlocal is_good
            is_good = False
            wrong(column, problem)

        read = diagnosis_case if _COLUMNS[file] is DIAGNOSIS_COLUMNS else evidence_case
        case = read(cells, images, noted)
        if is_good:
            self._facts[file].add(cells, case)
        return case if is_good else None

    def facts(self, file: str) -> dict[str, int]:
        """Return what was counted in a table's good rows, by sentence."""
        return self._facts[file].counted()

    def on_count(self, file: str, n_rows: int, expected: int) -> str:
        """Return what is wrong with a number of rows."""
        return (
            f"has {n_rows} rows, {expected} were expected; MMRareBench is another benchmark (four tracks, "
            "about 1,700 items) with a file of the same name: take the one of junzhin/MRareBench, whose "
            "evidence file is called FULL609 and has 608 rows. For a table of your own say how many, or "
            f"null for any number: `index: {{expected: {{{file}: null}}}}` of the study in the run"
        )
