"""Lines of batch files: a request as a service reads it, a result as it writes it.

The format is OpenAI's, which ``vllm run-batch`` follows but for its errors. The ``custom_id`` of a line is
the answer's key: 64 hexadecimal digits, the most that the strictest service takes, so that a result needs no
mapping back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

import msgspec

from remeasure.executors.keys import Key
from remeasure.executors.replies import PASSING, Failure, Outcome, of_http, one_line

URL = "/v1/chat/completions"
_BEFORE_BODY = b'","method":"POST","url":"' + URL.encode() + b'","body":'
# Classes of failures after which a request is worth handing in again.
AGAIN = (*PASSING, "expired", "missing")
_NEVER_RUN = {"batch_expired": "expired", "batch_cancelled": "cancelled"}
# A result with log-probabilities has megabytes; what is longer than this is no line of ours.
_LONGEST_LINE = 1 << 26


def line_of(key: str, body: Iterable[bytes]) -> bytes:
    """Return the line of a request, its end included.

    Args:
        key: the answer's key.
        body: the wire body as JSON, in pieces.
    """
    return b"".join((b'{"custom_id":"', key.encode(), _BEFORE_BODY, *body, b"}\n"))


class _Reply(msgspec.Struct):
    status_code: Any = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Reply | None = None
    error: Any = None


_LINES = msgspec.json.Decoder(_Line)


def of_line(line: bytes, names: Collection[str]) -> tuple[str, Outcome | Failure]:
    """Return the key that a result line is for, and what it means.

    Args:
        line: one line of an output or error file.
        names: model names that are right, the asked one first.

    Raises:
        ValueError: the line is no result line: not JSON, not of its form, without an id.
    """
    try:
        found = _LINES.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return found.custom_id, _result(found.response, found.error, tuple(names))


def _result(reply: _Reply | None, error: Any, names: tuple[str, ...]) -> Outcome | Failure:
    if reply is None or type(reply.status_code) is not int:
        return _never_run(error_in(error))
    # A line has no headers: how long a service would have liked to wait is over when the batch has ended.
    if not error or (reply.status_code != 200 and bytes(reply.body) != b"null"):
        return of_http(reply.status_code, {}, bytes(reply.body), names)
    said = error_in(error)
    if reply.status_code == 200:
        return Failure(kind="not_a_completion", message=f"status 200 with an error: {_message(said)}")
    return of_http(reply.status_code, {}, msgspec.json.encode({"error": said}), names)


def _never_run(said: dict[str, Any]) -> Failure:
    """Return the failure of a line without an HTTP reply: the service itself has ended the request."""
    if not said:
        return Failure(kind="not_a_completion", message="a line with neither response nor error")
    kind = _NEVER_RUN.get(str(said.get("code")), "server_error")
    return Failure(kind=kind, message=_message(said), raw=said)


def error_in(said: Any) -> dict[str, Any]:
    """Return the error object in what was said: OpenAI's form, vLLM's nested one, or a bare text."""
    if isinstance(said, dict):
        inner = said.get("error", said)
        return inner if isinstance(inner, dict) else {"message": str(inner)}
    return {"message": str(said)} if said else {}


def _message(said: dict[str, Any]) -> str:
    return one_line(str(said.get("message") or said.get("code") or "no reason given"))


class Results:
    """Reads result files against the requests that were handed in; counts what is no result.

    Only the first line of a key counts. ``seen`` holds the keys that had one.

    Args:
        asked: keys of the requests.
        names: model names that are right, the asked one first.
        key: what must stand in no result.
    """

    def __init__(self, asked: Collection[str], names: Collection[str], key: Key) -> None:
        self.seen: set[str] = set()
        self._asked, self._names, self._key = asked, names, key
        self._odd: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def read(self, path: Path) -> Iterator[tuple[str, Outcome | Failure]]:
        """Yield key and meaning of each line that answers a request."""
        for number, line in _lines(path):
            try:
                if line is None:
                    raise ValueError("too long")
                key, result = of_line(self._key.out_of_bytes(line), self._names)
            except ValueError:
                self._note("unreadable", f"line {number}")
                continue
            if key not in self._asked:
                self._note("unasked", repr(one_line(key, 80)))
            elif key in self.seen:
                self._note("doubled", key[:12])
            else:
                self.seen.add(key)
                yield key, result

    def oddities(self) -> str | None:
        """Return how many lines are no results and which is the first of each kind; null without any."""
        found = [f"{n} {name} (first {self._first[name]})" for name, n in self._odd.items()]
        return f"lines that count as no answer: {', '.join(found)}" if found else None

    def _note(self, name: str, place: str) -> None:
        self._odd[name] += 1
        self._first.setdefault(name, place)


class _Named(msgspec.Struct):
    custom_id: str


def results_in(path: Path, asked: Set[str]) -> set[str] | None:
    """Return which requests have a line in a result file, whatever it says; null where the file is not whole.

    A proxy's page, a file that breaks off in a line, or results of something else are not whole. An empty
    file is.
    """
    decoder = msgspec.json.Decoder(_Named)
    found: set[str] = set()
    ends_well = True
    for _, line in _lines(path):
        try:
            key = decoder.decode(line or b"").custom_id
        except (msgspec.MsgspecError, ValueError, RecursionError):
            ends_well = False
        else:
            ends_well = True
            found |= {key} & asked
    return found if ends_well and (found or not path.stat().st_size) else None


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield number and bytes of each line that is not blank; null for one that is too long to be read."""
    with open(path, "rb") as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE):
            number += 1
            whole = line.endswith(b"\n") or len(line) < _LONGEST_LINE
            while not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
                line = stream.readline(_LONGEST_LINE)
            if not whole:
                yield number, None
            elif line.strip():
                yield number, line
