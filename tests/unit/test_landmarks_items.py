"""Items of a benchmark of photographs: one per query, cut to its box."""

import io
import json
import zipfile

import msgspec
import pytest
from PIL import Image

import build_items
import rankkit
from remeasure import jsonl
from remeasure.files import sha256_bytes
from remeasure.instances import labels as labels_file
from remeasure.records import ImageRef, Item
from remeasure.studies import landmarks_items

STEMS = ("all_souls_000013", "paris_defense_000605", "leuvenA", "42")
REF = ImageRef(sha256="0" * 64, path="images.zip", member="x.jpg")


def named(*stems: str) -> labels_file.Labels:
    truths = [((0, 1), (2,), ())] * len(stems)
    return msgspec.structs.replace(rankkit.labels(4, *truths), qimlist=stems)


def test_a_query_is_an_item_of_its_landmark():
    items = [landmarks_items.from_query(named(*STEMS), query, (1, 2, 3, 4), REF) for query in range(4)]
    assert [item.item_id for item in items] == list(STEMS)
    assert [item.group for item in items] == ["all_souls", "paris_defense", "leuvenA", "42"]
    wanted = {"photo": "all_souls_000013", "box": [1, 2, 3, 4], "n": {"easy": 2, "hard": 1, "junk": 0}}
    assert items[0].meta == wanted and items[0].images == (REF,)


def test_stems_that_are_no_ids_become_safe_ones():
    item = landmarks_items.from_query(named("musée d'Orsay 3"), 0, (0, 0, 1, 1), REF)
    assert item.item_id.startswith("mus-e-d-Orsay-3-") and item.group == "musée d'Orsay"
    assert item.meta["photo"] == "musée d'Orsay 3"


@pytest.fixture
def benchmark(tmp_path):
    """Two queries: a red photograph with a blue box, and one whose tag says that it is to be turned."""
    photos = tmp_path / "photos"
    photos.mkdir()
    image = Image.new("RGB", (40, 30), "red")
    image.paste("blue", (8, 4, 24, 20))
    image.save(photos / "tower_1.jpg", quality=95, subsampling=0)
    tag = Image.Exif()
    tag[0x0112] = 6
    image.save(photos / "tower_2.jpg", quality=95, subsampling=0, exif=tag)
    found = msgspec.structs.replace(named("tower_1", "tower_2"), imlist=tuple("abcd"))
    truth = msgspec.structs.replace(found.gnd[0], bbx=(8.4, 3.5, 24.2, 19.6))
    found = msgspec.structs.replace(found, gnd=(truth, truth))
    return tmp_path, rankkit.put_labels(tmp_path, found), photos


def run(folder, labels, photos, n_items: int = 70, **more) -> int:
    words = ["--settings", json.dumps({"n_items": n_items}), "--study", "landmarks", "--bench", "roxford5k"]
    given = {"labels": labels, "queries": photos} | more
    for name, path in given.items():
        words += [f"--{name}", str(path)]
    out = ["--out", str(folder / "items.jsonl"), "--images-out", str(folder / "images.zip")]
    return build_items.main([*words, *out, "--record", str(folder / "items.json")])


def test_queries_are_cut_to_their_boxes_on_the_stored_pixels(benchmark):
    """Rounded, a half to the even number: 8, 4, 24, 20; a photograph with a tag is not turned first."""
    folder, labels, photos = benchmark
    assert run(folder, labels, photos) == 0
    items = list(jsonl.read(folder / "items.jsonl", Item))
    assert [item.meta["box"] for item in items] == [[8, 4, 24, 20]] * 2
    with zipfile.ZipFile(folder / "images.zip") as store:
        for item in items:
            (ref,) = item.images
            data = store.read(ref.member)
            assert sha256_bytes(data) == ref.sha256
            with Image.open(io.BytesIO(data)) as image:
                assert image.size == (16, 16)
                red, _, blue = image.getpixel((8, 8))
                assert blue > 240 and red < 15
    assert json.loads((folder / "items.json").read_text())["counts"]["items"] == 2


def test_the_first_queries_are_taken_and_a_zip_is_as_good_as_a_folder(benchmark):
    folder, labels, photos = benchmark
    with zipfile.ZipFile(folder / "photos.zip", "w") as store:
        store.write(photos / "tower_1.jpg", "tower_1.jpg")
    assert run(folder, labels, folder / "photos.zip", n_items=1) == 0
    assert [item.item_id for item in jsonl.read(folder / "items.jsonl", Item)] == ["tower_1"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda photos: (photos / "tower_2.jpg").unlink(), "tower_2.jpg is missing"),
        (
            lambda photos: (photos / "tower_2.jpg").write_bytes(b"no photo"),
            "query 'tower_2' cannot be decoded",
        ),
        (
            lambda photos: Image.new("RGB", (8, 4)).save(photos / "tower_2.jpg"),
            "has no pixel of a photograph",
        ),
    ],
)
def test_a_query_that_cannot_be_shown_is_an_error(benchmark, capsys, change, says):
    folder, labels, photos = benchmark
    change(photos)
    assert run(folder, labels, photos) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: ") and says in said, said


def test_queries_need_their_photographs(benchmark, capsys):
    folder, labels, photos = benchmark
    words = ["--settings", '{"n_items": 1}', "--study", "landmarks", "--bench", "b", "--labels", str(labels)]
    out = ["--out", str(folder / "i"), "--images-out", str(folder / "z"), "--record", str(folder / "r")]
    assert build_items.main([*words, *out]) == 2
    assert "give --queries" in capsys.readouterr().err
