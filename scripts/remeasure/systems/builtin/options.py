"""The options of a database and of a system that uses it, which the adapter gets as one object."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from remeasure.systems.builtin.failing import Failed

Count = Annotated[int, Meta(ge=1)]


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How documents become chunks, how these are searched, and what an answer may cost."""

    chunk_tokens: Annotated[int, Meta(ge=16)]
    """Most tokens of a chunk (``chunking``)."""
    candidates: Count = 20
    """Chunks that vectors and full text each contribute to a search; at least its limit."""
    search_limit: Count = 5
    """Chunks that a search of an answer shows to the model."""
    max_searches: Count = 5
    """Searches for one question; what the model asks for beyond them is refused."""
    max_requests: Count = 20
    """Requests to the model for one question with all tools."""
    more_requests: Count = 2
    """Requests after these, with nothing left but citing."""


def read(given: dict[str, Any]) -> Options:
    """Check options.

    Raises:
        Failed: an unknown or missing option, or a value out of range.
    """
    try:
        return msgspec.convert(given, Options)
    except msgspec.ValidationError as error:
        known = ", ".join(Options.__struct_fields__)
        raise Failed(
            "fatal",
            f"options of the database or of the system: {error}; known: {known}; correct "
            "`databases` or `models`",
        ) from None
