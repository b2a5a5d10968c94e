"""What a run will cost is known without asking anything, and again after answers came."""

import csv
import shutil

from conftest import jobs

TABLE = "results/estimate.csv"
NQ_BASE = "results/ci/pixelrag/nq/base/page-reader-smollm2"


def test_a_finished_run_costs_nothing_more_and_a_deleted_journal_costs_again(checkout):
    for path in checkout.path("results").rglob("*estimate.*"):
        path.unlink()  # of an earlier call in this checkout
    # 24 + 2 + 6 cells of models and 8 + 2 of two systems; 12 + 6 + 3 + 1 of them are judged; two judges are
    # compared, two are calibrated.
    cells = {"estimate": 42, "estimate_judge": 22, "estimate_agreement": 2, "estimate_calibration": 2}
    asked = jobs(checkout.run(TABLE, "results/ci/tables/table1.estimate.csv"))
    assert asked == cells | {"publish_estimate": 1, "make_estimate": 1}
    *rows, total = csv.DictReader(checkout.path(TABLE).open())
    assert len(rows) == 68 and {row["run"] for row in rows} == {"ci"}
    assert total["n_known"] == total["n_requests"] and total["usd"] == "0.0000"
    assert checkout.planned(TABLE) == {}
    shutil.rmtree(checkout.path(f"{NQ_BASE}/journal"))
    assert jobs(checkout.run(TABLE)) == {"estimate": 1, "publish_estimate": 1}
    (row,) = (
        r for r in csv.DictReader(checkout.path(TABLE).open()) if (r["bench"], r["arm"]) == ("nq", "base")
    )
    assert (row["n_requests"], row["n_known"]) == ("4", "0")
