"""The case reader: what it understands, what it says, and that it really reads its pictures."""

import json

import pytest

import composedkit
from composedkit import image, request, text
from remeasure.embedded.case_reader import NO_IMAGE, NOTHING_KNOWN, CaseReader
from remeasure.embedded.case_request import understand
from remeasure.embedded.chat import BadRequest
from remeasure.phenotypes.knowledge import Knowledge
from remeasure.phenotypes.records import Book, Disease, Term
from remeasure.records import OcrImage, OcrLine
from serverkit import said, served

ASK_LIST = "Name ten diagnoses. Write a numbered list, the most likely first."
ASK_EVIDENCE = "Take each image under its name and say what is seen. Then say how it fits."


def term(number: int, label: str, parents=("HP:0000118",), synonyms=()) -> Term:
    return Term(id=f"HP:{number:07d}", label=label, synonyms=list(synonyms), parents=list(parents))


BOOK = Book(
    release="2025-01-16",
    attribution="by hand",
    terms=[
        term(118, "Phenotypic abnormality", ()),
        term(1, "Fever"),
        term(2, "Short ribs", synonyms=["Small ribs"]),
        term(3, "EMG abnormality"),
        term(4, "Cataract"),
    ],
    diseases=[
        Disease(id="ORPHA:1", name="First disease", phenotypes={"obligate": ["HP:0000001", "HP:0000002"]}),
        Disease(id="ORPHA:2", name="Second disease", phenotypes={"frequent": ["HP:0000001"]}),
        Disease(id="ORPHA:3", name="Third disease", phenotypes={"frequent": ["HP:0000003", "HP:0000004"]}),
    ],
)


class ToyEngine:
    """Reads what a picture's last pixels are said to hold."""

    def __init__(self, **lines: list[str]) -> None:
        self.lines, self.n_read = lines, 0

    def read(self, data, sha256, name):
        self.n_read += 1
        found = self.lines[picture_name(data)]
        lines = tuple(OcrLine(text=line, box=(0, 0, 9, 9), confidence=0.9) for line in found)
        return OcrImage(sha256=sha256, tile_id=name, width_px=9, height_px=9, lines=lines)


NAMES = {"lab": 10, "bones": 20, "eyes": 30, "blank": 40}


def picture(name: str) -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("L", (9, 9), NAMES[name]).save(out, "PNG")
    return out.getvalue()


def picture_name(data: bytes) -> str:
    return next(name for name in NAMES if picture(name) == data)


def reader(**lines) -> CaseReader:
    known = {
        "lab": ["Laboratory report", "Fever", "Sodium"],
        "bones": ["Skeletal survey", "Smal1 ribs"],
        "eyes": ["Eye examination", "Cataract"],
        "blank": [],
    }
    return CaseReader(Knowledge(BOOK), ToyEngine(**known | lines))


def answer(*parts, **more) -> str:
    return reader().answer(request(*parts, **more)).text


# -- what is understood --------------------------------------------------------------------------------------


def test_labels_stand_before_images_and_the_case_before_the_question():
    found = understand(
        request(
            text("Panel B:"),
            image(picture("lab")),
            image(picture("eyes")),
            text(f"Established diagnosis: First disease. A man.\n\nQuestion: What?\n\n{ASK_EVIDENCE}"),
        )
    )
    assert [label for label, _ in found.images] == ["Panel B", "Image 2"]
    assert (found.wants, found.diagnosis) == ("evidence", "First disease")
    assert found.case == "Established diagnosis: First disease. A man."


@pytest.mark.parametrize(
    ("asked", "wants"),
    [
        (composedkit.prompt("instruction_diagnosis"), "list"),
        (composedkit.prompt("instruction_evidence"), "evidence"),
        ("Give the ten most likely diagnoses, ranked from 1 to 10.", "list"),
        ("Describe every image under its label.", "evidence"),
    ],
)
def test_what_is_asked_for_is_seen_in_the_instruction_not_in_the_case(asked, wants):
    case = "A man has a numbered list of images and a ranking."
    assert understand(request(text(f"{case}\n\nQuestion: What?\n\n{asked}"))).wants == wants
    assert understand(request(text(f"{case}\n\n{asked}"))).wants == wants


@pytest.mark.parametrize(
    ("parts", "more", "said"),
    [
        ([text("Tell a joke.")], {}, "neither a numbered list"),
        ([text(ASK_LIST)], {"thinking": True}, "no thinking mode"),
        ([image(b"no picture"), text(f"A.\n\n{ASK_LIST}")], {}, "Image 1: the image"),
        ([image(picture("lab")[:50]), text(f"A.\n\n{ASK_LIST}")], {}, "Image 1: the image"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(parts, more, said):
    with pytest.raises(BadRequest, match=said):
        reader().answer(request(*parts, **more))


# -- what is said --------------------------------------------------------------------------------------------


def test_diagnoses_are_ranked_by_what_text_and_images_tell():
    # Fever alone: ln(3/2) for the first disease, 0.9 of it for the second. With small ribs: ln 3 more.
    case = text(f"A girl with fever.\n\nQuestion: What?\n\n{ASK_LIST}")
    assert answer(case) == "1. First disease\n2. Second disease"
    assert answer(image(picture("eyes")), case) == "1. Third disease\n2. First disease\n3. Second disease"
    nothing = text(f"A girl.\n\nQuestion: What?\n\n{ASK_LIST}")
    assert answer(nothing) == NOTHING_KNOWN


def test_evidence_is_told_image_by_image_and_then_together():
    told = answer(
        *(text("Image 1:"), image(picture("lab"))),
        *(text("Image 2:"), image(picture("eyes"))),
        *(text("Image 3:"), image(picture("bones"))),
        text(f"Established diagnosis: First disease. A girl.\n\nQuestion: What?\n\n{ASK_EVIDENCE}"),
    )
    assert told.split("\n\n") == [
        "Image 1: a laboratory report; it shows fever; it also reads Sodium.",
        "Image 2: an eye examination; it shows cataract.",
        "Image 3: a skeletal survey; it shows small ribs (short ribs).",
        "Across the images, fever (Image 1) and small ribs (Image 3) occur together.",
        "Fever and small ribs fit First disease.",
        "Not known of First disease: cataract (Image 2).",
    ]


def test_without_the_diagnosis_the_reader_says_its_own_guess():
    told = answer(image(picture("bones")), text(f"A girl.\n\nQuestion: What?\n\n{ASK_EVIDENCE}"))
    assert told.split("\n\n") == [
        "Image 1: a skeletal survey; it shows small ribs (short ribs).",
        "No diagnosis is given; the case fits First disease best.",
        "Small ribs fits First disease.",
    ]


def test_without_an_image_the_reader_says_so_and_tells_what_books_say_as_such():
    told = answer(text(f"Established diagnosis: First disease. A girl.\n\nQuestion: What?\n\n{ASK_EVIDENCE}"))
    assert told.split("\n\n") == [
        NO_IMAGE,
        "From books, not from this case: fever and short ribs are known of First disease.",
    ]


def test_a_diagnosis_that_no_book_knows_and_an_image_without_words():
    told = answer(
        image(picture("blank")),
        text(f"Established diagnosis: Other thing. A girl.\n\nQuestion: What?\n\n{ASK_EVIDENCE}"),
    )
    assert told.split("\n\n") == [
        "Image 1: an image without words; it shows nothing known.",
        "Other thing is not among the diseases that are known here.",
    ]


def test_an_image_is_read_once_and_the_limit_of_tokens_cuts_off():
    engine = ToyEngine(lab=["Laboratory report", "Fever"])
    here = CaseReader(Knowledge(BOOK), engine)
    case = text(f"A girl.\n\nQuestion: What?\n\n{ASK_LIST}")
    first = here.answer(request(image(picture("lab")), case))
    assert here.answer(request(image(picture("lab")), case, max_tokens=2)).finish_reason == "length"
    assert engine.n_read == 1
    assert first.text == "1. First disease\n2. Second disease" and first.finish_reason == "stop"
    assert here.answer(request(image(picture("lab")), case, stop=["\n2"])).text == "1. First disease"


# -- the real book, the real OCR, the reported cases --------------------------------------------------------

N = 8


@pytest.fixture(scope="module")
def real() -> CaseReader:
    return CaseReader(composedkit.knowledge())


@pytest.mark.models
def test_labels_of_the_pictures_can_be_read(real):
    composer = composedkit.composer()
    n_labels = n_read = 0
    for case in (*composer.diagnosis[:N], *composer.evidence[:N]):
        for picture, data in zip(case.pictures, composer.pictures(case), strict=True):
            seen = real.see("Image 1", data)
            assert seen.title == composer._settings.kinds[picture.kind].title
            labels = {finding.term for finding in picture.findings}
            n_labels += len(labels)
            n_read += len(labels & {found.term for found in seen.found})
    assert n_labels >= 50 and n_read >= 0.9 * n_labels


def hits(real: CaseReader, shown, k: int) -> int:
    """How many of the first cases have the right name among the first k; equal to the letter."""
    found = 0
    for row in composedkit.rows("composed-cases", "diagnosis")[:N]:
        told = real.answer(composedkit.diagnosis(row, shown(row))).text
        found += row["answer"] in composedkit.names_in(told)[:k]
    return found


@pytest.mark.models
def test_images_help_and_other_cases_images_do_not(real):
    rows = composedkit.rows("composed-cases", "diagnosis")[:N]
    other = {row["index"]: rows[number - 1] for number, row in enumerate(rows)}
    right = hits(real, composedkit.pictures, 3)
    swapped = hits(real, lambda row: composedkit.pictures(other[row["index"]]), 3)
    without = hits(real, lambda row: [], 3)
    assert right >= swapped + 3 and right >= without + 3, (right, swapped, without)


@pytest.mark.models
def test_swapped_images_are_told_as_what_they_are(real):
    """The findings of the case itself are not told where another case's images are shown."""
    rows = [r for r in composedkit.rows("composed-cases", "evidence") if len(json.loads(r["image"])) == 2][:N]
    right = swapped = 0
    for number, row in enumerate(rows):
        points = [
            p["point"] for p in json.loads(row["acceptable_evidence_points"]) if p["image"] == "Image 1"
        ]
        own = real.answer(composedkit.evidence(row, composedkit.pictures(row))).text.lower()
        other = real.answer(composedkit.evidence(row, composedkit.pictures(rows[number - 1]))).text.lower()
        right += sum(point.removeprefix("it is ").lower() in own for point in points)
        swapped += sum(point.removeprefix("it is ").lower() in other for point in points)
    assert right >= 2 * swapped > 0 or swapped == 0 < right, (right, swapped)


@pytest.mark.models
def test_the_server_answers_over_http_and_repeats_itself(tmp_path, sources):
    row = composedkit.rows("composed-cases", "diagnosis")[0]
    parts = [*map(image, composedkit.pictures(row)), text(composedkit.diagnosis_text(row, "images"))]
    files = {"book": "orpha-phenotypes.json"}
    with served("serve_case_reader.py", tmp_path, sources, files) as ask:
        first, second, joke = ask(parts), ask(parts), ask([text("Tell a joke.")])
    assert said(first) == said(second) and len(composedkit.names_in(said(first))) == 10
    assert joke["status"] == 400 and "no other task" in joke["error"]["message"]
