"""The country archive: values read from untidy data, pages, the ZIM file."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest
import yaml

from remeasure import jsonl
from remeasure.corpora import factbook, factbook_html, values, zim_writer
from remeasure.corpora.settings import ArchiveSettings
from remeasure.errors import RemeasureError
from remeasure.records import Fact

CONFIG = Path(__file__).resolve().parents[2] / "config" / "corpora" / "factbook.yaml"
FLAG = b'<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"/>'


@pytest.fixture(scope="module")
def settings() -> ArchiveSettings:
    return msgspec.convert(yaml.safe_load(CONFIG.read_text("utf-8"))["archive"], ArchiveSettings)


def country_data(name: str, code: str, **more) -> dict:
    return {
        "Introduction": {"Background": {"text": "Settled <em>long</em> ago. <br><br>Later it grew."}},
        "Geography": {
            "Location": {"text": "Oceania, in the middle"},
            "Area": {"total ": {"text": "1,200 sq km"}},
            "Elevation": {"highest point": {"text": "Mount Test (Testberg) 1,024 m; note - snowy"}},
            "Coastline": {"text": "0 km (landlocked)"},
        },
        "Government": {
            "Country name": {
                "conventional long form": {"text": f"Republic of {name}; note - long"},
                "conventional short form": {"text": name},
            },
            "Capital": {"name": {"text": "Teststadt"}},
            "National anthem(s)": {"title": {"text": "&ldquo;La Chanson&rdquo; (The Song)"}},
        },
        "Communications": {"Internet country code": {"text": f".{code}"}},
        **more,
    }


def wheel(folder: Path, settings: ArchiveSettings, countries: dict[str, dict]) -> tuple[Path, Path]:
    """Write a data wheel with countries by Factbook code, and a flag wheel with a flag per internet code."""
    data, flags = folder / "data.whl", folder / "flags.whl"
    with zipfile.ZipFile(data, "w") as store:
        for code, country in countries.items():
            store.writestr(f"{settings.data}/oceania/{code}.json", json.dumps(country))
    with zipfile.ZipFile(flags, "w") as store:
        for country in countries.values():
            code = country["Communications"]["Internet country code"]["text"][1:]
            store.writestr(f"{settings.flags}/{code}.svg", FLAG)
    return data, flags


@pytest.fixture
def wheels(tmp_path, settings):
    russia = country_data("Russia", "ru")
    ivory = country_data("C&ocirc;te d'Ivoire", "ci")
    others = {"bm": country_data("Burma", "mm"), "tu": country_data("Turkey", "tr")}
    nameless = country_data("none", "xx")
    return wheel(tmp_path, settings, {"rs": russia, "iv": ivory, "zz": nameless} | others)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("C&ocirc;te d'Ivoire", "Côte d'Ivoire"),
        ("a<br><br>b", "a\nb"),
        ("<p>one&nbsp;two</p> (2011 est.)", "one two\n(2011 est.)"),
        ("Kurd<br><!--EndFragment", "Kurd"),
        ("a <em>b </em>c", "a b c"),
    ],
)
def test_visible_text_has_no_markup(text, visible):
    assert values.plain(text) == visible


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        ("name", "Tashkent (Toshkent)", "Tashkent"),
        ("name", "Porto-Novo (constitutional capital); Cotonou (seat of government)", None),
        ("name", "Gitega (political capital), Bujumbura (commercial capital)", None),
        ("place", "Tahat 2,908 m", "Tahat"),
        ("place", "Chimborazo 6,267", "Chimborazo"),
        ("place", "As Sarawat range, 3,000 m", "As Sarawat range"),
        ("place", "unnamed elevation 63 m; 3 km southeast of the town of Sabi", None),
        ("place", "8th tee, golf course, Villingi Island 5 m", None),
        ("quantity", "11,300 sq km", "11,300 sq km"),
        ("quantity", "26.49 births/1,000 population (2025 est.)", "26.49"),
        ("quantity", "$46.353 billion (2024 est.)", "$46.353 billion"),
        ("quantity", "0 km (landlocked)", None),
        ("quantity", "(2017 est.) 77.9", None),
        ("title", "“Het Wilhelmus” (The William)", "Het Wilhelmus"),
        ("title", '"Kalibusiswe" [Ndebele] "Simudzai" [Shona] (Blessed)', "Kalibusiswe"),
        ("date", "27 April 1961 (from the UK)", "27 April 1961"),
        ("date", "4 January 1948 (from the UK); 1 May 1950", None),
        ("date", "none (territory of the US)", None),
        ("day", "Independence Day, 27 April (1961)", "27 April"),
        ("day", "Independence Day, 5 July (1962); Revolution Day, 1 November", None),
        ("largest", "Muslim (official; mostly Sunni) 99%, other 1%", "Muslim"),
        ("largest", "Kuwaiti 30.4%, other Arab 27.4%, Asian 40.3%", None),
        ("largest", "Balanta 30%, Fulani 30%, Papel 7%", None),
        ("domain", ".dz", ".dz"),
        ("currency", "Algerian dinars (DZD)", "Algerian dinars"),
        ("currency", "togrog/tugriks (MNT)", None),
        ("things", "lion, elephant", "lion, elephant"),
        ("things", "goat (north), lion (south)", None),
        ("zone", "UTC+4.5 (9.5 hours ahead of Washington, DC)", "UTC+4.5"),
        ("prefix", "VP-M", "VP-M"),
    ],
)
def test_a_cell_is_read_as_one_answer_or_as_none(reader, text, value):
    reading = values.reader(reader)(text)
    assert (reading and reading.value) == value


def test_other_spellings_count_as_the_same_answer():
    assert values.read_name("Tashkent (Toshkent)").aliases == ("Toshkent",)
    assert values.read_title('"Kassaman" (We Pledge)').aliases == ("We Pledge",)
    assert {"11300 sq km", "11,300 square kilometers", "11,300"} <= set(
        values.read_quantity("11,300 sq km").aliases
    )
    assert "DZD" in values.read_currency("Algerian dinars (DZD)").aliases


def test_an_unknown_reader_is_named():
    with pytest.raises(RemeasureError, match="'nmae'"):
        values.reader("nmae")


def test_keys_with_spaces_years_and_alternatives_are_found():
    data = {
        "A": {"total ": {"text": "5"}},
        "B": {"B 2022": {"text": "old"}, "B 2023": {"text": "new"}, "note": "no"},
        "C": {"text": "none"},
    }
    assert factbook.lookup(data, "A > total") == "5"
    assert factbook.lookup(data, "B") == "new"
    assert factbook.lookup(data, "C") is None
    assert factbook.lookup(data, "X > y | A > total") == "5"


def test_long_text_ends_at_a_complete_statement():
    assert factbook.shorten("One two. Three four. Five six seven.", 22) == "One two. Three four."
    assert factbook.shorten("flat coast; high plateau; deserts", 27) == "flat coast; high plateau"
    assert factbook.shorten("short", 27) == "short"


def test_flags_follow_the_internet_code_and_not_the_factbook_code(wheels, settings):
    countries = factbook.read_countries(wheels[0], settings)
    assert [(country.name, country.code, country.flag) for country in countries] == [
        ("Burma", "bm", "mm"),
        ("Côte d'Ivoire", "iv", "ci"),
        ("Russia", "rs", "ru"),
        ("Turkey", "tu", "tr"),
    ]


def test_facts_hold_what_is_read_and_mark_what_is_not(wheels, settings):
    country = factbook.read_countries(wheels[0], settings)[1]
    facts = {fact.field: fact for fact in factbook.facts(country, settings)}
    assert facts["name"].aliases == ("Republic of Côte d'Ivoire",)
    assert facts["capital"].value == "Teststadt"
    assert facts["highest_point"].value == "Mount Test" and "Testberg" in facts["highest_point"].aliases
    assert facts["anthem"].value == "La Chanson"
    assert facts["coastline.text"].value == "0 km (landlocked)" and "coastline" not in facts
    assert {fact.page_id for fact in facts.values()} == {"cote-divoire"}


def test_two_builds_give_equal_bytes_that_pass_the_checksum(tmp_path, wheels, settings):
    from libzim.reader import Archive

    entries, _ = zim_writer.entries(*wheels, settings)
    for name in ("one.zim", "two.zim"):
        zim_writer.write_archive(
            tmp_path / name,
            entries,
            main="mainpage",
            language="eng",
            date="2025-01-01",
            metadata={"Title": "T"},
        )
    assert (tmp_path / "one.zim").read_bytes() == (tmp_path / "two.zim").read_bytes()
    archive = Archive(tmp_path / "one.zim")
    assert archive.check()
    assert archive.get_entry_by_path("Republic of Russia").is_redirect
    assert archive.get_entry_by_path("Ivory Coast").get_item().size < 1024
    assert bytes(archive.get_entry_by_path("flags/ci.svg").get_item().content) == FLAG
    assert archive.has_entry_by_path(settings.special.languages)


def test_other_content_gets_another_archive_id(tmp_path):
    ids = []
    for text in (b"<p>a</p>", b"<p>b</p>"):
        path = tmp_path / "x.zim"
        entry = zim_writer.Entry(path="a", title="a", content=text)
        zim_writer.write_archive(path, [entry], main="a", language="eng", date="2025-01-01", metadata={})
        ids.append(path.read_bytes()[8:24])
    assert ids[0] != ids[1]


def test_a_wheel_that_is_no_zip_is_one_line(tmp_path, settings):
    (tmp_path / "x.whl").write_bytes(b"no")
    with pytest.raises(RemeasureError, match="no readable wheel"):
        factbook.read_countries(tmp_path / "x.whl", settings)


def test_the_script_writes_archive_facts_and_record(tmp_path, wheels, settings):
    import write_factbook

    out = {name: tmp_path / name for name in ("a.zim", "facts.jsonl", "record.json")}
    options = ["--factbook", str(wheels[0]), "--flags", str(wheels[1])]
    options += ["--settings", msgspec.json.encode(settings).decode()]
    options += ["--archive-out", str(out["a.zim"]), "--facts-out", str(out["facts.jsonl"])]
    assert write_factbook.main([*options, "--record", str(out["record.json"])]) == 0
    record = jsonl.read_json(out["record.json"])
    assert record["counts"]["countries"] == 4
    assert len(list(jsonl.read(out["facts.jsonl"], Fact))) == record["counts"]["facts"]


def visible(page: bytes) -> str:
    body = re.sub(r"<(style|title)>.*?</\1>", "", page.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", values.plain(body))


@pytest.mark.models
def test_every_fact_stands_on_its_page(sources):
    from libzim.reader import Archive

    from remeasure import selection

    archive = Archive(sources / "factbook.zim")
    entries = selection.content_pages(sources / "factbook.zim")
    ids = selection.page_ids([path for path, _ in entries])
    texts = {
        page: visible(bytes(archive.get_entry_by_path(path).get_item().content))
        for page, (path, _) in zip(ids, entries, strict=True)
    }
    facts = list(jsonl.read(sources / "factbook.facts.jsonl", Fact))
    assert len({fact.page_id for fact in facts}) == 229
    absent = [
        f"{fact.page_id} {fact.field}"
        for fact in facts
        if fact.field != "flag" and fact.value not in texts[fact.page_id]
    ]
    assert not absent


@pytest.mark.models
@pytest.mark.browser
def test_what_is_asked_about_lies_in_the_first_tile(sources, settings):
    from playwright.sync_api import sync_playwright

    countries = factbook.read_countries(sources / "world-factbook.zip", settings)
    pages = {country.name: factbook_html.country_page(country, settings) for country in countries}
    fullest = sorted(pages, key=lambda name: -len(pages[name].split("<h2")[0]))[:12]
    bottom = "e => Math.max(...e.map(one => one.getBoundingClientRect().bottom))"
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 875, "height": 1024})
        bottoms = {}
        for name in fullest:
            page.set_content(pages[name])
            bottoms[name] = page.eval_on_selector_all("[id]:not(h2)", bottom)
        browser.close()
    assert all(value < 1024 for value in bottoms.values()), bottoms
