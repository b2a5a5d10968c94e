"""Programs that stand before SLURM's own on the PATH of the driver, and of nothing else.

They use the standard library alone and start in some 20 ms. A folder below ``.snakemake`` holds launchers for
them and a few small files: ``settings.json``, ``waited.json`` (the ids that the driver waits for) and
``ended.json`` are written by the driver, ``doubts.json`` and ``submitted`` by the programs.
"""

import shlex
import sys
from pathlib import Path

from remeasure.cluster.standins.common import read, write

__all__ = ["NAMES", "install", "read", "write"]
NAMES = ("sacct", "sbatch")


def install(folder: Path) -> None:
    """Write the launchers into ``folder/bin``.

    Launchers, not links: they name the Python that runs us, and need no executable bit in the checkout.
    """
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        words = [
            sys.executable,
            "-I",
            "-S",
            str(Path(__file__).with_name(f"{name}.py").resolve()),
            str(folder),
        ]
        launcher = folder / "bin" / name
        new = launcher.with_name(f".{name}.new")
        new.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        new.chmod(0o755)
        new.replace(launcher)
