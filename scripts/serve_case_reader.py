"""Serve the embedded case reader (OCR, phenotypes, a book of rare diseases) behind the chat protocol."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import case_reader, chat_server
from remeasure.errors import RemeasureError


def work(args: argparse.Namespace) -> None:
    """Load the book and answer until told to end."""
    if args.threads != 1:
        raise RemeasureError(f"--threads {args.threads}: the reader always runs on 1; correct `options`")
    chat_server.serve(args, lambda: case_reader.load(book=args.book))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--book", type=Path, required=True, help="diseases and phenotypes, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
