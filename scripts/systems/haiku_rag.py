"""Adapter of haiku.rag, run by the Python of its own environment (``systems.contract``)."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from remeasure.systems.haiku import serving

DATABASE_CODE = ("remeasure.systems.haiku.database",)
"""What decides what is in a database: a change of anything else ingests nothing again."""


def main() -> int:
    """Answer commands from standard input until it ends."""
    return serving.serve(sys.stdin.buffer, serving.own_output())


if __name__ == "__main__":
    ended = main()
    sys.stderr.flush()
    # Everything is closed by now. The threads of LanceDB can crash an interpreter that takes itself apart.
    os._exit(ended)
