import time

import h5py
import msgspec
import numpy as np
import pytest

from remeasure import ranking, vectors
from remeasure.encoders import EncoderSettings
from remeasure.errors import RemeasureError
from remeasure.vectors import Identity, IndexSettings

TILES = EncoderSettings(unit="tiles", model="bge-small-en-v1.5", max_tokens=512)


def identity(dim=2, **other):
    fields = dict(unit="tiles", encoder="test", model_sha256="m", dim=dim, normalised=True, pooling="cls")
    return Identity(**fields | {"input_limit": "8 tokens"} | other)


def write(folder, rows, ids, what=None):
    blocks = [(ids, np.array(rows, dtype=np.float32))]
    return vectors.write_descriptors(
        folder / "d.h5", folder / "order.txt", blocks, what or identity(len(rows[0]))
    )


def read(folder):
    return vectors.read_descriptors(folder / "d.h5", folder / "order.txt")


def unit_rows(n, dim, seed=0):
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_what_was_written_comes_back(tmp_path):
    assert write(tmp_path, [[1, 0], [0.6, 0.8]], ["a/0000", "b/0000"]) == 2
    found = read(tmp_path)
    assert found.order == ("a/0000", "b/0000")
    assert found.vectors.tolist() == np.array([[1, 0], [0.6, 0.8]], dtype=np.float32).tolist()
    assert found.identity == identity()
    assert (tmp_path / "order.txt").read_text() == "a/0000\nb/0000\n"


def test_equal_content_is_equal_bytes_at_another_time_and_in_other_blocks(tmp_path):
    rows = unit_rows(5, 3)
    for name, cut in (("one", 5), ("two", 2)):
        blocks = [(list("abcde")[:cut], rows[:cut]), (list("abcde")[cut:], rows[cut:])]
        (tmp_path / name).mkdir()
        vectors.write_descriptors(
            tmp_path / name / "d.h5", tmp_path / name / "order.txt", blocks, identity(3)
        )
        time.sleep(1.1)  # HDF5 would note whole seconds.
    assert (tmp_path / "one/d.h5").read_bytes() == (tmp_path / "two/d.h5").read_bytes()


@pytest.mark.parametrize(
    ("rows", "ids", "says"),
    [
        ([[1, 0], [0, 0]], ["a", "b"], "vector of b (row 1) is zero"),
        ([[1, 0], [np.nan, 0]], ["a", "b"], "vector of b (row 1) is not finite"),
        ([[1, 0], [3, 4]], ["a", "b"], "vector of b (row 1) is not normalised (norm 5)"),
        ([[1, 0]], ["a", "b"], "1 vectors, but the order names 2"),
        ([[1, 0], [0, 1]], ["a", "a"], "'a' is empty, has a line end, or stands there twice"),
        ([[1, 0]], ["a\nb"], "has a line end"),
        ([[1, 0, 0]], ["a"], "of 3 dimensions, expected float32 of 2"),
    ],
)
def test_bad_vectors_are_refused_with_the_id_and_leave_nothing(tmp_path, rows, ids, says):
    with pytest.raises(RemeasureError) as caught:
        write(tmp_path, rows, ids, identity(2))
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_embed_is_an_error(tmp_path):
    with pytest.raises(RemeasureError, match="nothing to embed"):
        vectors.write_descriptors(tmp_path / "d.h5", tmp_path / "o.txt", [], identity())


def test_damaged_and_changed_files_are_refused_on_load(tmp_path):
    write(tmp_path, [[1, 0], [0, 1]], ["a", "b"])
    (tmp_path / "order.txt").write_text("a\n")
    with pytest.raises(RemeasureError, match="2 vectors, but the order names 1"):
        read(tmp_path)
    (tmp_path / "order.txt").write_text("a\nb\n")
    with h5py.File(tmp_path / "d.h5", "a") as store:
        store["descriptors"][0] = [2, 0]
    with pytest.raises(RemeasureError, match="is not normalised"):
        read(tmp_path)
    (tmp_path / "d.h5").write_bytes((tmp_path / "d.h5").read_bytes()[:100])
    with pytest.raises(RemeasureError, match="not a descriptor file"):
        read(tmp_path)
    (tmp_path / "order.txt").write_text("")
    with pytest.raises(RemeasureError, match="names no ids"):
        read(tmp_path)


def test_double_precision_in_the_file_is_refused(tmp_path):
    (tmp_path / "order.txt").write_text("a\n")
    with h5py.File(tmp_path / "d.h5", "w") as store:
        store["descriptors"] = np.array([[1.0, 0.0]])
        store["descriptors"].attrs["identity"] = msgspec.json.encode(identity()).decode()
    with pytest.raises(RemeasureError, match="float64 of 2"):
        read(tmp_path)


def search(index, queries, k):
    return [(list(rows), list(values)) for rows, values in vectors.search_index(index, queries, k)]


def test_ids_are_row_positions_and_ties_go_to_the_lower_one():
    rows = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], dtype=np.float32)
    index, _ = vectors.build_index(rows, IndexSettings(kind="flat", encoder=TILES))
    assert search(index, np.array([[1, 0]], dtype=np.float32), 3) == [([1, 3, 0], [1.0, 1.0, 0.0])]


def test_a_hundred_twins_still_give_the_lowest_positions():
    rows = np.repeat(np.array([[0.6, 0.8]], dtype=np.float32), 100, axis=0)
    index, _ = vectors.build_index(rows, IndexSettings(kind="flat", encoder=TILES))
    assert search(index, np.array([[1, 0]], dtype=np.float32), 3)[0][0] == [0, 1, 2]


def test_flat_index_equals_exact_search(tmp_path):
    rows, queries = unit_rows(500, 16), unit_rows(20, 16, seed=1)
    index, facts = vectors.build_index(rows, IndexSettings(kind="flat", encoder=TILES))
    vectors.write_index(tmp_path / "i", index)
    found = search(vectors.read_index(tmp_path / "i", 500, 16), queries, 7)
    for query, (ids, values) in zip(queries, found, strict=True):
        exact = rows.astype(float) @ query.astype(float)
        assert ids == list(ranking.top_k(np.round(exact, 6), 7))
        assert values == pytest.approx(exact[ids], abs=1e-6)
    assert facts == {}


def test_inverted_lists_are_seeded_and_exact_when_all_are_probed():
    rows, queries = unit_rows(400, 8), unit_rows(10, 8, seed=1)
    made = [
        vectors.build_index(rows, IndexSettings(kind="ivf", nlist=8, nprobe=8, seed=3, encoder=TILES))
        for _ in range(2)
    ]
    for index, _ in made:
        index.make_direct_map()
    flat, _ = vectors.build_index(rows, IndexSettings(kind="flat", encoder=TILES))
    assert search(made[0][0], queries, 5) == search(made[1][0], queries, 5) == search(flat, queries, 5)
    assert made[0][1] == made[1][1] and made[0][1]["training_rows"] == 400


def test_filler_ids_never_come_out_when_few_lists_are_probed(tmp_path):
    rows = unit_rows(40, 8)
    settings = IndexSettings(kind="ivf", nlist=20, nprobe=1, seed=0, encoder=TILES)
    index, _ = vectors.build_index(rows, settings)
    vectors.write_index(tmp_path / "i", index)
    opened = vectors.read_index(tmp_path / "i", 40, 8)
    lengths = set()
    for ids, values in search(opened, rows[:10], 30):
        assert all(0 <= row < 40 for row in ids) and len(ids) == len(values) == len(set(ids))
        lengths.add(len(ids))
    assert max(lengths) < 30


def test_training_sample_is_drawn_from_the_seed():
    assert list(vectors._training_sample(5, 10, 0)) == [0, 1, 2, 3, 4]
    drawn = vectors._training_sample(1000, 10, 7)
    assert len(set(drawn)) == 10 and list(drawn) == sorted(drawn)
    assert (
        list(drawn)
        == list(vectors._training_sample(1000, 10, 7))
        != list(vectors._training_sample(1000, 10, 8))
    )


@pytest.mark.parametrize(
    "numbers", [{}, {"nlist": 9, "nprobe": 1, "seed": 0}, {"nlist": 2, "nprobe": 3, "seed": 0}]
)
def test_inverted_lists_with_impossible_numbers_are_refused(numbers):
    with pytest.raises(RemeasureError, match="index settings"):
        vectors.build_index(unit_rows(8, 4), IndexSettings(kind="ivf", encoder=TILES, **numbers))


def test_an_index_of_another_size_or_a_torn_one_is_refused(tmp_path):
    index, _ = vectors.build_index(unit_rows(8, 4), IndexSettings(kind="flat", encoder=TILES))
    vectors.write_index(tmp_path / "i", index)
    with pytest.raises(RemeasureError, match="holds 8 vectors of 4 dimensions"):
        vectors.read_index(tmp_path / "i", 9, 4)
    (tmp_path / "i").write_bytes((tmp_path / "i").read_bytes()[:40])
    with pytest.raises(RemeasureError, match="not a readable index"):
        vectors.read_index(tmp_path / "i", 8, 4)
    with pytest.raises(RemeasureError, match="not a readable index"):
        vectors.read_index(tmp_path / "absent", 8, 4)
