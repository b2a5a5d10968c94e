"""Stage records as far as the report needs them."""

from pathlib import Path

import msgspec

from remeasure.files import open_regular


class Record(msgspec.Struct):
    """What a finished stage counted and read."""

    counts: dict[str, int] = {}
    inputs: dict[str, str] = {}


def read(path: Path) -> Record:
    """Return a stage record; an empty one where there is none."""
    try:
        with open_regular(path) as stream:
            return msgspec.json.decode(stream.read(), type=Record)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Record()
