"""Serve the embedded captioner (an ImageNet classifier that looks and tells) behind the chat protocol."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import captioner, chat_server, looking
from remeasure.errors import RemeasureError


def work(args: argparse.Namespace) -> None:
    """Load the classifier and describe until told to end."""
    if not 1 <= args.scales <= 1 + len(looking.SCALES):
        raise RemeasureError(f"--scales {args.scales}: expected 1 to {1 + len(looking.SCALES)}")
    if not 0 < args.threshold <= 1:
        raise RemeasureError(f"--threshold {args.threshold}: a probability above 0, at most 1, is expected")
    if args.threads != 1:
        raise RemeasureError(f"--threads {args.threads}: the classifier always runs on 1; correct `options`")
    chat_server.serve(
        args,
        lambda: captioner.Captioner(
            looking.Looker(args.weights, looking.read_words(args.synsets, args.lemmas)),
            args.scales,
            args.threshold,
        ),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--weights", type=Path, required=True, help="torch weights of EfficientNet-Lite0")
    parser.add_argument("--synsets", type=Path, required=True, help="WordNet numbers of its classes in order")
    parser.add_argument("--lemmas", type=Path, required=True, help="names by WordNet number")
    parser.add_argument(
        "--scales", type=int, required=True, help="1: one look at the whole; 2, 3: closer too"
    )
    parser.add_argument("--threshold", type=float, required=True, help="probability from which it is said")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
