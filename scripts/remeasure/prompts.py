"""Prompt files: loaded by name, checked by hash, filled in one pass."""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from remeasure import jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_bytes, sha256_file
from remeasure.fingerprint import SCRIPTS
from remeasure.records import Record
from remeasure.yaml_files import Settings, convert, read_yaml

_PLACE = re.compile(r"\{\{([A-Za-z0-9_]+)\}\}")
_SHA256 = re.compile("[0-9a-f]{64}")
# Where wordings lie that are not ours to ship.
ELSEWHERE = "results/sources/"


class Elsewhere(Settings, kw_only=True):
    """A line of ``elsewhere.yaml``: a wording that is brought like other raw inputs and known by its hash."""

    path: str
    sha256: str


class PromptFiles(Record, kw_only=True):
    """Which prompts a stage uses; part of its settings."""

    profile: str
    """Name of the set: own, or that of a published wording."""
    files: dict[str, str]
    """Prompt name to path; relative ones start from the repository, those below ``results`` from the folder
    that the workflow runs in."""
    sha256: dict[str, str]
    """Prompt name to the SHA-256 of the file's bytes."""


def load(files: PromptFiles) -> dict[str, str]:
    """Return the texts of all named prompts, byte for byte as they stand in the files.

    Raises:
        RemeasureError: missing file, not UTF-8, no hash or another one than the settings say.
    """
    if files.files.keys() != files.sha256.keys():
        odd = sorted(files.files.keys() ^ files.sha256.keys())
        raise RemeasureError(f"prompts {files.profile!r}: {odd} lack a path or a sha256; give both for each")
    texts = {}
    for name, path in files.files.items():
        try:
            data = _place(path).read_bytes()
        except OSError as error:
            raise jsonl.unreadable(Path(path), error) from None
        found = sha256_bytes(data)
        if found != files.sha256[name]:
            repair = "rerun from the workflow, or restore the file"
            if is_elsewhere(path):
                repair = (
                    "put the right wording there to the byte: config/sources_by_hand.tsv describes it; where "
                    "a rule makes it, delete it and rerun"
                )
            raise RemeasureError(
                f"{path}: prompt {name!r} has SHA-256 {found[:12]}…, the settings say "
                f"{files.sha256[name][:12]}…; {repair}"
            )
        try:
            texts[name] = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RemeasureError(
                f"{path}: not UTF-8 ({error.reason} at byte {error.start}); save it so"
            ) from None
    return texts


def is_elsewhere(path: str) -> bool:
    """Return whether a prompt file is no part of the repository but brought like other raw inputs."""
    return path.startswith(ELSEWHERE)


def _place(path: str) -> Path:
    return Path(path) if is_elsewhere(path) else SCRIPTS.parent / path


def get(texts: Mapping[str, str], name: str) -> str:
    """Return a prompt by name.

    Raises:
        RemeasureError: there is no prompt of that name; names the ones that exist.
    """
    if name not in texts:
        raise RemeasureError(
            f"prompt {name!r} is not among the settings' prompts{did_you_mean(name, texts)} "
            f"({', '.join(sorted(texts))}); add its file"
        )
    return texts[name]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{name}}`` by its value; a value is never looked at again, so it may hold braces.

    Raises:
        RemeasureError: the template names a value that is not given.
    """

    def value_of(match: re.Match) -> str:
        name = match.group(1)
        if name not in values:
            raise RemeasureError(
                f"prompt placeholder {{{{{name}}}}} is unknown{did_you_mean(name, values)} "
                f"({', '.join(sorted(values))}); correct the prompt file"
            )
        return values[name]

    return _PLACE.sub(value_of, template)


@functools.cache
def profile(config: Path, study: str, name: str) -> dict[str, Any]:
    """Return a prompt profile as settings: file names relative to the repository and hashes of their bytes.

    A profile is a folder of ``<prompt>.txt``. What must not be shipped stands in its ``elsewhere.yaml``:
    prompt name to ``path`` below ``results/sources`` and ``sha256``; such a file may be missing as yet.

    Args:
        config: the ``config`` folder.
        study: the study.
        name: the profile, a folder below ``prompts/<study>``.

    Raises:
        RemeasureError: there are no prompts of that name, or ``elsewhere.yaml`` is not as described.
    """
    folder = config / "prompts" / study / name
    found = {path.stem: path for path in sorted(folder.glob("*.txt"))}
    files = {stem: str(path.relative_to(config.parent)) for stem, path in found.items()}
    hashes = {stem: sha256_file(path) for stem, path in found.items()}
    for prompt, there in _elsewhere(folder, found).items():
        files[prompt], hashes[prompt] = there.path, there.sha256
    if not files:
        raise RemeasureError(f"{folder}: no prompt files; correct `prompts` in the run or add them")
    return {"profile": name, "files": files, "sha256": hashes}


def _elsewhere(folder: Path, shipped: Iterable[str]) -> dict[str, Elsewhere]:
    path = folder / "elsewhere.yaml"
    if not path.is_file():
        return {}
    found = convert(read_yaml(path), dict[str, Elsewhere], path)
    for name, there in found.items():
        wrong = None
        if not is_elsewhere(there.path) or ".." in there.path.split("/"):
            wrong = f"path {there.path!r} does not lie below {ELSEWHERE}"
        elif not _SHA256.fullmatch(there.sha256):
            wrong = f"sha256 {there.sha256!r} is not 64 hexadecimal digits in lower case"
        elif name in shipped:
            wrong = f"{name}.txt lies beside it"
        if wrong:
            raise RemeasureError(f"{path}: {name}: {wrong}; correct the file")
    return found


def only(settings: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a profile with some of its files: a changed prompt reruns only what shows it."""
    kept = set(names)
    parts = {key: {n: v for n, v in settings[key].items() if n in kept} for key in ("files", "sha256")}
    return settings | parts
