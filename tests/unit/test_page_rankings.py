"""Rankings of photographs on a page: each photograph once, labels as frames, names never read as markup."""

import base64
import io
from pathlib import Path

from PIL import Image

from remeasure.errors import RemeasureError
from remeasure.page import rankings
from remeasure.records import Item, Placed, PlacedPhoto


def _jpeg() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(out, "JPEG")
    return out.getvalue()


class Store:
    """Holds one photograph."""

    def read(self, stem: str) -> bytes:
        if stem != "all_souls_1":
            raise RemeasureError(f"{stem} is missing")
        return _jpeg()


PLACED = Placed(
    n_gallery=4993,
    n_positives={"easy": 1, "medium": 2, "hard": 0},
    positions={"easy": (0,), "medium": (0, 1239), "hard": ()},
    n_tied=2,
    top=(
        PlacedPhoto(photo="all_souls_1", score=0.91, label="easy"),
        PlacedPhoto(photo="<script>x</script>", score=0.5),
        PlacedPhoto(photo="all_souls_1", score=0.4, label="junk"),
    ),
)


def test_a_photograph_stands_in_the_page_once_however_often_it_is_ranked():
    album = rankings.Album()
    said = [rankings.strip(PLACED, Path("a"), Store(), album) for _ in range(3)]
    assert album.style.count("data:image/jpeg") == 1
    assert said[0].count('class="easy r1"') == 1 and said[0].count('class="junk r1"') == 1


def test_a_distractor_is_its_name_and_names_are_no_markup():
    said = rankings.strip(PLACED, Path("a"), Store(), rankings.Album())
    assert "<script>" not in said and "&lt;script&gt;" in said and 'class="wrong "' in said


def test_ranks_are_told_from_one_and_a_difficulty_without_positives_is_none():
    said = rankings.positions(PLACED)
    assert "2 positives at 1, 1,240" in said
    assert "no positive: left out of the mean" in said
    assert "2 labelled photographs share a score" in said


def test_without_rankings_a_page_has_no_further_style():
    assert rankings.Album().style == ""


def test_a_query_is_shown_with_the_photograph_that_it_was_cut_out_of():
    """A red photograph of 40 x 30 with a box from 8, 6 to 30, 20: a darker frame there, and not elsewhere."""
    item = Item(item_id="q", question="", group="g", meta={"photo": "all_souls_1", "box": [8, 6, 30, 20]})
    (url,) = rankings.whole(item, Store())
    shown = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    assert shown.size == (40, 30)
    greens = {at: shown.getpixel(at)[1] for at in ((9, 12), (20, 7), (28, 18), (20, 13), (2, 2), (37, 27))}
    assert [at for at, green in greens.items() if green > 15] == [(9, 12), (20, 7), (28, 18)]
    assert rankings.whole(Item(item_id="q", question="", group="g", meta={"photo": "gone"}), Store()) == ()
    gone = Item(item_id="q", question="", group="g", meta={"photo": "gone", "box": [8, 6, 30, 20]})
    assert rankings.whole(gone, Store()) == ("",)
