"""Files of other systems become outcomes: nothing is guessed, nothing is lost, a failure is no answer."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from remeasure import imports
from remeasure.errors import RemeasureError
from remeasure.imports import reading, spreadsheet, tosc
from remeasure.requests import CUSTOM_ID, safe_id

DATA = Path(__file__).resolve().parents[1] / "data" / "imports"


def read(name: str, path: Path) -> list[imports.Imported]:
    return list(imports.by_name(name)(path))


def short(found: list[imports.Imported]) -> list[tuple]:
    return [(one.foreign_id, one.status, one.text, one.error) for one in found]


def refused(name: str, path: Path) -> str:
    """Read a file that must be refused; return the rest of the one line behind the file's name."""
    with pytest.raises(RemeasureError) as error:
        read(name, path)
    text = str(error.value)
    assert "\n" not in text and text.startswith(str(path))
    return text.removeprefix(str(path))


# -- ids ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["17", "nq_1-a", "x" * 64])
def test_an_id_that_a_batch_service_takes_stays(text):
    assert safe_id(text) == text


def test_another_id_becomes_a_slug_with_the_hash_of_all_of_it():
    # printf 'nq/validation:17' | sha256sum
    assert safe_id("nq/validation:17") == "nq-validation-17-e8ec969376da8b2b"
    long = [safe_id("x" * 299 + letter) for letter in "ab"]
    assert [len(one) for one in long] == [64, 64] and long[0] != long[1]
    assert long[0].startswith("x" * 47 + "-")


@pytest.mark.parametrize("text", ["", "日本", "a b", "-/-", "../../etc/passwd", "a\nb", "\ud800", "é" * 99])
def test_every_text_gives_an_id_that_stays_what_it_is(text):
    assert CUSTOM_ID.fullmatch(safe_id(text))
    assert safe_id(safe_id(text)) == safe_id(text)


# -- PixelRAG ----------------------------------------------------------------------------------------------


def test_pixelrag_rows_are_read_in_any_order_and_failures_are_none_of_the_answers():
    assert short(read("pixelrag", DATA / "pixelrag.jsonl")) == [
        ("nq/validation:17", "answered", "<think>Paris or Lyon?</think>Exact Answer: Paris", None),
        ("nq-4", "failed", None, "APITimeoutError: Request timed out."),
        ("nq-1", "answered", "Exact Answer: 42", None),
        ("nq-3", "cut_off", "It all began when", "cut_off: 200 tokens, the limit of that run"),
        ("nq-2", "failed", None, "empty: success without a final_response"),
        ("nq-5", "answered", "", None),
    ]


def test_pixelrag_rows_keep_usage_model_and_place():
    found = read("pixelrag", DATA / "pixelrag.jsonl")
    assert found[2].usage == {"prompt_tokens": 2700, "completion_tokens": 9, "total_tokens": 2709}
    assert {one.model for one in found} == {"Qwen/Qwen3.5-4B"}
    assert [one.place for one in found[:2]] == ["line 1", "line 2"]
    assert found[5].usage is None


def test_pixelrag_livevqa_rows_have_a_position_for_an_id():
    assert short(read("pixelrag", DATA / "pixelrag_livevqa.jsonl")) == [
        ("0", "answered", "B", None),
        ("1", "failed", None, "no_retrieval"),
        ("2", "answered", "C. The third", None),
    ]


# -- VLMEvalKit --------------------------------------------------------------------------------------------

MARKED = "Failed to obtain answer via API."
EMPTY_CELL = "empty: empty cell (a spreadsheet cannot tell an empty answer from a missing one)"
TABLE = [
    ("1", "answered", '1. Marfan syndrome\r\n2. "Loeys"-Dietz', None),
    ("2", "failed", MARKED, f"marker: {MARKED}"),
    ("3", "answered", "", None),
    ("4", "answered", "NA", None),
    ("5", "answered", "=1+1", None),
    ("6", "answered", "tab\there, comma", None),
    ("7", "answered", "bell \x08 and _x0041_", None),
]


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_a_text_table_is_read_as_text_and_nothing_becomes_missing(suffix):
    assert short(read("vlmevalkit", DATA / f"vlmevalkit.{suffix}")) == TABLE


def test_a_json_table_knows_missing_from_empty():
    missing = ("8", "failed", None, "empty: missing value")
    assert short(read("vlmevalkit", DATA / "vlmevalkit.json")) == [*TABLE, missing]


def test_a_spreadsheet_s_empty_and_full_cells_are_no_whole_answers():
    found = short(read("vlmevalkit", DATA / "vlmevalkit.xlsx"))
    assert found[:2] == TABLE[:2] and found[3:7] == TABLE[3:]
    assert found[2] == ("3", "failed", None, EMPTY_CELL)
    # The text had 40,000 characters; the writer cut it at what a cell can hold.
    assert found[7][:2] == ("8", "cut_off") and found[7][2] == "z" * 32_767
    assert found[7][3] == "cut_off: 32767 characters, the most that a cell can hold"


def test_places_in_a_table_are_those_that_an_editor_shows():
    # The first answer holds a line end.
    assert [one.place for one in read("vlmevalkit", DATA / "vlmevalkit.tsv")][:3] == [
        "line 2",
        "line 4",
        "line 5",
    ]
    assert [one.place for one in read("vlmevalkit", DATA / "vlmevalkit.xlsx")][:2] == ["row 2", "row 3"]


def test_a_pickle_is_refused_unread(tmp_path):
    path = tmp_path / "predictions.pkl"
    path.write_bytes(b"cos\nsystem\n(S'touch /tmp/x'\ntR.")
    assert refused("pixelrag", path).startswith(": pickles run code when they are read and are not taken")
    assert refused("vlmevalkit", path).startswith(": tables are read from .xlsx, .tsv, .csv, .json files")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", ": column 'index' is not there; the first line has nothing"),
        ("a.tsv", b"index\tpredicton\n", ": column 'prediction' is not there (did you mean 'predicton'?)"),
        ("a.csv", b"index,prediction,index\n1,a,2\n", ": column 'index' is twice there"),
        ("a.csv", b"index,prediction\n1,a,b\n", " line 2: has 3 fields, the head has 2"),
        ("a.csv", b'index,prediction\n1,"a\n', " line 2: is no row of a table (unexpected end of data)"),
        ("a.csv", b"index,prediction\n1,\xff\n", " from line 1 on: is not UTF-8"),
        ("a.csv", b"index,prediction\n,a\n", " line 2: index is empty, expected an id"),
        ("a.json", b"{}", " : is an object, expected a list of objects"),
        ("a.json", b"[1]", " [0]: is the number 1, expected an object"),
        ("a.json", b'[{"index": 1}]', " [0]: prediction is missing"),
        ("a.json", b'[{"index": 1, "prediction": ["a"]}]', " [0]: prediction is a list, expected a text"),
        ("a.json", b'[{"index": 1.5, "prediction": "a"}]', " [0]: index is the number 1.5, expected an id"),
        ("a.json", b'[{"index": true, "prediction": "a"}]', " [0]: index is a truth value, expected an id"),
        ("a.json", b'[{"index": 1, "prediction": "\\ud83d"}]', " [0]: prediction holds half a character"),
        ("a.xlsx", b"PK\x03\x04", ": cannot be read as a spreadsheet (BadZipFile: "),
        ("a.xlsx", b"index,prediction\n", ": cannot be read as a spreadsheet (BadZipFile: "),
    ],
)
def test_a_broken_table_is_one_line_with_the_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    assert refused("vlmevalkit", path).startswith(message)


def sheet(path: Path, rows: str, strings: str = "", parts: dict[str, bytes] | None = None) -> Path:
    """Write a spreadsheet by hand: ``rows`` is the XML of the rows under a head of index and prediction."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    relations = f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    head = '<row r="1"><c r="A1" t="inlineStr"><is><t>index</t></is></c>'
    head += '<c r="B1" t="inlineStr"><is><t>prediction</t></is></c></row>'
    members = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'{relations}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f'{strings}<worksheet xmlns="{main}"><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{head}{rows}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members | (parts or {})).items():
            archive.writestr(name, content)
    return path


def cell(place: str, text: str, kind: str = "inlineStr") -> str:
    if kind == "inlineStr":
        return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'
    return f'<c r="{place}" t="{kind}">{text}</c>'


def test_numbers_formulas_gaps_and_a_wrong_size_do_no_harm(tmp_path):
    rows = f'<row r="2"><c r="A2"><v>7</v></c><c r="B2"><f>1+1</f><v>2</v></c>{cell("XFD2", "far out")}</row>'
    rows += f'<row r="5">{cell("A5", "x/1")}<c r="B5"><v>0.50</v></c></row>'
    rows += f'<row r="9"><c r="A9"><v>8.0</v></c>{cell("B9", "last")}</row>'
    found = read("vlmevalkit", sheet(tmp_path / "a.xlsx", rows))
    assert [(one.foreign_id, one.text, one.place) for one in found] == [
        ("7", "=1+1", "row 2"),
        ("x/1", "0.5", "row 5"),
        ("8", "last", "row 9"),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f'<row r="2"><c r="A2"><v>1</v></c>{cell("B2", "<v>1</v>", "b")}</row>', "holds 'True' as bool"),
        (f'<row r="2"><c r="A2"><v>1</v></c>{cell("B2", "<v>#N/A</v>", "e")}</row>', "holds '#N/A' as str"),
        (f'<row r="2"><c r="A2"><v>1</v></c>{cell("B2", "<v>2026-01-02</v>", "d")}</row>', "' as date,"),
    ],
)
def test_a_cell_that_a_spreadsheet_program_has_changed_is_refused(tmp_path, row, message):
    said = refused("vlmevalkit", sheet(tmp_path / "a.xlsx", row))
    assert (
        said.startswith(" row 2, prediction: holds ") and message in said and "which was a text once" in said
    )


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("strings", "rows"),
    [
        (
            f'<!DOCTYPE w [<!ENTITY l0 "ha">{LAUGHS}]>',
            f'<row r="2">{cell("A2", "1")}{cell("B2", "&l9;")}</row>',
        ),
        ("", f'<row r="2">{cell("A2", "1")}{cell("B2", "<v>99</v>", "s")}</row>'),
        ("", f'<row r="two">{cell("A2", "1")}</row>'),
        ("", f'<row r="2">{cell("A2", "1")}'),
    ],
    ids=["billion laughs", "no such shared string", "no number", "cut off"],
)
def test_damaged_xml_is_one_line(tmp_path, strings, rows):
    said = refused("vlmevalkit", sheet(tmp_path / "a.xlsx", rows, strings))
    assert said.startswith(": cannot be read as a spreadsheet (")


def test_an_entity_that_names_a_file_brings_nothing_in(tmp_path):
    (tmp_path / "secret").write_text("secret words")
    doctype = f'<!DOCTYPE w [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>'
    path = sheet(tmp_path / "a.xlsx", f'<row r="2">{cell("A2", "1")}{cell("B2", "&x;")}</row>', doctype)
    try:
        assert "secret" not in str(read("vlmevalkit", path))
    except RemeasureError as error:
        assert "secret words" not in str(error)


def test_a_row_number_beyond_the_end_of_all_sheets_ends_the_reading(tmp_path):
    rows = f'<row r="2">{cell("A2", "1")}{cell("B2", "a")}</row><row r="99999999999">{cell("A9", "2")}</row>'
    assert [one.text for one in read("vlmevalkit", sheet(tmp_path / "a.xlsx", rows))] == ["a"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheet, "MAX_UNPACKED_BYTES", 2**20)
    path = sheet(tmp_path / "a.xlsx", "", parts={"xl/media/x.bin": bytes(2**20)})
    assert path.stat().st_size < 2**13
    assert refused("vlmevalkit", path).startswith(": unpacks to 10")


# -- TOSC --------------------------------------------------------------------------------------------------


def test_tosc_captions_are_known_by_number_and_state():
    found = read("tosc", DATA / "tosc.jsonl")
    assert short(found) == [
        ("000017-origin", "answered", "A dog on a lawn.", None),
        ("000017-removed", "answered", "An empty lawn.", None),
        ("000017-replaced", "answered", "", None),
        ("000018-origin", "cut_off", "A cat that", "cut_off"),
        ("000018-removed", "failed", None, "timeout: no reply within 60 s"),
    ]
    assert [one.model for one in found] == ["LLaVA_v1_5_7b-TSA-DPO"] * 3 + ["own", None]


@pytest.mark.parametrize(
    ("name", "item_id"),
    [
        # The table of the TOSC card, 1.1.
        ("17.jpg", "000017-origin"),
        ("benchmark/original/images/17.JPEG", "000017-origin"),
        ("17_masked_dog_repair.png", "000017-removed"),
        ("0042_masked_cell_phone_insert_teddy bear.png", "000042-replaced"),
        ("8_masked_t-shirt_repair.PNG", "000008-removed"),
        ("8_masked_a_insert_b_insert_c.png", "8_masked_a_insert_b_insert_c.png"),
        ("8_masked__repair.png", "8_masked__repair.png"),
        ("8_repair.png", "8_repair.png"),
        ("8_masked_dog.png", "8_masked_dog.png"),
        ("8_masked_dog_insert_.png", "8_masked_dog_insert_.png"),
        ("anything else", "anything else"),
        ("17", "17"),
        ("", ""),
        # Keys, as the card writes them and as our items are called.
        ("000017/removed", "000017-removed"),
        ("000017-removed", "000017-removed"),
        ("17/origin", "000017-origin"),
        ("17-replaced", "000017-replaced"),
        ("1234567-origin", "1234567-origin"),
        ("17/masked", "17/masked"),
        ("x/17/origin", "x/17/origin"),
        (f"{10**15}/origin", f"{10**15}/origin"),
        (".17_masked_dog_repair.png", ".17_masked_dog_repair.png"),
    ],
)
def test_tosc_file_names_and_keys_that_fit_the_grammar_become_ids_of_items(name, item_id):
    assert tosc.item_of(name) == item_id


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"}', " line 1: has none of key, question_id, image, expected exactly one"),
        (
            '{"key": "1", "image": "1.jpg", "text": "a"}',
            " line 1: has key and image of key, question_id, image",
        ),
        ('{"key": "1"}', " line 1: has none of caption, text, expected exactly one"),
        ('{"key": null, "text": "a"}', " line 1: key is missing, expected an id"),
    ],
)
def test_a_caption_without_one_id_and_one_text_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    assert refused("tosc", path).startswith(message)


def test_an_error_without_a_caption_is_a_failure(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"question_id": "17.jpg", "error": "out of memory"}\n')
    assert short(read("tosc", tmp_path / "a.jsonl")) == [("000017-origin", "failed", None, "out of memory")]
    (tmp_path / "a.jsonl").write_text('{"question_id": "17.jpg", "error": ""}\n')
    assert refused("tosc", tmp_path / "a.jsonl").startswith(" line 1: has none of caption, text")


# -- haiku.rag ---------------------------------------------------------------------------------------------


def test_a_haiku_report_gives_answers_by_the_question_s_own_id():
    found = read("haiku", DATA / "haiku.json")
    assert short(found) == [
        ("abc", "answered", "ANSWER: 4", None),
        ("0123abcd-ef01", "answered", "Four.", None),
        ("5a8b", "failed", None, "empty: output is null"),
        ("5_plain", "answered", "", None),
        (
            "def",
            "failed",
            None,
            "raised: UsageLimitExceeded: The next request would exceed the request_limit of 50",
        ),
    ]
    assert found[0].usage == {"prompt_tokens": 5210, "completion_tokens": 44} and found[1].usage is None
    assert {one.model for one in found} == {"Gemma-4-26B"}
    assert [one.place for one in found][::4] == ["cases[0]", "failures[0]"]


def test_a_haiku_conversation_gives_an_answer_for_each_turn():
    raised = "raised: UsageLimitExceeded: The next request would exceed the request_limit of 50"
    assert short(read("haiku", DATA / "haiku_live.json")) == [
        ("c1<::>1", "answered", "First.", None),
        ("c1<::>2", "answered", "Second.", None),
        ("c2<::>1", "failed", None, raised),
        ("c2<::>2", "failed", None, raised),
    ]


def test_a_haiku_table_cannot_tell_empty_from_missing():
    error = "empty: no output (a table cannot tell an empty answer from a missing one)"
    assert short(read("haiku", DATA / "haiku.csv")) == [
        ("abc", "answered", "ANSWER: 4", None),
        ("def", "failed", None, error),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], ": no evaluation report: it has no list `cases`"),
        ({"cases": {}}, " report: cases is an object, expected a list"),
        ({"cases": [3]}, " cases[0]: is the number 3, expected an object"),
        ({"cases": [{"name": "1", "output": ["doc-1"]}]}, " cases[0]: output is a list, expected a text"),
        (
            {"cases": [{"name": "1", "metadata": 5}]},
            " cases[0]: metadata is the number 5, expected an object",
        ),
        ({"cases": [{"metadata": {"id": ""}}]}, " cases[0], metadata: id is empty, expected an id"),
        ({"cases": [{"output": "a"}]}, " cases[0]: name is missing, expected an id"),
        (
            {"cases": [{"name": "1", "metadata": {"turns": [{"task_id": "t"}]}, "output": ["a", "b"]}]},
            " cases[0]: output is not one answer for each of 1 turns",
        ),
    ],
)
def test_what_is_no_report_of_answers_is_named(tmp_path, document, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    assert refused("haiku", path).startswith(message)


# -- any file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "is not JSON ("),
        (b"\xff", "is not UTF-8 at byte 0"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"a":' * 100_000, "is nested too deeply"),
        (b"NaN", "is the number nan, expected an object"),
        (b'"text"', "is a text, expected an object"),
        (b"1" * 5000, "is not JSON ("),
        (
            b'{"example_id": {}, "success": true, "final_response": "a"}',
            "example_id is an object, expected an id",
        ),
        (b'{"example_id": 1, "success": 1}', "success is neither true nor false"),
        (b'{"example_id": 1, "success": true, "usage": []}', "usage is a list, expected an object"),
        (b'{"some": 1}', "has neither example_id (a bench) nor raw_response (LiveVQA)"),
    ],
)
def test_a_broken_line_is_named_with_its_number(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"example_id": 0, "success": true, "final_response": "a"}\n\n' + line + b"\n"
    )
    said = refused("pixelrag", path)
    assert said.startswith(f" line 3: {message}") and len(said) < 300


def test_a_line_without_end_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b" " * 1001)
    assert refused("pixelrag", path).startswith(" line 1: is longer than 1000 bytes")


def test_what_is_no_plain_file_is_named(tmp_path):
    assert refused("tosc", tmp_path).startswith(": is a folder; name the answer file itself")
    assert refused("tosc", tmp_path / "gone").startswith(": cannot be read (No such file or directory)")
    os.mkfifo(tmp_path / "pipe")
    assert refused("tosc", tmp_path / "pipe").startswith(": is no plain file")


def test_an_unknown_format_is_named_with_a_guess():
    with pytest.raises(
        RemeasureError, match=r"format 'pixelrags' is not known \(did you mean 'pixelrag'\?\)"
    ):
        imports.by_name("pixelrags")
