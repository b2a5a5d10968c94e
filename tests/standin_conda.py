"""A stand-in for conda: the few calls that Snakemake makes, on py-rattler and channels that are folders.

Solving, installing and refusing what a channel lacks are real. What an environment file hands to pip comes
from the packages that this Python has: each is linked into the environment, in exactly the pinned version,
and what is not listed is not there. Started by the program that ``condakit.Conda`` writes.
"""

import asyncio
import importlib.metadata
import json
import sys
from pathlib import Path

import yaml

# Snakemake refuses anything older than 24.7.1.
VERSION = "24.11.3"


def link(pin: str, site: Path) -> None:
    """Give an environment a package that is installed here, in the version that its file pins."""
    name, _, version = pin.partition("==")
    found = importlib.metadata.distribution(name)
    if found.version != version:
        sys.exit(f"{pin}: {found.version} is installed here")
    for top in {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        if not (site / top).is_symlink():
            (site / top).symlink_to(Path(found.locate_file(top)).resolve())


async def create(root: Path, file: Path, prefix: Path) -> None:
    """Make the environment of a file."""
    import rattler

    wanted = yaml.safe_load(file.read_text())
    specs = [one for one in wanted["dependencies"] if isinstance(one, str)]
    channels = [(root / "channels" / name).resolve().as_uri() for name in wanted["channels"]]
    records = await rattler.solve(channels, specs, platforms=["noarch"])
    await rattler.install(records, prefix, cache_dir=root / "pkgs", show_progress=False)
    site = prefix / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    for one in wanted["dependencies"]:
        for pin in one["pip"] if isinstance(one, dict) else ():
            link(pin, site)


def main(root: Path, words: list[str]) -> None:
    """Answer one call and note it."""
    with (root / "calls.log").open("a") as log:
        log.write(" ".join(words) + "\n")
    match words:
        case ["--version"]:
            print(f"conda {VERSION}")
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": str(root), "platform": "linux-64"}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["env", "create", "--quiet", "--no-default-packages", "--file", file, "--prefix", prefix]:
            asyncio.run(create(root, Path(file), Path(prefix)))
        case ["clean", *_]:
            pass
        case _:
            sys.exit(f"the stand-in for conda has no `{' '.join(words)}`")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
