"""Composed cases: what they are about, what they say and show, their tables. The book is the real one."""

import io
import json
import re

import pytest
from PIL import Image

import compose_cases
import composedkit
from remeasure.cases import settings, wording
from remeasure.cases.case import Case, Finding, Picture
from remeasure.cases.choosing import Chooser
from remeasure.cases.naming import GENERIC, aliases, answer_words, gives_away, is_plain
from remeasure.cases.panels import Painter
from remeasure.errors import RemeasureError
from remeasure.phenotypes.phrases import words_of
from remeasure.phenotypes.records import Disease

pytestmark = pytest.mark.models
SETS = ("composed-cases", "composed-cases-tuning")
TRACKS = ("diagnosis", "evidence")


def case() -> Case:
    """A case by hand: two pictures of the disease, one that has nothing to do with it."""
    fever = Finding("HP:0001945", "Fever", "Fever", True)
    ribs = Finding("HP:0000773", "Short ribs", "Short rib", True)
    foreign = Finding("HP:0000518", "Cataract", "Cataract", False)
    disease = Disease(id="ORPHA:9", name="Nine-Ten disease", phenotypes={})
    shown = (Picture("laboratory", (fever,)), Picture("eye", (foreign,)), Picture("skeleton", (ribs,)))
    return Case(disease, 8, "male", ("Short stature", "EMG abnormality"), shown)


def kinds() -> dict[str, settings.Kind]:
    return settings.read(composedkit.given()).kinds


# -- words ---------------------------------------------------------------------------------------------------


def test_a_case_is_told_without_its_diagnosis_in_the_first_track_and_with_it_in_the_second():
    told = "An 8-year-old boy is seen for short stature and EMG abnormality. Three examinations followed."
    assert wording.patient(case()) == told
    assert wording.context_evidence(case()) == (
        f"Established diagnosis: Nine-Ten disease. {told}\n\nImages: Image 1; Image 2; Image 3"
    )


def test_evidence_points_say_what_images_are_and_show_then_what_goes_together_and_fits():
    found = wording.points(case(), kinds(), "seed")
    assert [(p["image"], p["point"], p["credit"], p["category"]) for p in found] == [
        ("Image 1", "it is a laboratory report", "required", "Abstract modality"),
        ("Image 1", "fever", "required", "Laboratory value"),
        ("Image 3", "it is a skeletal survey", "required", "Abstract modality"),
        ("Image 3", "short rib", "required", "Macroscopic pattern"),
        (
            *("Image 1, Image 3", "fever (Image 1) and short rib (Image 3) occur together"),
            *("required", "Cross-Image Integration"),
        ),
        ("", "fever and short rib fit Nine-Ten disease", "required", "Diagnostic Attribution"),
    ]
    assert wording.image_ids(case()) == ([1, 3], [])
    assert wording.task_type(case()) == "image_selection"


def test_the_rationale_and_the_findings_say_the_same_in_words():
    assert wording.rationale(case(), kinds()) == (
        "Image 1, a laboratory report, shows fever. Image 2, an eye examination, shows cataract. Image 3, a "
        "skeletal survey, shows short rib. In Nine-Ten disease, fever and short rib are known to occur."
    )
    assert wording.findings_blocks(case(), kinds(), True)[2] == {
        "markdown": "### Skeletal survey\n- Short ribs"
    }
    assert wording.findings_blocks(case(), kinds(), False)[2] == {
        "title": "Skeletal survey",
        "body": "- Short ribs",
    }


def test_other_spellings_of_a_name():
    assert aliases("Nine-Ten disease type 2") == ["Nine Ten disease type 2", "Nine Ten disease type II"]
    assert aliases("Caffey disease") == []


@pytest.mark.parametrize(
    ("text", "names", "away"),
    [
        ("short ribs", ["Short rib syndrome"], ["short"]),  # rib has three letters
        ("a disease of unknown type", ["Nine disease type 2"], []),
        ("craniofacial asymmetry", ["Craniosynostosis"], ["craniofacial"]),  # begin alike, five letters
        ("deafness", ["Deaf dog disease"], ["deafness"]),  # one is the beginning of the other
        ("anemia", ["Fanconi"], []),
    ],
)
def test_words_that_would_give_an_answer_away(text, names, away):
    assert gives_away(text, answer_words(names)) == away


def test_names_that_resemble_others_or_have_a_full_stop_are_not_asked_for():
    names = [frozenset(words_of(n)) for n in ("Nine disease type 1", "Nine disease type 2", "Tenth syndrome")]
    assert not is_plain("Nine disease type 1", names)
    assert is_plain("Tenth syndrome", names)
    assert not is_plain("St. Jude variant", [frozenset(words_of("St. Jude variant"))])
    assert not is_plain("Rare disease", [frozenset(words_of("Rare disease"))])


# -- the real tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_the_tables_have_the_published_columns_and_48_rows_each(name):
    diagnosis, evidence = (composedkit.rows(name, track) for track in TRACKS)
    assert (len(diagnosis), len(evidence)) == (48, 48)
    # Card, section 2: nine columns and fourteen.
    assert set(diagnosis[0]) == {
        *("index", "question", "context", "image findings", "answer", "answer_aliases", "figure_mapping"),
        *("image", "image_path"),
    }
    assert len(evidence[0]) == 14
    assert len({row["index"] for row in (*diagnosis, *evidence)}) == 96
    for row in diagnosis:
        assert len(json.loads(row["image findings"])) == len(json.loads(row["image"])) in (2, 3)
        assert json.loads(row["answer_aliases"]) == aliases(row["answer"])


@pytest.mark.parametrize("name", SETS)
def test_the_evidence_table_passes_the_checks_of_the_card(name):
    """Card, section 2.3: points, ids, slots, the sentence of the diagnosis and what its cut leaves."""
    rows = composedkit.rows(name, "evidence")
    for row in rows:
        n = len(json.loads(row["image"]))
        points = json.loads(row["acceptable_evidence_points"])
        assert any(point["credit"] == "required" for point in points)
        assert (
            1 <= min(json.loads(row["decisive_image_ids"]))
            and max(json.loads(row["decisive_image_ids"])) <= n
        )
        assert [slot["public_slot"] for slot in json.loads(row["image_slot_map"])] == [
            f"Image {number}" for number in range(1, n + 1)
        ]
        first, _, rest = row["context"].partition(". ")
        assert first == f"Established diagnosis: {row['final_diagnosis']}"
        assert row["final_diagnosis"].lower() not in rest.lower()
    # A run takes the first forty: all six buckets (card, section 7), both credits, pictures to be left out.
    points = [p for row in rows[:40] for p in json.loads(row["acceptable_evidence_points"])]
    assert {point["category"] for point in points} == {
        *("Abstract modality", "Macroscopic pattern", "Region or Field", "Microstructural pattern"),
        *("Laboratory value", "Cross-Image Integration", "Diagnostic Attribution"),
    }
    assert {point["credit"] for point in points} == {"required", "optional"}
    assert {row["task_type"] for row in rows[:40]} >= {"image_selection", "image_pair"}


@pytest.mark.parametrize("name", SETS)
def test_no_word_of_the_answer_stands_in_what_the_text_condition_is_shown(name):
    """Nor in the findings, nor in a picture; in the second track nor in the text without the diagnosis."""
    composer = composedkit.composer(name)
    for track in TRACKS:
        for case, row in zip(getattr(composer, track), composedkit.rows(name, track), strict=True):
            answer = row.get("answer") or row["final_diagnosis"]
            assert answer == case.disease.name
            if track == "diagnosis":
                shown = composedkit.diagnosis_text(row, "text")
                names = [answer, *json.loads(row["answer_aliases"])]
                pictures = row["image findings"]
            else:
                shown, names = composedkit.evidence_text(row, with_diagnosis=False), [answer]
                pictures = " ".join(finding.label for p in case.pictures for finding in p.findings)
            titles = [composedkit.composer(name)._settings.kinds[p.kind] for p in case.pictures]
            texts = " ".join([shown, pictures, *(f"{k.title} {' '.join(k.normal)}" for k in titles)])
            # Written out here and not taken from the module: whole words of four letters and more.
            words = {w for n in names for w in re.findall("[a-z0-9]{4,}", n.lower())} - GENERIC
            assert words and not words & set(re.findall("[a-z0-9]+", texts.lower())), row["index"]


def test_the_words_that_are_not_counted_say_nothing_about_a_disease():
    assert {"disease", "syndrome", "type"} <= GENERIC
    assert not GENERIC & {"skin", "bone", "muscle", "anemia", "fever", "deafness", "dysplasia", "short"}


def test_what_is_tuned_on_and_what_is_reported_have_no_disease_in_common():
    sets = [
        {case.disease.id for case in (*composer.diagnosis, *composer.evidence)}
        for composer in map(composedkit.composer, SETS)
    ]
    assert [len(found) for found in sets] == [96, 96] and not sets[0] & sets[1]


def test_what_belongs_to_a_disease_is_frequent_there_and_what_does_not_is_unknown_of_it():
    known, n_foreign = composedkit.knowledge(), 0
    for case in (*composedkit.composer().diagnosis, *composedkit.composer().evidence):
        often = {
            t
            for name in ("obligate", "very_frequent", "frequent")
            for t in case.disease.phenotypes.get(name, [])
        }
        for finding in (finding for picture in case.pictures for finding in picture.findings):
            n_foreign += not finding.belongs
            if finding.belongs:
                assert finding.term in often
            else:
                assert not known.shares(case.disease, finding.term)
            term = known.terms[finding.term]
            assert {finding.label, finding.called} <= {term.label, *term.synonyms}
    assert n_foreign >= 30


def test_pictures_are_whole_small_and_of_the_size_that_is_set():
    total = 0
    for track in TRACKS:
        for row in composedkit.rows("composed-cases", track):
            for data in composedkit.pictures(row):
                image = Image.open(io.BytesIO(data))
                image.load()
                assert (image.format, image.size) == ("PNG", (480, 270))
                total += len(data)
    assert total < 3_000_000


def test_the_same_settings_give_the_same_bytes_and_another_seed_others(tmp_path):
    words = ["--phenotypes", str(composedkit.BOOK)]
    made = []
    for folder, seed in (("a", "x"), ("b", "x"), ("c", "y")):
        given = composedkit.given(seed=seed, n_diagnosis=3, n_evidence=3)
        paths = [tmp_path / folder / name for name in ("diagnosis.tsv", "evidence.tsv", "record.json")]
        options = ["--diagnosis-out", "--evidence-out", "--record"]
        outs = [word for pair in zip(options, map(str, paths), strict=True) for word in pair]
        assert compose_cases.main([*words, "--settings", given, *outs]) == 0
        made.append([path.read_bytes() for path in paths[:2]])
    assert made[0] == made[1] and made[0][0] != made[2][0]
    record = json.loads((tmp_path / "a" / "record.json").read_text())
    assert (record["counts"]["diagnosis"], record["counts"]["evidence"]) == (3, 3)
    assert "Orphanet" in record["facts"]["attribution"]


def test_fewer_cases_are_the_beginning_of_more():
    wanted = settings.read(composedkit.given())
    chooser = Chooser(composedkit.knowledge(), wanted)
    assert chooser.cases(5) == chooser.cases(20)[:5]


# -- settings ------------------------------------------------------------------------------------------------

WRONG = [
    ({"seed": None}, "seed"),
    ({"half": 2}, "half"),
    ({"images": [3, 2]}, "images: 3 is more than 2"),
    ({"told_shares": {"least": 0.5, "most": 0.1}}, "told_shares: 0.5 is more than 0.1"),
    ({"colour": "red"}, "colour"),
    ({"kinds": {}}, "kinds: 0, more than `images` allows for are needed"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_settings_that_are_wrong_are_one_line(changes, said):
    with pytest.raises(RemeasureError, match=said) as found:
        settings.read(composedkit.given(**changes))
    assert "\n" not in str(found.value) and "config/cases.yaml" in str(found.value)


def test_a_term_that_there_is_not_and_too_many_cases_are_one_line():
    with pytest.raises(RemeasureError, match="HP:9999999 is no phenotype"):
        Chooser(composedkit.knowledge(), settings.read(composedkit.given(never=["HP:9999999"])))
    narrow = {"least": 0.0, "most": 0.0001}
    chooser = Chooser(composedkit.knowledge(), settings.read(composedkit.given(told_shares=narrow)))
    with pytest.raises(RemeasureError, match="only 0 of 2 cases can be made"):
        chooser.cases(2)


def test_a_label_that_does_not_fit_is_one_line():
    wanted = settings.read(composedkit.given(size_px=[200, 270]))
    long = Finding("HP:0000773", "A label that is by far too long for it", "", True)
    with pytest.raises(RemeasureError, match="does not fit into"):
        Painter(wanted, lambda label: None).png(Picture("skeleton", (long,)), "seed")
