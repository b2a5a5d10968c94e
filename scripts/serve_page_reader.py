"""Serve the embedded page reader (OCR, line selection, small language model) behind the chat protocol."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import chat_server, page_reader


def work(args: argparse.Namespace) -> None:
    """Load the parts and answer until told to end."""
    chat_server.serve(
        args,
        lambda: page_reader.load(
            llm=args.llm,
            encoder=args.encoder,
            tokenizer=args.tokenizer,
            ocr=args.ocr,
            line_vectors=args.line_vectors,
            threads=args.threads,
        ),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--llm", type=Path, required=True, help="GGUF file of the language model")
    parser.add_argument("--encoder", type=Path, required=True, help="ONNX model of the line encoder")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer file of the line encoder")
    parser.add_argument("--ocr", type=Path, help="ocr.jsonl; images that it lacks are read on the spot")
    parser.add_argument("--line-vectors", type=Path, help="descriptors.h5 of unit lines, order.txt beside it")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
