"""Question files: what is accepted, and the line that says what is wrong."""

import itertools

import pytest

from remeasure import items, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.items import OwnSettings
from remeasure.records import ImageRef, Item, Page
from remeasure.studies import pixelrag_items

PAGES = [Page(page_id="mount-x", path="Mount X", title="Mount X", set="all")]


def own(path, pages, n_items, **more):
    settings = OwnSettings(own="mine", n_items=n_items, **more)
    return items.own(path, settings, pages, pixelrag_items.units)


def item(**changes) -> Item:
    return Item(**{"item_id": "q1", "question": "Why?", "references": ("so",), "group": "g"} | changes)


def write(tmp_path, *found: Item):
    path = tmp_path / "items.jsonl"
    jsonl.write(path, found)
    return path


def test_good_questions_are_read(tmp_path):
    found = [item(), item(item_id="Q_2-b")]
    assert list(items.read(write(tmp_path, *found))) == found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "holds no questions"),
        ([item(), item()], "line 2: item_id 'q1' stands already in line 1"),
        ([item(item_id="a b")], "line 1: item_id 'a b' is not allowed"),
        ([item(item_id="x" * 65)], "is not allowed"),
        ([item(question=" ")], "item 'q1' has an empty question"),
        ([item(references=())], "item 'q1' has no answer"),
        ([item(references=("a", ""))], "item 'q1' has no answer or an empty one"),
        (
            [item(images=(ImageRef(sha256="0" * 64, path="absent.png"),))],
            "line 1: item 'q1' shows absent.png",
        ),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, found, said):
    with pytest.raises(RemeasureError, match=said) as caught:
        list(items.read(write(tmp_path, *found)))
    assert "\n" not in str(caught.value)


def test_a_broken_line_names_its_number(tmp_path):
    path = write(tmp_path, item())
    path.write_text(path.read_text() + '{"item_id": 3}\n')
    with pytest.raises(RemeasureError, match="line 2"):
        list(items.read(path))


def test_a_changed_image_is_noticed_where_asked_for(tmp_path):
    picture = tmp_path / "a.png"
    pixels = b"\x89PNG\r\n\x1a\n one"
    picture.write_bytes(pixels)
    path = write(tmp_path, item(images=(ImageRef(sha256=sha256_bytes(pixels), path=str(picture)),)))
    assert len(list(items.read(path, check_images=True))) == 1
    picture.write_bytes(b"two")
    with pytest.raises(RemeasureError, match="SHA-256"):
        list(items.read(path, check_images=True))


def test_a_file_that_is_no_image_is_named(tmp_path):
    (tmp_path / "a.png").write_bytes(b"text")
    image = ImageRef(sha256=sha256_bytes(b"text"), path=str(tmp_path / "a.png"))
    path = write(tmp_path, item(images=(image,)))
    with pytest.raises(RemeasureError, match=r"line 1: item .* not an image"):
        list(items.read(path, check_images=True))


def test_own_questions_may_name_pages_by_path(tmp_path):
    path = write(tmp_path, item(relevant=("Mount X",)), item(item_id="q2"))
    assert list(own(path, PAGES, 1)) == [item(relevant=("mount-x",))]


def test_own_questions_about_unknown_pages_are_refused(tmp_path):
    path = write(tmp_path, item(relevant=("Mount Y",)))
    with pytest.raises(RemeasureError, match="names page 'Mount Y'.*did you mean 'Mount X'"):
        list(own(path, PAGES, None))


def test_own_questions_are_checked_to_the_end_of_the_file(tmp_path):
    path = write(tmp_path, item(), item(item_id="q2", question=" "))
    with pytest.raises(RemeasureError, match="line 2: item 'q2' has an empty question"):
        list(own(path, PAGES, 1))


def test_own_items_of_a_study_without_pages_name_none(tmp_path):
    path = write(tmp_path, item())
    assert list(own(path, None, 1)) == [item()]
    with pytest.raises(RemeasureError, match="names page 'Mount X', which is not among the 0 pages"):
        list(own(write(tmp_path, item(relevant=("Mount X",))), None, 1))


def test_own_items_need_answers_only_where_the_settings_say_so(tmp_path):
    path = write(tmp_path, item(references=()))
    assert list(own(path, None, None, with_answers=False)) == [item(references=())]
    with pytest.raises(RemeasureError, match="has no answer"):
        list(own(path, None, None))


def test_own_items_are_counted_in_units(tmp_path):
    found = [item(item_id=name, group=name[0]) for name in ("a1", "a2", "b1", "b2", "c1")]

    def pairs(members):
        for _, unit in itertools.groupby(members, key=lambda one: one.group):
            yield tuple(unit)

    path = write(tmp_path, *found)
    assert [one.item_id for one in items.own(path, OwnSettings(own="x", n_items=2), None, pairs)] == [
        *("a1", "a2", "b1", "b2")
    ]
