"""Fetch one file from an address, continue where an earlier try ended, and verify it."""

import argparse
from pathlib import Path

from remeasure import cli, downloads
from remeasure.errors import RemeasureError


def work(args: argparse.Namespace) -> None:
    """Say that it is not pinned yet, or fetch it."""
    if args.not_pinned:
        raise RemeasureError(args.not_pinned)
    if not args.url or not args.sha256:
        raise RemeasureError("--url and --sha256 are both needed; without a hash nothing is fetched")
    downloads.fetch(
        downloads.Wanted(url=args.url, sha256=args.sha256, size_bytes=args.size_bytes, out=args.out)
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="https, or this computer")
    parser.add_argument("--sha256", help="of the file")
    parser.add_argument("--size-bytes", type=int, help="of the file, where it is known")
    parser.add_argument("--not-pinned", help="why nothing can be fetched yet: said instead")
    parser.add_argument("--out", type=Path, required=True, help="where it goes; grows beside it as .part")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
