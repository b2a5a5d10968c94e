import msgspec
import numpy as np
import pytest

from encoderkit import item, page, settings
from remeasure import provenance, retrieval, vectors
from remeasure.errors import RemeasureError
from remeasure.records import (
    Ranked,
)
from remeasure.retrieval import Fusion, OpenIndex, PhotoRoute, SearchSettings
from remeasure.vectors import IndexSettings

ORDER = ("peru/0000", "peru/0001", "chad/0000", "oman/0000")


# -- ranking of items, with vectors by hand ----------------------------------------------------------------


def opened(rows, order, unit="tiles"):
    rows = np.float32(rows)
    identity = vectors.Identity(
        unit=unit,
        encoder="by hand",
        model_sha256="m",
        dim=rows.shape[1],
        normalised=True,
        pooling="cls",
        input_limit="x",
    )
    index, _ = vectors.build_index(rows, IndexSettings(kind="flat", encoder=settings()))
    return OpenIndex(index, order, {name: row for row, name in enumerate(order)}, identity)


TILE_ROWS = [[1, 0, 0], [0.8, 0.6, 0], [0, 1, 0], [0, 0, 1]]


def by_hand(texts):
    return np.float32([{"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]}[text] for text in texts])


def rank(items, photo_route=None, n_docs=2, text=None):
    fusion = Fusion(text_weight=1, photo_weight=2, rank_constant=10) if photo_route else None
    told = SearchSettings(
        n_docs=n_docs, text=settings(), photo=settings() if photo_route else None, fusion=fusion
    )
    return [
        ranked
        for _, ranked in retrieval.rank(items, told, text or opened(TILE_ROWS, ORDER), by_hand, photo_route)
    ]


def photo_route(tile_of, rows=((1, 0), (0.8, 0.6), (0, 1)), queries=((1, 0),)):
    order = ("peru/picture-00", "peru/picture-01", "oman/picture-00")
    return PhotoRoute(opened(rows, order, "pictures"), lambda item: np.float32(queries), tile_of)


OWN_TILES = {
    "peru/picture-00": "peru/0000",
    "peru/picture-01": "peru/0001",
    "oman/picture-00": "oman/0000",
}


def test_text_alone_ranks_by_cosine():
    assert rank([item("a", "x"), item("b", "z")]) == [
        Ranked(item_id="a", ids=("peru/0000", "peru/0001"), scores=(1.0, 0.8)),
        Ranked(item_id="b", ids=("oman/0000", "peru/0000"), scores=(1.0, 0.0)),
    ]


def test_an_item_without_image_uses_the_text_route_alone_although_there_is_a_photo_route():
    assert rank([item("a", "x")], photo_route(OWN_TILES)) == rank([item("a", "x")])


def test_an_item_with_image_fuses_both_routes():
    # Text z: oman 1/11, peru/0000 1/12. Photo: peru/0000 2/11, peru/0001 2/12. Sums .265152, .166667, .090909
    found = rank([item("a", "z", n_images=1)], photo_route(OWN_TILES), n_docs=2)[0]
    assert found.ids == ("peru/0000", "peru/0001") and found.scores == (0.265152, 0.166667)


def test_pictures_on_one_tile_count_once_and_more_are_looked_for():
    shared = OWN_TILES | {"peru/picture-01": "peru/0000"}
    route = photo_route(shared)
    assert route.search(item("a", "x", n_images=1), 2) == ["peru/0000", "oman/0000"]


def test_of_several_images_the_best_match_counts():
    route = photo_route(OWN_TILES, queries=((0, 1), (1, 0)))
    assert route.search(item("a", "x", n_images=2), 3) == ["peru/0000", "oman/0000", "peru/0001"]


def test_too_few_hits_and_blank_questions_are_errors_that_name_the_item():
    """P12: a list that is short for no reason is never passed on."""
    text = opened(TILE_ROWS, ORDER)

    class Half:
        ntotal = 4

        def search(self, query, k):
            return np.full((1, k), 0.5), np.array([[2] + [-1] * (k - 1)])

        def reconstruct_batch(self, rows):
            return np.float32(TILE_ROWS)[rows]

    with pytest.raises(RemeasureError, match="item a: 1 hits, expected 2"):
        rank([item("a", "x")], text=text._replace(index=Half()))
    with pytest.raises(RemeasureError, match="item b: has no question"):
        rank([item("b", "  ")])


def test_more_documents_than_there_are_gives_all():
    assert len(rank([item("a", "x")], n_docs=9)[0].ids) == 4


def test_a_picture_stands_for_the_tile_under_it_or_the_first_indexed_tile_of_its_page():
    shown = page(boxes=((0, 2, 4, 4), (0, 12, 4, 4)))
    indexed = opened([[1, 0], [0, 1]], ("p/picture-00", "p/picture-01"), "pictures")
    both = opened([[1, 0], [0, 1]], ("p/0000", "p/0001"))
    first = opened([[1, 0]], ("p/0000",))
    assert retrieval.tiles_of_pictures([shown], indexed, both) == {
        "p/picture-00": "p/0000",
        "p/picture-01": "p/0001",
    }
    assert set(retrieval.tiles_of_pictures([shown], indexed, first).values()) == {"p/0000"}
    with pytest.raises(RemeasureError, match="picture p/picture-00 is indexed"):
        retrieval.tiles_of_pictures([shown], indexed, opened([[1, 0]], ("q/0000",)))


def test_hits_are_counted_up_to_each_rank():
    hits = retrieval.Hits(3)
    hits.add(item("a", "x"), Ranked(item_id="a", ids=("chad/0000", "peru/0000"), scores=(1.0, 0.5)))
    hits.add(item("b", "x", relevant=()), Ranked(item_id="b", ids=("chad/0000",), scores=(1.0,)))
    hits.add(item("c", "x", ("chad",)), Ranked(item_id="c", ids=("chad/0000",), scores=(1.0,)))
    assert hits.at == {1: 1, 2: 2, 3: 2} and (hits.n_items, hits.n_with_relevant) == (3, 2)


# -- an index on the node's own disk -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_an_index_on_local_scratch_finds_the_same_and_is_checked(tmp_path, monkeypatch, kind):
    rows = np.random.default_rng(4).standard_normal((300, 16)).astype("f4")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    numbers = {"nlist": 4, "nprobe": 2, "seed": 1} if kind == "ivf" else {}
    built, _ = vectors.build_index(rows, IndexSettings(kind=kind, encoder=settings(), **numbers))
    index, order, record = (tmp_path / name for name in ("index.faiss", "order.txt", "index.json"))
    vectors.write_index(index, built)
    order.write_text("".join(f"u{n}\n" for n in range(300)))
    identity = opened(TILE_ROWS, ORDER).identity
    provenance.write_stage(
        record,
        stage="build_index",
        script="build_index.py",
        settings={},
        inputs=[],
        outputs=[index],
        facts={
            "identity": msgspec.to_builtins(msgspec.structs.replace(identity, dim=16)),
            "order_sha256": vectors.order_sha256(f"u{n}" for n in range(300)),
        },
    )

    def found():
        return [retrieval.open_index(index, record, order).search(row, 5) for row in rows[:20]]

    monkeypatch.delenv("REMEASURE_SCRATCH", raising=False)
    plain = found()
    monkeypatch.setenv("REMEASURE_SCRATCH", str(tmp_path / "local"))
    assert found() == plain
    (copy,) = (tmp_path / "local").rglob("index.faiss")
    assert copy.read_bytes() == index.read_bytes()
    # A damaged index is damaged here too, and it is the original that is named.
    data = bytearray(index.read_bytes())
    data[-1] ^= 1
    index.write_bytes(data)
    with pytest.raises(RemeasureError, match=f"{index}: not the index that {record} was written for"):
        found()
