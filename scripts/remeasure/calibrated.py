"""Which files the stages of a judge's calibration read; part of ``wiring.Wiring``."""

from typing import Any

from remeasure import prompts
from remeasure.plan import Plan


class Calibrated:
    """Input functions over one plan."""

    plan: Plan

    def calibrated(self, wildcards, name: str) -> list[str]:
        """One file of every cell that answers are drawn from."""
        run, table = wildcards.run, wildcards.table
        here = f"results/{run}/{self.plan.calibrated_study(run, table)}"
        return [
            f"{here}/{bench}/{arm}/{model}/{name}"
            for bench, arm, model in self.plan.calibrated_cells(run, table)
        ]

    def calibrated_items(self, wildcards) -> list[str]:
        """The questions behind the answers that are drawn from."""
        run, table = wildcards.run, wildcards.table
        here = f"results/{run}/{self.plan.calibrated_study(run, table)}"
        return [f"{here}/{bench}/items.jsonl" for bench in self.plan.calibrated_benches(run, table)]

    def calibrated_study(self, wildcards) -> str:
        """The study of a table."""
        return self.plan.calibrated_study(wildcards.run, wildcards.table)

    def calibration_prompts(self, wildcards) -> list[Any]:
        """Prompts of a judge that are no part of the repository."""
        from snakemake.io import ancient

        told = self.plan.calibration_request(wildcards.run, wildcards.table, wildcards.judge)
        files = told["prompts"]["files"].values()
        return [ancient(path) for path in files if prompts.is_elsewhere(path)]

    def calibrating(self, wildcards, name: str) -> list[str]:
        """One file of every judge that is asked."""
        found = self.plan.calibration(wildcards.run, wildcards.table)
        here = f"results/{wildcards.run}/calibration/{wildcards.table}"
        return [f"{here}/{judge}/{name}" for judge in found.judges]

    def labels(self, wildcards) -> dict[str, str]:
        """The labelled sheet, where there is one."""
        path = self.plan.labels(wildcards.run, wildcards.table)
        return {} if path is None else {"labels": path}

    def estimated_calibrations(self, run: str, tables: list[str]) -> dict[str, dict[str, Any]]:
        """As ``estimated``, for the judges that the judges of tables are compared with."""
        return {
            f"results/{run}/calibration/{table}/{judge}/estimate.json": {
                "table": f"{table}.judges",
                "study": self.plan.calibrated_study(run, table),
                "bench": self.plan.calibrated_benches(run, table)[0],
                "arm": None,
            }
            for table in tables
            if self.plan.is_calibrated(run, table)
            for judge in self.plan.calibration(run, table).judges
        }
