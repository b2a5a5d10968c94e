"""Run a model server for as long as it is needed, and never longer.

The contract with a server program: ``--port 0 --port-file F --served-name S``; it writes the port that it got
into F, answers ``/health`` with 200 once it can work and lists S under ``/v1/models``, and it **ends when its
standard input ends**: so not even a killed parent leaves an orphan.
"""

import contextlib
import http.client
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from remeasure import hardware
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.interruption import postponed

log = logging.getLogger("remeasure.model_server")
_POLL_S = 0.02
_STOP_S = 5.0
_TAIL_BYTES, _TAIL_LINES, _LINE = 1 << 20, 5, 300
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# How the model list of a server of ours names its owner (``embedded.chat_server``).
OWNER = "remeasure"
# A shorter value is no credential, and taking it out would garble the text.
_SECRET_LENGTH = 8
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
# Thread counts are part of a model's identity and come as options; job systems set these behind our back.
_THREAD_WORDS = ("OMP_", "MKL_", "OPENBLAS_", "GOTO_", "NUMEXPR_", "VECLIB_")


def command(
    program: str, served_name: str, files: Mapping[str, str], options: Mapping[str, str | int | float | bool]
) -> list[str]:
    """Return the command line of a server program, without its port options."""
    words = [sys.executable, str(SCRIPTS / program), "--served-name", served_name]
    return words + option_words(files) + option_words(options)


def option_words(options: Mapping[str, str | int | float | bool]) -> list[str]:
    """Return options as words of a command line.

    Edges:
        An option that is true becomes a bare flag, one that is false is left out.
    """
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words += [flag] if value else []
        else:
            words += [flag, str(value)]
    return words


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: what is given without credentials and thread counts."""
    return {
        name: value
        for name, value in given.items()
        if not _is_secret(name) and not name.startswith(_THREAD_WORDS)
    }


def _is_secret(name: str) -> bool:
    return any(word in name.upper() for word in _SECRET_WORDS)


class Server:
    """A running server program."""

    def __init__(self, process: subprocess.Popen, log_path: Path) -> None:
        self._process = process
        self._log_path = log_path
        self.port = 0
        self.description = ""
        """What answers, in one line that is the same in every run on one machine: build and hardware."""

    @property
    def base_url(self) -> str:
        """Address that requests go to, up to ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def died(self) -> str | None:
        """Return why the server is gone, with the end of its log; null while it runs."""
        # The connection breaks a moment before the process can be seen to have ended.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        code = self._process.poll()
        return None if code is None else self.failure(f"ended with exit status {code}")

    def failure(self, what: str) -> str:
        """Return an error text: what happened, and the end of the log."""
        return f"model server {what}; its log {self._log_path} ends: {log_end(self._log_path)}"

    def get(self, path: str) -> tuple[int, bytes] | None:
        """Return status and body of a page of the server; null while it cannot be reached."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


@contextlib.contextmanager
def running(words: list[str], served_name: str, log_path: Path, ready_timeout_s: float) -> Iterator[Server]:
    """Start a server program on a free port, wait until it answers, stop it whatever happens.

    Args:
        words: command line without port options (``command``).
        served_name: the model name that it must list.
        log_path: where its output goes, written afresh.
        ready_timeout_s: how long it may take to become ready, seconds.

    Raises:
        RemeasureError: it ends, does not become ready in time or serves another model; with its log's end.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="remeasure-") as folder, open(log_path, "wb") as output:
        port_file = Path(folder) / "port"
        process = subprocess.Popen(
            [*words, "--port", "0", "--port-file", str(port_file)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(os.environ),
            start_new_session=True,
        )
        try:
            server = Server(process, log_path)
            started = time.monotonic()
            _wait_until_ready(server, port_file, started + ready_timeout_s, ready_timeout_s)
            listed = _check_name(server, served_name)
            server.description = _description(server, Path(words[1]).name, listed)
            log.info("server %s ready after %.1f s", server.description, time.monotonic() - started)
            yield server
        finally:
            with postponed():
                _stop(process)


def _wait_until_ready(server: Server, port_file: Path, deadline: float, limit_s: float) -> None:
    while True:
        if server._process.poll() is not None:
            code = server._process.returncode
            raise RemeasureError(server.failure(f"ended with exit status {code} before it was ready"))
        with contextlib.suppress(OSError, ValueError):
            server.port = int(port_file.read_text())
            reply = server.get("/health")
            if reply is not None and reply[0] == 200:
                return
        if time.monotonic() > deadline:
            raise RemeasureError(server.failure(f"was not ready within {limit_s:g} s"))
        time.sleep(_POLL_S)


def _check_name(server: Server, served_name: str) -> dict[str, Any]:
    """Return what the server says of the model that it must list."""
    reply = server.get("/v1/models")
    try:
        listed = {model["id"]: model for model in msgspec.json.decode(reply[1])["data"]} if reply else {}
    except (msgspec.MsgspecError, KeyError, TypeError):
        listed = {}
    if served_name not in listed:
        raise RemeasureError(server.failure(f"lists the models {list(listed)} and not {served_name!r}"))
    return listed[served_name]


def _description(server: Server, program: str, listed: Mapping[str, Any]) -> str:
    """Return build and hardware: ``vllm 0.19.0, 2 x NVIDIA H100 80GB HBM3``; programs of ours use no GPU."""
    if listed.get("owned_by") == OWNER:
        return f"{program}, {hardware.cpu()}"
    reply = server.get("/version")
    try:
        version = msgspec.json.decode(reply[1])["version"] if reply else None
    except (msgspec.MsgspecError, KeyError, TypeError):
        version = None
    build = f"{listed.get('owned_by') or program} {version}" if isinstance(version, str) else program
    return f"{build}, {hardware.gpus() or hardware.cpu()}"


def _stop(process: subprocess.Popen) -> None:
    """End the server and all that it started."""
    with contextlib.suppress(OSError):
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Also after its end: what it started may live on in its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
            if number == signal.SIGKILL:
                return


def log_end(path: Path) -> str:
    """Return the last lines of a log as one readable line without the values of credentials."""
    with open(path, "rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return text_end(stream.read())


def text_end(output: bytes) -> str:
    """Return the last lines of what a program has said, as ``log_end``."""
    text = output.decode("utf-8", "replace")
    for name, value in os.environ.items():
        if _is_secret(name) and len(value) >= _SECRET_LENGTH:
            text = text.replace(value, f"[{name}]")
    lines = [_readable(line) for line in _COLOUR.sub("", text).splitlines()]
    said = [line if len(line) <= _LINE else f"{line[:_LINE]}…" for line in lines if line][-_TAIL_LINES:]
    return " | ".join(said) or "(nothing)"


def _readable(line: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in line).split())
