"""Serve a small language model, as it is, behind the chat protocol."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import chat_server, plain_llm


def work(args: argparse.Namespace) -> None:
    """Load the model and answer until told to end."""
    chat_server.serve(args, lambda: plain_llm.load(llm=args.llm, threads=args.threads))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--llm", type=Path, required=True, help="GGUF file of the language model")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
