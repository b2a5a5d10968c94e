"""Serve the embedded text encoder, bge-small-en-v1.5, behind /v1/embeddings."""

import argparse
from pathlib import Path

from remeasure import cli
from remeasure.embedded import chat_server
from remeasure.embedded.embedding_server import Embedder, EmbeddingServer
from remeasure.encoders import EncoderSettings
from remeasure.encoders.text import TextEncoder


def load(model: Path, tokenizer: Path, max_tokens: int, threads: int) -> Embedder:
    """Return the encoder, ready to answer.

    Args:
        model: ONNX file.
        tokenizer: tokenizer.json.
        max_tokens: longer texts are cut at the end.
        threads: texts in work at once; changes no value.

    Raises:
        RemeasureError: a file that is missing or is none, a limit beyond the model's.
    """
    settings = EncoderSettings(
        name="of the embedding server", unit="passages", model="bge-small-en-v1.5", max_tokens=max_tokens
    )
    # Texts are spread over the server's own threads, which all requests share.
    return Embedder(TextEncoder(settings, model, tokenizer, threads=1), threads)


def work(args: argparse.Namespace) -> None:
    """Load the model and embed until told to end."""
    chat_server.serve(
        args,
        lambda: load(args.model, args.tokenizer, args.max_tokens, args.threads),
        EmbeddingServer,
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    parser.add_argument("--model", type=Path, required=True, help="ONNX model")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer file")
    parser.add_argument("--max-tokens", type=int, required=True, help="longer texts are cut at the end")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
