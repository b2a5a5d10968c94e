"""Bring a dataset into one form: documents and questions, checked and counted."""

import argparse
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, jsonl, provenance
from remeasure.datasets import chosen, loading
from remeasure.errors import RemeasureError
from remeasure.files import sha256_of
from remeasure.fingerprint import SCRIPTS
from remeasure.options import decode
from remeasure.records import Record

log = logging.getLogger("remeasure.load_dataset")


class Settings(Record, kw_only=True):
    """Settings of ``load_dataset``."""

    loader: str
    expected: dict[str, int]
    options: dict[str, Any]


def named_files(words: list[str]) -> dict[str, Path]:
    """Return files by name from words ``name=path``.

    Raises:
        RemeasureError: a word without a name or path, or a name twice.
    """
    found: dict[str, Path] = {}
    for word in words:
        key, equals, path = word.partition("=")
        if not equals or not path or key in found:
            raise RemeasureError(f"--files {word!r}: expected <name>=<path>, each name once")
        found[key] = Path(path)
    return found


def located(path: Path) -> Path:
    """Return where a file is: one of the repository is named as it is there, wherever it lies."""
    ours = SCRIPTS.parent / path
    return path if path.exists() or not ours.exists() else ours


def work(args: argparse.Namespace) -> None:
    """Read with the loader; check; write; compare counts."""
    settings = decode(args.settings, Settings)
    files = named_files(args.files)
    loader, options = chosen(settings.loader, files, settings.options)
    found = loader.load({key: located(path) for key, path in files.items()}, options)
    name, uris, counts = args.record.parent.name or settings.loader, set(), Counter()
    jsonl.write(args.documents, loading.documents(found.documents, name, uris, counts))
    jsonl.write(args.questions, loading.questions(found.questions, name, uris, found.absent, counts))
    counts.update(found.counts)
    log.info("%s: %s", name, ", ".join(f"{number} {what}" for what, number in counts.items()))
    loading.check_counts(counts, settings.expected, name)
    provenance.write_stage(
        args.record,
        stage="load_dataset",
        script="load_dataset.py",
        settings=msgspec.to_builtins(settings),
        inputs=list(files.values()),
        known={str(path): sha256_of(located(path)) for path in files.values()},
        outputs=[args.documents, args.questions],
        counts=dict(counts),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="loader, its options, expected counts, as JSON")
    parser.add_argument("--files", nargs="+", required=True, help="what is read, as words name=path")
    parser.add_argument("--documents", type=Path, required=True, help="documents, JSONL")
    parser.add_argument("--questions", type=Path, required=True, help="questions, JSONL")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
