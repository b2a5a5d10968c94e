"""Questions of the six benches: answerable, unambiguous, and never giving the answer away."""

import io
import re
import zipfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

from remeasure import jsonl, pictures, selection
from remeasure.errors import RemeasureError
from remeasure.records import Fact, Item, Page
from remeasure.studies import pixelrag_items
from remeasure.studies.pixelrag_items import BenchQuestions, FactBook, Questions, Settings

CONFIG = Path(__file__).resolve().parents[2] / "config"
BENCHES = ("nq", "nqt", "sqa", "livevqa", "mms", "evqa")


@pytest.fixture(scope="module")
def questions() -> Questions:
    text = (CONFIG / "studies" / "pixelrag_questions.yaml").read_text("utf-8")
    return msgspec.convert(yaml.safe_load(text), Questions)


def fact(page: str, field: str, value: str, *aliases: str) -> Fact:
    return Fact(
        page_id=page, subject=page.title(), field=field, value=value, aliases=aliases, where="infobox"
    )


def small_book() -> FactBook:
    facts = []
    for number, page in enumerate(("kenya", "chile", "japan", "italy", "nepal", "malta", "ghana")):
        facts += [
            fact(page, "name", page.title(), f"Republic of {page.title()}"),
            fact(page, "capital", f"Stadt{'abcdefg'[number]}"),
            fact(page, "symbol", "lion" if page in ("kenya", "chile") else f"thing{number}"),
        ]
    return FactBook([*facts, fact("oman", "symbol.text", "thing6 and a sword")])


PAGES = [Page(page_id=page, path=page, title=page, set="test") for page in ("kenya", "chile", "japan")]


def ask(questions: Questions, bench: str, n_items: int, templates: BenchQuestions) -> list[Item]:
    questions = msgspec.structs.replace(questions, benches={bench: templates})
    settings = Settings(question_set="test", questions=questions, n_items=n_items)
    pages = frozenset(page.page_id for page in PAGES)
    return [one.item for one in pixelrag_items.bench_items(bench, settings, PAGES, small_book(), pages)]


def test_answers_are_compared_without_case_accents_and_marks():
    assert pixelrag_items.normal("“Brasília”, D.C.") == "brasilia d c"
    assert pixelrag_items.leaks("Panama City", "What is in Panama city?")
    assert pixelrag_items.leaks("Kenya", "Who pays with Kenyan shillings?")
    assert not pixelrag_items.leaks("18", "What is 180?")


def test_a_reversed_question_needs_a_value_that_only_one_page_has(questions):
    templates = BenchQuestions(reverse={"symbol": "Which country has {value}?"})
    found = ask(questions, "mms", 1, templates)
    assert found[0].question == "Which country has thing2?" and found[0].references[0] == "Japan"
    with pytest.raises(RemeasureError, match="only 1 of 2 questions"):
        ask(questions, "mms", 2, templates)


def test_a_value_inside_another_pages_unread_cell_is_not_the_only_one():
    book = small_book()
    assert not book.only_here(book.by_page["ghana"]["symbol"])
    assert book.only_here(book.by_page["malta"]["symbol"])


def test_a_question_that_holds_its_answer_is_not_asked(questions):
    templates = BenchQuestions(direct={"capital": "Is Stadta the capital of {subject}?"})
    assert {item.group for item in ask(questions, "nq", 2, templates)} == {"chile", "japan"}


def test_items_are_spread_over_pages_and_fields(questions):
    templates = BenchQuestions(direct={"capital": "Capital of {subject}?", "symbol": "Sign of {subject}?"})
    found = ask(questions, "nq", 6, templates)
    assert Counter(item.group for item in found[:3]) == Counter(["kenya", "chile", "japan"])
    assert len({item.item_id for item in found}) == 6


def test_fewer_items_are_the_first_of_more(questions):
    templates = BenchQuestions(direct={"capital": "Capital of {subject}?", "symbol": "Sign of {subject}?"})
    assert ask(questions, "nq", 6, templates)[:2] == ask(questions, "nq", 2, templates)


def test_an_item_id_is_made_from_what_is_asked_and_not_from_its_place(questions):
    both = BenchQuestions(direct={"capital": "Capital of {subject}?", "symbol": "Sign of {subject}?"})
    one = BenchQuestions(direct={"symbol": "Sign of {subject}?"})
    assert {item.item_id for item in ask(questions, "nq", 3, one)} < {
        item.item_id for item in ask(questions, "nq", 6, both)
    }


def test_a_choice_has_one_right_option_and_every_letter_in_turn(questions):
    templates = BenchQuestions(choice={"capital": "Capital?", "symbol": "Sign?"})
    found = ask(questions, "livevqa", 5, templates)
    assert sorted(item.references[0] for item in found) == ["A", "B", "C", "D", "E"]
    for item in found:
        options, letter = item.meta["options"], item.meta["letter"]
        assert len(set(options)) == 5 and options["ABCDE".index(letter)] == item.meta["answer"]


def test_pictures_are_spread_by_share(questions):
    templates = BenchQuestions(pictured={"x": ""}, reverse={"x": ""}, pictured_share=0.57)
    schedule = pixelrag_items._schedule(templates, 100)
    assert schedule.count("picture") == 57
    assert 10 < schedule[:20].count("picture") < 13


def test_a_set_without_pages_is_one_line(questions):
    settings = Settings(question_set="tuning", questions=questions, n_items=1)
    with pytest.raises(RemeasureError, match=r"no page belongs to set 'tuning' \(sets: test\)"):
        pixelrag_items.bench_items("nq", settings, PAGES, small_book(), frozenset())


def test_a_bench_without_templates_is_one_line(questions):
    settings = Settings(question_set="test", questions=questions, n_items=1)
    with pytest.raises(RemeasureError, match="bench 'nqx' has no question templates"):
        pixelrag_items.bench_items("nqx", settings, PAGES, small_book(), frozenset())


# -- on the real facts -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(sources, questions):
    """Facts, flags that may be pictured, and a function that asks one bench or training set."""
    book = FactBook(jsonl.read(sources / "factbook.facts.jsonl", Fact))
    parts = msgspec.convert(
        yaml.safe_load((CONFIG / "corpora" / "factbook.yaml").read_text("utf-8"))["selection"],
        selection.Selection,
    )
    entries = selection.content_pages(sources / "factbook.zim")
    with zipfile.ZipFile(sources / "factbook.pictures.zip") as store:
        flags = {Path(name).stem: store.read(name) for name in store.namelist()}
    alike = pictures.too_alike(flags, questions.pictures.alike_below)
    usable = frozenset(set(flags) - set(alike) - set(questions.pictures.skip))

    def ask_for(name: str, pages: dict[str, int], n_items: int | None = None):
        chosen = selection.select(entries, selection.Settings(pages=pages, selection=parts))
        page_set = name if name in ("train", "dev") else "test"
        settings = Settings(
            question_set=page_set, questions=questions, n_items=n_items, items_per_page=None if n_items else 4
        )
        return pixelrag_items.bench_items(name, settings, chosen, book, usable)

    return book, flags, ask_for


DEFAULT = {"test": 40, "train": 20, "dev": 8, "tuning": 0}


@pytest.mark.models
@pytest.mark.parametrize("bench", BENCHES)
def test_every_bench_can_be_asked_in_all_sizes(real, bench):
    _, _, ask_for = real
    assert len(ask_for(bench, DEFAULT, 60)) == 60
    assert len(ask_for(bench, {"test": 6}, 4)) == 4
    assert len(ask_for(bench, {"test": 6} | {"train": 4}, 12)) == 12


@pytest.mark.models
@pytest.mark.parametrize("bench", BENCHES)
def test_no_question_gives_its_answer_away(real, bench):
    book, _, ask_for = real
    for one in ask_for(bench, DEFAULT, 60):
        item = one.item
        answers = item.references if one.kind != "choice" else (item.meta["answer"],)
        assert answers and not any(pixelrag_items.leaks(answer, item.question) for answer in answers), item
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item.item_id) and item.relevant == (one.page_id,)
        if one.kind in ("pictured", "choice"):
            assert not any(pixelrag_items.leaks(name, item.question) for name in book.names(one.page_id)), (
                item
            )


@pytest.mark.models
def test_reversed_questions_have_one_answer_in_the_whole_archive(real):
    book, _, ask_for = real
    reversed_ = [one for one in ask_for("mms", DEFAULT, 60) if one.kind == "reverse"]
    assert len(reversed_) > 20
    for one in reversed_:
        value = pixelrag_items.normal(book.by_page[one.page_id][one.field].value)
        holders = [
            other.page_id
            for other in book.by_field[one.field]
            if value in map(pixelrag_items.normal, (other.value, *other.aliases))
        ]
        assert holders == [one.page_id]


@pytest.mark.models
def test_the_sets_share_no_page(real):
    _, _, ask_for = real
    groups = {
        "test": {one.page_id for bench in BENCHES for one in ask_for(bench, DEFAULT, 60)},
        "train": {one.page_id for one in ask_for("train", DEFAULT)},
        "dev": {one.page_id for one in ask_for("dev", DEFAULT)},
    }
    assert len(groups["train"]) == 20 and len(groups["dev"]) == 8
    assert not groups["test"] & groups["train"] and not (groups["test"] | groups["train"]) & groups["dev"]


@pytest.mark.models
def test_wrong_options_are_really_wrong(real):
    book, _, ask_for = real
    for one in ask_for("livevqa", DEFAULT, 60):
        right = book.by_page[one.page_id][one.field]
        accepted = set(map(pixelrag_items.normal, (right.value, *right.aliases)))
        options = [pixelrag_items.normal(option) for option in one.item.meta["options"]]
        assert len(set(options)) == 5 and len(accepted & set(options)) == 1, one.item


@pytest.mark.models
def test_letters_are_balanced(real):
    _, _, ask_for = real
    assert set(Counter(one.item.meta["letter"] for one in ask_for("livevqa", DEFAULT, 20)).values()) == {4}


@pytest.mark.models
@pytest.mark.slow
def test_no_answer_can_be_read_in_a_query_picture(real, questions):
    from rapidocr import RapidOCR

    book, flags, ask_for = real
    engine = RapidOCR(params={"Global.log_level": "critical", "Global.use_cls": False})
    for bench in ("livevqa", "mms", "evqa"):
        for one in ask_for(bench, DEFAULT, 20):
            if one.kind not in ("pictured", "choice"):
                continue
            flag = pictures.load_picture(flags[one.page_id], one.page_id)
            shot = pictures.photograph(flag, one.item.item_id, questions.pictures)
            read = " ".join(engine(shot).txts or ())
            answers = {*book.names(one.page_id), *one.item.references, str(one.item.meta.get("answer", ""))}
            if one.kind == "choice":
                answers -= set(one.item.references)
            assert not any(pixelrag_items.leaks(answer, read) for answer in answers), (one.page_id, read)


@pytest.mark.models
def test_the_script_writes_questions_with_checked_pictures(tmp_path, sources, questions, monkeypatch):
    from PIL import Image

    import build_items
    from remeasure import items

    monkeypatch.chdir(tmp_path)
    pages = [
        Page(page_id=page, path=page.title(), title=page, set="test") for page in ("kenya", "japan", "peru")
    ]
    jsonl.write(Path("pages.jsonl"), pages)
    settings = Settings(question_set="test", questions=questions, n_items=4)
    options = ["--study", "pixelrag", "--bench", "evqa", "--settings", msgspec.json.encode(settings).decode()]
    options += ["--pages", "pages.jsonl", "--facts", str(sources / "factbook.facts.jsonl")]
    options += ["--pictures", str(sources / "factbook.pictures.zip"), "--out", "items.jsonl"]
    assert build_items.main([*options, "--images-out", "images.zip", "--record", "items.json"]) == 0
    found = list(items.read(Path("items.jsonl"), check_images=True))
    assert len(found) == 4 and {image.path for item in found for image in item.images} == {"images.zip"}
    with zipfile.ZipFile("images.zip") as store:
        assert all(re.fullmatch(r"[0-9a-f]{64}\.jpg", name) for name in store.namelist())
        assert Image.open(io.BytesIO(store.read(store.namelist()[0]))).size == (480, 400)
    first = Path("items.jsonl").read_bytes(), Path("images.zip").read_bytes()
    assert build_items.main([*options, "--images-out", "images.zip", "--record", "items.json"]) == 0
    assert first == (Path("items.jsonl").read_bytes(), Path("images.zip").read_bytes())
