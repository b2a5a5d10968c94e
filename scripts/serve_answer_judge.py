"""Serve the embedded judge of answers with evidence behind the chat protocol."""

import argparse

from remeasure import cli


def work(args: argparse.Namespace) -> None:
    """To be written."""
    raise NotImplementedError


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
