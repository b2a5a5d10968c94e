"""Serve the embedded judge of answers with evidence behind the chat protocol."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import answer_judge, chat_server


def work(args: argparse.Namespace) -> None:
    """Load the cross-encoder and judge until told to end."""
    chat_server.serve(
        args,
        lambda: answer_judge.load(
            model=args.model, tokenizer=args.tokenizer, threads=args.threads, threshold=args.threshold
        ),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--model", type=Path, required=True, help="ONNX model of the cross-encoder")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer file")
    parser.add_argument(
        "--threshold", type=float, required=True, help="lowest score of an answer that fits the reference"
    )
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
