"""A conda of our own and channels made by hand: what a cluster has, without its network."""

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

STANDIN = Path(__file__).with_name("standin_conda.py")
# What conda's own does, as far as a step sees it.
ACTIVATE = """\
export CONDA_PREFIX="$1" CONDA_DEFAULT_ENV="$1"
export PATH="$1/bin:$PATH"
"""
# Written by the package `probe` at the start of every Python of its environment, wherever a rule runs it.
PROBE = """\
import json, os, sys
with open(os.environ["PROBE_LOG"], "a") as log:
    words = {"script": os.path.basename(getattr(sys, "orig_argv", ["", ""])[1]), "prefix": sys.prefix}
    log.write(json.dumps(words | {"probe": VERSION, "node": os.environ.get("SLURMD_NODENAME")}) + "\\n")
"""


class Channel:
    """A folder that conda takes packages from; every package is for all platforms.

    Args:
        folder: a new folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "noarch"
        self._folder.mkdir(parents=True)
        self._packages: dict[str, dict] = {}

    def add(
        self, name: str, version: str, files: dict[str, str | Path], depends: tuple[str, ...] = ()
    ) -> None:
        """Write a package; a file is its text, or the path that it is a link to."""
        index = {"name": name, "version": version, "build": "0", "build_number": 0, "subdir": "noarch"}
        index |= {"noarch": "generic", "depends": list(depends), "timestamp": 1700000000000}
        members = {path: text.encode() for path, text in files.items() if isinstance(text, str)}
        listed = [
            {"_path": path, "path_type": "hardlink", "size_in_bytes": len(data)}
            | {"sha256": hashlib.sha256(data).hexdigest()}
            for path, data in members.items()
        ]
        links = {path: target for path, target in files.items() if isinstance(target, Path)}
        listed += [{"_path": path, "path_type": "softlink"} for path in links]
        members["info/index.json"] = json.dumps(index).encode()
        members["info/paths.json"] = json.dumps({"paths_version": 1, "paths": listed}).encode()
        members["info/files"] = "".join(f"{path}\n" for path in files).encode()
        archive = self._folder / f"{name}-{version}-0.tar.bz2"
        with tarfile.open(archive, "w:bz2") as tar:
            for path, data in members.items():
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(data), 0o755
                tar.addfile(member, io.BytesIO(data))
            for path, target in links.items():
                member = tarfile.TarInfo(path)
                member.type, member.linkname = tarfile.SYMTYPE, str(target)
                tar.addfile(member)
        data = archive.read_bytes()
        sums = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
        self._packages[archive.name] = index | sums | {"size": len(data)}
        known = {"info": {"subdir": "noarch"}, "packages": self._packages, "packages.conda": {}}
        (self._folder / "repodata.json").write_text(json.dumps(known))

    def add_python(self) -> None:
        """Add `python`: that of the tests, which here looks for packages in its environment only."""
        version = ".".join(str(part) for part in sys.version_info[:3])
        base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        config = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
        names = {f"bin/{name}": base for name in ("python", "python3", base.name)}
        self.add("python", version, {"pyvenv.cfg": config} | names)
        self.add(
            "pip", "26.0", {"share/pip/README": "Stands in for pip; see standin_conda.py.\n"}, ("python",)
        )

    def add_probe(self, version: int) -> None:
        """Add a version of `probe`; see `PROBE`."""
        site = f"lib/python3.{sys.version_info.minor}/site-packages"
        text = PROBE.replace("VERSION", str(version))
        self.add("probe", str(version), {f"{site}/sitecustomize.py": text}, ("python",))


class Conda:
    """An installed stand-in.

    Args:
        root: a new folder; ``channels/NAME`` below it is the channel of that name.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir(parents=True)
        (root / "bin" / "activate").write_text(ACTIVATE)
        program = root / "bin" / "conda"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDIN}" "{root}" "$@"\n')
        program.chmod(0o755)

    def channel(self, name: str) -> Channel:
        """Return a new channel."""
        return Channel(self.root / "channels" / name)

    def environment(self, log: Path) -> dict[str, str]:
        """Return the variables of a user who has this conda, and where `probe` writes."""
        return os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "PROBE_LOG": str(log)}

    def n_created(self) -> int:
        """Return how many environments were made."""
        return (self.root / "calls.log").read_text().count("env create ")
