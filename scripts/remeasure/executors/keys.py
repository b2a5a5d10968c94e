"""API keys: from the environment only, and out of every text that is kept or shown."""

import contextlib
import json
import os

import msgspec

from remeasure.errors import RemeasureError

# What is shorter is no secret but a word that a local server wants to hear, such as EMPTY: it may well stand
# in an answer, which must not be changed.
_SHORTEST_SECRET = 12


class Key:
    """The key of an endpoint; without a variable there is none, and texts pass unchanged.

    Args:
        variable: name of the environment variable that holds it.

    Raises:
        RemeasureError: the variable is not set, empty, or holds what a header cannot carry.
    """

    def __init__(self, variable: str | None) -> None:
        self.variable = variable
        self._value = ""
        self._spelt: list[str] = []
        if variable is None:
            return
        self._value = os.environ.get(variable, "").strip()
        if not self._value:
            raise RemeasureError(
                f"environment variable {variable} is not set; export it with the endpoint's key and rerun"
            )
        if not all("!" <= letter <= "~" for letter in self._value):
            raise RemeasureError(
                f"environment variable {variable} holds white space or letters beyond ASCII inside; a header "
                "cannot carry that: export the key alone"
            )
        if len(self._value) >= _SHORTEST_SECRET:
            # Also as JSON may spell it.
            spelt = {self._value, json.dumps(self._value)[1:-1], self._value.replace("/", "\\/")}
            self._spelt = sorted(spelt, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Key({self.variable!r})"

    @property
    def where(self) -> str:
        """Where a wrong key is to be corrected."""
        return f"environment variable {self.variable}" if self.variable else "`api_key_env`, which is not set"

    def headers(self) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def value(self) -> str:
        """Return the key itself, for clients that take nothing else; empty where there is none."""
        return self._value

    def out_of(self, text: str) -> str:
        """Take the key out of a text that a server may have echoed it in."""
        for spelt in self._spelt:
            text = text.replace(spelt, "[key]")
        return text

    def out_of_bytes(self, body: bytes) -> bytes:
        """Take the key out of a reply, also where its JSON writes letters as numbers."""
        if self._spelt and b"\\u" in body:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
                body = msgspec.json.encode(msgspec.json.decode(body))
        for spelt in self._spelt:
            body = body.replace(spelt.encode(), b"[key]")
        return body
