"""An adapter as a running process: started, spoken to line by line, ended with all that it has started.

Whatever it does wrong is one ``Lost`` with one line: it ends, is silent for too long, writes what is no reply
or a line without an end. It is never spoken to again then; whoever needs it starts another.
"""

import contextlib
import logging
import os
import re
import selectors
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remeasure import jsonl, model_server
from remeasure.errors import RemeasureError
from remeasure.executors.replies import is_too_deep, one_line
from remeasure.fingerprint import SCRIPTS
from remeasure.process_group import Talking
from remeasure.records import Stage

log = logging.getLogger("remeasure.adapter")
FOLDER = SCRIPTS / "systems"
LONGEST_REPLY_BYTES = 64 << 20
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CHUNK = 1 << 20
# The end of a job reaches an adapter and us in one moment: ours must be noticed first.
_MOMENT_S = 0.1
_LOCAL = "127.0.0.1,localhost"


class Lost(Exception):
    """An adapter that can be asked nothing more; the text is one line.

    Args:
        kind: class of the failure (``contract.KINDS``).
        message: what happened, without anything that differs between two runs.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


def program(name: str) -> Path:
    """Return the file of an adapter.

    Raises:
        RemeasureError: the name is none, or there is no such file.
    """
    path = FOLDER / f"{name}.py"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise RemeasureError(
            f"adapter {name!r}: no file scripts/systems/{name}.py; correct `adapter` of the database, or "
            "write it (docs/systems.md)"
        )
    return path


def python_of(environment: Path | str | None) -> str:
    """Return the interpreter that an adapter is run by.

    Args:
        environment: record of ``install_environment``; null: the workflow's own.

    Raises:
        RemeasureError: the record is none, or its interpreter is not there any more.
    """
    if environment is None:
        return sys.executable
    python = jsonl.read_json(Path(environment), Stage).facts.get("python")
    if not isinstance(python, str) or not os.access(python, os.X_OK):
        raise RemeasureError(
            f"{environment}: its interpreter {python!r} is not there; delete the record and rerun: the "
            "environment is installed again"
        )
    return os.path.abspath(python)


def surroundings(keys: Iterable[str | None], given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of an adapter: no credentials but those that it needs.

    Args:
        keys: names of the variables that hold keys of its endpoints.
        given: our own environment.
    """
    kept = model_server.environment(given) | {key: given[key] for key in keys if key and key in given}
    for name in ("NO_PROXY", "no_proxy"):  # servers of ours are asked directly
        kept[name] = ",".join(filter(None, (given.get(name), _LOCAL)))
    return kept | {"PYTHONPATH": str(SCRIPTS), "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}


class Adapter:
    """One running adapter. A context manager; one command is under way at a time.

    Args:
        words: its command line.
        environment: its environment variables.
        log_path: what its standard error is appended to.
        clean: takes keys out of what it writes; out of its log once it has ended.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: dict[str, str],
        log_path: Path,
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._words, self._environment, self._log_path = list(words), environment, log_path
        self._clean = clean
        self._n_commands = 0
        self._to_write = memoryview(b"")
        self._received = bytearray()
        self._is_ahead = False  # it has written before it was asked
        self.began = 0.0
        """When the command was given, by the monotonic clock."""

    def __enter__(self) -> "Adapter":
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log_path, "ab") as errors:
            self._group = Talking(self._words, self._environment, errors)
        for stream in (self._group.input, self._group.output):
            os.set_blocking(stream.fileno(), False)
        return self

    def __exit__(self, *_) -> None:
        self._group.stop()
        with contextlib.suppress(OSError):
            if self._log_path.stat().st_size <= LONGEST_REPLY_BYTES:
                said = self._log_path.read_bytes()
                if (cleaned := self._clean(said)) != said:
                    self._log_path.write_bytes(cleaned)

    def send(self, command: dict[str, Any], limit_s: float) -> None:
        """Give a command; ``receive`` returns the reply.

        Args:
            command: one of the contract's.
            limit_s: how long the reply may take, seconds.
        """
        with contextlib.suppress(Lost):  # that it ended is noticed by writing
            self._read()
        self._is_ahead = bool(self._received)
        self._n_commands += 1
        self._to_write = memoryview(jsonl.encode(command | {"id": self._n_commands}) + b"\n")
        self.began, self._limit_s = time.monotonic(), limit_s

    def ask(self, command: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Give a command and return the reply.

        Raises:
            Lost: there is none.
        """
        self.send(command, limit_s)
        [(_, found)] = receive([self])
        if isinstance(found, Lost):
            raise found
        return found

    # -- what ``receive`` uses -----------------------------------------------------------------------------

    def left_s(self) -> float:
        """Return how long the reply may still take, seconds."""
        return self.began + self._limit_s - time.monotonic()

    def wishes(self) -> list[tuple[int, int]]:
        """Return what is waited for: file numbers and events."""
        reading = [(self._group.output.fileno(), selectors.EVENT_READ)]
        return reading + ([(self._group.input.fileno(), selectors.EVENT_WRITE)] if self._to_write else [])

    def step(self) -> "dict[str, Any] | Lost | None":
        """Write and read what is possible without waiting; return the reply when it is there."""
        try:
            self._write()
            while (line := self._line()) is None:
                if not self._read():
                    return None if self.left_s() > 0 else self._silent()
            return self._reply(line)
        except Lost as lost:
            log.warning("adapter lost: %s; its log ends: %s", lost, model_server.log_end(self._log_path))
            return lost

    def _silent(self) -> Lost:
        lost = Lost("timeout", f"no reply within {self._limit_s:g} s")
        log.warning("adapter lost: %s; its log ends: %s", lost, model_server.log_end(self._log_path))
        return lost

    def _write(self) -> None:
        while self._to_write:
            try:
                n = os.write(self._group.input.fileno(), self._to_write)
            except BlockingIOError:
                return
            except OSError:
                raise self._ended() from None
            self._to_write = self._to_write[n:]

    def _read(self) -> bool:
        """Read once; return whether there was something."""
        try:
            found = os.read(self._group.output.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not found:
            raise self._ended()
        self._received += found
        return True

    def _line(self) -> bytes | None:
        end = self._received.find(b"\n")
        if end < 0 and len(self._received) <= LONGEST_REPLY_BYTES:
            return None
        if end < 0 or end > LONGEST_REPLY_BYTES:
            limit = LONGEST_REPLY_BYTES >> 20
            raise Lost("server_error", f"the adapter wrote a line of more than {limit} MiB")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _ended(self) -> Lost:
        time.sleep(_MOMENT_S)
        code = self._group.exit_status(5.0)
        how = "closed its standard output" if code is None else f"ended with exit status {code}"
        return Lost("server_error", f"the adapter {how}")

    def _reply(self, line: bytes) -> dict[str, Any]:
        line = self._clean(line)
        try:
            reply = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            reply = None
        if not isinstance(reply, dict) or not isinstance(reply.get("ok"), bool) or is_too_deep(line):
            start = one_line(line[:200].decode("utf-8", "replace"), 80)
            raise Lost("server_error", f"the adapter wrote what is no reply: {start!r}")
        if self._is_ahead or self._to_write or reply.get("id") != self._n_commands:
            raise Lost("server_error", "the adapter wrote a reply to another command")
        return reply


def receive(adapters: Sequence[Adapter]) -> "list[tuple[Adapter, dict[str, Any] | Lost]]":
    """Wait until at least one of several adapters has replied, or will not any more.

    Args:
        adapters: each has a command under way; at least one.
    """
    while True:
        found = [(one, reply) for one in adapters if (reply := one.step()) is not None]
        if found:
            return found
        with selectors.DefaultSelector() as selector:
            for one in adapters:
                for number, events in one.wishes():
                    selector.register(number, events)
            selector.select(max(0.0, min(one.left_s() for one in adapters)))


@contextlib.contextmanager
def started(
    name: str,
    environment: Path | str | None,
    keys: Iterable[str | None],
    log_path: Path,
    clean: Callable[[bytes], bytes] = bytes,
):
    """Give a running adapter by name; see ``Adapter``."""
    words = [python_of(environment), str(program(name))]
    with Adapter(words, surroundings(keys, os.environ), log_path, clean) as adapter:
        yield adapter
