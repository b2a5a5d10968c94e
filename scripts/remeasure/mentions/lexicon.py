"""The committed table of word forms, as the matchers read it."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.fingerprint import SCRIPTS
from remeasure.jsonl import unreadable
from remeasure.mentions.preparing import Prepared

ReadingName = Literal["strict", "published"]
COLUMNS = ("class", "phrase", "form", "kind", "reading")
KINDS = ("synonym", "plural", "redirect", "block")
READINGS = ("both", "strict", "published")


class LexiconFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which table of word forms the settings mean."""

    name: str
    path: str
    """Relative to the repository."""
    sha256: str


class Row(NamedTuple):
    """A line of the table."""

    label: str
    """Class; empty for a block."""
    phrase: str
    form: str
    """What is looked for: words in lower case with one space between them."""
    kind: str
    reading: str


class Entry(NamedTuple):
    """What a found form means."""

    label: str | None
    """Class; None where it shows no object (a block)."""
    phrase: str
    """The phrase that it is a form of."""


@dataclass(frozen=True)
class Table:
    """Forms that a matcher looks for, indexed by their first word."""

    forms: dict[str, Entry]
    heads: dict[str, int]
    """First word of a form to the number of words of the longest form that begins with it."""

    @classmethod
    def of(cls, forms: dict[str, Entry]) -> "Table":
        """Index ``forms``: words with one space between them, at least one word each."""
        heads: dict[str, int] = {}
        for form in forms:
            head, n_words = form.partition(" ")[0], form.count(" ") + 1
            heads[head] = max(heads.get(head, 0), n_words)
        return cls(forms, heads)

    def extended(self, forms: dict[str, Entry]) -> "Table":
        """Return a table with further forms, which win over equal ones."""
        if not forms:
            return self
        more = Table.of(forms)
        heads = dict(self.heads)
        for head, n_words in more.heads.items():
            heads[head] = max(heads.get(head, 0), n_words)
        return Table(self.forms | more.forms, heads)


@dataclass(frozen=True)
class Lexicon:
    """All forms of one reading, and which class a name has."""

    reading: ReadingName
    sha256: str
    """SHA-256 of the file."""
    classes: frozenset[str]
    table: Table
    names: dict[str, str] = field(repr=False)
    """Every form that has a class to that class. "published" knows the forms of "strict" too: a name has the
    class that its words say, whether or not a matcher joins these words."""

    def class_of(self, name: str) -> str | None:
        """Return the class of a canonical name, None where it is no form of a class."""
        return self.names.get(" ".join(Prepared(name).words))


def read(path: Path, reading: ReadingName) -> Lexicon:
    """Read the table of word forms.

    Raises:
        RemeasureError: it is missing, or a line is wrong; names the line.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise RemeasureError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}); {_REMAKE}") from None
    return compile_rows(rows(text, path), reading, sha256_bytes(data))


def read_named(named: LexiconFile, reading: ReadingName) -> Lexicon:
    """Read the table of word forms that the settings mean.

    Raises:
        RemeasureError: as in ``read``, or it is another than the settings say.
    """
    path = SCRIPTS.parent / named.path
    found = read(path, reading)
    if found.sha256 != named.sha256:
        raise RemeasureError(
            f"{path}: SHA-256 is {found.sha256[:12]}…, the settings say {named.sha256[:12]}…; rerun from the "
            "workflow, or restore the file"
        )
    return found


_REMAKE = "make it again: scripts/write_lexicon.py"


def rows(text: str, path: Path) -> list[Row]:
    """Return the lines of the table, checked.

    Raises:
        RemeasureError: another header, a field that is not known, or a form that no caption can hold.
    """
    reader = csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    header = tuple(next(reader, ()))
    if header != COLUMNS:
        raise RemeasureError(
            f"{path} line 1: columns are {', '.join(header) or 'none'}, expected {', '.join(COLUMNS)}; "
            + _REMAKE
        )
    found = []
    for number, fields in enumerate(reader, start=2):
        row = Row(*fields) if len(fields) == len(COLUMNS) else None
        wrong = "has another number of fields" if row is None else _wrong_in(row)
        if wrong:
            raise RemeasureError(f"{path} line {number}: {wrong}; {_REMAKE}")
        found.append(row)
    return found


def _wrong_in(row: Row) -> str:
    if row.kind not in KINDS:
        return f"kind is {row.kind!r}, expected one of {', '.join(KINDS)}"
    if row.reading not in READINGS:
        return f"reading is {row.reading!r}, expected one of {', '.join(READINGS)}"
    if not row.form or " ".join(Prepared(row.form).words) != row.form:
        return f"form {row.form!r} is not words in lower case with one space between them"
    if bool(row.label) == (row.kind == "block"):
        return f"form {row.form!r}: a block has no class, everything else has one"
    return ""


def compile_rows(table: Iterable[Row], reading: ReadingName, sha256: str) -> Lexicon:
    """Return the lexicon of one reading.

    Raises:
        RemeasureError: a form stands for two different things in the same reading.
    """
    forms: dict[str, Entry] = {}
    names: dict[str, str] = {}
    for row in table:
        if row.label and (reading == "published" or row.reading != "published"):
            names.setdefault(row.form, row.label)
        if row.reading not in ("both", reading):
            continue
        entry = Entry(row.label or None, row.phrase)
        if forms.setdefault(row.form, entry).label != entry.label:
            raise RemeasureError(
                f"lexicon: form {row.form!r} stands for {forms[row.form].label or 'a block'} and for "
                f"{entry.label or 'a block'} in the reading {reading}; correct config/lexicons/coco.yaml"
            )
    return Lexicon(reading, sha256, frozenset(names.values()), Table.of(forms), names)
