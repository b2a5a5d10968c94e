"""Plan a training set: every photograph with its class; which classes show what benchmarks ask for."""

import argparse
import logging
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, files, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.instances import gldv2, leaks
from remeasure.options import decode

log = logging.getLogger("remeasure.plan_photos")
_N_TOLD = 20


class LeakSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the rule comes from and what it should find."""

    subjects: str
    subjects_sha256: str
    """Of that file, which is one of the configuration."""
    ids: str | None = None
    other_ids: str | None = None
    expected_classes: int | None = None
    expected_photos: int | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the stage reads."""

    photos: str
    expected: dict[str, int] = {}
    """Counts that must come out: photos, classes."""
    leaks: LeakSettings | None = None
    min_class: dict[str, int] = {}
    """Least photographs of a class, by head."""


def located(settings: LeakSettings) -> Path:
    """Return where the rules are: those of the repository are named as they are there, wherever it lies.

    Raises:
        RemeasureError: the file is missing, or is not the one that the settings were made with.
    """
    path = SCRIPTS.parent / settings.subjects
    path = path if path.is_file() else Path(settings.subjects)
    if not path.is_file() or files.sha256_file(path) != settings.subjects_sha256:
        raise RemeasureError(
            f"{settings.subjects}: is missing, or was changed since it was planned; run snakemake again"
        )
    return path


def find_leaks(
    args: argparse.Namespace, settings: LeakSettings | None, classes: list[tuple[int, str, int]]
) -> dict[str, Any]:
    """Judge all classes; without rules none leaks.

    Raises:
        RemeasureError: a file of the rules cannot be read.
    """
    if settings is None:
        return {"classes": [], "denied": [], "n_classes": 0, "n_photos": 0}
    ids = leaks.read_ids(args.leak_ids) if args.leak_ids else None
    other_ids = leaks.read_ids(args.leak_other_ids) if args.leak_other_ids else None
    judge = leaks.Judge(leaks.read_rules(located(settings)), ids or ())
    return leaks.report(judge, classes, ids, other_ids)


def compare(report: dict[str, Any], expected: LeakSettings | None) -> dict[str, Any]:
    """Say whether as many classes and photographs leak as expected; a difference is told, class by class."""
    if expected is None or (expected.expected_classes is None and expected.expected_photos is None):
        return {}
    pairs = {
        "classes": (report["n_classes"], expected.expected_classes),
        "photos": (report["n_photos"], expected.expected_photos),
    }
    agrees = all(wanted is None or found == wanted for found, wanted in pairs.values())
    if not agrees:
        told = ", ".join(
            f"{found} {name} (expected {wanted})" for name, (found, wanted) in pairs.items() if wanted
        )
        log.warning("leaks: %s; all of them stand in the report", told)
        for leak in report["classes"]:
            log.warning("leak %s", {name: leak[name] for name in ("landmark_id", "category", "rule")})
    wanted = {name: wanted for name, (_, wanted) in pairs.items()}
    return {"expected": {"agrees": agrees, **wanted}}


def tell(report: dict[str, Any]) -> None:
    """Log how a supplied list differs from what the names say."""
    for name, found in report.get("list", {}).items():
        if isinstance(found, list) and found:
            log.warning("supplied list, %s: %d classes: %s", name, len(found), found[:_N_TOLD])
    missing = report.get("other_list", {}).get("missing", [])
    if missing:
        log.warning(
            "the other list has %d classes that do not leak here: %s", len(missing), missing[:_N_TOLD]
        )


def check_expected(counts: dict[str, Any], expected: dict[str, int], path: Path) -> None:
    """Compare counts with those that must come out.

    Raises:
        RemeasureError: one differs.
    """
    wrong = [
        f"{counts.get(name)} {name}, expected {n}" for name, n in expected.items() if counts.get(name) != n
    ]
    if wrong:
        raise RemeasureError(f"{path}: {'; '.join(wrong)}; give the right list, or correct `expected`")


def work(args: argparse.Namespace) -> None:
    """Read the lists, judge classes, write the plan."""
    settings = decode(args.settings, Settings)
    clean = gldv2.read_clean(args.clean)
    sizes = gldv2.class_sizes(clean.landmark_id)
    categories = gldv2.read_categories(args.categories) if args.categories else {}
    without = [landmark_id for landmark_id in sizes if landmark_id not in categories]
    if settings.leaks is not None and without:
        log.warning(
            "%d of %d classes have no category: only a list of ids finds them", len(without), len(sizes)
        )
    classes = [(landmark_id, categories.get(landmark_id, ""), n) for landmark_id, n in sizes.items()]
    report = find_leaks(args, settings.leaks, classes)
    report |= compare(report, settings.leaks)
    tell(report)
    leaking = {leak["landmark_id"] for leak in report["classes"]}
    sources = {name: getattr(args, name) for name in ("clean", "categories") if getattr(args, name)}
    counts: dict[str, Any] = {
        "photos": len(clean.image_id),
        "classes": len(sizes),
        "leak_classes": report["n_classes"],
        "leak_photos": report["n_photos"],
        "classes_without_category": len(without),
        "sha256": {name: files.sha256_file(path) for name, path in sources.items()},
        "min_class": {
            name: {"floor": floor} | gldv2.dropped(sizes, leaking, floor)
            for name, floor in sorted(settings.min_class.items())
        },
    }
    check_expected(counts, settings.expected, args.clean)
    gldv2.write_plan(args.out, clean, sizes, leaking)
    jsonl.write_json(args.counts, counts)
    jsonl.write_json(args.leaks, report)
    whole = {name: value for name, value in counts.items() if isinstance(value, int)}
    log.info("%s: %s", settings.photos, whole)
    named = (args.clean, args.categories, args.leak_ids, args.leak_other_ids)
    provenance.write_stage(
        args.record,
        stage="plan_photos",
        script="plan_photos.py",
        settings=msgspec.to_builtins(settings),
        inputs=[path for path in named if path],
        outputs=[args.out, args.counts, args.leaks],
        packages=["pyarrow", "numpy"],
        counts=whole,
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="expected counts, least size of classes, as JSON")
    parser.add_argument("--clean", type=Path, required=True, help="classes and their photographs, CSV")
    parser.add_argument("--categories", type=Path, help="category of every class, CSV")
    parser.add_argument("--leak-ids", type=Path, help="supplied list of classes that leak")
    parser.add_argument("--leak-other-ids", type=Path, help="a list that should be contained in what leaks")
    parser.add_argument("--out", type=Path, required=True, help="a row per photograph, Parquet")
    parser.add_argument("--counts", type=Path, required=True, help="how many of what, JSON")
    parser.add_argument("--leaks", type=Path, required=True, help="classes that leak, and why, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
