"""``vllm serve`` under the contract of a model server (``model_server``): port file, one name, a sure end."""

import contextlib
import http.client
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from remeasure import scratch
from remeasure.ending import Ending
from remeasure.errors import RemeasureError
from remeasure.files import write_text
from remeasure.process_group import Group

log = logging.getLogger("remeasure.vllm_server")
_POLL_S = 0.2
_PORTS, _DRAWS = 3, 20
_TAIL_BYTES = 1 << 18
# The name of a socket has 107 characters at most, of which vLLM takes some forty.
_LONGEST_FOLDER = 60
# What decides where and under which name vLLM answers; its parser also takes unambiguous beginnings.
_OWNED = ("port", "host", "uds", "served-model-name", "api-key", "config", "ssl-keyfile", "ssl-certfile")
_CAUSE = re.compile(r"\b(?:(?:\w*(?:Error|Exception|Interrupt)|error): |Value error, )\S.*")
# How vLLM says that it leaves out a part of an adapter, and then answers all the same.
_LEFT_OUT = re.compile(r"^.*(?i:lora|adapter|punica).*\b(?i:ignored|ignoring)\b.*$", re.MULTILINE)
# What vLLM says last, of an engine that has said before why it cannot start.
_NO_CAUSE = ("Engine core initialization failed", "Worker failed with error", "See root cause")


def checked_options(words: list[str]) -> list[str]:
    """Return vLLM's own options as they are.

    Raises:
        RemeasureError: one is ours to set, or the words do not begin with an option.
    """
    if words and not words[0].startswith("-"):
        raise RemeasureError(f"{words[0]!r}: expected an option of `vllm serve` (--key value); correct it")
    for word in words:
        name = word.removeprefix("--").partition("=")[0].replace("_", "-").lower()
        if word.startswith("--") and any(owned.startswith(name) for owned in _OWNED):
            raise RemeasureError(
                f"{word.partition('=')[0]}: address, port, served name and key of the server are set by "
                "serve_vllm.py; take it out of the model's `options`"
            )
    return words


def checked_model(model: str) -> str:
    """Return the model's name or folder.

    Raises:
        RemeasureError: it is written as a folder, and there is none.
    """
    if model.startswith(("/", "./", "../", "~")) and not Path(model).exists():
        raise RemeasureError(f"--model {model}: no such folder; correct `files` of the model or fetch it")
    if model.startswith("-"):
        raise RemeasureError(f"--model {model!r}: neither a name nor a folder; correct `files` of the model")
    return model


def program() -> str:
    """Return the path of ``vllm``: beside this Python, else on the search path.

    Raises:
        RemeasureError: there is none.
    """
    beside = Path(sys.executable).parent
    found = shutil.which("vllm", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if found is None:
        raise RemeasureError(
            f"no program `vllm` beside {sys.executable} or on PATH; run this step in the environment "
            "envs/vllm.yaml (snakemake --sdm conda)"
        )
    return found


def environment() -> dict[str, str]:
    """Return the environment of vLLM: ours, no reports of use, and no key that callers would have to know.

    Its sockets go to /tmp where the name of the folder for temporary files is too long for them.
    """
    given = {name: value for name, value in os.environ.items() if name != "VLLM_API_KEY"}
    if len(tempfile.gettempdir()) > _LONGEST_FOLDER:
        given.setdefault("VLLM_RPC_BASE_PATH", "/tmp")
    return given | {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def serve(model: str, options: list[str], served_name: str, port: int, port_file: Path) -> int:
    """Run vLLM until it ends or it is time to end.

    Args:
        model: name or folder.
        options: further words of its command line.
        served_name: the model name that requests must give.
        port: 0 takes any free one.
        port_file: gets the port once vLLM answers.

    Returns:
        0 when it was time to end, else vLLM's exit status.

    Raises:
        RemeasureError: an option or the model is wrong; there is no ``vllm``.
    """
    ending = Ending()
    place = checked_model(model)
    words = [program(), "serve", place, *checked_options(options)]
    if Path(place).is_dir():
        words[2] = str(scratch.local_copy(Path(place), is_over=lambda: ending.within(0)))
    words += ["--host", "127.0.0.1", "--served-model-name", served_name]
    for n_tries in range(1, _PORTS + 1):
        with _reserved(port) as chosen:
            status, was_ready, cause = _run([*words, "--port", str(chosen)], chosen, port_file, ending)
        if status is None:
            return 0
        if was_ready or port or n_tries == _PORTS or not _taken(chosen):
            break
        log.warning("port %d was taken while vllm started; trying another", chosen)
    log.error("vllm ended with exit status %d%s", status, cause)
    return status


def _run(words: list[str], port: int, port_file: Path, ending: Ending) -> tuple[int | None, bool, str]:
    """Run vLLM once.

    Returns:
        Its exit status or null where it was time to end, whether it was ready, and what it died of.
    """
    group = Group(words, environment())
    output = _Output(group, any(word.replace("_", "-").startswith("--enable-lora") for word in words))
    try:
        ready = _ready(port, group, ending, output)
        if ready:
            write_text(port_file, f"{port}\n")
            log.info("vllm answers on 127.0.0.1:%d", port)
            ending.wait(lambda: group.exit_status() is not None or output.left_out is not None)
        status = group.exit_status()
    finally:
        group.stop()
        output.join()
    if output.left_out is not None:
        return 1, True, f": it leaves out a part of the adapter; merge it instead ({output.left_out[:300]})"
    return status, ready, output.cause()


class _Output(threading.Thread):
    """Passes on what vLLM writes and remembers its end."""

    def __init__(self, group: Group, has_adapter: bool = False) -> None:
        super().__init__(daemon=True)
        self._pipe, self._tail, self._has_adapter = group.output, b"", has_adapter
        self._line = b""
        self.left_out: str | None = None
        """The line that says which part of an adapter is left out; null: none has."""
        self.start()

    def run(self) -> None:
        """Copy until all that could write has ended."""
        while data := os.read(self._pipe.fileno(), 1 << 16):
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            self._look(data)
            # A log that cannot be written (full disk) must not stop vLLM, which waits until it is read.
            with contextlib.suppress(OSError):
                sys.stderr.buffer.write(data)
                sys.stderr.buffer.flush()

    def leaves_out(self, ending: Ending) -> bool:
        """Return whether a part of an adapter is left out, by what has been said until now."""
        if self._has_adapter and self.left_out is None:
            ending.within(_POLL_S)  # what was said before is still on its way
        return self.left_out is not None

    def _look(self, data: bytes) -> None:
        """Look at whole lines for what is left out of an adapter."""
        if not self._has_adapter:
            return
        lines, _, self._line = (self._line + data).rpartition(b"\n")
        self._line = self._line[-_TAIL_BYTES:]
        found = _LEFT_OUT.search(lines.decode("utf-8", "replace"))
        if found and self.left_out is None:
            self.left_out = found[0].strip()

    def join(self, timeout: float | None = 2.0) -> None:
        """Wait for the rest; something that left the group may hold the pipe for ever."""
        super().join(timeout)

    def cause(self) -> str:
        """Return the last error in the output that is one, after a colon; empty where there is none."""
        found = _CAUSE.findall(self._tail.decode("utf-8", "replace"))
        causes = [text for text in found if not any(words in text for words in _NO_CAUSE)] or found
        return f": {causes[-1][:400]}" if causes else ""


def _ready(port: int, group: Group, ending: Ending, output: "_Output") -> bool:
    """Wait until vLLM can work; false where it ended, leaves something out, or it is time to end."""
    while group.exit_status() is None and output.left_out is None and not ending.within(_POLL_S):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return group.exit_status() is None and not output.leaves_out(ending)
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return False


@contextlib.contextmanager
def _reserved(port: int) -> Iterator[int]:
    """Choose a port that no other server of ours is about to take.

    vLLM up to 0.19 lets two servers of one user listen on one port, and the kernel then deals requests out
    to both. The sign is a name in the kernel's own table, which goes with the process.

    Raises:
        RemeasureError: the port is given and taken.
    """
    for _ in range(_DRAWS):
        with socket.socket() as probe, socket.socket(socket.AF_UNIX) as sign:
            try:
                probe.bind(("127.0.0.1", port))
                chosen = probe.getsockname()[1]
                sign.bind(f"\0remeasure-port-{chosen}")
            except (OSError, OverflowError) as error:
                problem = error
                continue
            probe.close()
            yield chosen
            return
    raise RemeasureError(f"--port {port}: cannot be used ({problem}); use --port 0 for a free one")


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
