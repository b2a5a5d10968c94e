"""Wording taken out of a Python module or a YAML file: its text is parsed, and nothing of it is ever run.

A file beside the profile (``taken.yaml``) names the module, and says for every prompt where its text stands
and which expressions in it become which placeholders; ``elsewhere.yaml`` says where the text is put and which
hash it must have. Where the texts of a profile stand in several modules, each further one has a file of its
own, ``taken_<part>.yaml``.
"""

import ast
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from remeasure import prompts
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.records import Record
from remeasure.taken_text import Place, python_text, yaml_text
from remeasure.yaml_files import Settings, convert, read_yaml

# More than any module that people write.
MAX_BYTES = 2_000_000
_FOLDER = re.compile(re.escape(prompts.ELSEWHERE) + r"[A-Za-z0-9][A-Za-z0-9._-]*")


class TakeSettings(Record, kw_only=True):
    """Settings of ``take_prompts``."""

    module_sha256: str
    prompts: dict[str, Place]
    sha256: dict[str, str]
    """Of every prompt."""


class TakenFile(Settings, kw_only=True):
    """``taken.yaml``."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """The module, a source."""
    prompts: Annotated[dict[str, Place], Meta(min_length=1)]


class Profile(NamedTuple):
    """What is taken out of one module for a profile."""

    module: str
    places: dict[str, Place]
    folder: str
    """Where its texts are put."""
    paths: dict[str, str]
    """Of its texts, in the order of ``elsewhere.yaml``."""
    sha256: dict[str, str]


def files(config: Path) -> list[tuple[str, str, str]]:
    """Return study, profile and part of every file that says where texts are taken from; the first is ""."""
    found = []
    for path in sorted([*config.glob("prompts/*/*/taken.yaml"), *config.glob("prompts/*/*/taken_*.yaml")]):
        study, profile = path.parts[-3:-1]
        found.append((study, profile, path.stem.removeprefix("taken").removeprefix("_")))
    return found


def path(config: Path, study: str, profile: str, part: str) -> Path:
    """Return the file that says where the texts of one module stand."""
    return config / "prompts" / study / profile / f"taken{part and f'_{part}'}.yaml"


def read(config: Path, study: str, profile: str, part: str = "") -> Profile:
    """Return what the files of a profile say together about one module.

    Raises:
        RemeasureError: a file is not as described, or all together they name other prompts than
            ``elsewhere.yaml``; the texts of a module do not lie in one folder of their own, each under its
            name.
    """
    parts = [one for of, other, one in files(config) if (of, other) == (study, profile)]
    every = {one: _file(path(config, study, profile, one)) for one in parts}
    told = prompts.profile(config, study, profile)
    here, found = path(config, study, profile, part), every[part]
    named = [name for one in every.values() for name in one.prompts]
    elsewhere = {name for name, place in told["files"].items() if prompts.is_elsewhere(place)}
    if odd := sorted({*named} ^ elsewhere):
        raise RemeasureError(
            f"{here}: {', '.join(odd)} stand only there or only in elsewhere.yaml; correct one"
        )
    folders = {one: _folder(told["files"], file.prompts) for one, file in every.items()}
    folder = folders[part]
    for name in found.prompts:
        place = told["files"][name]
        if not _FOLDER.fullmatch(folder) or place != f"{folder}/{name}.txt":
            raise RemeasureError(
                f"{here.with_name('elsewhere.yaml')}: {name}: path {place!r}; what is taken out of a module "
                f"lies in one folder below {prompts.ELSEWHERE}, as <folder>/{name}.txt; correct the file"
            )
    if len({*folders.values()}) != len(folders) or len({*named}) != len(named):
        raise RemeasureError(
            f"{here}: another taken_*.yaml beside it names the same prompt or fills the same folder; give "
            "every prompt one place and every module a folder of its own"
        )
    own = prompts.only(told, found.prompts)
    return Profile(found.module, found.prompts, folder, own["files"], own["sha256"])


def _file(path: Path) -> TakenFile:
    return convert(read_yaml(path), TakenFile, path)


def _folder(places: dict[str, str], names: Iterable[str]) -> str:
    return str(Path(places[next(iter(names))]).parent)


def settings(config: Path, study: str, profile: str, module_sha256: str, part: str = "") -> dict[str, Any]:
    """Return the settings of ``take_prompts`` for a module of a profile of a study.

    Raises:
        RemeasureError: as ``read``.
    """
    found = read(config, study, profile, part)
    places = msgspec.to_builtins(found.places)
    return {"module_sha256": module_sha256, "prompts": places, "sha256": found.sha256}


def take(data: bytes, wanted: TakeSettings, module: str) -> dict[str, str]:
    """Return the texts of all prompts.

    Args:
        data: the module.
        wanted: where they stand and what they must be.
        module: what the module is called in errors.

    Raises:
        RemeasureError: another module than the settings name, no Python, a place that is not there or not
            clear, an expression that nothing is said about, a text with another hash.

    Edges:
        A text that ends with a line end gets one more, since those who read prompt files drop one.
    """
    found = sha256_bytes(data)
    if found != wanted.module_sha256:
        raise RemeasureError(
            f"{module}: has SHA-256 {found[:12]}…, the settings say {wanted.module_sha256[:12]}…; delete it, "
            "it is fetched again"
        )
    is_yaml = Path(module).suffix in (".yaml", ".yml")
    tree = _parse_yaml(data, module) if is_yaml else parse(data, module)
    texts = {}
    for name, place in wanted.prompts.items():
        where = f"{module}: prompt {name!r}"
        text = yaml_text(tree, place, where) if is_yaml else python_text(tree, place, where)
        texts[name] = _checked(text + "\n" * text.endswith("\n"), wanted.sha256[name], where)
    return texts


def parse(data: bytes, module: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        RemeasureError: too large, no UTF-8, no Python, or nested too deeply.
    """
    if len(data) > MAX_BYTES:
        raise RemeasureError(f"{module}: {len(data)} bytes, at most {MAX_BYTES} are read; it is another file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise RemeasureError(
            f"{module}{line}: cannot be read as Python ({type(error).__name__}); it is another file"
        ) from None


def _checked(text: str, expected: str, where: str) -> str:
    try:
        found = sha256_bytes(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise RemeasureError(f"{where}: holds characters that no file can hold; correct taken.yaml") from None
    if found != expected:
        raise RemeasureError(
            f"{where}: comes to SHA-256 {found}, expected {expected}; taken.yaml and elsewhere.yaml of the "
            "profile belong to another version of the module: correct them"
        )
    return text


def _parse_yaml(data: bytes, module: str) -> Any:
    """Return what stands in a YAML file; errors as in ``parse``."""
    if len(data) > MAX_BYTES:
        raise RemeasureError(f"{module}: {len(data)} bytes, at most {MAX_BYTES} are read; it is another file")
    try:
        return msgspec.yaml.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RemeasureError(
            f"{module}: cannot be read as YAML ({type(error).__name__}); it is another file"
        ) from None
