"""Make a fresh machine ready: virtual environment, pinned packages, Chromium. Instant when all is there.

Runs with any Python 3.11 or later and needs nothing but the standard library.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_PACKAGES = ("chromium", "fonts-dejavu-core")


def stop(text: str) -> None:
    """End with one line and exit code 2."""
    sys.exit(print(f"error: {text}", file=sys.stderr) or 2)


def administrator() -> list[str] | None:
    """Return the words that make a command run as administrator without a question, or None."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None


def install(packages: tuple[str, ...], why: str) -> None:
    """Install Debian packages where that is allowed; otherwise say the one command that does it."""
    command = f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"
    prefix = administrator()
    apt = shutil.which("apt-get")
    if prefix is None or apt is None:
        stop(f"{why}; install it with: {command}")
    print(f"{why}; installing {' '.join(packages)}", file=sys.stderr)
    quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        if subprocess.run([*prefix, apt, "-qq", *words], **quiet).returncode != 0:
            stop(f"{why}, and `apt-get {words[0]}` failed; run by hand: {command}")


def have_venv() -> bool:
    """Return whether this Python can make virtual environments with pip."""
    return (
        subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0
    )


def make_environment(requirements: list[Path]) -> None:
    """Create ``.venv`` and install the pinned packages; a stamp remembers what was installed."""
    alone = [pin for path in requirements for pin in left_out(path)]
    pins = b"".join(path.read_bytes() for path in requirements) + " ".join(alone).encode()
    stamp = VENV / f"ready-{hashlib.sha256(pins).hexdigest()[:16]}"
    if stamp.exists():
        return
    if not (VENV / "bin" / "python").exists():
        if not have_venv():
            version = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
            install((version,), f"{sys.executable} cannot make virtual environments")
        print(f"making {VENV.name} with Python {sys.version.split()[0]}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    print(f"installing the packages of {', '.join(path.name for path in requirements)}", file=sys.stderr)
    files = [word for path in requirements for word in ("-r", str(path))]
    python = str(VENV / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", python, "--require-hashes"]
    # uv needs a fraction of pip's time, but knows nothing of a package index that is set for pip alone.
    first = VENV / "uv.txt"
    first.write_text(lines_of("uv", requirements[0].read_text(encoding="utf-8")), encoding="utf-8")
    done = subprocess.run([*pip, "-r", str(first)]).returncode == 0
    if not (done and subprocess.run([*uv, *files]).returncode == 0):
        print("uv could not install the packages (see above); trying pip", file=sys.stderr)
        if subprocess.run([*pip, *files]).returncode != 0:
            stop("pip could not install the pinned packages (see above); check the network and try again")
    # By pip and without hashes: which build fits a machine, with CUDA or without, pip's settings decide.
    if alone and subprocess.run([*pip[:-1], *alone]).returncode != 0:
        stop(f"pip could not install {' '.join(alone)} (see above); install it by hand, then try again")
    stamp.touch()


def left_out(requirements: Path) -> list[str]:
    """Return the pins that a list of wishes (``.in``) has and its lock file (``.txt``) leaves to pip."""
    wishes = requirements.with_suffix(".in")
    asked = pins_of(wishes.read_text(encoding="utf-8")) if wishes.is_file() else {}
    locked = pins_of(requirements.read_text(encoding="utf-8"))
    return [f"{name}=={version}" for name, version in asked.items() if name not in locked]


def pins_of(text: str) -> dict[str, str]:
    """Return version by package, in the one spelling that stands for all of them."""
    found = re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)", text)
    return {re.sub("[-_.]+", "-", name).lower(): version for name, version in found}


def lines_of(package: str, pins: str) -> str:
    """Return the lines of one package, its hashes included, from a file of pins."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", pins)
    return next(block for block in blocks if block.startswith(f"{package}==")) + "\n"


def have_browser() -> bool:
    """Return whether a Chromium starts (a snap stub or a broken install does not)."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return True
    return False


def main(names: list[str]) -> None:
    """Do whatever is missing."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python may start this file
        stop(
            f"Python {sys.version.split()[0]} is too old, 3.11 or later is needed; "
            "name another one: make table1 PYTHON=python3.12"
        )
    missing = [name for name in names if not (ROOT / name).is_file()]
    if missing or not names:
        stop(f"{' '.join(missing) or 'no argument'}: expected requirement files; run `make table1` instead")
    make_environment([ROOT / name for name in names])
    if not have_browser() and "browser: null" in (ROOT / "config" / "config.yaml").read_text(
        encoding="utf-8"
    ):
        install(BROWSER_PACKAGES, "no Chromium found")
        if not have_browser():
            stop(
                "Chromium was installed but does not start; "
                "install a Chromium or Chrome that does and name it in config/config.yaml as `browser`"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
