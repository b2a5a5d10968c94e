import h5py
import numpy as np
import pytest

from ameskit import random_descriptors
from remeasure.errors import RemeasureError
from remeasure.instances import vectors_file
from remeasure.instances.ames.layouts import Locals

DIM, LENGTH, COUNTS = 16, 6, [6, 4, 1]


def numbers():
    x = random_descriptors(3, LENGTH, DIM, 1).astype(np.float16).astype(np.float32)
    x[np.arange(LENGTH) >= np.array(COUNTS)[:, None]] = 0
    about = np.full((3, LENGTH, 5), 0.5, np.float32)
    about[..., 3] = np.arange(LENGTH) >= np.array(COUNTS)[:, None]
    return about, x


def compound(path, about, descriptors, **how):
    dtype = np.dtype(
        [("metadata", about.dtype, about.shape[1:]), ("descriptor", descriptors.dtype, descriptors.shape[1:])]
    )
    rows = np.zeros(len(about), dtype)
    rows["metadata"], rows["descriptor"] = about, descriptors
    with h5py.File(path, "w") as store:
        store.create_dataset("features", data=rows, **how)
    return path


def flat(path, about, descriptors, dtype=np.float32, **how):
    with h5py.File(path, "w") as store:
        store.create_dataset("features", data=np.concatenate([about, descriptors], 2).astype(dtype), **how)
    return path


def ours(path, descriptors, n_valid=COUNTS, row=(0, 1, 2)):
    vectors_file.write(
        path,
        [f"photo-{i}" for i in range(3)],
        about={"extractor": "e"},
        descriptor=descriptors.astype(np.float16),
        n_valid=np.array(n_valid, np.uint16),
        row=np.array(row, np.int64),
    )
    return path


def read(path, n=LENGTH, dim=DIM):
    opened = Locals(path, dim, n)
    blocks = [block for _, block in opened.blocks(2)]
    return (
        opened,
        np.concatenate([b.descriptors for b in blocks]),
        np.concatenate([b.n_valid for b in blocks]),
    )


def test_rows_of_published_files_take_the_published_bytes():
    # 700 descriptors of 768 and 5 numbers each: 773 * 2 * 700, 773 * 4 * 700, and (5 * 4 + 768 * 2) * 700.
    assert np.dtype((np.float16, (700, 773))).itemsize == 1_082_200
    assert np.dtype((np.float32, (700, 773))).itemsize == 2_164_400
    fields = [("metadata", "<f4", (700, 5)), ("descriptor", "<f2", (700, 768))]
    assert np.dtype(fields).itemsize == 1_089_200
    # Compound rows of both galleries: 5.438 and 6.886 GB; a million photographs flat: 1.083 TB.
    assert (4_993 * 1_089_200, 6_322 * 1_089_200) == (5_438_375_600, 6_885_922_400)
    assert 1_001_001 * 1_082_200 == 1_083_283_282_200


def test_all_layouts_give_the_same_descriptors(tmp_path):
    about, x = numbers()
    files = {
        "ours": ours(tmp_path / "o.h5", x),
        "flat-float32": flat(tmp_path / "a4.h5", about, x),
        "flat-float16": flat(tmp_path / "a2.h5", about, x, np.float16),
        "compound-float16": compound(tmp_path / "b.h5", about, x.astype(np.float16)),
        "compound-float32": compound(tmp_path / "b4.h5", about, x),
    }
    for layout, path in files.items():
        opened, found, n_valid = read(path)
        assert (opened.layout, n_valid.tolist(), found.dtype) == (layout, COUNTS, np.float32)
        assert (found == x).all() and opened.rows().tolist() == [0, 1, 2]
    assert read(files["ours"])[0].names() == ["photo-0", "photo-1", "photo-2"]
    assert read(files["ours"])[0].extractor == "e" and read(tmp_path / "b.h5")[0].extractor == "given"


def test_the_strongest_are_read_where_fewer_are_asked_for(tmp_path):
    about, x = numbers()
    for path in (ours(tmp_path / "o.h5", x), flat(tmp_path / "a.h5", about, x)):
        opened, found, n_valid = read(path, 3)
        assert opened.n == 3 and n_valid.tolist() == [3, 3, 1] and (found == x[:, :3]).all()


def test_junk_in_padding_is_cleared(tmp_path):
    about, x = numbers()
    junk = x.copy()
    junk[1, 4:], junk[2, 1:] = 7, np.nan
    assert (read(flat(tmp_path / "a.h5", about, junk))[1] == x).all()


@pytest.mark.parametrize("packed_alone", [False, True])
def test_bits_become_signs(tmp_path, packed_alone):
    # 0b10000001 0b11110000: the first bit is the highest.
    bits = np.tile(np.array([0b10000001, 0b11110000], np.uint8), (3, LENGTH, 1))
    if packed_alone:
        with h5py.File(tmp_path / "x.h5", "w") as store:
            store["features"] = bits
        path, counts = tmp_path / "x.h5", [LENGTH] * 3
    else:
        path, counts = compound(tmp_path / "x.h5", numbers()[0], bits), COUNTS
    _, found, n_valid = read(path)
    assert n_valid.tolist() == counts
    assert found[0, 0].tolist() == [1, -1, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, -1, -1, -1, -1]


def test_a_flag_that_says_valid_instead_of_padding_is_noticed(tmp_path):
    about, x = numbers()
    about[..., 3] = 1 - about[..., 3]
    with pytest.raises(RemeasureError, match="photograph 1: column 3 is to be 0 for descriptors and then 1"):
        read(flat(tmp_path / "a.h5", about, x))


def test_padding_between_descriptors_is_refused(tmp_path):
    about, x = numbers()
    about[0, 2, 3] = 1
    with pytest.raises(RemeasureError, match="photograph 0: column 3"):
        read(flat(tmp_path / "a.h5", about, x))


@pytest.mark.parametrize("value", [0, np.nan, np.inf])
def test_a_descriptor_that_is_zero_or_no_number_is_refused(tmp_path, value):
    about, x = numbers()
    x[1, 2] = value
    with pytest.raises(RemeasureError, match="photograph 1: descriptor 2 of 4 is zero or not finite"):
        read(flat(tmp_path / "a.h5", about, x))


def test_a_virtual_dataset_is_refused(tmp_path):
    # A source that is missing would be read as zeros.
    layout = h5py.VirtualLayout((3, LENGTH, 5 + DIM), np.float32)
    layout[:] = h5py.VirtualSource(str(tmp_path / "gone.h5"), "features", (3, LENGTH, 5 + DIM))
    with h5py.File(tmp_path / "v.h5", "w") as store:
        store.create_virtual_dataset("features", layout)
    with pytest.raises(RemeasureError, match="features is virtual or in another file"):
        Locals(tmp_path / "v.h5", DIM, LENGTH)


def test_a_link_to_another_file_is_refused(tmp_path):
    with h5py.File(tmp_path / "v.h5", "w") as store:
        store["features"] = h5py.ExternalLink("/etc/passwd", "features")
    with pytest.raises(RemeasureError, match="features is a link to somewhere else|refused"):
        Locals(tmp_path / "v.h5", DIM, LENGTH)


def test_other_shapes_and_types_are_refused(tmp_path):
    about, x = numbers()
    for path in (
        flat(tmp_path / "1.h5", about, x[..., :15]),
        flat(tmp_path / "2.h5", about, x, np.float64),
        compound(tmp_path / "3.h5", about[..., :4], x),
        compound(tmp_path / "4.h5", about, x[:, :5]),
        compound(tmp_path / "5.h5", about, np.zeros((3, LENGTH, 3), np.uint8)),
    ):
        with pytest.raises(RemeasureError, match=r"expected \[n, T, 21\] of float16 or float32"):
            Locals(path, DIM, LENGTH)
    with pytest.raises(RemeasureError, match="descriptor is float16 of shape"):
        Locals(ours(tmp_path / "6.h5", x), DIM + 1, LENGTH)


def test_rows_that_do_not_ascend_are_refused(tmp_path):
    with pytest.raises(RemeasureError, match="row: does not ascend"):
        Locals(ours(tmp_path / "o.h5", numbers()[1], row=(0, 2, 1)), DIM, LENGTH).rows()


def test_no_hdf5_file_is_one_line(tmp_path):
    (tmp_path / "x.h5").write_bytes(b"no")
    for path in (tmp_path / "x.h5", tmp_path / "missing.h5"):
        with pytest.raises(RemeasureError, match="refused as a file of local descriptors"):
            Locals(path, DIM, LENGTH)
