"""A model server without a model, for tests: repeats the last message; the word "break" breaks it."""

import argparse
import os
import time
from pathlib import Path

from remeasure import cli
from remeasure.embedded import chat_server
from remeasure.embedded.chat import BadRequest, Completion, texts_of


class Parrot:
    """Says what was said."""

    more_words = frozenset()

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s

    def answer(self, request):
        words = texts_of(request.messages[-1])[-1]
        if words == "break":
            raise ZeroDivisionError("broken")
        if words == "refuse":
            raise BadRequest("no thanks")
        time.sleep(self._delay_s)
        return Completion(words, 1, 1)

    def close(self):
        """Nothing is held."""


def work(args: argparse.Namespace) -> None:
    if args.pid_file:
        args.pid_file.write_text(str(os.getpid()))
    chat_server.serve(args, lambda: Parrot(args.delay_s))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser()
    chat_server.add_options(parser)
    parser.add_argument("--delay-s", type=float, default=0.0, help="how long an answer takes, seconds")
    parser.add_argument("--pid-file", type=Path)
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
