"""Calls of Snakemake that need not import it: each is a fork of a process that has done that and no more.

Importing takes a second of a processor, more than most calls then need. All else is as in a process of its
own: arguments, folder, variables, output, exit status, and what the Snakefile imports.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_started: dict[int, subprocess.Popen] = {}


def call(words: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess:
    """Return what ``python -m snakemake`` with these words did, its output as text."""
    with tempfile.TemporaryDirectory() as folder:
        told = {"words": words, "cwd": str(cwd), "env": dict(os.environ if env is None else env)}
        told |= {"stdout": f"{folder}/stdout", "stderr": f"{folder}/stderr"}
        process = _running()
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
        try:
            status = int(process.stdout.readline())
        except BaseException:
            # A test that takes too long: the next one gets a new process, and nothing of this call.
            os.killpg(_started.pop(os.getpid()).pid, signal.SIGKILL)
            raise
        said = [Path(told[name]).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess(words, status, *said)


def _running() -> subprocess.Popen:
    """Return this process's own process to fork from, which ends with its standard input."""
    if os.getpid() not in _started:
        words = [sys.executable, __file__]
        _started[os.getpid()] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
    return _started[os.getpid()]


def _become(told: dict) -> None:
    """Be what a new process would be."""
    for number, name in enumerate((os.devnull, told["stdout"], told["stderr"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["env"])
    sys.path[0] = told["cwd"]
    sys.argv = [_MAIN, *told["words"]]


def _serve() -> dict | None:
    """Fork for every line of standard input; return what it says in the fork, and null at its end."""
    answers = os.dup(1)
    os.dup2(2, 1)
    while line := sys.stdin.buffer.readline():
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            return json.loads(line)
        _, status = os.waitpid(pid, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))
    return None


if __name__ == "__main__":
    import snakemake.cli

    _MAIN = str(Path(snakemake.__file__).with_name("__main__.py"))
    told = _serve()
    if told is not None:
        _become(told)
        snakemake.cli.main()
