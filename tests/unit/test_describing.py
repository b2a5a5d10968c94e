import json
import logging

import numpy as np
import pytest

from photokit import Means, benchmark, jpeg, shard, truth
from remeasure.errors import RemeasureError
from remeasure.instances import describing, pieces, repeating, vectors_file
from remeasure.instances.vectors_file import Column, Rows

ABOUT = {"extractor": "means"}


def described(piece, out, describer=None, **options):
    options = {"rule": "rounded", "threads": 2} | options
    return describing.describe(piece, describer or Means(), out, ABOUT, **options)


@pytest.fixture
def small(tmp_path):
    """Nine photographs of two sizes; the fourth is cut off, the sixth is none."""
    gallery = {f"g{i}": jpeg(*((64, 48), (48, 64))[i % 2], seed=i) for i in range(9)}
    gallery["g3"] = gallery["g3"][: len(gallery["g3"]) * 2 // 3]
    gallery["g5"] = b"no photograph"
    return benchmark(tmp_path / "b", gallery, {"q0": jpeg(seed=20), "q1": jpeg(seed=21)})


# -- what comes out ----------------------------------------------------------------------------------------


def test_every_photograph_has_a_row_in_order_whatever_becomes_of_it(tmp_path, small, caplog):
    caplog.set_level(logging.WARNING)
    with pieces.open_benchmark("1of1", *small) as piece:
        counts = described(piece, tmp_path / "o.h5")
    rows = Rows(tmp_path / "o.h5")
    assert counts == {"ok": 7, "truncated": 1, "undecodable": 1}
    assert rows.names() == [f"g{i}" for i in range(9)]
    assert rows.read("status").tolist() == [0, 0, 0, 1, 0, 2, 0, 0, 0]
    assert rows.read("size")[:2].tolist() == [[64, 48], [48, 64]]
    assert rows.read("size")[5].tolist() == [0, 0]
    assert not rows.read("cls")[5].any() and rows.read("cls")[3].any()
    assert rows.about == ABOUT
    assert [record.getMessage().split(": ")[:2] for record in caplog.records] == [
        ["g3", "truncated"],
        ["g5", "undecodable"],
    ]
    assert not (tmp_path / "o.h5.blocks").exists()


def test_a_photograph_is_described_by_its_pixels(tmp_path):
    # A grey of 100 everywhere: the mean is 100 in every channel and half.
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (16, 8), (100, 100, 100)).save(out, "PNG")
    with pieces.open_benchmark("1of1", *benchmark(tmp_path, {"g": out.getvalue()}, {"q": jpeg()})) as piece:
        described(piece, tmp_path / "o.h5")
    assert Rows(tmp_path / "o.h5").read("cls").tolist() == [[[100, 100, 100], [100, 100, 100]]]


def test_only_pictures_of_one_size_are_batched(tmp_path, small):
    describer = Means()
    with pieces.open_benchmark("1of1", *small) as piece:
        described(piece, tmp_path / "o.h5", describer)
    kinds = {kind for kind, _ in describer.ran}
    assert kinds == {(48, 64, 3), (48, 32, 3), (64, 48, 3), (64, 24, 3)}
    assert max(n for _, n in describer.ran) == 2
    assert sum(n for _, n in describer.ran) == 2 * 8


def test_threads_change_no_byte(tmp_path, small):
    for threads in (1, 3):
        with pieces.open_benchmark("1of1", *small) as piece:
            described(piece, tmp_path / f"{threads}.h5", threads=threads)
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "3.h5").read_bytes()


def test_photographs_of_many_sizes_are_not_kept_waiting_without_end(tmp_path):
    gallery = {f"g{i}": jpeg(32 + i, 32) for i in range(40)}

    class Large(Means):
        block_rows = 40

    describer, waiting = Large(), []
    prepare = describer.prepare

    def counted(pixels):
        waiting.append(len(waiting) - sum(n for _, n in describer.ran) // 2)
        return prepare(pixels)

    describer.prepare = counted
    with pieces.open_benchmark("1of1", *benchmark(tmp_path, gallery, {"q": jpeg()})) as piece:
        described(piece, tmp_path / "o.h5", describer, threads=1)
    # 8 batches of 2 inputs wait at most, 2 inputs a photograph; 4 photographs are in work.
    assert max(waiting) <= 8 + 4 + 1
    assert Rows(tmp_path / "o.h5").read("cls").all()


# -- queries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "rule", "box"),
    [
        # Landmark card, section 2.3: that box is 51 x 93 rounded, 51 x 92 with fractions cut off.
        ("queries", "rounded", [14, 3, 65, 96]),
        ("queries", "truncated", [13, 3, 64, 95]),
        ("instructed", "rounded", [14, 3, 65, 96]),
        ("whole", "rounded", None),
    ],
)
def test_queries_are_cropped_by_the_rule_of_their_branch(tmp_path, piece, rule, box):
    gnd = [truth((13.6, 3.4, 64.8, 95.7))]
    paths = benchmark(tmp_path, {"g": jpeg()}, {"q": jpeg(100, 100)}, gnd)
    with pieces.open_benchmark(piece, *paths) as opened:
        described(opened, tmp_path / "o.h5", rule=rule)
    rows = Rows(tmp_path / "o.h5")
    if box is None:
        assert "box" not in rows.columns
        assert rows.read("size").tolist() == [[100, 100]]
    else:
        assert rows.read("box").tolist() == [box]
        assert rows.read("size").tolist() == [[box[2] - box[0], box[3] - box[1]]]


def test_a_box_is_cut_on_the_stored_grid_whatever_exif_says(tmp_path):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    paths = benchmark(tmp_path, {"g": jpeg()}, {"q": jpeg(90, 40, exif=exif)}, [truth((60, 0, 120, 40))])
    with pieces.open_benchmark("queries", *paths) as piece:
        described(piece, tmp_path / "o.h5")
    # The box ends at the right border: 90 pixels are there as stored, 40 had it been turned.
    assert Rows(tmp_path / "o.h5").read("box").tolist() == [[60, 0, 90, 40]]


def test_a_box_outside_its_photograph_is_an_error_with_its_name(tmp_path):
    paths = benchmark(tmp_path, {"g": jpeg()}, {"q": jpeg(40, 40)}, [truth((60, 0, 120, 40))])
    with pieces.open_benchmark("queries", *paths) as piece:
        with pytest.raises(RemeasureError, match="q: box"):
            described(piece, tmp_path / "o.h5")


def test_a_benchmark_has_no_other_pieces(small):
    with pytest.raises(RemeasureError, match="'2of2': a benchmark has the pieces 1of1, queries"):
        pieces.open_benchmark("2of2", *small)


# -- shards ------------------------------------------------------------------------------------------------


def test_classes_of_a_shard_travel_with_its_photographs(tmp_path):
    paths = shard(tmp_path, {"a": jpeg(seed=1), "b": jpeg(seed=2)}, [7, 100_000])
    with pieces.open_shard("1of2", *paths) as piece:
        described(piece, tmp_path / "o.h5")
    rows = Rows(tmp_path / "o.h5")
    assert rows.names() == ["a", "b"]
    assert rows.read("landmark_id").tolist() == [7, 100_000]


def wanted(path, rows):
    import pyarrow as pa
    from pyarrow import parquet

    table = {"piece": [piece for piece, _ in rows], "row": pa.array([row for _, row in rows], pa.int64())}
    parquet.write_table(pa.table(table), path)
    return path


def test_of_a_shard_only_wanted_rows_are_described(tmp_path):
    paths = shard(tmp_path, {name: jpeg(seed=i) for i, name in enumerate("abcd")})
    table = wanted(tmp_path / "w.parquet", [("1of2", 1), ("1of2", 3), ("2of2", 0)])
    with pieces.open_shard("1of2", *paths, table) as piece:
        described(piece, tmp_path / "o.h5", with_rows=True)
    rows = Rows(tmp_path / "o.h5")
    assert (rows.names(), rows.read("row").tolist()) == (["b", "d"], [1, 3])
    with pieces.open_shard("3of3", *paths, table) as piece:
        assert described(piece, tmp_path / "none.h5", with_rows=True)["ok"] == 0
    assert len(Rows(tmp_path / "none.h5")) == 0


def test_a_row_that_a_shard_has_not_cannot_be_wanted(tmp_path):
    paths = shard(tmp_path, {"a": jpeg()})
    with pytest.raises(RemeasureError, match="wants row 5 of piece 1of1, which has 1"):
        pieces.open_shard("1of1", *paths, wanted(tmp_path / "w.parquet", [("1of1", 5)]))
    for rows in ([("1of1", None)], [("1of1", 0), ("1of1", None)]):
        with pytest.raises(RemeasureError, match="row is int64 with 1 nulls"):
            pieces.open_shard("1of1", *paths, wanted(tmp_path / "w.parquet", rows))
    (tmp_path / "no.parquet").write_bytes(b"no")
    with pytest.raises(RemeasureError, match="no table of wanted photographs"):
        pieces.open_shard("1of1", *paths, tmp_path / "no.parquet")


# -- going on ----------------------------------------------------------------------------------------------


class Killed(Exception):
    pass


class Ending(Means):
    """Ends in the second block, whose second photograph cannot be decoded."""

    def __init__(self, at):
        super().__init__()
        self.left = at

    def prepare(self, pixels):
        self.left -= 1
        if self.left < 0:
            raise Killed
        return super().prepare(pixels)


def test_a_killed_job_goes_on_at_its_first_missing_block_with_the_same_bytes(tmp_path, small):
    with pieces.open_benchmark("1of1", *small) as piece:
        described(piece, tmp_path / "whole.h5")
        with pytest.raises(Killed):
            described(piece, tmp_path / "o.h5", Ending(6), threads=1)
        kept = sorted(path.name for path in (tmp_path / "o.h5.blocks").iterdir())
        assert kept == ["000000000.h5", "identity"]
        again = Means()
        described(piece, tmp_path / "o.h5", again)
    # Of nine photographs the first block has four; of the rest one cannot be decoded; two inputs each.
    assert sum(n for _, n in again.ran) == 2 * 4
    assert (tmp_path / "o.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_blocks_of_other_settings_or_damaged_ones_are_not_used(tmp_path, small):
    for damage in (False, True):
        again = Means()
        with pieces.open_benchmark("1of1", *small) as piece:
            with pytest.raises(Killed):
                described(piece, tmp_path / "o.h5", Ending(6), threads=1)
            if damage:
                (tmp_path / "o.h5.blocks" / "000000000.h5").write_bytes(b"torn")
            about = ABOUT if damage else {"extractor": "another"}
            describing.describe(piece, again, tmp_path / "o.h5", about, rule="rounded", threads=1)
        assert sum(n for _, n in again.ran) == 2 * 8


# -- vectors that are none ---------------------------------------------------------------------------------


class Bad(Means):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def finish(self, outputs):
        return {"cls": describing.unit(np.stack(outputs) * self.value)}


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_that_is_zero_or_no_number_names_its_photograph(tmp_path, small, value):
    with pieces.open_benchmark("1of1", *small) as piece:
        with pytest.raises(
            RemeasureError, match="g[0-4]: its description is of no use: a vector has the length"
        ):
            described(piece, tmp_path / "o.h5", Bad(value))
    assert not (tmp_path / "o.h5").exists()


def test_numbers_that_float16_cannot_hold_are_an_error(tmp_path, small):
    class Wide(Means):
        columns = {"cls": Column(np.float16, (2, 3))}

        def finish(self, outputs):
            return {"cls": np.stack(outputs) * 1e4}

    with pieces.open_benchmark("1of1", *small) as piece:
        with pytest.raises(RemeasureError, match="cls of row 0 is not finite in float16"):
            described(piece, tmp_path / "o.h5", Wide())


def test_the_length_of_small_numbers_is_taken_with_enough_bits():
    # In float16 the square of 1e-4 is zero: the landmark card's pitfall 17.
    found = describing.unit(np.full((1, 4), 1e-4, dtype=np.float16))
    assert found.dtype == np.float32
    assert found[0] == pytest.approx([0.5] * 4, abs=1e-6)


def test_decoded_photographs_can_be_described_at_once():
    pictures = [np.full((4, 8, 3), value, dtype=np.uint8) for value in (1, 2, 3)]
    assert describing.vectors_of(Means(), pictures)[:, 0, 0].tolist() == [1, 2, 3]
    assert describing.vectors_of(Means(), []).shape == (0, 2, 3)


def test_a_piece_without_photographs_makes_an_empty_file(tmp_path):
    piece = pieces.Piece("1of1", [], lambda i: b"")
    assert described(piece, tmp_path / "o.h5") == {"ok": 0, "truncated": 0, "undecodable": 0}
    assert Rows(tmp_path / "o.h5").read("cls").shape == (0, 2, 3)


def test_what_made_a_file_is_kept_as_json(tmp_path, small):
    with pieces.open_benchmark("whole", *small) as piece:
        described(piece, tmp_path / "o.h5")
    import h5py

    with h5py.File(tmp_path / "o.h5") as store:
        assert json.loads(store.attrs[vectors_file.ABOUT]) == ABOUT


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("offset", [None], "column offset is int64 with 1 nulls"),
        ("offset", ["a"], "column offset is string with 0 nulls, expected int32 or int64"),
        ("size", [1.5], "column size is double"),
        ("name", [7], "column name is int64 with 0 nulls, expected string"),
        ("sha1", [None], "column sha1 is null with 1 nulls"),
        ("landmark_id", [1 << 40], "column landmark_id is int64 with 0 nulls, expected int32"),
        # The end of what it says is beyond what 64 bits can count.
        ("size", [2**63 - 1], "its index goes further"),
    ],
)
def test_an_index_with_other_columns_than_ours_is_one_line(tmp_path, column, values, says):
    import pyarrow as pa
    from pyarrow import parquet

    tar, index = shard(tmp_path, {"a": jpeg()})
    table = parquet.read_table(index)
    kind = pa.int64() if column == "offset" and values == [None] else None
    table = table.set_column(table.column_names.index(column), column, pa.array(values, kind))
    parquet.write_table(table, index)
    with pytest.raises(RemeasureError, match=says) as told:
        pieces.open_shard("1of1", tar, index)
    assert "\n" not in str(told.value)


# -- described again ---------------------------------------------------------------------------------------


def test_some_photographs_of_a_finished_file_are_described_again(tmp_path, small, monkeypatch):
    """Of nine photographs every third: three, and none of a piece of two."""
    monkeypatch.setattr(repeating, "ONE_IN", 3)
    path = tmp_path / "o.h5"
    with pieces.open_benchmark("1of1", *small) as piece:
        described(piece, path)
        seen = Means()
        assert repeating.check(piece, seen, path, "rounded") == pytest.approx(1.0)
        assert sum(n for _, n in seen.ran) == 6  # two inputs each
        # One photograph of those that were decoded has the vector of another.
        rows = Rows(path)
        wrong = {key: rows.read(key) for key in rows.columns if key != "name"}
        wrong["cls"][wrong["status"] != 2] = np.float32([1, 0, 0])
        vectors_file.write(path, rows.names(), about={}, **wrong)
        with pytest.raises(RemeasureError, match=r"photograph g\d described again has the cosine 0\.\d+"):
            repeating.check(piece, Means(), path, "rounded")
        assert not path.exists()
    with pieces.open_benchmark("queries", *small) as piece:
        described(piece, tmp_path / "q.h5")
        assert repeating.check(piece, Means(), tmp_path / "q.h5", "rounded") is None
