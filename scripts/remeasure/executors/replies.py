"""What a reply means: one function from status and bytes to an outcome or a failure with a class."""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from remeasure import oversize
from remeasure.records import JournalEntry, Record, Status

# Classes of failures that pass by themselves; all others are permanent.
PASSING = ("timeout", "connection", "rate_limit", "server_error", "cut_stream", "empty", "not_json", "html")
# Classes after which every further request would fail alike: the step stops with one sentence.
HOPELESS = ("auth", "quota", "wrong_model")
# Classes of requests that the server has understood and does not take.
REJECTED = ("rejected", *oversize.KINDS)
_FILTERED = ("content_filter", "content_policy_violation")
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded")
# Not the request's fault, by the meaning of the status: timeout, conflict, too early.
_PASSING_4XX = (408, 409, 425)
_MAX_DEPTH = 200
_LONGEST_FAILURE = 2**16


class Failure(Record, kw_only=True):
    """A sending without an outcome."""

    kind: str
    message: str
    """One line without anything that differs between two runs (ports, times)."""
    wait_s: float | None = None
    """How long the server asks to wait."""
    status: int | None = None
    """HTTP status, where there was one."""
    usage: dict[str, int] | None = None
    """What the sending used all the same."""
    raw: Any = None


class Outcome(Record, kw_only=True):
    """What a request came to."""

    status: Status
    text: str | None
    finish: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    error: str | None = None
    fingerprint: str | None = None
    """What a hosted service calls the system that answered."""
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
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except (ValueError, OverflowError, TypeError, OSError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def one_line(text: str, limit: int = 300) -> str:
    """Return text as one line of at most ``limit`` characters, without what could steer a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 8 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any


class _Completion(msgspec.Struct):
    """What is read of a reply; everything else is passed over and takes no memory."""

    choices: list[_Choice]
    model: Any = None
    usage: Any = None
    system_fingerprint: Any = None


class _Used(msgspec.Struct):
    usage: Any = None


_COMPLETION = msgspec.json.Decoder(_Completion)
_NO_COMPLETION = "JSON without choices, message or finish_reason"


def _usage(value: Any) -> dict[str, int] | None:
    """Return token counts; what is no count is left out."""
    if not isinstance(value, dict):
        return None
    found = {
        name: int(n)
        for name, n in value.items()
        if type(n) in (int, float) and 0 <= n < 2**53 and n == int(n)
    }
    return found or None


def _usage_in(body: bytes) -> dict[str, int] | None:
    try:
        return _usage(msgspec.json.decode(body, type=_Used).usage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


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
    if status != 200:
        return _of_error(status, headers, body, names, time.time() if now is None else now)
    if not body.strip():
        return Failure(kind="empty", message="status 200 with an empty body", status=200)
    try:
        completion = _COMPLETION.decode(body)
    except msgspec.ValidationError:
        if not _is_json(body):
            return _not_json(status, body)
        return Failure(kind="not_a_completion", message=_NO_COMPLETION, status=200, usage=_usage_in(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _not_json(status, body)
    if is_too_deep(body):
        return Failure(kind="not_a_completion", message="JSON nested too deeply to be kept", status=200)
    return _of_completion(completion, names, _raw(body))


def _is_json(body: bytes) -> bool:
    """Return whether a body is JSON at all, without unpacking it."""
    try:
        body.decode("utf-8")
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def is_too_deep(body: bytes) -> bool:
    """Return whether JSON is nested more deeply than any reader of a journal can be sure to read."""
    if body.count(b"[") + body.count(b"{") <= _MAX_DEPTH:
        return False
    depth = deepest = 0
    for mark in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", body)):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest > _MAX_DEPTH


def _raw(body: bytes) -> msgspec.Raw:
    """Return a JSON body as it is kept: as it came, but in one line, for journals have one line per entry."""
    return msgspec.Raw(msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body)


def _of_error(
    status: int, headers: Mapping[str, str], body: bytes, names: tuple[str, ...], now: float
) -> Outcome | Failure:
    """Return what a reply with another status than 200 means."""
    error = _error(body)
    code, kind = error.get("code"), error.get("type")
    raw = _raw(body) if error and not is_too_deep(body) else None
    said = {"message": _error_text(status, body), "status": status}
    if status == 402 or code in _NO_QUOTA or kind in _NO_QUOTA:
        return Failure(kind="quota", **said)
    if too_large := oversize.kind_of(status, str(error.get("message", "")), (code, kind)):
        return Failure(kind=too_large, raw=raw, **said)
    if status == 429 or status in _PASSING_4XX or (status >= 500 and status != 501):
        wait = retry_after_s(headers.get("Retry-After"), now)
        return Failure(kind="rate_limit" if status == 429 else "server_error", wait_s=wait, **said)
    if code in _FILTERED:
        return Outcome(status="refused", text=None, error=f"refused: {said['message']}", raw=raw)
    if status in (401, 403, 407):
        return Failure(kind="auth", **said)
    if status == 404 and (code == "model_not_found" or _names_model(error, names)):
        return Failure(kind="wrong_model", **said)
    return Failure(kind="rejected", raw=raw, **said)


def _names_model(error: dict[str, Any], names: tuple[str, ...]) -> bool:
    """Return whether an error says that a model is not there: vLLM says so without a code of its own."""
    said = str(error.get("message", ""))
    return "model" in said.lower() and any(name in said for name in names)


def _not_json(status: int, body: bytes) -> Failure:
    start = body.lstrip()[:80].decode("utf-8", "replace")
    if start.startswith("<"):
        text = f"status {status}, but a page instead of JSON, of a proxy perhaps: {one_line(start)!r}"
        return Failure(kind="html", message=text, status=status)
    text = f"status {status}, but the body is not JSON: {one_line(start)!r}"
    return Failure(kind="not_json", message=text, status=status)


def of_completion(document: Any, names: tuple[str, ...], raw: Any = None) -> Outcome | Failure:
    """Return what a chat completion means.

    Args:
        document: the decoded reply.
        names: model names that are right.
        raw: what is kept of the reply; the document itself where nothing is given.

    Edges:
        An empty text with a regular end is an answer that is empty. No text at all is a failure, unless the
        reply was cut off.
    """
    raw = document if raw is None else raw
    try:
        return _of_completion(msgspec.convert(document, _Completion), names, raw)
    except msgspec.ValidationError:
        used = _usage(document.get("usage")) if isinstance(document, dict) else None
        return Failure(kind="not_a_completion", message=_NO_COMPLETION, raw=raw, usage=used)


def _of_completion(completion: _Completion, names: tuple[str, ...], raw: Any) -> Outcome | Failure:
    usage, found = _usage(completion.usage), completion.model
    if not completion.choices:
        return Failure(kind="not_a_completion", message=_NO_COMPLETION, raw=raw, usage=usage)
    message, finish = completion.choices[0].message, completion.choices[0].finish_reason
    text, refusal = message.content, message.refusal
    if any(value is not None and not isinstance(value, str) for value in (text, refusal, found, finish)):
        text = "content, refusal, model or finish_reason is not a text"
        return Failure(kind="not_a_completion", message=text, raw=raw, usage=usage)
    if found is not None and found not in names:
        text = f"asked {names[0]!r}, {one_line(found, 100)!r} answered"
        return Failure(kind="wrong_model", message=text, raw=raw, usage=usage)
    mark = completion.system_fingerprint
    mark = one_line(mark, 80) if isinstance(mark, str) and mark else None
    common = {"fingerprint": mark, "finish": finish, "usage": usage, "model": found, "raw": raw}
    if refusal or finish == "content_filter":
        return Outcome(
            status="refused", text=text, error=f"refused: {one_line(refusal or 'content filter')}", **common
        )
    if finish == "length":
        n_tokens = (usage or {}).get("completion_tokens")
        error = "cut_off" if n_tokens is None else f"cut_off: {n_tokens} tokens"
        return Outcome(status="cut_off", text=text, error=error, **common)
    if finish != "stop":
        return Failure(kind="not_a_completion", message=f"finish_reason {finish!r}", raw=raw, usage=usage)
    if text is None:
        return Failure(kind="empty", message="finish_reason 'stop' without a text", raw=raw, usage=usage)
    return Outcome(status="answered", text=text, **common)


def _error(body: bytes) -> dict[str, Any]:
    """Return the error object of a body; empty where there is none."""
    try:
        document = msgspec.json.decode(body)
        # Older vLLM puts the fields at the top.
        error = document if "error" not in document and "message" in document else document["error"]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {"message": str(error)}


def _error_text(status: int, body: bytes) -> str:
    said = _error(body).get("message") or body[:400].decode("utf-8", "replace")
    return f"status {status}: {one_line(str(said))}" if str(said).strip() else f"status {status}"


def entry_of(
    key: str,
    custom_id: str,
    result: Outcome | Failure,
    *,
    attempts: int,
    seconds: float,
    server: str | None = None,
    wasted: dict[str, int] | None = None,
) -> JournalEntry:
    """Return what the journal keeps of a result; a failure is an outcome once nothing is tried any more."""
    if isinstance(result, Failure):
        error = f"{result.kind}: {result.message}"
        is_long = isinstance(result.raw, msgspec.Raw) and len(bytes(result.raw)) > _LONGEST_FAILURE
        result = Outcome(status="failed", text=None, error=error, raw=None if is_long else result.raw)
    return JournalEntry(
        key=key,
        custom_id=custom_id,
        status=result.status,
        text=result.text,
        finish=result.finish,
        usage=result.usage,
        model=result.model,
        error=result.error,
        attempts=attempts,
        seconds=round(seconds, 3),
        server=server or (result.fingerprint and f"system {result.fingerprint}"),
        wasted=wasted,
        raw=result.raw,
    )
