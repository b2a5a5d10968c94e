import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest

import extract_cls
import torchkit
from photokit import benchmark, jpeg
from remeasure.instances import vectors_file
from remeasure.instances.vectors_file import Rows

SETTINGS = {
    "name": "dino",
    "backend": "dinov2",
    "revision": None,
    "dim": 4,
    "scales": [1.0, 1.414, 2.0],
    "size_px": 224,
    "patch_px": 14,
    "max_px": 1022,
    "precision": "float16",
    "batch": 8,
}
VECTORS = np.array([[[3, 4, 0, 0]] * 3, [[0, 0, 0, 2]] * 3], np.float32)


def ran(tmp_path, given, *more, piece="1of1", **settings):
    return extract_cls.main(
        ["--settings", json.dumps(SETTINGS | settings), "--piece", piece, "--given", str(given)]
        + ["--threads", "1", "--out", str(tmp_path / "o.h5"), "--record", str(tmp_path / "o.json"), *more]
    )


@pytest.fixture
def labels(tmp_path):
    return str(benchmark(tmp_path / "b", {"g0": jpeg(), "g1": jpeg()}, {"q": jpeg()})[1])


def files(tmp_path):
    np.savez(tmp_path / "v.npz", cls=VECTORS, name=np.array(["g0", "g1"]))
    vectors_file.write(tmp_path / "v.h5", ["g0", "g1"], about={}, cls=VECTORS)
    torchkit.write(tmp_path / "v.pt", {"features": VECTORS.astype(np.float16)})


@pytest.mark.parametrize("kind", ["npz", "h5", "pt"])
def test_vectors_that_somebody_has_are_kept_as_ours(tmp_path, labels, kind):
    files(tmp_path)
    assert ran(tmp_path, tmp_path / f"v.{kind}", "--labels", labels) == 0
    rows = Rows(tmp_path / "o.h5")
    assert rows.names() == ["g0", "g1"]
    assert rows.read("cls").dtype == np.float16
    # (3, 4, 0, 0) has the length 5.
    assert rows.read("cls")[0, 2] == pytest.approx([0.6, 0.8, 0, 0], abs=1e-3)
    assert rows.read("status").tolist() == [0, 0]
    assert rows.about["extractor"] == "given as dino"


def test_one_vector_per_photograph_is_one_scale(tmp_path, labels):
    np.savez(tmp_path / "v.npz", VECTORS[:, 0])
    assert ran(tmp_path, tmp_path / "v.npz", "--labels", labels) == 0
    assert Rows(tmp_path / "o.h5").read("cls").shape == (2, 1, 4)


def test_a_row_of_zeros_is_a_photograph_that_was_not_decoded(tmp_path, labels):
    np.savez(tmp_path / "v.npz", cls=VECTORS * np.array([1, 0])[:, None, None])
    assert ran(tmp_path, tmp_path / "v.npz", "--labels", labels) == 0
    assert Rows(tmp_path / "o.h5").read("status").tolist() == [0, 2]
    record = json.loads((tmp_path / "o.json").read_text())
    assert record["counts"] == {"ok": 1, "truncated": 0, "undecodable": 1}


def test_without_labels_names_and_classes_come_from_the_file(tmp_path):
    ids = np.array(["00ff", "01ff"])
    np.savez(tmp_path / "v.npz", feats=VECTORS, image_id=ids, landmark_id=np.array([5, 6]))
    assert ran(tmp_path, tmp_path / "v.npz", piece="1of2") == 0
    rows = Rows(tmp_path / "o.h5")
    assert (rows.names(), rows.read("landmark_id").tolist()) == (["00ff", "01ff"], [5, 6])


@pytest.mark.parametrize(
    ("arrays", "labelled", "says"),
    [
        ({"cls": VECTORS, "name": ["g1", "g0"]}, True, "row 0 is of 'g1', the labels have 'g0'"),
        ({"cls": VECTORS[:1]}, True, "1 vectors, 2 names"),
        ({"cls": VECTORS}, False, "holds no names"),
        ({"cls": VECTORS[:, :, :3]}, True, "expected (n, 1 or 3, 4) for backbone dino"),
        ({"cls": VECTORS[:, :2]}, True, "expected (n, 1 or 3, 4) for backbone dino"),
        ({"cls": np.where(VECTORS == 2, np.nan, VECTORS)}, True, "cls of row 1 is not finite"),
        ({"cls": VECTORS * np.array([1, 0, 1])[None, :, None]}, True, "at one scale and not at all"),
        ({"a": VECTORS, "b": VECTORS}, True, "holds a, b; expected vectors called cls"),
        ({}, True, "holds no arrays"),
    ],
)
def test_vectors_of_something_else_are_refused(tmp_path, labels, capsys, arrays, labelled, says):
    np.savez(tmp_path / "v.npz", **arrays)
    assert ran(tmp_path, tmp_path / "v.npz", *(["--labels", labels] if labelled else [])) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "o.h5").exists()


def test_an_archive_that_would_run_something_is_refused(tmp_path, labels, capsys):
    np.savez(tmp_path / "v.npz", cls=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert ran(tmp_path, tmp_path / "v.npz", "--labels", labels) == 2
    assert "refused as an archive of arrays" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [("v.pkl", "are read from .h5, .npz and .pt"), ("v.npz", "refused as an archive of arrays")],
)
def test_other_files_are_refused(tmp_path, labels, capsys, name, says):
    (tmp_path / name).write_bytes(b"none of them")
    assert ran(tmp_path, tmp_path / name, "--labels", labels) == 2
    assert says in capsys.readouterr().err


def npy(shape: str, data: bytes = b"") -> bytes:
    """Return an array as NumPy keeps it, whatever its head says."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data


def zipped(members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as store:
        for name, data in members.items():
            store.writestr(name, data)
    return out.getvalue()


def flagged(data: bytes, begin: int, central: int, value: int) -> bytes:
    """Change a field of the only member, in its own head and in the list at the end."""
    changed = bytearray(data)
    changed[begin] = changed[changed.find(b"PK\1\2") + central] = value
    return bytes(changed)


VALID = npy("(2, 3, 4)", VECTORS.tobytes())
PACKED = zipped({"cls.npy": VALID}, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "File is not a zip file"),
        (VALID, "File is not a zip file"),
        (zipped({"cls.npy": VALID, "read.me": b"hello"}), "'read.me' is no array"),
        (zipped({"cls.npy": npy("(10**15, 2, 4)")}), ""),
        (zipped({"cls.npy": npy("(1000000000000, 3, 4)")}), ""),
        (zipped({"cls.npy": npy("(-1, 3, 4)")}), ""),
        (zipped({"cls.npy": npy("(" * 9000)}), ""),
        (zipped({"cls.npy": npy("(2, 3, 4)", bytes(20))}), ""),
        (PACKED[:60] + bytes([255] * 40) + PACKED[100:], ""),
        (flagged(PACKED, 6, 8, 1), "is encrypted"),
        (flagged(PACKED, 8, 10, 99), "compression method"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_hostile_archive_of_arrays_is_one_line(tmp_path, labels, capsys, data, says):
    (tmp_path / "v.npz").write_bytes(data)
    assert ran(tmp_path, tmp_path / "v.npz", "--labels", labels) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(f"error: {tmp_path}/v.npz: refused as an archive of arrays: ") and says in said
    assert not (tmp_path / "o.h5").exists()


def test_an_archive_that_unpacks_to_far_more_than_it_is_packed_is_a_bomb(
    tmp_path, labels, capsys, monkeypatch
):
    monkeypatch.setattr("remeasure.instances.given.MAX_UNPACKED_BYTES", 1000)
    data = npy("(100000, 4)", bytes(1_600_000))
    (tmp_path / "v.npz").write_bytes(zipped({"cls.npy": data}, zipfile.ZIP_DEFLATED))
    assert ran(tmp_path, tmp_path / "v.npz", "--labels", labels) == 2
    assert "unpacks to 1600128 bytes: a bomb" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["npz", "h5", "pt"])
def test_a_pipe_is_not_waited_for(tmp_path, labels, capsys, kind):
    os.mkfifo(tmp_path / f"v.{kind}")
    assert ran(tmp_path, tmp_path / f"v.{kind}", "--labels", labels) == 2
    assert "not a regular file" in capsys.readouterr().err
