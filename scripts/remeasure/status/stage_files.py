"""Stage records as far as the report needs them."""

from pathlib import Path

import msgspec


class Record(msgspec.Struct):
    """What a finished stage counted and read."""

    counts: dict[str, int] = {}
    inputs: dict[str, str] = {}


def read(path: Path) -> Record:
    """Return a stage record; an empty one where there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Record()
