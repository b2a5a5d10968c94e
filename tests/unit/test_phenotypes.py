"""Reading the ontology and its annotations, what follows from them, and finding phenotypes in words."""

import json
import math

import pytest

import write_phenotypes
from remeasure.errors import RemeasureError
from remeasure.phenotypes import records, sources
from remeasure.phenotypes.knowledge import Knowledge
from remeasure.phenotypes.phrases import Phrases, edit_distance

# Eight terms, by hand: the root of phenotypes below "All", three systems, four below them.
ONTOLOGY = """format-version: 1.2
data-version: hp/releases/2025-01-16

[Term]
id: HP:0000001
name: All

[Term]
id: HP:0000118
name: Phenotypic abnormality
is_a: HP:0000001 ! All

[Term]
id: HP:0000005
name: Mode of inheritance
is_a: HP:0000001 ! All

[Term]
id: HP:0000924
name: Abnormality of the skeletal system
is_a: HP:0000118

[Term]
id: HP:0000772
name: Abnormal rib morphology
synonym: "Abnormality of the ribs" EXACT []
synonym: "Rib abnormalities" EXACT layperson [https://orcid.org/0000-0000-0000-0000]
synonym: "Costal things" RELATED []
is_a: HP:0000924

[Term]
id: HP:0000773
name: Short ribs
alt_id: HP:0006644
synonym: "Short \\"small\\" rib" EXACT []
synonym: "SR" EXACT abbreviation []
is_a: HP:0000772

[Term]
id: HP:0001945
name: Fever
is_a: HP:0000118

[Term]
id: HP:0009999
name: obsolete Old
is_obsolete: true

[Typedef]
id: part_of
name: part of
"""
COLUMNS = (
    "database_id disease_name qualifier hpo_id reference evidence onset frequency sex modifier aspect by"
)
ROWS = [
    ("ORPHA:9", "Nine disease", "", "HP:0000773", "HP:0040281", "P"),
    ("ORPHA:10", "Ten syndrome", "", "HP:0006644", "HP:0040283", "P"),  # the former id of short ribs
    ("ORPHA:10", "Ten syndrome", "", "HP:0001945", "HP:0040282", "P"),
    ("ORPHA:10", "Ten syndrome", "NOT", "HP:0000772", "", "P"),
    ("ORPHA:11", "Eleven disease", "", "HP:0001945", "HP:0040280", "P"),
    ("ORPHA:11", "Eleven disease", "", "HP:0000772", "HP:0040285", "P"),  # excluded
    ("ORPHA:11", "Eleven disease", "", "HP:0000005", "HP:0040280", "I"),
    ("ORPHA:12", "Twelve disease", "", "HP:0000772", "HP:0040284", "P"),
    ("OMIM:1", "Not ours", "", "HP:9999999", "1/2", "P"),
]


def annotations(rows=ROWS, version="2025-01-16", columns=COLUMNS) -> str:
    lines = [f"#version: {version}", columns.replace(" ", "\t")]
    for disease, name, qualifier, term, frequency, aspect in rows:
        cells = [disease, name, qualifier, term, "r", "TAS", "", frequency, "", "", aspect, "x"]
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def book(tmp_path, ontology=ONTOLOGY, table=None):
    (tmp_path / "hp.obo").write_text(ontology)
    (tmp_path / "phenotype.hpoa").write_text(annotations() if table is None else table)
    return sources.read_book(tmp_path / "hp.obo", tmp_path / "phenotype.hpoa")


def test_terms_below_the_root_are_kept_with_exact_synonyms(tmp_path):
    found, counts = book(tmp_path)
    assert [term.id for term in found.terms] == [
        *("HP:0000118", "HP:0000772", "HP:0000773", "HP:0000924", "HP:0001945")
    ]
    ribs, short = found.terms[1], found.terms[2]
    assert (ribs.label, ribs.synonyms, ribs.parents) == (
        "Abnormal rib morphology",
        ["Abnormality of the ribs", "Rib abnormalities"],
        ["HP:0000924"],
    )
    assert (short.synonyms, found.terms[0].parents) == (['Short "small" rib'], [])
    assert found.release == "2025-01-16" and "CC BY 4.0" in found.attribution
    assert counts == {"rows": 8, "excluded": 2, "other_aspects": 1, "terms": 5, "diseases": 4}


def test_diseases_come_by_number_with_present_ids_and_without_what_is_excluded(tmp_path):
    found, _ = book(tmp_path)
    assert [(d.id, d.name, d.phenotypes) for d in found.diseases] == [
        ("ORPHA:9", "Nine disease", {"very_frequent": ["HP:0000773"]}),
        ("ORPHA:10", "Ten syndrome", {"frequent": ["HP:0001945"], "occasional": ["HP:0000773"]}),
        ("ORPHA:11", "Eleven disease", {"obligate": ["HP:0001945"]}),
        ("ORPHA:12", "Twelve disease", {"very_rare": ["HP:0000772"]}),
    ]


def test_the_file_is_the_same_bytes_twice_and_comes_back(tmp_path):
    book(tmp_path)
    words = ["--ontology", str(tmp_path / "hp.obo"), "--annotations", str(tmp_path / "phenotype.hpoa")]
    for name in ("one", "two"):
        out = ["--out", str(tmp_path / f"{name}.json"), "--record", str(tmp_path / f"{name}.record.json")]
        assert write_phenotypes.main([*words, *out]) == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert records.read(tmp_path / "one.json") == book(tmp_path)[0]
    record = json.loads((tmp_path / "one.record.json").read_text())
    assert record["facts"]["release"] == "2025-01-16" and record["counts"]["diseases"] == 4


WRONG_ONTOLOGIES = [
    (ONTOLOGY.replace("hp/releases/2025-01-16", "new"), "data-version ends in 'new'"),
    (ONTOLOGY.replace("name: Fever", "name: "), "line 39: id 'HP:0001945', name ''"),
    (ONTOLOGY.replace("id: HP:0001945", "id: HP:19"), "id 'HP:19'"),
    (ONTOLOGY.replace("id: HP:0001945", "id: HP:0000773"), "HP:0000773 stands twice"),
    (ONTOLOGY.replace("is_a: HP:0000924", "is_a: HP:0000925"), "descends from HP:0000925, which is no term"),
    (ONTOLOGY.replace("is_a: HP:0000924", "is_a: HP:0000773"), "descends from itself"),
    (ONTOLOGY.replace("HP:0000118", "HP:0000119"), "lacks HP:0000118"),
    (ONTOLOGY.replace('"Rib abnormalities" EXACT', "Rib abnormalities"), "cannot be understood"),
    (ONTOLOGY + "x" * (2**20 + 1), "longer than 1048576 bytes"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_ONTOLOGIES)
def test_a_damaged_ontology_is_one_line_with_the_place(tmp_path, text, said):
    with pytest.raises(RemeasureError, match=said) as found:
        book(tmp_path, ontology=text)
    assert "\n" not in str(found.value)


ROW = ("ORPHA:9", "Nine disease", "", "HP:0000773", "HP:0040281", "P")
WRONG_ROWS = [
    (annotations(version="2024-01-01"), "version '2024-01-01'"),
    (annotations(columns=COLUMNS.replace("frequency", "often")), r"columns missing: \['frequency'\]"),
    (annotations([ROW, ("ORPHA:9", "Other", *ROW[2:])]), "line 4: ORPHA:9 has two names"),
    (annotations([(*ROW[:3], "HP:0009999", *ROW[4:])]), "HP:0009999 is no phenotype"),
    (annotations([(*ROW[:3], "HP:0000005", *ROW[4:])]), "HP:0000005 is no phenotype"),
    (annotations([(*ROW[:4], "1/2", "P")]), "frequency '1/2'"),
    (annotations([(*ROW[:2], "MAYBE", *ROW[3:])]), "qualifier 'MAYBE'"),
    (annotations([("ORPHA:x", *ROW[1:])]), "database_id 'ORPHA:x'"),
    (annotations([ROW]).rstrip("\n").removesuffix("\tx"), "line 3: 11 cells, expected 12"),
    (annotations([ROWS[-1]]), "no row of Orphanet"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_ROWS)
def test_a_damaged_table_of_annotations_is_one_line_with_the_place(tmp_path, text, said):
    with pytest.raises(RemeasureError, match=said) as found:
        book(tmp_path, table=text)
    assert "\n" not in str(found.value)


def test_bytes_that_are_no_text_and_a_missing_file_are_one_line(tmp_path):
    (tmp_path / "hp.obo").write_bytes(b"data-version: \xff\n")
    with pytest.raises(RemeasureError, match="hp.obo line 1: not UTF-8"):
        sources.read_terms(tmp_path / "hp.obo")
    with pytest.raises(RemeasureError, match="cannot be read"):
        sources.read_terms(tmp_path / "none.obo")
    (tmp_path / "book.json").write_text('{"release": ')
    with pytest.raises(RemeasureError, match="book.json: not a file of phenotypes"):
        records.read(tmp_path / "book.json")


def test_how_telling_a_term_is_follows_from_how_few_diseases_have_it(tmp_path):
    known = Knowledge(book(tmp_path)[0])
    # Four diseases: three have something of the ribs (9, 10, 12), two short ribs (9, 10), two fever (10, 11).
    assert known.n_diseases_with("HP:0000772") == 3
    assert known.information("HP:0000773") == pytest.approx(math.log(4 / 2))
    assert known.information("HP:0000118") == 0.0
    assert known.ancestors("HP:0000773") == {"HP:0000773", "HP:0000772", "HP:0000924", "HP:0000118"}


def test_diseases_are_ranked_by_the_most_telling_common_ancestor_and_its_weight(tmp_path):
    known = Knowledge(book(tmp_path)[0])
    # Short ribs: disease 9 very frequent, ln 2 = 0.693; 10 occasional, 0.6 ln 2 = 0.416; 12 has ribs of
    # some kind, very rare: 0.3 ln(4/3) = 0.086; 11 nothing.
    found = [(disease.id, fit) for disease, fit in known.ranked(["HP:0000773"], 10)]
    assert [name for name, _ in found] == ["ORPHA:9", "ORPHA:10", "ORPHA:12"]
    assert [fit for _, fit in found] == pytest.approx([0.693147, 0.415888, 0.086305], abs=1e-6)
    # With fever (10 frequent, 0.9 ln 2) number 10 comes first, 0.416 + 0.624; 9 and 11 (ln 2) are level.
    both = known.ranked(["HP:0000773", "HP:0001945"], 2)
    assert [(d.id, round(fit, 3)) for d, fit in both] == [("ORPHA:10", 1.04), ("ORPHA:9", 0.693)]
    assert known.ranked([], 10) == []


def test_a_disease_shares_a_phenotype_its_kinds_and_what_it_is_a_kind_of(tmp_path):
    known = Knowledge(book(tmp_path)[0])
    nine, twelve = known.diseases["ORPHA:9"], known.diseases["ORPHA:12"]
    assert known.shares(nine, "HP:0000772") and known.shares(nine, "HP:0000773")
    assert not known.shares(nine, "HP:0001945")
    # Ribs of some kind are known in three of four diseases: too little to say that short ribs belong.
    assert not known.shares(twelve, "HP:0000773")


def phrases(tmp_path) -> Phrases:
    return Phrases(book(tmp_path)[0].terms)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("He has SHORT RIBS and fever.", ["Short ribs", "Fever"]),
        ("rib-abnormalities", ["Rib abnormalities"]),
        ("shortribs", ["Short ribs"]),  # OCR loses spaces
        ("no fever, without any short ribs", []),
        ("fever, no short ribs", ["Fever"]),
        ("costal things", []),  # a related name is no exact one
        ("feverish", []),
        ("", []),
    ],
)
def test_phenotypes_are_found_in_a_text(tmp_path, text, names):
    assert [found.name for found in phrases(tmp_path).find(text)] == names


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Short rlbs", ["Short ribs"]),  # 9 letters: one may be wrong
        ("Sh0rt rlbs", []),
        ("Abnorma1 rib morpho1ogy", ["Abnormal rib morphology"]),  # 21 letters: two may be
        ("Fevet", []),  # 5 letters: none may be
        ("Skeletal survey", []),
        ("", []),
    ],
)
def test_a_line_of_an_image_may_have_a_wrong_letter(tmp_path, line, names):
    assert [found.name for found in phrases(tmp_path).read(line)] == names


def test_edit_distance_stops_at_its_limit():
    # kitten, sitting: the textbook's 3.
    assert edit_distance("kitten", "sitting", 5) == 3
    assert edit_distance("kitten", "sitting", 2) == 3
    assert edit_distance("a" * 10, "a", 2) == 3
    assert edit_distance("same", "same", 0) == 0
