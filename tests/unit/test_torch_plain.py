"""Tensors that pickle itself has written, and dictionaries of tensors inside of others."""

import pickle
from collections import OrderedDict

import numpy as np
import pytest

import torchkit
from remeasure.errors import RemeasureError
from remeasure.torch_file import TorchFile, read

VALUES = np.float32([[0.5, 0.25], [1, 0]])
STORAGE = torchkit.storage_bytes(VALUES)


def put(tmp_path, data: bytes):
    path = tmp_path / "nn.pkl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("as_text", [False, True])
def test_a_pickled_tensor_is_read_under_no_name(tmp_path, as_text):
    path = put(tmp_path, torchkit.plain(STORAGE, (2, 2), (2, 1), as_text))
    found = TorchFile(path)
    assert list(found.specs) == [""] and found.specs[""].shape == (2, 2)
    assert found.read("").tolist() == [[0.5, 0.25], [1, 0]] and found.read("", 1, 2).tolist() == [[1, 0]]


def test_a_turned_tensor_is_read_in_the_order_of_its_axes(tmp_path):
    path = put(tmp_path, torchkit.plain(STORAGE, (2, 2), (1, 2)))
    assert read(path)[""].tolist() == [[0.5, 1], [0.25, 0]]


def test_what_torch_itself_pickles_is_read(tmp_path):
    import torch

    tensor = torch.stack([torch.tensor([[0.5, 0.25]]), torch.tensor([[3.0, 16777215.0]])])
    for protocol in (2, 3, 4, 5):
        path = put(tmp_path, pickle.dumps(tensor, protocol))
        assert read(path)[""].tolist() == [[[0.5, 0.25]], [[3, 16777215]]]


def inner(body: bytes) -> bytes:
    """Return the bytes of a storage whose record is another pickle."""
    heads = [pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    return b"".join(heads) + b"\x80\x02" + body + b"."


REACH = torchkit.plain(STORAGE, (3, 2), (2, 1))
TWICE = b"\x80\x04ctorch.storage\n_load_from_bytes\nB"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x80\x04cposix\nsystem\nX\x04\x00\x00\x00harm\x85R.", "it asks for posix.system"),
        (b"\x80\x04ctorch.storage\n_load_from_bytes\nN\x85R.", "a storage that is no bytes"),
        (b"\x80\x04ctorch\nload\nN\x85R.", "it asks for torch.load"),
        (torchkit.plain(inner(b"cposix\nsystem\nX\x04\x00\x00\x00harm\x85R"), (1,), (1,)), "posix.system"),
        (
            torchkit.plain(inner(TWICE[2:] + b"\x00\x00\x00\x00\x85R"), (1,), (1,)),
            "torch.storage._load_from_bytes",
        ),
        (torchkit.plain(STORAGE[:-1], (2, 2), (2, 1)), "cut off or of another size"),
        (torchkit.plain(STORAGE + b"\x00", (2, 2), (2, 1)), "cut off or of another size"),
        (torchkit.plain(STORAGE[40:], (2, 2), (2, 1)), "refused as a weight file"),
        (REACH, "beyond its storage"),
        (torchkit.plain(STORAGE, (2, 2), (2, 1)) + b"x", "something follows its first pickle"),
        (pickle.dumps([1, 2]), "not a dictionary of tensors"),
        (b"\x80\x04c_codecs\nencode\nX\x01\x00\x00\x00aX\x06\x00\x00\x00rot_13\x86R.", "latin1"),
        (b"", "refused as a weight file"),
    ],
)
def test_a_hostile_pickle_is_refused_in_one_line(tmp_path, monkeypatch, data, says):
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path, data)
    with pytest.raises(RemeasureError, match=says) as told:
        TorchFile(path)
    assert "\n" not in str(told.value) and [p.name for p in tmp_path.iterdir()] == ["nn.pkl"]


def test_one_storage_named_a_thousand_times_is_refused(tmp_path):
    held = b"B" + len(STORAGE).to_bytes(4, "little") + STORAGE + b"\x94"
    again = b"ctorch.storage\n_load_from_bytes\nh\x00\x85R0"
    path = put(tmp_path, b"\x80\x04" + held + again * 1000 + b".")
    with pytest.raises(RemeasureError, match="more than 16 storages"):
        TorchFile(path)


def test_random_damage_of_a_pickled_tensor_never_ends_in_a_traceback(tmp_path):
    whole = torchkit.plain(STORAGE, (2, 2), (2, 1))
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        path = put(tmp_path, damaged)
        try:
            read(path)
        except RemeasureError as error:
            assert "\n" not in str(error)


@pytest.fixture
def checkpoint(tmp_path):
    """Weights under "state", as a training script keeps them, and what else it keeps."""
    with torchkit.names() as torch:
        record = ("storage", torch.FloatStorage, "0", "cpu", 4)
        tensor = torchkit.Tensor(torchkit.Stored(*record), 0, (2, 2), (2, 1), False, OrderedDict())
        objects = {"epoch": 3, "names": ["a", "b"], "state": OrderedDict(w=tensor)}
        return torchkit.write_zip(tmp_path / "c.pt", torchkit.pickled(objects), {"0": VALUES.tobytes()})


def test_tensors_are_found_under_a_name_or_at_the_top(checkpoint, tmp_path):
    assert TorchFile(checkpoint, "state").read("w").tolist() == [[0.5, 0.25], [1, 0]]
    at_top = torchkit.write(tmp_path / "w.pt", {"w": VALUES})
    assert read(at_top, "state")["w"].tolist() == [[0.5, 0.25], [1, 0]]
    with pytest.raises(RemeasureError, match="not a dictionary of tensors"):
        TorchFile(checkpoint, "names")


def test_what_stands_beside_tensors_is_given_only_where_it_is_asked_for(checkpoint):
    with pytest.raises(RemeasureError, match="not a dictionary of tensors"):
        TorchFile(checkpoint)
    found = TorchFile(checkpoint, mixed=True)
    assert not found.specs and found.others["epoch"] == 3 and found.others["names"] == ["a", "b"]
