"""Settings that arrive as JSON on the command line, decoded into typed records."""

from typing import TypeVar

import msgspec

from remeasure.errors import RemeasureError

T = TypeVar("T")


def decode(text: str, kind: type[T], option: str = "--settings") -> T:
    """Decode the JSON text of an option into ``kind``.

    Raises:
        RemeasureError: not JSON, a key that is unknown or missing, a value of the wrong type; names the field.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise RemeasureError(
            f"{option} {text[:200]!r}: {error}; correct it in the configuration of the run"
        ) from None
