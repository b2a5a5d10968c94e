"""The story of a run that is killed while models are asked, and goes on."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path


def kill_tree(process: subprocess.Popen) -> None:
    """SIGKILL a process and everything that it started, children first seen to last."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split("\n")[1:]
    parents = {int(pid): int(ppid) for pid, ppid in (line.split() for line in listed if line.strip())}
    doomed = {process.pid}
    while True:
        more = {pid for pid, ppid in parents.items() if ppid in doomed} - doomed
        if not more:
            break
        doomed |= more
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def journal_keys(folder: Path) -> list[str]:
    """Return the keys of all answers that a journal holds, each as often as it stands there."""
    texts = [path.read_text() for path in sorted(folder.glob("*.jsonl"))]
    # Without the beginning of a line that is being written, or was when everything was killed.
    lines = [line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()]
    return [entry["key"] for entry in map(json.loads, lines) if "status" in entry]


def kill_and_continue(checkout, targets: tuple[str, ...], cells: dict[str, int], at_least: int) -> None:
    """Kill a run where a cell is half asked and let it go on: nothing is asked twice, what was there stays.

    Args:
        checkout: where it runs (``Checkout`` of tests/workflow).
        targets: what is made.
        cells: number of answers by folder of a cell, of all cells that are watched.
        at_least: with so many answers of a cell, and some missing, everything is killed.
    """

    def kept() -> dict[str, list[str]]:
        return {cell: journal_keys(checkout.path(f"{cell}/journal")) for cell in cells}

    command = [*checkout.command(*targets), "--config", "run=ci"]
    process = subprocess.Popen(
        command, cwd=checkout.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    try:
        while not any(at_least <= len(keys) < cells[cell] for cell, keys in kept().items()):
            assert time.monotonic() < until and process.poll() is None, "no cell was seen half asked"
            time.sleep(0.02)
    finally:
        kill_tree(process)
    before = kept()
    assert at_least <= sum(map(len, before.values())) < sum(cells.values())
    subprocess.run([*command, "--unlock"], cwd=checkout.project, capture_output=True)
    checkout.run(*targets)
    for cell, keys in kept().items():
        assert len(keys) == len(set(keys)) == cells[cell], f"{cell}: each question is answered once"
        assert keys[: len(before[cell])] == before[cell], f"{cell}: what was there stays"


# The code that runs is the code as it is, with its fingerprint: how it ends comes from outside.
_DYING = '''"""Kill programs, each once, right after the n-th file that one finishes in a folder."""

import os
import signal
import sys
from pathlib import Path


def die_in(folder, n, died):
    finished, replace = [], os.replace

    def counted(source, target, **more):
        replace(source, target, **more)
        if folder in Path(target).parts:
            finished.append(target)
            if len(finished) == n:
                died.write_text(str(target))
                os.kill(os.getpid(), signal.SIGKILL)

    os.replace = counted


for script, folder, n in DEATHS:
    died = Path(__file__).with_name(script + ".died")
    if script in [Path(word).name for word in sys.orig_argv[1:2]] and not died.exists():
        die_in(folder, n, died)
'''


def dying(place: Path, *deaths: tuple[str, str, int]) -> dict[str, str]:
    """Return variables under which programs are killed (SIGKILL), each once.

    Args:
        place: a folder for this; ``<script>.died`` there says after which file a program was killed.
        deaths: name of a script, name of a folder that it writes to, and how many files it finishes there.
    """
    place.mkdir()
    text = _DYING.replace("DEATHS", repr(deaths))
    (place / "sitecustomize.py").write_text(text, encoding="utf-8")
    return os.environ | {"PYTHONPATH": str(place)}
