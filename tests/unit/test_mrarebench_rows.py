"""Cells of the MRareBench tables: parsed as the card says, everything wrong said with its column.

Source: MRareBench card, sections 2 (table of cells), 2.1, 2.3, 3.2, 3.3, 7.
"""

import io
import json

import pytest
from PIL import Image

from casekit import b64, diagnosis_row, evidence_row, images, point
from imagekit import picture
from remeasure.held_images import Images
from remeasure.roundtrip import MISSING
from remeasure.studies import mrarebench_text as text
from remeasure.studies.mrarebench_cases import EvidencePoint, group, item_id
from remeasure.studies.mrarebench_index import Reader
from remeasure.studies.mrarebench_rows import Broken, aliases, image_ids, labels, points


def read(row: dict[str, str]):
    """The case of a row, and column and text of what is wrong with it."""
    said: list[tuple] = []
    file = "diagnosis.jsonl" if "answer" in row else "evidence.jsonl"
    case = Reader().case(file, row, Images(), lambda column, problem: said.append((column, problem)))
    assert (case is None) == bool(said)
    return case, said


def facts(*rows: dict[str, str]) -> dict[str, int]:
    reader, file = Reader(), "diagnosis.jsonl" if "answer" in rows[0] else "evidence.jsonl"
    for row in rows:
        assert reader.case(file, row, Images(), print) is not None
    return reader.facts(file)


# -- section 3.3: the card's table ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        ("Established diagnosis: Erdheim-Chester disease. A 50-year-old man", "A 50-year-old man"),
        ("Established diagnosis: St. Jude variant of X. A man", "Jude variant of X. A man"),
        ("Established diagnosis: X\nA man 3.5 cm. Next", "5 cm. Next"),
        ("Established diagnosis: X", "Established diagnosis: X"),
        # Further ones, worked out by hand.
        ("  \n ESTABLISHED DIAGNOSIS:X.  \n\nA man. B \n", "A man. B"),
        ("A man. Established diagnosis: X. B", "A man. Established diagnosis: X. B"),
        ("Established diagnosis: X. Established diagnosis: Y. B", "Established diagnosis: Y. B"),
        ("Established diagnosis: X.", ""),
        (" A man ", "A man"),
        ("", ""),
    ],
)
def test_the_cut_of_nodx(context, kept):
    assert text.without_diagnosis(context) == kept


@pytest.mark.parametrize(
    ("context", "diagnosis", "said"),
    [
        ("Established diagnosis: Fabry disease. A man", "Fabry disease", None),
        ("established Diagnosis: fabry disease. A man", "Fabry disease.", None),
        ("A man", "X", "does not begin with 'Established diagnosis: NAME.' but with 'A man'"),
        ("The established diagnosis: X. A man", "X", "does not begin with"),
        ("Established diagnosis: X\nA man 3.5 cm. Next", "X", "no full stop on the line"),
        ("Established diagnosis: X", "X", "no full stop on the line"),
        ("Established diagnosis:\nX. A man", "X", "no full stop on the line"),
        ("Established diagnosis: X1. A man with x1 again", "X1", "still holds final_diagnosis after"),
        (
            "Established diagnosis: X1. A fabry\n DISEASE",
            "Fabry disease",
            "still holds final_diagnosis after",
        ),
        (
            "Established diagnosis: St. Jude variant of X. A man",
            "St. Jude variant of X",
            "is cut by NoDx inside",
        ),
        ("Established diagnosis: Fabry disease (AFD). A man", "Fabry disease", None),
        ("Established diagnosis: AFD. A man", "Fabry disease", None),
    ],
)
def test_a_context_that_tells_the_diagnosis_without_it_is_refused(context, diagnosis, said):
    found = text.leak(context, diagnosis)
    assert found is None if said is None else said in found


# -- section 3.2 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "block"),
    [
        ('[{"markdown": " ### CT\\nMass. "}]', "### CT\nMass."),
        ('[{"title": "CT", "body": "Mass."}, {"body": "Cyst."}]', "### CT\nMass.\n\nCyst."),
        ('[{"markdown": "A"}, {"markdown": "A "}, {"markdown": "B"}]', "A\n\nB"),
        ('[{"markdown": ""}, "x", null, {"title": "T"}]', "### T"),
        ('[{"markdown": "M", "title": "T", "body": "B"}]', "M"),
        ('[{"markdown": null, "title": 3, "body": ["b"]}]', "### 3\n['b']"),
    ],
)
def test_the_findings_block(cell, block):
    assert text.findings_block(cell).block == block


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("", "is empty"),
        ("NA", "is no JSON (Expecting value"),
        ("not json", "is no JSON ("),
        ('{"markdown": "A"}', "is JSON of another kind (dict), expected a list"),
        ('"A"', "is JSON of another kind (str)"),
        ("[]", "has no text in any of its 0 entries"),
        ('[{"markdown": " "}, {}, 7]', "has no text in any of its 3 entries"),
        ("[" * 100_000, "is nested too deep"),
    ],
)
def test_without_a_findings_block_the_row_is_refused(cell, said):
    assert text.findings_block(cell).block is None
    case, problems = read(diagnosis_row(**{"image findings": cell}))
    assert problems[0][0] == "image findings" and said in problems[0][1]


# -- cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("", ()),
        ("[]", ()),
        ('["A", " B ", "", null, 3]', ("A", "B", "None", "3")),  # as the text form of Python says
        ('{"A": 1}', ("{'A': 1}",)),
        ('"A; B"', ("A; B",)),
        ("12", ("12",)),
        ("true", ("True",)),
        ("A; B ;;C", ("A", "B", "C")),
        ("NA", ()),  # pandas reads these as no value (card, section 2)
        ("null", ()),
        ("None", ()),
        ("NA; B", ("NA", "B")),
        ("[A]; B", ("[A]", "B")),
        ("__import__('os').getcwd()", ("__import__('os').getcwd()",)),
    ],
)
def test_aliases(cell, names):
    assert aliases(cell) == names


@pytest.mark.parametrize("cell", ["['A', 'B']", " [ 'A'", '["A", "B"', "('A', 'B')"])
def test_aliases_in_the_spelling_of_a_programme_are_refused(cell):
    # Section 2: what is no JSON is parted at `;`: one alias with brackets and quotes.
    assert aliases(cell) == Broken('begins like a list and is no JSON; write ["A", "B"] or A; B')
    assert [column for column, _ in read(diagnosis_row(answer_aliases=cell))[1]] == ["answer_aliases"]


@pytest.mark.parametrize(
    ("cell", "ids"),
    [  # the card's three spellings, the words for none, and the float trap of section 2
        ("[1, 3]", (1, 3)),
        ("1;3", (1, 3)),
        ("Image 1, Image 3", (1, 3)),
        ("3,1,3", (1, 3)),
        ("", ()),
        (" NaN ", ()),
        ("none", ()),
        ("[]", ()),
        ("no digits", ()),
        ("1.0", (0, 1)),
        ("-2", (2,)),
    ],
)
def test_image_ids(cell, ids):
    assert image_ids(cell) == ids


def test_digits_of_other_scripts_are_refused():
    said = "names image '\\uff13', which is not written with digits 0 to 9"
    assert image_ids("1, \uff13").problem == said
    assert read(evidence_row(decisive_image_ids="\u0663"))[1][0][0] == "decisive_image_ids"


def test_an_id_of_thousands_of_digits_is_refused():
    assert image_ids("9" * 5000).problem.startswith("names image '999")


def test_points_keep_order_and_wording_and_drop_what_has_no_text():
    cell = json.dumps(
        [
            {"point": " a ", "image": " Image 2 ", "credit": " Required", "category": "Region or Field"},
            {"point": ""},
            "b",
            {"point": "c", "image": 3, "credit": "bonus"},
            {"point": "d", "image": None, "credit": None},
        ]
    )
    assert points(cell) == (
        EvidencePoint(point="a", image="Image 2", credit="required", category="Region or Field"),
        EvidencePoint(point="c", image="3", credit="optional", category=""),
        EvidencePoint(point="d", image="", credit="optional", category=""),
    )


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("", "is empty"),
        ("a; b", "is no JSON ("),
        ("{}", "is JSON of another kind (dict), expected a list of points"),
        ("[]", "has no required point among its 0 entries"),
        ('[{"point": "a", "credit": "optional"}, "b"]', "has no required point among its 2 entries"),
        ('[{"point": " ", "credit": "required"}]', "has no required point among its 1 entries"),
        ("[" * 100_000, "is nested too deep"),
    ],
)
def test_an_item_without_a_required_point_is_refused(cell, said):
    assert said in points(cell).problem
    assert ("acceptable_evidence_points", points(cell).problem) in read(
        evidence_row(acceptable_evidence_points=cell)
    )[1]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{"point": NaN}', "entry 1: point is nan (float), expected text"),
        ('{"point": true}', "entry 1: point is True (bool), expected text"),
        ('{"point": ["a"]}', "entry 1: point is a list, expected text"),
        ('{"point": {"a": 1}}', "entry 1: point is an object, expected text"),
        ('{"point": "a", "image": Infinity}', "entry 1: image is inf (float), expected text"),
        ('{"point": "a", "image": false}', "entry 1: image is False (bool), expected text"),
        ('{"point": "a", "image": [1, 2]}', "entry 1: image is a list, expected text"),
        ('{"point": "a", "category": 3}', "entry 1: category is 3 (int), expected text"),
        ('{"point": "a", "credit": true}', "entry 1: credit is True (bool), expected text"),
    ],
)
def test_points_of_another_kind_than_text_are_refused(entry, said):
    cell = f'[{entry}, {{"point": "b", "credit": "required"}}]'
    assert points(cell) == Broken(said)
    assert read(evidence_row(acceptable_evidence_points=cell))[1] == [("acceptable_evidence_points", said)]


@pytest.mark.parametrize("n", [0, 3])
def test_a_required_point_about_an_image_that_is_not_there_is_refused(n):
    cell = json.dumps([point("a mass"), point("a cyst", f"Image {n}")])
    said = f"has a required point about image {n}, there are images 1 to 2"
    assert read(evidence_row(acceptable_evidence_points=cell))[1] == [("acceptable_evidence_points", said)]
    optional = json.dumps([point("a mass"), point("a cyst", f"Image {n}", "optional")])
    assert read(evidence_row(acceptable_evidence_points=optional))[1] == []


@pytest.mark.parametrize("answer", ["-", " ?! ", "\u2026"])
def test_an_answer_without_a_letter_or_digit_is_refused(answer):
    ((column, said),) = read(diagnosis_row(answer=answer))[1]
    assert column == "answer" and "without a letter or digit nothing can match it" in said


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("Fabry disease", "label 2 ('Fabry disease') holds final_diagnosis, and NoDx shows it, too"),
        ("CT of FABRY  disease.", "holds final_diagnosis"),
        ("\uff26abry disease", "holds final_diagnosis"),  # a full-width F
        ("Fabry\u00a0disease", "holds final_diagnosis"),
        ("Fab\u200bry disease", "holds a line break, a control character or one without width"),
        ("A\nB", "holds a line break"),
        ("A\tB", "a control character"),
        ("A\u2028B", "holds a line break"),
        ("x" * 41, "has 41 characters, at most 40 are shown"),
        ("image 1", "label 2 ('image 1') is that of image 1, too"),
    ],
)
def test_labels_that_tell_the_diagnosis_or_cannot_be_shown_are_refused(second, said):
    cell = json.dumps([{"public_slot": "Image 1"}, {"public_slot": second}])
    ((column, found),) = read(evidence_row(image_slot_map=cell))[1]
    assert column == "image_slot_map" and said in found


def test_a_label_that_stands_in_for_none_is_its_own_too():
    row = evidence_row(image_slot_map='[{"public_slot": "Image 2"}, {}]')
    assert "label 2 ('Image 2') is that of image 1, too" in read(row)[1][0][1]
    row = evidence_row(image_slot_map=json.dumps([{"public_slot": "x" * 40}, {}]))
    assert [one.label for one in read(row)[0].images] == ["x" * 40, "Image 2"]


@pytest.mark.parametrize("name", ["Fab\u200bry dis\u00adease", "\uff26abry disease", "FABRY\u2003DISEASE"])
def test_names_are_folded_before_they_are_looked_for(name):
    assert text.names("Fabry disease", f"a case of {name}")
    assert text.names(name, "a case of Fabry disease")
    context = f"Established diagnosis: Fabry disease. A man with {name}"
    assert text.leak(context, "Fabry disease") == "still holds final_diagnosis after the NoDx cut"
    assert text.names("Sjo\u0308gren", "Sj\u00f6gren's") and not text.names("Fabry", "Fab ry")


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("", ("Image 1", "Image 2")),
        ('[{"public_slot": null}, {}]', ("Image 1", "Image 2")),
        ('[{}, {"public_slot": NaN}]', Broken("slot 2: public_slot is nan (float), expected text")),
        ('[{"public_slot": 1}, {}]', Broken("slot 1: public_slot is 1 (int), expected text")),
        ('[{"public_slot": ["A"]}, {}]', Broken("slot 1: public_slot is a list, expected text")),
        ('[{"public_slot": " Panel A "}, {"other": 1}]', ("Panel A", "Image 2")),
        ('[{"public_slot": "Image 1"}]', Broken("names 1 slots, the row has 2 images")),
        ("[{}, {}, {}]", Broken("names 3 slots, the row has 2 images")),
        ('["a", "b"]', Broken("is no JSON list of objects with `public_slot`")),
        ('{"public_slot": "A"}', Broken("is no JSON list of objects with `public_slot`")),
    ],
)
def test_labels(cell, found):
    assert labels(cell, 2) == found


def test_a_slot_map_that_is_no_json_is_refused():
    assert "is no JSON" in labels("x", 2).problem


# -- rows ----------------------------------------------------------------------------------------------------


def test_a_diagnosis_row():
    case = read(diagnosis_row(1, index="007", answer=" Fabry disease "))[0]
    assert (case.index, case.item_id, case.group) == ("007", "007", "007")
    assert (case.answer, case.aliases) == (" Fabry disease ", ("Anderson-Fabry disease",))
    assert (case.context, case.findings) == ("A 21-year-old man.", "### CT\nA mass of 1 cm.")
    assert [(one.slot, one.label, one.format) for one in case.images] == [(1, None, "jpeg")]


def test_without_the_column_of_findings_there_is_none():
    assert read(diagnosis_row(**{"image findings": None}))[0].findings is None


def test_an_evidence_row():
    case = read(evidence_row(2, orpha_code="", row_key="NA"))[0]
    assert (case.index, case.group, case.task_type) == ("t4ev_seed:2", "PMC2", "multi")
    assert (case.decisive, case.supporting) == ((1,), (1, 2))
    assert [(one.slot, one.label, one.format) for one in case.images] == [
        (1, "Image 1", "png"),
        (2, "Image 2", "jpeg"),
    ]
    assert case.joined == {"pmcid": "PMC2", "orpha_code": None, "row_key": "NA"}
    assert [one.credit for one in case.points] == ["required", "optional"]


def test_the_second_column_takes_over_where_the_first_is_empty_or_missing():
    row = evidence_row(question_open="", question="Why?", gold_rationale=None, gold_answer_open="Because.")
    case = read(row)[0]
    assert (case.question, case.rationale) == ("Why?", "Because.")


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        (diagnosis_row(index=" "), "index", "is empty"),
        (diagnosis_row(answer=""), "answer", "is empty"),
        (diagnosis_row(context="\n"), "context", "is empty"),
        (diagnosis_row(question=""), "question", "is empty"),
        (diagnosis_row(image=""), "image", "is no JSON list (begins with nothing)"),
        (diagnosis_row(image="[]", image_path=""), "image", "has no image"),
        (
            diagnosis_row(image="[]"),
            "image",
            "files named in image_path are not read: put the images as base64",
        ),
        (diagnosis_row(image='[""]'), "image", "slot 1 is empty: the image is missing"),
        (diagnosis_row(image='["aGVsbG8="]'), "image", "slot 1 is not a PNG"),
        (evidence_row(final_diagnosis=""), "final_diagnosis", "is empty"),
        (
            evidence_row(gold_rationale="", gold_answer_open=""),
            "gold_rationale",
            "and so is gold_answer_open",
        ),
        (evidence_row(question_open="", question=" "), "question_open", "is empty, and so is question"),
        (evidence_row(question_open="Why fabry disease?"), "question_open", "holds final_diagnosis"),
        (evidence_row(question_open="", question="Fabry disease?"), "question", "holds final_diagnosis"),
        (evidence_row(context="A man."), "context", "does not begin with"),
        (
            evidence_row(decisive_image_ids="1;3"),
            "decisive_image_ids",
            "names image 3, the row has images 1 to 2",
        ),
        (
            evidence_row(decisive_image_ids="1.0"),
            "decisive_image_ids",
            "names image 0, the row has images 1 to 2",
        ),
        (evidence_row(image_slot_map="[{}]"), "image_slot_map", "names 1 slots, the row has 2 images"),
    ],
)
def test_what_fails_is_said_with_its_column(row, column, said):
    (problem,) = read(row)[1]
    assert problem[0] == column and said in problem[1]


def test_a_broken_slot_keeps_its_number_and_does_not_move_labels():
    cell = json.dumps([b64(picture(seed=1)), "", b64(picture(seed=2))])
    slots = '[{"public_slot": "A"}, {"public_slot": "B"}, {"public_slot": "C"}]'
    row = evidence_row(image=cell, image_slot_map=slots, decisive_image_ids="3")
    assert read(row)[1] == [("image", "slot 2 is empty: the image is missing")]


def test_all_that_is_wrong_with_a_row_is_said_at_once():
    row = evidence_row(context="A man.", gold_rationale="", image="x", acceptable_evidence_points="[]")
    assert [column for column, _ in read(row)[1]] == [
        *("context", "image", "acceptable_evidence_points", "gold_rationale")
    ]


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ("7", "7"),
        ("a_B-9", "a_B-9"),
        ("x" * 64, "x" * 64),
        ("t4ev_seed:190", "t4ev_seed-190-0f4c4e32"),  # printf 't4ev_seed:190' | sha256sum
    ],
)
def test_item_ids(index, found):
    assert item_id(index) == found


def test_an_item_id_is_never_longer_than_64_characters_and_tells_indexes_apart():
    long = [
        item_id("é" * 100),
        item_id("é" * 101),
        item_id("a b"),
        item_id("a:b"),
        item_id("../../etc/passwd"),
    ]
    assert len(set(long)) == 5 and all(len(one) <= 57 for one in long)
    assert long[0].startswith("-" * 48 + "-") and long[4].startswith("------etc-passwd-")


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ({}, "i"),
        ({"pmcid": "PMC1", "doc_id": "d", "case_id": "c"}, "PMC1"),
        ({"pmcid": "", "doc_id": "d"}, "d"),
        ({"pmcid": "nan", "doc_id": "NA", "case_id": " c "}, "c"),
        ({"pmcid": "None"}, "i"),
    ],
)
def test_rows_about_one_case_are_one_group(cells, found):
    assert group("i", cells) == found


# -- the published reading -----------------------------------------------------------------------------------


def test_the_words_for_missing_are_those_of_the_published_reader():
    from pandas._libs import parsers

    assert MISSING == parsers.STR_NA_VALUES


def test_good_rows_have_nothing_to_tell():
    assert facts(diagnosis_row()) == facts(evidence_row()) == {}


def test_what_the_published_reading_makes_of_cells_is_counted():
    found = facts(
        diagnosis_row(1, index="007", answer="NA", answer_aliases="null", context="None"),
        diagnosis_row(2, index="7", answer="none", answer_aliases=""),
        diagnosis_row(3, index="9", figure_mapping='{"Figure 1": "x/9--1.jpg"}'),
    )
    assert found == {
        "published reading: column answer is read as missing: the reference becomes 'nan', which hits every "
        "list with these letters": 1,
        "published reading: column answer_aliases is read as missing: there is no alias": 1,
        "published reading: column context is read as missing: the context is left out": 1,
        "published reading: column index is read as numbers: ids with zeros or a sign in front change": 1,
        "published reading: images have a label of figure_mapping": 1,
    }


def test_what_is_used_although_it_is_no_text_is_counted():
    cell = json.dumps([point("a mass"), point("a cyst", 2)])
    slots = '[{"public_slot": null}, {}]'
    assert facts(evidence_row(acceptable_evidence_points=cell, image_slot_map=slots)) == {
        "evidence points name their image by a number alone, which belongs to no image": 1,
        "published reading: images whose public_slot is null are called 'None'": 1,
    }
    said = "further names that are no text stand as Python writes them"
    assert facts(diagnosis_row(answer_aliases='["A", null, 3]')) == {said: 2}
    assert facts(diagnosis_row(answer_aliases='{"A": 1}')) == {said: 1}
    assert facts(diagnosis_row(answer_aliases="A; B"), diagnosis_row(answer_aliases="")) == {}


def test_what_the_published_reading_makes_of_evidence_rows_is_counted():
    found = facts(
        evidence_row(1, decisive_image_ids="1", supporting_image_ids="[9]"),
        evidence_row(2, decisive_image_ids="", gold_rationale="", gold_answer_open="Because."),
        evidence_row(
            3,
            decisive_image_ids="2",
            task_type="NA",
            final_diagnosis="AFD",
            acceptable_evidence_points=json.dumps([point("a"), "b", {}]),
        ),
    )
    assert found == {
        "evidence points without text are left out": 2,
        "published reading: column decisive_image_ids is read as decimals: 1 becomes 1.0, which names the "
        "images 1 and 0": 2,
        "published reading: column gold_rationale is read as missing: the rationale becomes 'nan'": 1,
        "published reading: column task_type is read as missing: there is no task type": 1,
        "supporting ids name an image that there is not": 1,
        "the established diagnosis is worded otherwise than final_diagnosis": 1,
    }


def test_images_that_the_published_code_leaves_out_are_counted():
    out = io.BytesIO()
    Image.new("I;16", (2, 2)).save(out, "PNG")
    row = evidence_row(image=images(out.getvalue(), picture()))
    assert facts(row) == {
        "published reading: images that cannot become JPEG are left out, and later ones take their labels": 1
    }
