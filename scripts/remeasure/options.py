"""Settings that arrive as JSON on the command line."""

from typing import TypeVar

import msgspec

from remeasure.errors import RemeasureError

T = TypeVar("T")


def decode(text: str, kind: type[T], option: str = "--settings") -> T:
    """Decode a JSON option into a typed record.

    Raises:
        RemeasureError: not JSON, an unknown or missing key, a wrong type; names option and field.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RemeasureError(
            f"{option}: {error}; expected one JSON object as the workflow prints it"
        ) from None
