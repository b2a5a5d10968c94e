"""What the stages of a judge's calibration are told; part of ``plan.Plan``."""

from pathlib import Path
from typing import Any

from remeasure import graders, repeats, table_facts
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.plan_systems import SystemsPlan
from remeasure.settings import Calibration, Cell, Run

Place = tuple[str, str, str]


class CalibrationPlan(SystemsPlan):
    """Settings of calibrations, resolved on demand."""

    def _study_of(self, run: str, table: str) -> str:
        raise NotImplementedError

    def judge(self, run: str, study: str) -> str:
        """Return the judge of a study in a run."""
        raise NotImplementedError

    def judge_request(self, run: str, study: str, bench: str, judge: str | None = None) -> dict[str, Any]:
        """Settings of ``build_judge_requests``."""
        raise NotImplementedError

    def grade(self, run: str, study: str, bench: str, arm: str, model: str) -> dict[str, Any]:
        """Settings of ``grade``."""
        raise NotImplementedError

    def cells_of(self, table: str, run: str | None = None) -> list[Cell]:
        """Return the cells of one table."""
        raise NotImplementedError

    def calibration(self, run: str, table: str) -> Calibration:
        """Return how the judge of a table's study is checked.

        Raises:
            RemeasureError: the run does not say it, or it names benches that cannot be compared.
        """
        study = self._study_of(run, table)
        place = f"{self.folder}/runs/{run}.yaml: studies.{study}.calibration"
        found = self.study_run(run, study).calibration
        if found is None:
            raise RemeasureError(f"{place}: is missing; name `benches` and `judges`")
        if found.labels is not None and Path(found.labels).parts[:1] == ("results",):
            raise RemeasureError(
                f"{place}.labels: {found.labels!r} lies below results/, where files are made again and "
                "labels would be lost; copy the labelled sheet elsewhere and name the copy"
            )
        known = list(dict.fromkeys(cell.bench for cell in self.cells_of(table, run)))
        for bench in found.benches:
            if bench not in known:
                raise RemeasureError(
                    f"{place}.benches: {bench!r} has no cell in {table}{did_you_mean(bench, known)}; known: "
                    f"{', '.join(known)}"
                )
        used = {self.bench(run, study, bench).grader for bench in found.benches}
        if len(used) > 1:
            raise RemeasureError(
                f"{place}.benches: graded by {' and '.join(sorted(used))}; name benches of one grader"
            )
        grader = graders.by_name(next(iter(used)))
        if not grader.judged:
            raise RemeasureError(f"{place}.benches: grader {grader.label} has no judge; name judged benches")
        return found

    def labels(self, run: str, table: str) -> str | None:
        """Return the labelled sheet of a table, null without one; found as ``dataset_files`` finds files."""
        path = self.calibration(run, table).labels
        if path is None:
            return None
        ours = self.folder.parent / path
        return str(ours) if not Path(path).exists() and ours.exists() else path

    def is_calibrated(self, run: str, table: str) -> bool:
        """Return whether a run checks the judge of a table's study, and has cells of the benches named."""
        study = next((cell.study for cell in self.cells if cell.table == table), None)
        here = self.run(run).studies.get(study) if study is not None else None
        if here is None or here.calibration is None:
            return False
        return any(cell.bench in here.calibration.benches for cell in self.cells_of(table, run))

    def run(self, name: str) -> Run:
        """Return one run's settings."""
        raise NotImplementedError

    def calibrated_study(self, run: str, table: str) -> str:
        """Return the study of a table that the judge is checked for."""
        return self._study_of(run, table)

    def calibrated_cells(self, run: str, table: str) -> list[Place]:
        """Return bench, arm and reader of every cell that answers are drawn from, asked the first time."""
        benches = self.calibration(run, table).benches
        return [
            (cell.bench, cell.arm, reader)
            for cell in self.cells_of(table, run)
            if cell.bench in benches
            for reader in self.readers(run, cell.study, cell.bench, cell.arm)
            if repeats.parse(reader)[1] == 1
        ]

    def calibrated_benches(self, run: str, table: str) -> list[str]:
        """Return the benches that answers are drawn from, in the order of the table."""
        return list(dict.fromkeys(bench for bench, _, _ in self.calibrated_cells(run, table)))

    def pick_answers(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``pick_answers``."""
        found = self.calibration(run, table)
        return {
            "cells": self.calibrated_cells(run, table),
            "benches": self.calibrated_benches(run, table),
            "n": found.n,
            "seed": found.seed,
        }

    def calibration_request(self, run: str, table: str, judge: str) -> dict[str, Any]:
        """Settings of ``build_calibration_requests``; no further questions are asked.

        Raises:
            RemeasureError: the judges are told of gold answers in different ways.
        """
        study, found = self._study_of(run, table), self.calibration(run, table)
        limit = {} if found.max_tokens is None else {"max_tokens": found.max_tokens}
        asked = [self.judge_request(run, study, bench, judge) | limit for bench in found.benches]
        if any(settings != asked[0] for settings in asked):
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: studies.{study}.calibration.benches: the judge is asked in "
                "different ways; name benches of one way"
            )
        return asked[0]

    def make_calibration(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``make_calibration``."""
        found, study = self.calibration(run, table), self._study_of(run, table)
        cells = self.calibrated_cells(run, table)
        return {
            "judges": {judge: self.model(run, judge).title for judge in found.judges},
            "own_models": {
                judge: [name for name in dict.fromkeys(c[2] for c in cells) if self._wrote(run, judge, name)]
                for judge in found.judges
            },
            "table_judge": self.model(run, self.judge(run, study)).title,
            "grader": self.bench(run, study, found.benches[0]).grader,
            "options": {
                bench: self.grade(run, study, bench, arm, model)["options"] for bench, arm, model in cells
            },
            "seed": found.seed,
        }

    def _wrote(self, run: str, judge: str, reader: str) -> bool:
        """Return whether a judge's model is the one that wrote a reader's answers."""
        system = self.system(run, reader)
        writer = repeats.model_of(reader) if system is None else system.answerer
        if writer is None:
            return False
        return table_facts.served(self, run, writer) == table_facts.served(self, run, judge)
