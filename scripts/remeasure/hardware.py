"""What this machine computes with, in words that are the same in every run on it."""

import platform
import shutil
import subprocess
from collections import Counter
from pathlib import Path

_CPU_FILE = Path("/proc/cpuinfo")
_TIMEOUT_S = 10.0


def cpu() -> str:
    """Return the processor's name, at least its architecture."""
    try:
        lines = _CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    name = " ".join(next(names, "").split())
    return name or f"{platform.machine() or 'unknown'} CPU"


def gpus() -> str | None:
    """Return the names of the NVIDIA GPUs, equal ones with their count; null where none answers."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        told = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    counts = Counter(" ".join(line.split()) for line in told.splitlines() if line.strip())
    return ", ".join(name if n == 1 else f"{n} x {name}" for name, n in sorted(counts.items())) or None
