"""The two tables of composed cases in the published layout: tab-separated, quoted, images as base64."""

import base64
import csv
import io
import json
from collections.abc import Iterator

from remeasure.cases import wording
from remeasure.cases.case import Case
from remeasure.cases.choosing import Chooser
from remeasure.cases.naming import aliases
from remeasure.cases.panels import Painter
from remeasure.cases.settings import CaseSettings


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False)


class Composer:
    """Makes the rows of both tables; cases of the second are others than those of the first.

    Args:
        chooser: what cases are about.
        settings: how many there are, and how they look.
    """

    def __init__(self, chooser: Chooser, settings: CaseSettings) -> None:
        self._settings = settings
        self._painter = Painter(settings, chooser.side)
        cases = chooser.cases(settings.n_diagnosis + settings.n_evidence)
        self.diagnosis = [chooser.with_incidental(case) for case in cases[: settings.n_diagnosis]]
        self.evidence = [chooser.with_distractor(case) for case in cases[settings.n_diagnosis :]]

    def pictures(self, case: Case) -> list[bytes]:
        """Return the pictures of a case, PNG, in order."""
        return [
            self._painter.png(picture, f"{self._settings.seed}/{case.disease.id}/{number}")
            for number, picture in enumerate(case.pictures, start=1)
        ]

    def _images(self, case: Case, name: str) -> dict[str, str]:
        encoded = [base64.b64encode(data).decode() for data in self.pictures(case)]
        paths = [f"composed/{name}/{number}.png" for number in range(1, len(encoded) + 1)]
        return {"image": _json(encoded), "image_path": _json(paths)}

    def diagnosis_rows(self) -> Iterator[dict[str, str]]:
        """Yield the rows of the first track (T1)."""
        for number, case in enumerate(self.diagnosis, start=1):
            name = f"case-{number:03d}"
            images = self._images(case, name)
            blocks = wording.findings_blocks(case, self._settings.kinds, number % 3 != 0)
            labels = [wording.label(n) for n in range(1, len(case.pictures) + 1)]
            yield {
                "index": name,
                "question": wording.QUESTION_DIAGNOSIS,
                "context": wording.patient(case),
                "image findings": _json(blocks),
                "answer": case.disease.name,
                "answer_aliases": _json(aliases(case.disease.name)),
                "figure_mapping": _json(dict(zip(labels, json.loads(images["image_path"]), strict=True))),
                **images,
            }

    def evidence_rows(self) -> Iterator[dict[str, str]]:
        """Yield the rows of the second track (T2)."""
        for number, case in enumerate(self.evidence, start=1):
            name = f"evidence:{number:03d}"
            decisive, supporting = wording.image_ids(case)
            kinds, seed = self._settings.kinds, f"{self._settings.seed}/{case.disease.id}/points"
            slots = [{"public_slot": wording.label(n)} for n in range(1, len(case.pictures) + 1)]
            yield {
                "index": name,
                "orpha_code": case.disease.id.removeprefix("ORPHA:"),
                "overlap_with_T1": "no",
                "task_type": wording.task_type(case),
                "context": wording.context_evidence(case),
                "question_open": wording.QUESTION_EVIDENCE,
                "final_diagnosis": case.disease.name,
                "acceptable_evidence_points": _json(wording.points(case, kinds, seed)),
                "gold_rationale": wording.rationale(case, kinds),
                "image_slot_map": _json(slots),
                "decisive_image_ids": _json(decisive),
                "supporting_image_ids": _json(supporting),
                **self._images(case, f"evidence-{number:03d}"),
            }


def as_tsv(rows: Iterator[dict[str, str]]) -> str:
    """Return rows as a table with a header; cells with tabs, quotes or line ends are quoted."""
    rows = list(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
