"""Write below the pins of every environment the versions of what these need: ``make lock``.

Versions that are there already and still fit stay; so do those of ``requirements.txt`` where an environment
shares them. Environments that a step installs by pip (``*.in``) get a file of their own, with hashes. Only
metadata is read: nothing is installed.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "      # What they need.\n"
# Their versions are their own: other programs decide them.
APART = {"torch", "vllm"}
# The oldest system library that a node may have; 2.28 is that of Enterprise Linux 8.
OLDEST = {"vllm": "x86_64-manylinux_2_31"}
OLDEST_ELSE = "x86_64-manylinux_2_28"
# Only wheels, so that no node compiles; this one is pure Python and comes as source alone.
WHEELS = ("--only-binary", ":all:", "--no-binary", "connection-pool")
# A system under test, and everything on a machine without a GPU, must run without the packages of CUDA that a
# wheel of torch brings along.
HEAVY = re.compile(r"^(torch|torchvision|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==", re.MULTILINE)


def pins(text: str) -> list[str]:
    """Return the pinned packages of an environment file, as ``name==version``."""
    return re.findall(r"^ +- (\S+==\S+)$", text, re.MULTILINE)


def name_of(pin: str) -> str:
    """Return a pin's package in the one spelling that stands for all of them."""
    return re.sub("[-_.]+", "-", pin.partition("==")[0]).lower()


def resolved(uv: Path, name: str, direct: list[str], known: list[str]) -> list[str]:
    """Return all packages that an environment's chosen ones need on Linux, themselves included.

    Args:
        uv: the resolver's program.
        name: the environment's name.
        direct: pins that were chosen.
        known: versions to keep where they fit.

    Raises:
        CalledProcessError: they do not fit together, or the package index was not reached; uv said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder, "wanted.in"), Path(folder, "found.txt")
        wanted.write_text("\n".join(direct), encoding="utf-8")
        found.write_text("\n".join(known), encoding="utf-8")
        words = [str(uv), "pip", "compile", "--quiet", "--no-header", "--no-annotate", *WHEELS]
        words += ["--python-version", "3.11", "--python-platform", OLDEST.get(name, OLDEST_ELSE)]
        words += [str(wanted), "-o", str(found)]
        words += ["-c", str(HERE.parent / "requirements.txt")] if name not in APART else []
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return re.findall(r"^(\S+==\S+)$", found.read_text(encoding="utf-8"), re.MULTILINE)


def leave_out_torch(path: Path) -> None:
    """Take torch and what belongs to it out of a lock file: these come by pip, in the build that it finds."""
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", path.read_text(encoding="utf-8"))
    path.write_text("".join(block for block in blocks if not HEAVY.match(block)), encoding="utf-8")


def lock(uv: Path, path: Path) -> None:
    """Complete one environment file; one that pins nothing but Python stays as it is."""
    chosen, _, rest = path.read_text(encoding="utf-8").partition(MARK)
    direct = pins(chosen)
    if not direct:
        return
    needed = resolved(uv, path.stem, direct, direct + pins(rest))
    named = {name_of(pin) for pin in direct}
    lines = [f"      - {pin}\n" for pin in needed if name_of(pin) not in named]
    path.write_text(chosen + MARK + "".join(lines), encoding="utf-8")


def lock_with_hashes(uv: Path, wanted: Path) -> None:
    """Write all packages that an environment installed by pip needs, with hashes of their wheels.

    Args:
        uv: the resolver's program.
        wanted: pins that were chosen, ``<name>.in``; ``<name>.txt`` beside it is written.

    Raises:
        CalledProcessError: they do not fit together, or the package index was not reached; uv said why.
        SystemExit: torch or what belongs to it would come along.
    """
    target = wanted.with_suffix(".txt")
    words = [str(uv), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url"]
    words += ["--universal", "--python-version", "3.12", "--generate-hashes", "--only-binary", ":all:"]
    subprocess.run([*words, str(wanted), "-o", str(target)], check=True, stdout=subprocess.DEVNULL)
    if heavy := HEAVY.search(target.read_text(encoding="utf-8")):
        raise SystemExit(f"{target.name}: {heavy[1]} comes along; pin what pulls it in, in {wanted.name}")


if __name__ == "__main__":
    found = Path(sys.executable).with_name("uv")
    leave_out_torch(HERE.parent / "requirements-torch.txt")
    for each in sorted(HERE.glob("*.yaml")):
        lock(found, each)
    for each in sorted(HERE.glob("*.in")):
        lock_with_hashes(found, each)
