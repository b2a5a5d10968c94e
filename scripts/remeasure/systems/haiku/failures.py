"""What went wrong, in the words of ``systems.contract``."""

import os
from collections.abc import Iterator

from remeasure.systems.contract import KINDS

LONGEST = 500
"""Characters of an error line."""

_CONTEXT = ("context length", "context_length", "maximum context", "max_model_len", "too many tokens")


class Failed(Exception):
    """A command that failed, with its class."""

    def __init__(self, kind: str, said: str) -> None:
        assert kind in KINDS, kind
        super().__init__(said)
        self.kind = kind


def one_line(error: object) -> str:
    """Return what an error says as one line that is not long."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it, the error first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _of_status(status: int, said: str) -> str:
    if any(words in said.lower() for words in _CONTEXT):
        return "context_length"
    if status in (401, 403, 404):
        # A wrong key, or a name that is not served: every other request would end like this.
        return "fatal"
    if status == 408:
        return "timeout"
    return "server_error" if status >= 500 or status == 429 else "refused"


def kind_of(error: BaseException) -> str:
    """Return the class of an error that the library or its clients raised.

    Args:
        error: as it was caught; what led to it counts as well, the innermost that can be told apart first.
    """
    # Part of the system's environment, not of the workflow's.
    import httpx
    import openai
    from pydantic_ai import exceptions

    for each in chain(error):
        if isinstance(each, Failed):
            return each.kind
        if isinstance(each, exceptions.UsageLimitExceeded):
            return "request_limit"
        if isinstance(each, openai.APITimeoutError | httpx.TimeoutException | TimeoutError):
            return "timeout"
        if isinstance(each, openai.APIStatusError):
            return _of_status(each.status_code, str(each))
        if isinstance(each, httpx.HTTPStatusError):
            return _of_status(each.response.status_code, each.response.text)
        if isinstance(each, openai.APIConnectionError | httpx.TransportError | ConnectionError):
            return "connection"
    for each in chain(error):
        if isinstance(each, exceptions.ModelHTTPError):
            return _of_status(each.status_code, str(each))
        if isinstance(each, exceptions.ContentFilterError):
            return "refused"
        if isinstance(each, exceptions.UnexpectedModelBehavior):
            # Retries of a tool that are used up say so; else nothing was left to make an answer of.
            return "tool_error" if "tool" in str(each).lower() else "no_answer"
    return "server_error"


def key_of(endpoint: dict) -> str | None:
    """Return the key of an endpoint; null where it needs none.

    Raises:
        Failed: the variable that holds it is not set.
    """
    name = endpoint.get("key_env")
    if name is None:
        return None
    if not os.environ.get(name):
        raise Failed("fatal", f"variable {name} is not set; it must hold the key of {endpoint['base_url']}")
    return os.environ[name]
