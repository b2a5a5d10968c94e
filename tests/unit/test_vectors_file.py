import multiprocessing
import os
import resource

import h5py
import numpy as np
import pytest

from remeasure.errors import RemeasureError
from remeasure.instances import vectors_file
from remeasure.instances.vectors_file import Column, Rows


def made(path, **arrays):
    arrays = arrays or {"cls": np.arange(12, dtype=np.float16).reshape(3, 2, 2)}
    n = len(next(iter(arrays.values())))
    vectors_file.write(path, [f"photo_{i}" for i in range(n)], about={"backbone": "b"}, **arrays)
    return path


def test_what_is_written_is_read(tmp_path):
    rows = Rows(made(tmp_path / "a.h5"))
    assert len(rows) == 3
    assert rows.about == {"backbone": "b"}
    assert rows.names() == ["photo_0", "photo_1", "photo_2"]
    assert rows.read("cls").tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert rows.take("cls", np.array([2, 0]))[:, 1, 1].tolist() == [11, 3]
    assert [start for start, _ in rows.blocks("cls", 2)] == [0, 2]


def test_equal_content_is_equal_bytes(tmp_path):
    assert made(tmp_path / "a.h5").read_bytes() == made(tmp_path / "b.h5").read_bytes()


def test_rows_lie_one_after_the_other_in_the_file(tmp_path):
    path = made(tmp_path / "a.h5", cls=np.array([[1.5, -2.0]], dtype=np.float32))
    # 1.5 and -2 as float32, little-endian.
    assert b"\x00\x00\xc0\x3f\x00\x00\x00\xc0" in path.read_bytes()
    mapped = Rows(path).array("cls")
    assert isinstance(mapped, np.memmap)
    assert mapped.tolist() == [[1.5, -2.0]]


def test_a_file_may_hold_no_rows(tmp_path):
    rows = Rows(made(tmp_path / "a.h5", cls=np.empty((0, 4), dtype=np.float16)))
    assert len(rows) == 0
    assert rows.names() == []
    assert rows.read("cls").shape == (0, 4)
    assert list(rows.blocks("cls")) == []


def test_blocks_make_the_same_file_as_all_at_once(tmp_path):
    whole = np.arange(10, dtype=np.float32).reshape(5, 2)
    names = vectors_file.as_names([f"photo_{i}" for i in range(5)], "")
    columns = {"name": Column(names.dtype), "cls": Column("f4", (2,))}
    with vectors_file.writing(tmp_path / "b.h5", 5, columns, {"backbone": "b"}) as put:
        for start in (0, 2, 4):
            put(start, name=names[start : start + 2], cls=whole[start : start + 2])
    made(tmp_path / "a.h5", cls=whole)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_a_file_that_is_not_complete_does_not_appear(tmp_path):
    with pytest.raises(RemeasureError, match="2 rows were made, 3 expected"):
        with vectors_file.writing(tmp_path / "a.h5", 3, {"x": Column("f4")}, {}) as put:
            put(0, x=np.zeros(2, np.float32))
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_too_large_for_float16_are_refused(tmp_path):
    with pytest.raises(RemeasureError, match="x of row 1 is not finite in float16"):
        with vectors_file.writing(tmp_path / "a.h5", 2, {"x": Column("f2", (2,))}, {}) as put:
            # 65,504 is the largest float16; 70,000 rounds to infinity.
            put(0, x=np.array([[1, 65504], [1, 70000]], dtype=np.float32))


def test_numbers_that_are_none_are_refused_in_both_directions(tmp_path):
    with pytest.raises(RemeasureError, match="x of row 1 is not finite"):
        made(tmp_path / "a.h5", x=np.array([1, np.nan], dtype=np.float32))
    with h5py.File(tmp_path / "b.h5", "w") as store:
        store["x"] = np.array([[1], [2], [np.inf]], dtype=np.float32)
    rows = Rows(tmp_path / "b.h5")
    for read in (rows.read, lambda key: list(rows.blocks(key, 2)), lambda key: rows.take(key, [2])):
        with pytest.raises(RemeasureError, match="is not finite"):
            read("x")


def test_chunked_and_virtual_datasets_and_links_are_refused(tmp_path):
    made(tmp_path / "good.h5")
    layout = h5py.VirtualLayout((3,), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "gone.h5"), "x", (3,))
    makers = {
        "chunked": lambda store: store.create_dataset("x", data=np.zeros((4, 4)), chunks=(2, 4)),
        "packed": lambda store: store.create_dataset("x", data=np.zeros((4, 4)), compression="gzip"),
        "virtual": lambda store: store.create_virtual_dataset("x", layout),
        "outside": lambda store: store.create_dataset("x", (3,), "f4", external=str(tmp_path / "raw")),
        "compact": lambda store: store.create_dataset("x", data=np.array(["é"], dtype=h5py.string_dtype())),
        "link": lambda store: store.__setitem__("x", h5py.ExternalLink("good.h5", "cls")),
        "group": lambda store: store.create_group("x"),
        "single": lambda store: store.__setitem__("x", 1.0),
        "nothing": lambda store: None,
    }
    for name, make in makers.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as store:
            make(store)
        with pytest.raises(RemeasureError, match=rf"{name}\.h5: refused as a file of vectors"):
            Rows(tmp_path / f"{name}.h5")


def test_rows_that_were_never_written_are_no_zeros(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as store:
        store.create_dataset("x", (1000, 4), "f4")
    with pytest.raises(RemeasureError, match="x was never written to its end"):
        Rows(tmp_path / "a.h5")


def test_datasets_have_one_length(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as store:
        store["x"], store["y"] = np.zeros((3, 2)), np.zeros(4)
    with pytest.raises(RemeasureError, match="'x': 3, 'y': 4"):
        Rows(tmp_path / "a.h5")


@pytest.mark.parametrize("content", [None, b"", b"not HDF5" * 100])
def test_what_is_no_file_of_vectors_is_said_so(tmp_path, content):
    if content is not None:
        (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(RemeasureError, match="a.h5: refused as a file of vectors"):
        Rows(tmp_path / "a.h5")


def test_a_cut_off_file_is_refused(tmp_path):
    path = made(tmp_path / "a.h5", x=np.zeros((100, 100)))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(RemeasureError, match="refused as a file of vectors"):
        Rows(path)


def test_shapes_are_checked_in_words(tmp_path):
    rows = Rows(made(tmp_path / "a.h5"))
    rows.check("cls", None, 2, kinds="f", n=3)
    with pytest.raises(RemeasureError, match=r"float16 of shape \(3, 2, 2\), .* shape \(any, 3, 1024\)"):
        rows.check("cls", 3, 1024)
    with pytest.raises(RemeasureError, match="it has no tok, only cls, name"):
        rows.check("tok")
    with pytest.raises(RemeasureError, match="expected a type of i"):
        rows.check("cls", 2, 2, kinds="i")
    with pytest.raises(RemeasureError, match="row 3 was asked for, it has 3"):
        rows.take("cls", np.array([3]))


@pytest.mark.parametrize("name", ["", "a\0b", "\udcff"])
def test_names_that_cannot_be_kept_are_refused(tmp_path, name):
    with pytest.raises(RemeasureError, match="rename the photograph"):
        vectors_file.write(tmp_path / "a.h5", [name], about={}, x=np.zeros(1))


def test_names_keep_their_letters(tmp_path):
    vectors_file.write(tmp_path / "a.h5", ["Sacré-Cœur", "a/b c"], about={}, x=np.zeros(2))
    assert Rows(tmp_path / "a.h5").names() == ["Sacré-Cœur", "a/b c"]


def _first(rows, pipe):
    pipe.send(float(rows.array("cls")[0, 0, 1]))


def test_a_forked_process_reads_by_its_own_map(tmp_path):
    rows = Rows(made(tmp_path / "a.h5"))
    rows.array("cls")
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_first, args=(rows, there))
    process.start()
    assert here.recv() == 1.0
    process.join()


def test_hundreds_of_files_take_few_descriptors(tmp_path):
    """200 files with two mapped datasets each, and 60 descriptors beside those that are open already."""
    files = [Rows(made(tmp_path / f"{i}.h5", cls=np.full((3, 2), i, np.float32))) for i in range(200)]
    probe = os.open(os.devnull, os.O_RDONLY)
    os.close(probe)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 60, before[1]))
    try:
        for _ in range(2):
            assert [float(rows.take("cls", np.array([2]))[0, 0]) for rows in files] == list(range(200))
            assert all(rows.names() == ["photo_0", "photo_1", "photo_2"] for rows in files)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
