"""What this machine computes with, in words that are the same in every run on it."""

import os
import platform
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

_CPU_FILE = Path("/proc/cpuinfo")
_TIMEOUT_S = 10.0
# "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)", and below it, where a GPU is divided,
# "  MIG 1g.10gb     Device  0: (UUID: MIG-…)".
_GPU = re.compile(r"GPU (\d+): (.+?) \(UUID: (\S+)\)\s*")
_PART = re.compile(r"\s+(MIG \S+)\s+Device\s+\d+: \(UUID: (\S+)\)\s*")


def cpu() -> str:
    """Return the processor's name, at least its architecture."""
    try:
        lines = _CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    name = " ".join(next(names, "").split())
    return name or f"{platform.machine() or 'unknown'} CPU"


class _Gpu(NamedTuple):
    index: str | None
    """Its number; null for a part of a divided GPU."""
    uuid: str
    name: str


def gpus() -> str | None:
    """Return the names of the NVIDIA GPUs that a program started here sees, equal ones with their count.

    ``nvidia-smi`` lists every GPU that the node lets us see, also those of other jobs where nothing but
    ``CUDA_VISIBLE_DEVICES`` keeps jobs apart: the variable decides.

    Edges:
        Null where no GPU answers or none may be used.

    Source:
        CUDA's documentation of the variable: numbers or beginnings of UUIDs; the first that fits no device
        hides itself and all after it.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        told = subprocess.run(
            [program, "-L"],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    found = _visible(_listed(told), os.environ.get("CUDA_VISIBLE_DEVICES"))
    counts = Counter(one.name for one in found)
    return ", ".join(name if n == 1 else f"{n} x {name}" for name, n in sorted(counts.items())) or None


def _listed(told: str) -> list[_Gpu]:
    """Return what ``nvidia-smi -L`` lists."""
    found: list[_Gpu] = []
    name = ""
    for line in told.splitlines():
        if whole := _GPU.fullmatch(line):
            name = " ".join(whole[2].split())
            found.append(_Gpu(whole[1], whole[3], name))
        elif part := _PART.fullmatch(line):
            found.append(_Gpu(None, part[2], f"{name} {part[1]}"))
    return found


def _visible(listed: list[_Gpu], given: str | None) -> list[_Gpu]:
    """Return the devices that ``CUDA_VISIBLE_DEVICES`` leaves; null leaves all."""
    if given is None:
        return [one for one in listed if one.index is not None]
    found: list[_Gpu] = []
    for word in (word.strip() for word in given.split(",")):
        fits = [one for one in listed if word == one.index or (len(word) > 4 and one.uuid.startswith(word))]
        if len(fits) != 1 or fits[0] in found:
            break
        found += fits
    return found
