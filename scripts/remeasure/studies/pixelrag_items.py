"""Questions of the PixelRAG benches, made from facts that corpus pages state.

Each bench plays the role of the original: short facts from prose (nq) and tables (nqt), judged short answers
(sqa), multiple choice about a picture (livevqa), search-like questions with and without a picture (mms),
questions about a picture that nothing else identifies (evqa).
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Literal

import msgspec

from remeasure.errors import RemeasureError
from remeasure.pictures import PictureSettings
from remeasure.records import Fact, Item, Page, Record

NAME = "name"
"""Field of the fact that holds a page's names; ``<field>.text`` holds cells that are no short answer."""

Kind = Literal["direct", "reverse", "pictured", "choice"]
_PICTURED = ("pictured", "choice")


class BenchQuestions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Templates of one bench, by kind and field."""

    direct: dict[str, str] = {}
    reverse: dict[str, str] = {}
    pictured: dict[str, str] = {}
    choice: dict[str, str] = {}
    pictured_share: float | None = None
    """Share of items with a picture, where a bench has both kinds."""


class Questions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``config/studies/pixelrag_questions.yaml``."""

    salt: str
    n_options: int
    benches: dict[str, BenchQuestions]
    training: dict[str, str]
    pictures: PictureSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``build_items.py``: questions made from facts, ``n_items`` in all or ``items_per_page``."""

    question_set: str | None = None
    questions: Questions | None = None
    n_items: int | None = None
    items_per_page: int | None = None


class Candidate(Record, kw_only=True):
    """A question that could be asked; pictures are added when it is chosen."""

    item: Item
    kind: Kind
    field: str
    page_id: str


def normal(text: str) -> str:
    """Return letters and digits only, without accents, lower case, words parted by one space."""
    text = unicodedata.normalize("NFKD", text)
    text = "".join(letter for letter in text if not unicodedata.combining(letter)).lower()
    return " ".join(re.findall(r"[a-z0-9]+", text))


def leaks(answer: str, question: str) -> bool:
    """Return whether an answer stands in a question; longer answers also as part of a word."""
    short, where = normal(answer), normal(question)
    return bool(short) and (short in where if len(short) >= 4 else f" {short} " in f" {where} ")


def _hints(name: str, value: str) -> bool:
    """Return whether a value begins a word as the country's name does ("Mauritian rupees")."""
    stem = normal(name)[:5].strip()
    return f" {stem}" in f" {normal(value)}"


class FactBook:
    """All facts of an archive, by page and by field."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.by_page: dict[str, dict[str, Fact]] = {}
        self.by_field: dict[str, list[Fact]] = {}
        for fact in facts:
            self.by_page.setdefault(fact.page_id, {})[fact.field] = fact
            self.by_field.setdefault(fact.field, []).append(fact)
        self._words = {
            field: [
                (fact.page_id, f" {' | '.join(map(normal, (fact.value, *fact.aliases)))} ") for fact in found
            ]
            for field, found in self.by_field.items()
        }

    def only_here(self, fact: Fact) -> bool:
        """Return whether no other page of the archive has the value anywhere in its cell of that field."""
        value = f" {normal(fact.value)} "
        cells = self._words[fact.field] + self._words.get(f"{fact.field}.text", [])
        return bool(value.strip()) and not any(value in text for page, text in cells if page != fact.page_id)

    def names(self, page_id: str) -> tuple[str, ...]:
        """Return a page's names, best first."""
        fact = self.by_page[page_id].get(NAME)
        if fact is None:
            return ()
        return (fact.value, *fact.aliases)


def candidates(
    bench: str, templates: BenchQuestions, page: Page, book: FactBook, questions: Questions
) -> list[Candidate]:
    """Make every question of a bench about one page whose answer the question does not give away."""
    found = []
    for kind in ("direct", "reverse", "pictured", "choice"):
        for field, template in getattr(templates, kind).items():
            fact = book.by_page.get(page.page_id, {}).get(field)
            if fact is not None and (kind != "reverse" or book.only_here(fact)):
                item = _item(bench, kind, template, fact, book, questions)
                if item is not None:
                    found.append(Candidate(item=item, kind=kind, field=field, page_id=page.page_id))
    return found


def _item(
    bench: str, kind: Kind, template: str, fact: Fact, book: FactBook, questions: Questions
) -> Item | None:
    question = template.format(subject=fact.subject, value=fact.value)
    answers = book.names(fact.page_id) if kind == "reverse" else (fact.value, *fact.aliases)
    references = tuple(answer for answer in answers if not leaks(answer, question))
    if not answers or references[:1] != answers[:1] or (kind == "reverse" and _hints(answers[0], fact.value)):
        return None
    item_id = f"{bench}-{_digest(questions.salt, bench, kind, fact.page_id, fact.field)[:16]}"
    meta: dict = {"kind": kind, "field": fact.field}
    if kind == "choice":
        wrong = _wrong_options(fact, book, questions.n_options - 1, item_id)
        if wrong is None:
            return None
        meta |= {"answer": fact.value, "wrong": wrong}
    return Item(
        item_id=item_id,
        question=question,
        references=references,
        relevant=(fact.page_id,),
        group=fact.page_id,
        meta=meta,
    )


def _wrong_options(fact: Fact, book: FactBook, n: int, seed: str) -> list[str] | None:
    """Take values of the same field from other pages, none of which could pass as the right one."""
    taken = [normal(word) for word in (fact.value, *fact.aliases)]
    options: list[str] = []
    others = [other for other in book.by_field[fact.field] if other.page_id != fact.page_id]
    if (here := _number(fact.value)) is not None:
        # Numbers of the same size, otherwise a glance at the digits tells.
        others.sort(key=lambda other: (abs((_number(other.value) or here) - here), other.page_id))
        others = others[: 4 * n]
    for other in sorted(others, key=lambda other: _digest(seed, other.page_id)):
        words = [normal(word) for word in (other.value, *other.aliases)]
        if not any(word in known or known in word for word in words[:1] for known in taken) and not set(
            words
        ) & set(taken):
            options.append(other.value)
            taken += words[:1]
        if len(options) == n:
            return options
    return None


def _questions(settings: Settings) -> Questions:
    if settings.questions is None or settings.question_set is None:
        raise RemeasureError(
            "--settings: `questions` and `question_set` are missing; questions made from facts need them"
        )
    return settings.questions


def _number(text: str) -> float | None:
    """Return the number that a value begins with."""
    found = re.match(r"-?\d[\d,]*(?:\.\d+)?", text)
    return float(found[0].replace(",", "")) if found else None


def units(found: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield what is graded together: every question alone."""
    for item in found:
        yield (item,)


def needs_pictures(bench: str, settings: Settings) -> bool:
    """Return whether a bench has questions with a picture."""
    templates = _questions(settings).benches.get(bench)
    return templates is not None and bool(templates.pictured or templates.choice)


def choose(groups: Mapping[str, Sequence[Candidate]], schedule: Sequence[str], salt: str) -> list[Candidate]:
    """Choose one candidate per schedule entry: pages and fields evenly, otherwise by hash.

    The first k choices do not depend on how many follow.

    Args:
        groups: candidates of each group, such as with and without picture.
        schedule: group of each item to choose.
        salt: decides the order.

    Raises:
        RemeasureError: a group has fewer candidates than the schedule takes.
    """
    left = {
        name: sorted(found, key=lambda one: _digest(salt, one.item.item_id)) for name, found in groups.items()
    }
    pages: Counter[str] = Counter()
    fields: Counter[tuple[str, str]] = Counter()
    chosen: list[Candidate] = []
    for name in schedule:
        if not left.get(name):
            raise RemeasureError(
                f"only {len(chosen)} of {len(schedule)} questions can be made ({name}: "
                f"{len(groups.get(name, ()))} possible on these pages); ask for fewer or take more pages"
            )
        best = min(left[name], key=lambda one: (pages[one.page_id], fields[one.kind, one.field]))
        left[name].remove(best)
        pages[best.page_id] += 1
        fields[best.kind, best.field] += 1
        chosen.append(best)
    return chosen


def bench_items(
    bench: str,
    settings: Settings,
    pages: Sequence[Page],
    book: FactBook,
    pictured_pages: frozenset[str],
) -> list[Candidate]:
    """Choose the questions of one bench or training set, without their pictures.

    Args:
        bench: name of the bench, or of a training set.
        settings: how many, from which page set, with which templates.
        pages: all selected pages of the corpus.
        book: facts of the whole archive.
        pictured_pages: pages whose flag may be pictured.

    Raises:
        RemeasureError: unknown bench, no pages in the set, too few possible questions.
    """
    questions = _questions(settings)
    here = [page for page in pages if page.set == settings.question_set]
    if not here:
        sets = ", ".join(sorted({page.set for page in pages})) or "none"
        raise RemeasureError(
            f"{bench}: no page belongs to set {settings.question_set!r} (sets: {sets}); "
            "raise its number under `pages` of the corpus"
        )
    if settings.items_per_page is not None:
        return _training_items(bench, settings, here, book)
    if bench not in questions.benches or settings.n_items is None:
        raise RemeasureError(
            f"bench {bench!r} has no question templates ({', '.join(questions.benches)}) or no n_items; "
            "add it to config/studies/pixelrag_questions.yaml"
        )
    templates = questions.benches[bench]
    groups: dict[str, list[Candidate]] = {"picture": [], "text": []}
    for page in here:
        for one in candidates(bench, templates, page, book, questions):
            if one.kind not in _PICTURED:
                groups["text"].append(one)
            elif page.page_id in pictured_pages:
                groups["picture"].append(one)
    chosen = choose(groups, _schedule(templates, settings.n_items), questions.salt)
    return _lettered(chosen, questions)


def _schedule(templates: BenchQuestions, n_items: int) -> list[str]:
    """Spread the items with a picture evenly over the list."""
    has_picture = bool(templates.pictured or templates.choice)
    share = templates.pictured_share if templates.pictured_share is not None else float(has_picture)
    due = [int(count * share + 1e-9) for count in range(n_items + 1)]  # 0.57 * 100 is a little less than 57
    return ["picture" if due[i + 1] > due[i] else "text" for i in range(n_items)]


def _training_items(bench: str, settings: Settings, pages: Sequence[Page], book: FactBook) -> list[Candidate]:
    questions = _questions(settings)
    templates = BenchQuestions(direct=questions.training)
    found: list[Candidate] = []
    for page in pages:
        possible = candidates(bench, templates, page, book, questions)
        count = min(settings.items_per_page or 0, len(possible))
        found += choose({"text": possible}, ["text"] * count, questions.salt)
    return found


def _lettered(chosen: Sequence[Candidate], questions: Questions) -> list[Candidate]:
    """Put options in order: every letter is right equally often, in an order that cannot be guessed."""
    letters = ascii_uppercase[: questions.n_options]
    done = []
    for number, one in enumerate(chosen):
        if one.kind == "choice":
            block, place = divmod(number, len(letters))
            order = sorted(letters, key=lambda letter: _digest(questions.salt, "letter", str(block), letter))
            letter = order[place]
            options = list(one.item.meta["wrong"])
            options.insert(letters.index(letter), one.item.meta["answer"])
            meta = {key: value for key, value in one.item.meta.items() if key != "wrong"}
            item = msgspec.structs.replace(
                one.item, references=(letter,), meta=meta | {"options": options, "letter": letter}
            )
            one = msgspec.structs.replace(one, item=item)
        done.append(one)
    return done


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()
