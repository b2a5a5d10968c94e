import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import torchkit
from remeasure import torch_file
from remeasure.errors import RemeasureError
from remeasure.number_types import Spec
from torchkit import Stored, Tensor

TENSORS = {
    "halves": np.float16([[1, 2, 3], [4, 5, 6]]),
    "brains": np.float32([[0.5, -2]]).astype(ml_dtypes.bfloat16),
    "floats": np.float32([7, 8]),
    "whole": np.int64([[9]]),
    "scalar": np.float32(3).reshape(()),
}


@pytest.mark.parametrize("is_old", [True, False])
def test_both_formats_give_the_same_tensors(tmp_path, is_old):
    path = torchkit.write(tmp_path / "w.bin", TENSORS, is_old, parameters=("floats",))
    found = torch_file.TorchFile(path)
    assert found.specs["brains"] == Spec("BF16", (1, 2)) and found.specs["scalar"] == Spec("F32", ())
    for name, values in TENSORS.items():
        read = found.read(name)
        assert read.dtype == values.dtype and read.shape == values.shape and (read == values).all(), name
    assert found.read("halves", 1, 2).tolist() == [[4, 5, 6]] and found.read("halves", 2, 9).shape == (0, 3)
    assert torch_file.read(path).keys() == TENSORS.keys()


def of_zip(tmp_path, objects, members=(), **options) -> Path:
    with torchkit.names():
        data = torchkit.pickled(objects) if not isinstance(objects, bytes) else objects
        return torchkit.write_zip(tmp_path / "w.bin", data, dict(members), **options)


def tensor(torch, key="0", count=4, shape=(2, 2), strides=(2, 1), offset=0):
    return Tensor(Stored("storage", torch.FloatStorage, key, "cpu", count), offset, shape, strides, False, {})


DATA = np.float32([1, 2, 3, 4]).tobytes()


def test_strides_are_honoured_in_a_zip_too(tmp_path):
    with torchkit.names() as torch:
        path = of_zip(tmp_path, {"turned": tensor(torch, strides=(1, 2))}, {"0": DATA})
    assert torch_file.read(path)["turned"].tolist() == [[1, 3], [2, 4]]
    assert torch_file.TorchFile(path).read("turned", 1, 2).tolist() == [[2, 4]]


class Hostile:
    def __reduce__(self):
        return os.system, ("touch harm",)


@pytest.mark.parametrize("objects", [Hostile(), {"w": Hostile()}, OrderedDict(w=[Hostile()])])
def test_a_zip_whose_pickle_calls_os_system_is_refused_and_calls_nothing(tmp_path, monkeypatch, objects):
    monkeypatch.chdir(tmp_path)
    path = of_zip(tmp_path, objects, {"0": DATA})
    with pytest.raises(RemeasureError, match="asks for posix.system, which no weight file needs"):
        torch_file.TorchFile(path)
    assert [p.name for p in tmp_path.iterdir()] == ["w.bin"]


def test_storages_that_are_not_as_described_are_refused(tmp_path):
    with torchkit.names() as torch:
        cases = [
            ({"w": tensor(torch)}, {"0": DATA[:-4]}, "another size than declared"),
            ({"w": tensor(torch)}, {}, "another size than declared"),
            ({"w": tensor(torch, key="../../../etc/passwd")}, {"0": DATA}, "another size than declared"),
            ({"w": tensor(torch), "v": tensor(torch, count=5)}, {"0": DATA}, "described in two ways"),
            ({"w": tensor(torch, shape=(3, 2))}, {"0": DATA}, "beyond its storage"),
            ({"w": tensor(torch, shape=(1 << 40, 1), strides=(0, 0))}, {"0": DATA}, "more values"),
            ({"w": 3}, {"0": DATA}, "no dictionary|not a dictionary"),
            ({7: tensor(torch)}, {"0": DATA}, "no text"),
            ([tensor(torch)], {"0": DATA}, "not a dictionary"),
        ]
        for objects, members, says in cases:
            with pytest.raises(RemeasureError, match=says):
                torch_file.TorchFile(of_zip(tmp_path, objects, members))


def test_a_compressed_storage_and_big_endian_numbers_are_refused(tmp_path):
    with torchkit.names() as torch:
        path = of_zip(tmp_path, {"w": tensor(torch)}, {"0": DATA}, compression=zipfile.ZIP_DEFLATED)
        with pytest.raises(RemeasureError, match="compressed or encrypted"):
            torch_file.TorchFile(path)
        with zipfile.ZipFile(path, "w") as store:
            store.writestr("archive/data.pkl", torchkit.pickled({"w": tensor(torch)}))
            store.writestr("archive/byteorder", b"big")
    with pytest.raises(RemeasureError, match="not little-endian"):
        torch_file.TorchFile(path)
    with zipfile.ZipFile(path, "w") as store:
        store.writestr("readme.txt", b"x")
    with pytest.raises(RemeasureError, match="without one data.pkl"):
        torch_file.TorchFile(path)


def test_a_zip_cut_off_anywhere_is_refused_in_one_line(tmp_path):
    whole = torchkit.write(tmp_path / "w.bin", TENSORS).read_bytes()
    for length in range(0, len(whole), 13):
        (tmp_path / "torn.bin").write_bytes(whole[:length])
        with pytest.raises(RemeasureError, match="refused as a weight file") as told:
            torch_file.TorchFile(tmp_path / "torn.bin")
        assert "\n" not in str(told.value)


def test_random_damage_never_ends_in_a_traceback(tmp_path):
    whole = torchkit.write(tmp_path / "w.bin", TENSORS).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        (tmp_path / "w.bin").write_bytes(damaged)
        try:
            torch_file.read(tmp_path / "w.bin")
        except RemeasureError as error:
            assert "\n" not in str(error)


def test_a_file_that_shrinks_after_it_was_opened_is_said(tmp_path):
    path = torchkit.write(tmp_path / "w.bin", {"w": np.zeros((4000, 4), np.float32)}, is_old=True)
    opened = torch_file.TorchFile(path)
    os.truncate(path, path.stat().st_size - 5)
    with pytest.raises(RemeasureError, match="cut off"):
        opened.read("w")


def test_a_description_of_gigabytes_is_not_read(tmp_path):
    path = torchkit.write(tmp_path / "w.bin", {"w": np.zeros(2, np.float32)})
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02")  # the directory's entry of data.pkl: its size before compression
    data[place + 24 : place + 28] = struct.pack("<I", 1 << 31)
    path.write_bytes(data)
    with pytest.raises(RemeasureError, match="too large"):
        torch_file.TorchFile(path)


def raw(body: bytes) -> bytes:
    """Return a pickle of protocol 2 with these opcodes."""
    return b"\x80\x02" + body + b"."


NESTED = b"]" + b"\x85" * 3_000_000  # a list in a tuple in a tuple, three million times
BOMB = b"(" + b"}" * 60_000_000 + b"l"  # sixty million empty dictionaries
COPIES = b"(" + b"(K\x01K\x02l" * 100_000 + b"lq\x00" + (b"ccollections\nOrderedDict\nh\x00\x85R0") * 100


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"}" + b")" + b"\x85" * 3_000_000 + b"Ns", "nested more than 100 deep"),
        (b"}" + b")" + b"\x85" * 50 + b"Ns", "a key of a dictionary is no text"),
        (b"}(X\x01\x00\x00\x00aN)Nu", "a key of a dictionary is no text"),
        (b"(K\x01Nd", "a key of a dictionary is no text"),
        (NESTED, "nested more than 100 deep"),
        # A list that holds itself.
        (b"]q\x00" + b"h\x00a" * 200, "not a dictionary of tensors|refused as a weight file"),
        pytest.param(b"}" * 2_000_000, "more than 1000000 opcodes", marks=pytest.mark.slow),
        (b"}r\xff\xff\xff\x7f", "it counts 2147483647 objects after 2 opcodes"),
        pytest.param(COPIES, "more than 1000000 entries", marks=pytest.mark.slow),
        (b"0", "refused"),
        (b"h\x05", "refused"),
    ],
)
@pytest.mark.parametrize("is_old", [True, False])
def test_a_pickle_that_would_end_the_process_or_fill_the_memory_is_refused(tmp_path, body, says, is_old):
    path = tmp_path / "w.bin"
    if is_old:
        head = (torch_file.MAGIC, torch_file.PROTOCOL, {"little_endian": True})
        path.write_bytes(b"".join(pickle.dumps(one, 2) for one in head) + raw(body))
    else:
        torchkit.write_zip(path, raw(body), {})
    with pytest.raises(RemeasureError, match=says):
        torch_file.TorchFile(path)


def test_a_description_must_lie_in_the_zip_as_it_is(tmp_path):
    path = torchkit.write_zip(tmp_path / "w.bin", raw(b"}" * 10_000), {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RemeasureError, match="its description is compressed or encrypted"):
        torch_file.TorchFile(path)
    torchkit.write_zip(path, raw(BOMB), {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RemeasureError, match="its description is too large for one of tensors"):
        torch_file.TorchFile(path)


@pytest.mark.slow
def test_a_file_of_ten_thousand_tensors_is_read(tmp_path):
    many = {
        f"model.layers.{n}.self_attn.q_proj.lora_A.default.weight": np.float32([n]) for n in range(10_000)
    }
    found = torch_file.TorchFile(torchkit.write(tmp_path / "w.bin", many, parameters=tuple(many)))
    assert len(found.specs) == 10_000
    assert found.read("model.layers.9999.self_attn.q_proj.lora_A.default.weight").tolist() == [9999]


def test_what_torch_keeps_beside_the_names_is_no_tensor_and_harmless(tmp_path):
    """A state dict carries its modules' versions as an attribute, which the pickle sets with BUILD."""
    described = OrderedDict()
    described._metadata = OrderedDict([("", {"version": 1}), ("layer", {"version": 1})])
    with torchkit.names() as torch:
        described["w"] = tensor(torch)
        path = of_zip(tmp_path, described, {"0": DATA})
    assert torch_file.read(path)["w"].tolist() == [[1, 2], [3, 4]]
