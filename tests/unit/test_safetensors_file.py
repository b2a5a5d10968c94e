import hashlib
import json
import struct

import ml_dtypes
import numpy as np
import pytest

from adapterkit import write_safetensors
from remeasure import safetensors_file
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec, n_not_finite
from remeasure.safetensors_file import SafetensorsFile


def raw(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_what_is_written_piece_by_piece_is_read_row_by_row(tmp_path):
    wide = np.arange(12, dtype=np.float32).reshape(4, 3).astype(ml_dtypes.bfloat16)
    specs = {"b": Spec("BF16", (4, 3)), "a": Spec("F16", ())}
    pieces = {"b": [wide[:1], wide[1:]], "a": [np.float16(5).reshape(())]}
    sha256, size = safetensors_file.write(tmp_path / "x.safetensors", specs, lambda name: pieces[name])
    data = (tmp_path / "x.safetensors").read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (sha256, size)
    found = SafetensorsFile(tmp_path / "x.safetensors")
    assert found.specs == specs and found.read("a") == 5
    assert (found.read("b") == wide).all() and found.read("b", 2, 3).tolist() == [[6, 7, 8]]


def test_the_bytes_are_those_of_the_format(tmp_path):
    # 8 bytes of length, the header padded to a multiple of 8 with blanks, one float32: 1.0 is 00 00 80 3f.
    write_safetensors(tmp_path / "x.safetensors", {"w": np.float32([1])})
    data = (tmp_path / "x.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0 and data[8 + length :] == b"\x00\x00\x80\x3f"
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }


@pytest.mark.parametrize(
    ("header", "data", "length", "says"),
    [
        ({}, b"", 1 << 62, "a header of 4611686018427387904 bytes"),
        ({}, b"", 99_999_999, "a header of 99999999 bytes"),
        (b"{", b"", None, "refused"),
        (b"[" * 100_000, b"", None, "refused"),
        ([1], b"", None, "refused"),
        ({"w": entry()}, b"\0" * 7, None, "its header describes"),
        ({"w": entry()}, b"\0" * 9, None, "its header describes"),
        ({"w": entry(offsets=(4, 12))}, b"\0" * 12, None, "does not lie where"),
        ({"w": entry(), "v": entry()}, b"\0" * 8, None, "does not lie where"),
        ({"w": entry(shape=(3,))}, b"\0" * 8, None, "does not lie where"),
        ({"w": entry(shape=(1 << 60,))}, b"\0" * 8, None, "that is none"),
        ({"w": entry(shape=(-1, -2))}, b"\0" * 8, None, "that is none"),
        ({"w": entry(shape=(2.0,))}, b"\0" * 8, None, "that is none"),
        ({"w": entry(dtype="F8_E4M3")}, b"\0" * 8, None, "not known"),
        ({"w": {"dtype": "F32"}}, b"\0" * 8, None, "refused"),
    ],
)
def test_a_header_that_lies_is_refused_in_one_line(tmp_path, header, data, length, says):
    with pytest.raises(RemeasureError, match=says) as told:
        SafetensorsFile(raw(tmp_path / "x.safetensors", header, data, length))
    assert "\n" not in str(told.value) and len(str(told.value)) < 600


def test_an_empty_or_missing_file_is_refused(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(RemeasureError, match="refused as a safetensors file"):
        SafetensorsFile(tmp_path / "x.safetensors")
    with pytest.raises(RemeasureError, match="cannot be read"):
        SafetensorsFile(tmp_path / "absent.safetensors")


def test_pieces_that_do_not_add_up_leave_no_file(tmp_path):
    for piece in (np.float32([1]), np.float16([1, 2])):
        with pytest.raises(RemeasureError, match="were said|was said"):
            safetensors_file.write(
                tmp_path / "x", {"w": Spec("F32", (2,))}, lambda name, piece=piece: [piece]
            )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_numbers_that_are_none_are_counted(dtype):
    values = np.array([0, -1, np.nan, np.inf, -np.inf, 65504, 6e-8], dtype=np.float64).astype(dtype)
    expected = 4 if dtype == ml_dtypes.bfloat16 and np.isinf(float(values[5])) else 3
    assert n_not_finite(values) == expected == 3
    assert n_not_finite(np.array([1, 2])) == 0
