"""Candidate lines from OCR boxes and from Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure.embedded.layout import Box, infobox_rows, join_lines, read_layout
from remeasure.embedded.lines import row, sentences, split_passages, text_lines, tile_lines, value_of
from remeasure.records import OcrImage, OcrLine


def page(*lines, width_px=875, height_px=1024) -> OcrImage:
    """An OCR result from (text, left, top, right, bottom) tuples."""
    return OcrImage(
        sha256="0" * 64,
        tile_id="p/0000",
        width_px=width_px,
        height_px=height_px,
        lines=tuple(OcrLine(text=text, box=tuple(box), confidence=0.99) for text, *box in lines),
    )


TITLE = ("Ruritania", 16, 38, 190, 74)
# Prose of 20 px height every 24 px, at the left of an infobox that begins at x = 556.
PROSE = [
    ("Ruritania is a small kingdom between Saxony", 17, 145, 522, 165),
    ("and Bohemia. It exports potash, timber", 16, 169, 519, 189),
    ("and romance.", 16, 193, 110, 213),
]
INFOBOX = [
    ("Ruritania", 658, 102, 751, 122),
    ("Capital", 556, 130, 614, 150),
    ("Strelsau", 671, 130, 740, 150),
    ("Total area", 556, 157, 631, 177),
    ("1,204 sq km", 671, 157, 774, 177),
    ("Coastline", 556, 184, 628, 204),
    ("0 km", 671, 184, 710, 204),
]


def test_a_page_gives_titled_rows_and_then_whole_sentences():
    assert tile_lines(page(TITLE, *PROSE, *INFOBOX)) == [
        "Ruritania - Capital: Strelsau",
        "Ruritania - Total area: 1,204 sq km",
        "Ruritania - Coastline: 0 km",
        "Ruritania: Ruritania is a small kingdom between Saxony and Bohemia.",
        "Ruritania: It exports potash, timber and romance.",
    ]


def test_the_caption_of_an_infobox_is_no_value():
    assert not any("Ruritania: Ruritania" == line for line in tile_lines(page(TITLE, *PROSE, *INFOBOX)))


def test_a_wrapped_label_takes_the_value_on_its_first_line():
    wrapped = [
        ("Life expectancy", 556, 211, 664, 231),
        ("at birth", 556, 232, 614, 252),
        ("82.6 years", 671, 211, 745, 231),
    ]
    assert "Ruritania - Life expectancy at birth: 82.6 years" in tile_lines(
        page(TITLE, *PROSE, *INFOBOX, *wrapped)
    )


def test_a_wrapped_value_belongs_to_the_label_at_its_middle():
    wrapped = [
        ("Independence", 556, 221, 660, 241),
        ("no official date", 671, 211, 787, 231),
        ("of independence", 671, 232, 799, 252),
    ]
    assert "Ruritania - Independence: no official date of independence" in tile_lines(
        page(TITLE, *PROSE, *INFOBOX, *wrapped)
    )


def test_label_and_value_that_wrap_both_stay_one_row():
    wrapped = [
        ("National", 556, 211, 623, 231),
        ("symbol(s)", 556, 232, 632, 252),
        ("red lion,", 671, 211, 740, 231),
        ("white rose", 671, 232, 739, 252),
    ]
    assert "Ruritania - National symbol(s): red lion, white rose" in tile_lines(
        page(TITLE, *PROSE, *INFOBOX, *wrapped)
    )


def test_label_and_value_read_as_one_box_are_cut_at_the_value_column():
    merged = [("Time difference UTC+1", 556, 211, 727, 231)]
    assert "Ruritania - Time difference: UTC+1" in tile_lines(page(TITLE, *PROSE, *INFOBOX, *merged))


def test_a_heading_stands_before_the_sentences_below_it():
    heading = ("Climate", 15, 240, 100, 267)
    below = ("cold and dry", 17, 290, 120, 310)
    assert "Ruritania - Climate: cold and dry" in tile_lines(page(TITLE, *PROSE, heading, below, *INFOBOX))


def test_a_wide_table_gives_one_line_per_cell_with_the_heading_of_its_column():
    table = [
        ("Year", 16, 300, 60, 320),
        ("Population", 300, 300, 400, 320),
        ("Exports", 600, 300, 680, 320),
        ("1990", 16, 330, 60, 350),
        ("1,234", 300, 330, 350, 350),
        ("17 t", 600, 330, 640, 350),
        ("2000", 16, 360, 60, 380),
        ("1,300", 300, 360, 350, 380),
        ("19 t", 600, 360, 640, 380),
        ("2010", 16, 390, 60, 410),
        ("1,400", 300, 390, 350, 410),
        ("21 t", 600, 390, 640, 410),
    ]
    assert tile_lines(page(TITLE, *table)) == [
        "Ruritania - 1990, Population: 1,234",
        "Ruritania - 1990, Exports: 17 t",
        "Ruritania - 2000, Population: 1,300",
        "Ruritania - 2000, Exports: 19 t",
        "Ruritania - 2010, Population: 1,400",
        "Ruritania - 2010, Exports: 21 t",
    ]


def test_a_title_of_two_lines_is_joined():
    second = ("and the Isles", 16, 76, 200, 110)
    assert read_layout(page(TITLE, second, *PROSE)).title == "Ruritania and the Isles"


def test_without_large_text_near_the_top_there_is_no_title():
    assert read_layout(page(*PROSE)).title == ""


def test_a_picture_without_text_has_no_lines():
    assert tile_lines(page()) == []


def test_a_lone_piece_of_text_is_a_line_itself():
    assert tile_lines(page(TITLE)) == ["Ruritania"]


def test_labels_without_values_give_no_rows():
    assert infobox_rows([Box("Capital", 556, 130, 614, 150)], 20) == []


def test_a_hyphen_at_a_line_end_joins_without_a_blank():
    assert join_lines(["self-", "governing"]) == "self-governing"
    assert join_lines(["since 1990 -", "and later"]) == "since 1990 - and later"


def test_markdown_gives_the_same_kind_of_lines():
    text = (
        "# Ruritania\n\n| Capital | Strelsau |\n|---|---|\n| Total area | 1,204 sq km |\n\n"
        "It exports **potash**. See [Bohemia](b.html).\n\n## Climate\n\ncold and dry"
    )
    assert text_lines(text) == [
        "Ruritania - Capital: Strelsau",
        "Ruritania - Total area: 1,204 sq km",
        "Ruritania: It exports potash.",
        "Ruritania: See Bohemia.",
        "Ruritania - Climate: cold and dry",
    ]


def test_a_markdown_table_of_three_columns_names_row_and_column():
    assert text_lines("| Year | Population | Exports |\n|---|---|---|\n| 1990 | 1,234 | 17 t |") == [
        "1990, Population: 1,234",
        "1990, Exports: 17 t",
    ]


def test_list_items_are_lines_of_their_own():
    assert text_lines("- coal: 12 t\n- iron: 3 t\n  and ore") == ["coal: 12 t", "iron: 3 t and ore"]


@pytest.mark.parametrize("rule", ["\n\n---\n\n", "\n\n\n"])
def test_a_title_ends_where_the_next_passage_begins(rule):
    assert text_lines(f"# Ruritania\n\nOld.{rule}Cold.") == ["Ruritania: Old.", "Cold."]


def test_passages_are_split_at_rules_and_not_at_single_blank_lines():
    assert split_passages("a\n\nb\n\n---\n\nc") == ["a\n\nb", "c"]
    assert split_passages(" \n ") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One. Two!", ["One.", "Two!"]),
        ("The river St. Lawrence is long. It freezes.", ["The river St. Lawrence is long.", "It freezes."]),
        ("J. Smith ruled. (Then he left.)", ["J. Smith ruled.", "(Then he left.)"]),
        ("It is 3.5 m. high and old.", ["It is 3.5 m. high and old."]),
    ],
)
def test_sentences_end_at_full_stops_but_not_at_abbreviations(text, expected):
    assert sentences(text) == expected


def test_the_value_of_a_row_can_be_read_back():
    assert value_of(row("Ruritania", "Capital", "Strelsau")) == "Strelsau"
    assert value_of("Plain prose.") is None


@given(st.text())
def test_any_text_gives_lines_without_breaks_or_repeats(text):
    lines = text_lines(text)
    assert len(lines) == len(set(lines))
    assert all(line.strip() and "\n" not in line for line in lines)


coordinate = st.integers(0, 900)


@given(st.lists(st.tuples(st.text(max_size=12), coordinate, coordinate, coordinate, coordinate), max_size=25))
def test_any_boxes_give_lines(boxes):
    tidy = [(t, min(a, c), min(b, d), max(a, c) + 1, max(b, d) + 1) for t, a, b, c, d in boxes]
    lines = tile_lines(page(*tidy))
    assert len(lines) == len(set(lines))


def test_the_bold_words_that_running_text_begins_with_are_the_title_of_the_whole_passage():
    text = "| Capital | Strelsau |\n|---|---|\n\n**Ruritania** is old. It is cold.\n\n**Climate:** Mild."
    assert text_lines(text) == [
        "Ruritania - Capital: Strelsau",
        "Ruritania: Ruritania is old.",
        "Ruritania: It is cold.",
        "Ruritania: Climate: Mild.",
    ]


def test_a_table_with_a_label_seen_before_begins_another_passage():
    text = (
        "| Capital | Strelsau |\n\n**Ruritania** is old.\n\n| Capital | Edelweiss |\n\n**Graustark** is new."
    )
    assert text_lines(text) == [
        "Ruritania - Capital: Strelsau",
        "Ruritania: Ruritania is old.",
        "Graustark - Capital: Edelweiss",
        "Graustark: Graustark is new.",
    ]


def test_an_infobox_beside_a_table_keeps_its_rows():
    # Both have rows of nearly one height; the table is narrow and stands where prose usually does.
    table = [
        cell
        for number in range(6)
        for cell in (
            (f"Figure {number}", 20, 300 + 25 * number, 110, 320 + 25 * number),
            (f"{number} km", 190, 300 + 25 * number, 240, 320 + 25 * number),
        )
    ]
    infobox = [
        cell
        for number in range(6)
        for cell in (
            (f"Label {number}", 567, 306 + 24 * number, 650, 326 + 24 * number),
            (f"value {number}", 677, 306 + 24 * number, 740, 326 + 24 * number),
        )
    ]
    lines = tile_lines(page(TITLE, *table, *infobox))
    assert lines[:6] == [f"Ruritania - Label {number}: value {number}" for number in range(6)]
    assert lines[6:] == [f"Ruritania - Figure {number}: {number} km" for number in range(6)]


def test_letters_that_ocr_sees_in_a_large_picture_are_left_out():
    assert (
        tile_lines(page(TITLE, *PROSE, *INFOBOX, ("X", 583, 64, 725, 151)))[0]
        == "Ruritania - Capital: Strelsau"
    )
