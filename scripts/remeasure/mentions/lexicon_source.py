"""From the reviewed word lists to the table of forms: plurals, prefixed animals, which reading has what."""

from collections.abc import Callable, Iterator
from pathlib import Path

from remeasure.errors import RemeasureError
from remeasure.mentions.lexicon import COLUMNS, Row
from remeasure.yaml_files import Settings, convert, read_yaml

Pluraliser = Callable[[str], set[str]]


class Prefixed(Settings):
    """Words that, before a phrase of a class, are no object of their own."""

    words: list[str]
    classes: list[str]


class Published(Settings):
    """What only the reading "published" has."""

    compounds: list[str]
    synonyms: dict[str, list[str]]
    prefixed: list[str]
    redirects: list[str]
    blocks: list[str]


class Source(Settings):
    """The reviewed word lists, ``config/lexicons/coco.yaml``."""

    classes: dict[str, list[str]]
    redirects: dict[str, list[str]]
    prefixed: Prefixed
    blocks: list[str]
    plurals: dict[str, list[str]]
    published: Published


def read(path: Path) -> Source:
    """Read the word lists.

    Raises:
        RemeasureError: they are missing or not as described; a class that is not among ``classes``.
    """
    source = convert(read_yaml(path), Source, path)
    named = [*source.redirects, *source.prefixed.classes, *source.published.synonyms]
    unknown = sorted({name for name in named if name not in source.classes})
    if unknown:
        raise RemeasureError(f"{path}: {', '.join(unknown)} not among `classes`; correct the name")
    return source


def both_packages() -> Pluraliser:
    """Return the union of what inflect and lemminflect say.

    Source:
        TOSC card, section 4.3. They disagree on some words, for which ``plurals`` in the word lists decides.
    """
    import inflect
    from lemminflect import getInflection

    engine = inflect.engine()
    return lambda word: {engine.plural_noun(word), *getInflection(word, "NNS")}


def rows(source: Source, plurals_of: Pluraliser) -> list[Row]:
    """Return the lines of the table, in the order of the word lists: a phrase, then its plurals."""
    found: dict[tuple[str, str, str], Row] = {}
    for label, phrase, kind, reading in _phrases(source):
        for form in (phrase, *_plurals(phrase, source.plurals, plurals_of)):
            of_kind = "plural" if kind == "synonym" and form != phrase else kind
            found.setdefault((label, form, reading), Row(label, phrase, form, of_kind, reading))
    return list(found.values())


def _plurals(phrase: str, decided: dict[str, list[str]], plurals_of: Pluraliser) -> list[str]:
    start, _, last = phrase.rpartition(" ")
    words = decided[last] if last in decided else sorted(plurals_of(last) - {last})
    return [f"{start} {word}".lstrip() for word in words]


def _phrases(source: Source) -> Iterator[tuple[str, str, str, str]]:
    """Yield class, phrase, kind and reading."""
    more = source.published
    joined = {*source.classes, *more.compounds}
    for label, others in source.classes.items():
        for phrase in (label, *others):
            yield label, phrase, "synonym", "both" if " " not in phrase or phrase in joined else "strict"
        for phrase in more.synonyms.get(label, ()):
            yield label, phrase, "synonym", "published"
    for label, phrases in source.redirects.items():
        for phrase in phrases:
            yield label, phrase, "redirect", "both" if phrase in more.redirects else "strict"
    for label in source.prefixed.classes:
        for phrase in (label, *source.classes[label]):
            everywhere = "both" if phrase in more.prefixed else "strict"
            for word in source.prefixed.words:
                yield label, f"{word} {phrase}", "redirect", everywhere
    for phrase in source.blocks:
        yield "", phrase, "block", "both" if phrase in more.blocks else "strict"
    for phrase in more.blocks:
        if phrase not in source.blocks:
            yield "", phrase, "block", "published"


def render(table: list[Row]) -> str:
    """Return the table as the text of its file: tabs, Unix line ends."""
    return "".join("\t".join(line) + "\n" for line in (COLUMNS, *table))
