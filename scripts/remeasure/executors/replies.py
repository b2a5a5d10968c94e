"""What a reply means: one function from status and bytes to an outcome or a failure with a class."""

import email.utils
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from remeasure.records import Record, Status

# Classes of failures that pass by themselves; all others are permanent.
PASSING = ("timeout", "connection", "rate_limit", "server_error", "cut_stream", "empty", "not_json")
_FILTERED = ("content_filter", "content_policy_violation")


class Failure(Record, kw_only=True):
    """A sending without an outcome."""

    kind: str
    message: str
    """One line without anything that differs between two runs (ports, times)."""
    wait_s: float | None = None
    """How long the server asks to wait."""
    raw: Any = None


class Outcome(Record, kw_only=True):
    """What a request came to."""

    status: Status
    text: str | None
    finish: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    error: str | None = None
    raw: Any = None


def retry_after_s(value: str | None, now: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for; null where it says nothing readable.

    Args:
        value: the header: seconds or an HTTP date.
        now: the time, seconds since 1970.
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None


def one_line(text: str, limit: int = 300) -> str:
    """Return text as one line of at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def of_http(
    status: int, headers: Mapping[str, str], body: bytes, names: tuple[str, ...], now: float | None = None
) -> Outcome | Failure:
    """Return what an HTTP reply to a chat completion means.

    Args:
        status: HTTP status.
        headers: reply headers, found in any case.
        body: the whole body.
        names: model names that are right.
        now: the time, for a ``Retry-After`` date.
    """
    if status == 429 or (status >= 500 and status != 501):
        return Failure(
            kind="rate_limit" if status == 429 else "server_error",
            message=_error_text(status, body),
            wait_s=retry_after_s(headers.get("Retry-After"), time.time() if now is None else now),
        )
    if status in (401, 403):
        return Failure(kind="auth", message=_error_text(status, body))
    if status != 200:
        error = _error(body)
        if error.get("code") in _FILTERED:
            return Outcome(
                status="refused", text=None, error=f"refused: {_error_text(status, body)}", raw=error
            )
        return Failure(kind="rejected", message=_error_text(status, body), raw=error or None)
    if not body.strip():
        return Failure(kind="empty", message="status 200 with an empty body")
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        start = one_line(body[:80].decode("utf-8", "replace"))
        return Failure(kind="not_json", message=f"status 200, but the body is not JSON: {start!r}")
    return of_completion(document, names)


def of_completion(document: Any, names: tuple[str, ...]) -> Outcome | Failure:
    """Return what a chat completion means.

    Edges:
        An empty text with a regular end is an answer that is empty. No text at all is a failure, unless the
        reply was cut off.
    """
    try:
        choice = document["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
        text, refusal = message.get("content"), message.get("refusal")
        found = document.get("model")
        usage = {name: value for name, value in (document.get("usage") or {}).items() if type(value) is int}
    except (KeyError, IndexError, TypeError, AttributeError):
        return Failure(
            kind="not_a_completion", message="JSON without choices, message or finish_reason", raw=document
        )
    if found is not None and found not in names:
        return Failure(kind="wrong_model", message=f"asked {names[0]!r}, {found!r} answered", raw=document)
    common = {"finish": finish, "usage": usage or None, "model": found, "raw": document}
    if refusal or finish == "content_filter":
        return Outcome(
            status="refused", text=text, error=f"refused: {one_line(refusal or 'content filter')}", **common
        )
    if finish == "length":
        error = f"cut_off: {usage['completion_tokens']} tokens" if "completion_tokens" in usage else "cut_off"
        return Outcome(status="cut_off", text=text, error=error, **common)
    if finish != "stop":
        return Failure(kind="not_a_completion", message=f"finish_reason {finish!r}", raw=document)
    if not isinstance(text, str):
        return Failure(kind="empty", message="finish_reason 'stop' without a text", raw=document)
    return Outcome(status="answered", text=text, **common)


def _error(body: bytes) -> dict[str, Any]:
    """Return the error object of a body; empty where there is none."""
    try:
        error = msgspec.json.decode(body)["error"]
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {"message": str(error)}


def _error_text(status: int, body: bytes) -> str:
    said = _error(body).get("message") or body[:400].decode("utf-8", "replace")
    return f"status {status}: {one_line(str(said))}" if str(said).strip() else f"status {status}"
