"""A model server without a model, for stories about jobs: slow or hungry as its environment says.

STANDIN_SECONDS: what an answer takes. STANDIN_HUNGER_MB: what it holds while it answers. STANDIN_HEARD: a
file that gets a line per question, whatever becomes of the answer. Tests put it among the scripts of a copy.
"""

import argparse
import hashlib
import os
import time

from remeasure import cli
from remeasure.embedded import chat_server
from remeasure.embedded.chat import Completion, texts_of


class StandIn:
    """Answers with a hash of the question."""

    more_words = frozenset()

    def answer(self, request):
        said = hashlib.sha256(repr([texts_of(message) for message in request.messages]).encode()).hexdigest()
        if os.environ.get("STANDIN_HEARD"):
            with open(os.environ["STANDIN_HEARD"], "a") as heard:
                heard.write(f"{said}\n")
        held = b"x" * (int(os.environ.get("STANDIN_HUNGER_MB", 0)) << 20)
        time.sleep(float(os.environ.get("STANDIN_SECONDS", 0)))
        del held
        return Completion(said, 1, 1)

    def close(self):
        """Nothing is held."""


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    chat_server.add_options(parser)
    return cli.run(parser, lambda args: chat_server.serve(args, StandIn), argv)


if __name__ == "__main__":
    raise SystemExit(main())
