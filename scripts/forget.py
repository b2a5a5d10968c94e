"""Remove results and everything that was made from them; `--dry-run` lists them first.

Examples:
    .venv/bin/python scripts/forget.py --dry-run results/embedded/pixelrag/nq/base
    .venv/bin/python scripts/forget.py results/embedded/pixelrag/nq/base/page-reader-smollm2/journal
"""

import argparse
import logging
from pathlib import Path

from remeasure import cli, forgetting

log = logging.getLogger("remeasure.forget")


def work(args: argparse.Namespace) -> None:
    """List, then remove unless it is a dry run."""
    found = forgetting.followers(args.paths)
    for path in found:
        print(path)
    if args.dry_run:
        log.info("%d files would be removed; run again without --dry-run", len(found))
        return
    forgetting.remove(found)
    log.info("%d files removed; the next call of snakemake makes them again", len(found))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="file or folder under results/")
    parser.add_argument("--dry-run", "-n", action="store_true", help="only list what would be removed")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
