"""Reading ``hp.obo`` and ``phenotype.hpoa`` line by line: what is used of them, what must be right in it."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from remeasure.errors import RemeasureError
from remeasure.phenotypes.records import FREQUENCIES, Book, Disease, Frequency, Term

ROOT = "HP:0000118"
"""Phenotypic abnormality; modes of inheritance, frequencies and the like stand beside it, not below."""
ATTRIBUTION = (
    "Human Phenotype Ontology (hpo.jax.org), hp.obo and phenotype.hpoa, release {release}, used unchanged; "
    "rows of Orphanet (orphadata.com): CC BY 4.0, INSERM"
)
# A line of the real files has 2,059 characters at most.
_LONGEST_LINE = 1 << 20
_TERM_ID = re.compile(r"HP:\d{7}")
_DISEASE_ID = re.compile(r"ORPHA:[1-9]\d{0,8}")
_SYNONYM = re.compile(r'"((?:[^"\\]|\\.)*)" (\w+)(?: ([A-Za-z_:0-9]+))? \[')
# Names that are no phrase of a text: abbreviations of two or three letters, and names no longer used.
_LEFT_OUT = ("abbreviation", "obsolete_synonym")
_COLUMNS = ("database_id", "disease_name", "qualifier", "hpo_id", "frequency", "aspect")
_CODES: dict[str, Frequency] = {f"HP:004028{n}": name for n, name in enumerate(FREQUENCIES)}
_EXCLUDED = "HP:0040285"


class Stanza(NamedTuple):
    """One ``[Term]`` of an OBO file."""

    line: int
    tags: dict[str, list[str]]

    def first(self, tag: str) -> str:
        """Return the first value of a tag, or nothing."""
        return self.tags.get(tag, [""])[0]


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line.

    Raises:
        RemeasureError: the file cannot be read, is not UTF-8, or has a line of more than a million bytes.
    """
    try:
        with open(path, "rb") as stream:
            number = 0
            while line := stream.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise RemeasureError(
                        f"{path} line {number}: longer than {_LONGEST_LINE} bytes; fetch it again"
                    )
                yield number, line.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise RemeasureError(f"{path}: cannot be read ({error.strerror}); fetch it again") from None
    except UnicodeDecodeError as error:
        raise RemeasureError(f"{path} line {number}: not UTF-8 ({error.reason}); fetch it again") from None


def stanzas(lines: Iterable[tuple[int, str]]) -> Iterator[Stanza]:
    """Yield the head of an OBO file (line 0) and then its terms; other stanzas are passed over."""
    found: Stanza | None = Stanza(0, {})
    for number, line in lines:
        if line.startswith("["):
            if found is not None:
                yield found
            found = Stanza(number, {}) if line.strip() == "[Term]" else None
        elif found is not None:
            tag, colon, value = line.partition(": ")
            if colon:
                found.tags.setdefault(tag, []).append(value)
    if found is not None:
        yield found


def read_terms(path: Path) -> tuple[str, list[Term], dict[str, str]]:
    """Read the ontology.

    Returns:
        Release, terms below ``ROOT`` (with it) sorted by id, and the present id of every former one.

    Raises:
        RemeasureError: no release, a term without name, a doubled id, a parent that is unknown or leads in a
            circle; names the line.
    """
    rows = stanzas(lines_of(path))
    release = next(rows).first("data-version").rpartition("/")[2]
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", release):
        raise RemeasureError(f"{path}: data-version ends in {release[:40]!r}, a date is expected; restore it")
    terms: dict[str, Term] = {}
    former: dict[str, str] = {}
    for row in rows:
        if row.first("is_obsolete") == "true":
            continue
        term = _term(row, path)
        if term.id in terms:
            raise RemeasureError(f"{path} line {row.line}: {term.id} stands twice; fetch it again")
        terms[term.id] = term
        former |= dict.fromkeys(row.tags.get("alt_id", []), term.id)
    below = _below(terms, path)
    kept = [
        msgspec.structs.replace(term, parents=[parent for parent in term.parents if parent in below])
        for name, term in sorted(terms.items())
        if name in below
    ]
    return release, kept, former


def _term(row: Stanza, path: Path) -> Term:
    place = f"{path} line {row.line}"
    name, label = row.first("id"), row.first("name").strip()
    if not _TERM_ID.fullmatch(name) or not label:
        raise RemeasureError(
            f"{place}: id {name[:40]!r}, name {label[:40]!r}; expected HP: and seven digits, and a name"
        )
    synonyms: dict[str, None] = {}
    for value in row.tags.get("synonym", []):
        found = _SYNONYM.match(value)
        if found is None:
            raise RemeasureError(f"{place}: synonym {value[:60]!r} cannot be understood; fetch it again")
        text, scope, kind = found.groups()
        if scope == "EXACT" and kind not in _LEFT_OUT:
            synonyms[re.sub(r"\\(.)", r"\1", text).strip()] = None
    synonyms.pop(label, None)
    synonyms.pop("", None)
    parents = sorted({value.split(" ")[0] for value in row.tags.get("is_a", [])})
    return Term(id=name, label=label, synonyms=list(synonyms), parents=parents)


def _below(terms: dict[str, Term], path: Path) -> set[str]:
    """Return ``ROOT`` and all below it, having walked up from every term."""
    known: dict[str, bool] = {ROOT: True}
    for start in terms:
        stack, open_ = [(start, False)], set()
        while stack:
            name, done = stack.pop()
            if name not in terms:
                raise RemeasureError(
                    f"{path}: {start} descends from {name[:40]}, which is no term; restore it"
                )
            if done:
                open_.discard(name)
                known[name] = any(known[parent] for parent in terms[name].parents)
            elif name in open_:
                raise RemeasureError(f"{path}: {name} descends from itself; fetch it again")
            elif name not in known:
                open_.add(name)
                stack.append((name, True))
                stack += [(parent, False) for parent in terms[name].parents]
    if ROOT not in terms:
        raise RemeasureError(f"{path}: lacks {ROOT} (Phenotypic abnormality); fetch it again")
    return {name for name, is_below in known.items() if is_below}


def read_diseases(
    path: Path, release: str, known: set[str], former: dict[str, str]
) -> tuple[list[Disease], dict[str, int]]:
    """Read the rows of Orphanet.

    Args:
        path: the annotations.
        release: that of the ontology; the annotations must be of the same.
        known: ids of terms below ``ROOT``.
        former: present id of former ones.

    Returns:
        Diseases sorted by number, and how many rows were read, and left out for which reason.

    Raises:
        RemeasureError: another release or other columns, a disease with two names, an unknown term or
            frequency; names the line.
    """
    counts = {"rows": 0, "excluded": 0, "other_aspects": 0}
    names: dict[str, str] = {}
    found: dict[str, dict[str, Frequency]] = {}
    columns: list[str] = []
    version = ""
    for number, line in lines_of(path):
        if line.startswith("#"):
            version = line.removeprefix("#version:").strip() if line.startswith("#version:") else version
        elif not columns:
            columns = line.split("\t")
            _check_head(columns, version, release, path)
        elif line.startswith("ORPHA:"):
            counts["rows"] += 1
            row = _row(line, columns, f"{path} line {number}")
            if names.setdefault(row["database_id"], row["disease_name"]) != row["disease_name"]:
                raise RemeasureError(
                    f"{path} line {number}: {row['database_id']} has two names; fetch it again"
                )
            if row["qualifier"] == "NOT" or row["frequency"] == _EXCLUDED:
                counts["excluded"] += 1
            elif row["aspect"] != "P":
                counts["other_aspects"] += 1
            else:
                term = former.get(row["hpo_id"], row["hpo_id"])
                if term not in known:
                    raise RemeasureError(f"{path} line {number}: {term[:40]} is no phenotype of the ontology")
                _add(found.setdefault(row["database_id"], {}), term, _CODES[row["frequency"]])
    if not found:
        raise RemeasureError(f"{path}: no row of Orphanet; fetch it again")
    return [_disease(name, names[name], found[name]) for name in sorted(found, key=_number)], counts


def _check_head(columns: list[str], version: str, release: str, path: Path) -> None:
    missing = [name for name in _COLUMNS if name not in columns]
    if missing or version != release:
        raise RemeasureError(
            f"{path}: version {version[:40]!r}, columns missing: {missing}; expected {release!r} as "
            "in the ontology, and none; fetch both files again"
        )


def _row(line: str, columns: list[str], place: str) -> dict[str, str]:
    cells = line.split("\t")
    if len(cells) != len(columns):
        raise RemeasureError(f"{place}: {len(cells)} cells, expected {len(columns)}; fetch it again")
    row = dict(zip(columns, cells, strict=True))
    is_excluded = row["qualifier"] == "NOT"
    problems = [
        (not _DISEASE_ID.fullmatch(row["database_id"]), f"database_id {row['database_id'][:40]!r}"),
        (not row["disease_name"].strip(), "disease_name is empty"),
        (row["qualifier"] not in ("", "NOT"), f"qualifier {row['qualifier'][:40]!r}"),
        (not is_excluded and row["frequency"] not in {*_CODES, _EXCLUDED}, f"frequency {row['frequency']!r}"),
    ]
    if wrong := [text for is_wrong, text in problems if is_wrong]:
        raise RemeasureError(f"{place}: {'; '.join(wrong)}; not what Orphanet's rows say; fetch it again")
    return row


def _add(phenotypes: dict[str, Frequency], term: str, frequency: Frequency) -> None:
    """Note a phenotype; of two frequencies, which former ids of one term can have, the higher stays."""
    before = phenotypes.get(term, frequency)
    phenotypes[term] = min(before, frequency, key=FREQUENCIES.index)


def _number(name: str) -> int:
    return int(name.removeprefix("ORPHA:"))


def _disease(name: str, label: str, phenotypes: dict[str, Frequency]) -> Disease:
    by_frequency = {
        frequency: sorted(term for term, seen in phenotypes.items() if seen == frequency)
        for frequency in FREQUENCIES
    }
    return Disease(id=name, name=label.strip(), phenotypes={k: v for k, v in by_frequency.items() if v})


def read_book(ontology: Path, annotations: Path) -> tuple[Book, dict[str, int]]:
    """Read both files; errors as in ``read_terms`` and ``read_diseases``.

    Returns:
        The book, and counts for the stage record.
    """
    release, terms, former = read_terms(ontology)
    diseases, counts = read_diseases(annotations, release, {term.id for term in terms}, former)
    counts |= {"terms": len(terms), "diseases": len(diseases)}
    return (
        Book(
            release=release, attribution=ATTRIBUTION.format(release=release), terms=terms, diseases=diseases
        ),
        counts,
    )
