"""Write the table of word forms from the reviewed lists; `--check` only compares. Needs the dev packages."""

import argparse
import logging
from collections import Counter
from pathlib import Path

from remeasure import cli, files
from remeasure.errors import RemeasureError
from remeasure.mentions import lexicon, lexicon_source

FOLDER = Path(__file__).resolve().parent.parent / "config" / "lexicons"
log = logging.getLogger("remeasure.write_lexicon")


def work(args: argparse.Namespace) -> None:
    """Write or compare."""
    table = lexicon_source.rows(lexicon_source.read(args.source), lexicon_source.both_packages())
    text = lexicon_source.render(table)
    rows = lexicon.rows(text, args.out)
    for reading in ("strict", "published"):
        lexicon.compile_rows(rows, reading, "")
        kinds = Counter(row.kind for row in rows if row.reading in ("both", reading))
        counted = ", ".join(f"{kinds[kind]} {kind}" for kind in lexicon.KINDS)
        log.info("%s: %d forms (%s)", reading, kinds.total(), counted)
    if not args.check:
        files.write_text(args.out, text)
    elif not args.out.exists() or args.out.read_text(encoding="utf-8") != text:
        raise RemeasureError(f"{args.out} does not fit {args.source}; run scripts/write_lexicon.py")


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=FOLDER / "coco.yaml", help="the word lists")
    parser.add_argument("--out", type=Path, default=FOLDER / "coco.tsv", help="the table")
    parser.add_argument("--check", action="store_true", help="exit 2 where the table is out of date")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
