"""Summarise heads over their seeds: rows, mean and spread, differences seed by seed."""

import argparse
import csv
import logging
from pathlib import Path

from remeasure import cli, jsonl, provenance
from remeasure.instances.heads import summary
from remeasure.instances.heads.summary import Report

log = logging.getLogger("remeasure.summarise_heads")


def seconds(report: Path) -> str:
    """Return how long the job took that wrote a report, for the log; Snakemake has measured it."""
    path = report.parent / "logs" / report.name.replace(".report.json", ".benchmark.tsv")
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return next(csv.DictReader(stream, delimiter="\t"), {}).get("s") or "unknown"
    except (OSError, UnicodeDecodeError, csv.Error):
        return "unknown"


def work(args: argparse.Namespace) -> None:
    """Read, summarise, write."""
    read = [(path, jsonl.read_json(path, Report)) for path in args.reports]
    heads = summary.by_head(read)
    for path, report in read:
        chosen = " ".join(f"{way}={epoch}" for way, epoch in report.best_epoch.items()) or "none"
        log.info("%s seed %d: best_epoch %s wall_s=%s", report.head, report.seed, chosen, seconds(path))
    document = {
        "rows": summary.rows(heads),
        "spread": summary.spreads(heads),
        "differences": summary.differences(heads),
    }
    jsonl.write_json(args.out, document)
    provenance.write_stage(
        args.record,
        stage="summarise_heads",
        script="summarise_heads.py",
        settings={},
        inputs=args.reports,
        outputs=[args.out],
        counts={"heads": len(heads), "reports": len(read)},
    )
    log.info("%s: %d reports of %d heads", args.out, len(read), len(heads))


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", default="{}", help="none: an empty JSON object")
    parser.add_argument("--reports", type=Path, nargs="+", required=True, help="reports of train_head")
    parser.add_argument("--out", type=Path, required=True, help="rows, spread and differences, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
