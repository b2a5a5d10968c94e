"""Import the ground truth of a benchmark into one open form, or check one (--check FILE)."""

import argparse
import logging
from pathlib import Path

import msgspec

from remeasure import cli, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.files import open_regular, sha256_bytes, sha256_file
from remeasure.instances import label_pickle, labels
from remeasure.options import decode

log = logging.getLogger("remeasure.import_labels")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the stage reads."""

    photos: str
    """What the benchmark is called."""
    expected: dict[str, int] = {}
    """Counts that must come out: queries, gallery."""
    labels_sha256: str | None = None
    """SHA-256 that the file must have; null: JSON may have any, a pickle is refused with its hash."""


def counts_of(found: labels.Labels) -> dict[str, int]:
    """Return how many queries, photographs and labels of each kind there are."""
    counts = {"queries": len(found.qimlist), "gallery": len(found.imlist)}
    for name in ("easy", "hard", "junk"):
        counts[name] = sum(len(getattr(truth, name)) for truth in found.gnd)
    for query in range(len(found.gnd)):
        for name, (positive, _) in found.settings(query).items():
            counts[f"without_{name}"] = counts.get(f"without_{name}", 0) + (len(positive) == 0)
    return counts


def load(path: Path, dataset: str, sha256: str | None) -> labels.Labels:
    """Read a ground truth of either form; JSON begins with a brace, which no pickle does.

    Raises:
        RemeasureError: it is missing, is not what it should be, or is a pickle whose hash nobody has said.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(label_pickle.MAX_BYTES + 1)
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    if data.lstrip()[:1] == b"{" or path.suffix == ".json" or not data:
        if sha256 is not None and (found := sha256_file(path)) != sha256:
            raise RemeasureError(_differs(path, found, sha256))
        return labels.decode(path)
    if len(data) > label_pickle.MAX_BYTES:
        raise RemeasureError(f"{path}: has more than {label_pickle.MAX_BYTES} bytes; it is no ground truth")
    found = sha256_bytes(data)
    if sha256 is None:
        raise RemeasureError(
            f"{path}: not pinned: a pickle is read only where its SHA-256 is known, and nobody has said "
            "it; it is "
            f"{found}: compare it with one that you trust, then put it as labels_sha256 of this photo set "
            "into the run's settings (or --sha256)"
        )
    if found != sha256:
        raise RemeasureError(_differs(path, found, sha256))
    return label_pickle.read(path, data, dataset, found)


def _differs(path: Path, found: str, expected: str) -> str:
    return f"{path}: SHA-256 is {found}, expected {expected}; fetch the right file, or correct labels_sha256"


def check_expected(found: labels.Labels, expected: dict[str, int], path: Path) -> None:
    """Compare counts with those that must come out.

    Raises:
        RemeasureError: one differs.
    """
    counts = {"queries": len(found.qimlist), "gallery": len(found.imlist)}
    wrong = [f"{counts[name]} {name}, expected {n}" for name, n in expected.items() if counts.get(name) != n]
    if wrong:
        raise RemeasureError(f"{path}: {'; '.join(wrong)}; give the right file, or correct `expected`")


def work(args: argparse.Namespace) -> None:
    """Check a file, or import one."""
    if args.check:
        found = load(args.check, args.check.stem.lower(), args.sha256)
        labels.refuse(labels.check(found), args.check)
        log.info("%s: a valid ground truth: %s", args.check, counts_of(found))
        return
    if None in (args.settings, args.labels, args.out, args.record):
        raise RemeasureError("give --check FILE, or all of --settings, --labels, --out and --record")
    settings = decode(args.settings, Settings)
    found = load(args.labels, settings.photos, args.sha256 or settings.labels_sha256)
    labels.refuse(labels.check(found), args.labels)
    check_expected(found, settings.expected, args.labels)
    labels.write(args.out, found)
    counts = counts_of(found)
    # What others have read from published files can be compared with this line.
    told = {name: len(getattr(found.gnd[0], name)) for name in ("easy", "hard", "junk")}
    log.info("first query %s has %s, first of the gallery is %s", found.qimlist[0], told, found.imlist[0])
    log.info("%s: %s", settings.photos, counts)
    provenance.write_stage(
        args.record,
        stage="import_labels",
        script="import_labels.py",
        settings=msgspec.to_builtins(settings),
        inputs=[args.labels],
        outputs=[args.out],
        counts=counts,
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=Path, help="only say what is wrong with this file, JSON or pickle")
    parser.add_argument("--sha256", help="hash that a pickle must have, if the settings say none")
    parser.add_argument("--settings", help="name of the set and expected counts, as JSON")
    parser.add_argument("--labels", type=Path, help="published pickle, or JSON of our form")
    parser.add_argument("--out", type=Path, help="the ground truth, JSON")
    parser.add_argument("--record", type=Path, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
