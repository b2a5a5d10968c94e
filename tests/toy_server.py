"""A model server without a model, for tests: repeats the last message; the word "break" breaks it."""

import argparse

from remeasure import cli
from remeasure.embedded import chat_server
from remeasure.embedded.chat import BadRequest, Completion, texts_of


class Parrot:
    """Says what was said."""

    more_words = frozenset()

    def answer(self, request):
        words = texts_of(request.messages[-1])[-1]
        if words == "break":
            raise ZeroDivisionError("broken")
        if words == "refuse":
            raise BadRequest("no thanks")
        return Completion(words, 1, 1)

    def close(self):
        """Nothing is held."""


def main(argv=None) -> int:
    parser = argparse.ArgumentParser()
    chat_server.add_options(parser)
    return cli.run(parser, lambda args: chat_server.serve(args, Parrot), argv)


if __name__ == "__main__":
    raise SystemExit(main())
