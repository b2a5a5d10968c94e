import os
import pickle
import struct
import sys
import types
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import convert_photo_model
from remeasure import torch_file
from remeasure.encoders import EncoderSettings, photo, photo_model
from remeasure.errors import RemeasureError


def old_file(path, objects, storages, magic=torch_file.MAGIC, keys=None):
    """Write torch's old format: five pickles, then per storage a count and the raw values."""
    names = list(storages) if keys is None else keys
    with open(path, "wb") as stream:
        for value in (magic, torch_file.PROTOCOL, {"little_endian": True}):
            pickle.dump(value, stream, protocol=2)
        Dumper(stream, protocol=2).dump(objects)
        pickle.dump(names, stream, protocol=2)
        for name in names:
            stream.write(struct.pack("<q", len(storages[name])) + np.float32(storages[name]).tobytes())
    return path


class Dumper(pickle.Pickler):
    """Writes storages by reference, as torch does."""

    def persistent_id(self, value):
        return value.record if isinstance(value, Stored) else None


class Stored:
    def __init__(self, *record):
        self.record = record


class Tensor:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


@pytest.fixture
def torch_names(monkeypatch):
    """Modules with torch's names, so that the standard pickler writes them; the reader never sees them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2():
        raise AssertionError("the reader called what the file names")

    class FloatStorage:
        pass

    for module, thing in ((utils, _rebuild_tensor_v2), (torch, FloatStorage)):
        thing.__module__, thing.__qualname__ = module.__name__, thing.__name__
        setattr(module, thing.__name__, thing)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return FloatStorage


def tensor(kind, offset, shape, strides, count=6):
    storage = Stored("storage", kind, "k", "cpu", count, None)
    return Tensor(storage, offset, shape, strides, False, OrderedDict())


def test_strides_and_offset_are_honoured(tmp_path, torch_names):
    objects = OrderedDict(
        plain=tensor(torch_names, 0, (2, 3), (3, 1)),
        turned=tensor(torch_names, 0, (3, 2), (1, 3)),
        tail=tensor(torch_names, 4, (2,), (1,)),
        scalar=tensor(torch_names, 5, (), ()),
    )
    path = old_file(tmp_path / "w.pth", objects, {"k": [0, 1, 2, 3, 4, 5]})
    found = torch_file.read(path)
    assert found["plain"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["tail"].tolist() == [4, 5] and found["scalar"] == 5


class Hostile:
    def __reduce__(self):
        return os.system, ("touch harm",)


class Getter:
    def __reduce__(self):
        return getattr, (OrderedDict, "fromkeys")


@pytest.mark.parametrize("thing", [Hostile(), Getter(), {"w": Hostile()}, OrderedDict(w=[Hostile()])])
def test_a_hostile_pickle_is_refused_in_one_line_and_calls_nothing(tmp_path, monkeypatch, capsys, thing):
    monkeypatch.chdir(tmp_path)
    old_file(Path("w.pth"), thing, {})
    code = convert_photo_model.main(["--weights", "w.pth", "--out", "o.onnx", "--record", "o.json"])
    said = capsys.readouterr().err.splitlines()
    assert code == 2 and [line for line in said if line.startswith("error: w.pth: refused as a weight file")]
    assert sum(line.startswith("error:") for line in said) == 1 and "which no weight file needs" in said[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.pth"]


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "count", "says"),
    [
        ((7,), (1,), 0, 6, "beyond its storage"),
        ((2,), (1,), 5, 6, "beyond its storage"),
        ((1 << 40,), (0,), 0, 6, "more values than its storage"),
        ((2, 3), (3,), 0, 6, "differ in length"),
        ((-2,), (1,), 0, 6, "whole numbers"),
        ((6,), (1,), 0, 7, "another size than declared"),
    ],
)
def test_tensors_that_lie_about_their_size_are_refused(
    tmp_path, torch_names, shape, strides, offset, count, says
):
    objects = OrderedDict(w=tensor(torch_names, offset, shape, strides, count))
    with pytest.raises(RemeasureError, match=says):
        torch_file.read(old_file(tmp_path / "w.pth", objects, {"k": range(6)}))


def test_other_formats_and_torn_files_are_refused(tmp_path, torch_names):
    objects = OrderedDict(w=tensor(torch_names, 0, (6,), (1,)))
    with pytest.raises(RemeasureError, match="format before 1.6"):
        torch_file.read(old_file(tmp_path / "w.pth", objects, {"k": range(6)}, magic=1))
    with pytest.raises(RemeasureError, match="list of storages"):
        torch_file.read(old_file(tmp_path / "w.pth", objects, {"k": range(6)}, keys=[]))
    whole = old_file(tmp_path / "w.pth", objects, {"k": range(6)}).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "torn.pth").write_bytes(whole[:length])
        with pytest.raises(RemeasureError, match="refused"):
            torch_file.read(tmp_path / "torn.pth")
    with pytest.raises(RemeasureError, match="cannot be read"):
        torch_file.read(tmp_path / "absent.pth")


def test_random_damage_never_ends_in_a_traceback(tmp_path, torch_names):
    objects = OrderedDict(w=tensor(torch_names, 0, (6,), (1,)))
    whole = old_file(tmp_path / "w.pth", objects, {"k": range(6)}).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        (tmp_path / "w.pth").write_bytes(damaged)
        try:
            torch_file.read(tmp_path / "w.pth")
        except RemeasureError as error:
            assert "\n" not in str(error)


def test_folded_batch_norm_by_hand():
    # scale = 2 / sqrt(0.999 + 0.001) = 2; kernel 3 * 2 = 6; bias 5 - 1 * 2 = 3.
    one = np.float32([1])
    kernel, bias = photo_model.fold(np.float32([[[[3]]]]), 2 * one, 5 * one, one, np.float32([0.999]))
    assert kernel.tolist() == [[[[6.0]]]] and bias.tolist() == [3.0]


def test_a_missing_layer_is_named():
    with pytest.raises(RemeasureError, match="_conv_stem.weight is missing"):
        photo_model.to_onnx({})


@pytest.mark.models
def test_the_converted_network_sees_a_military_uniform_in_a_portrait(sources, tmp_path):
    """A second opinion on all layers: the classifier, which the model leaves out, is applied by hand.

    The picture comes with matplotlib: Rear Admiral Grace Hopper in uniform; class 652 of ImageNet.
    """
    import matplotlib

    weights = torch_file.read(sources / "efficientnet-lite0.pth")
    (tmp_path / "m.onnx").write_bytes(photo_model.to_onnx(weights))
    settings = EncoderSettings(unit="pictures", model="efficientnet-lite0", size_px=224)
    encoder = photo.PhotoEncoder(settings, tmp_path / "m.onnx", 1)
    portrait = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    image = photo.decode(portrait.read_bytes(), "portrait")
    feed = {"image": photo.prepare(image, 224)}
    features, local = encoder._session.run(["features", "local"], feed)
    assert features.shape == (1, 1280, 7, 7) and local.shape == (1, 112, 14, 14)
    logits = weights["_fc.weight"] @ features[0].mean(axis=(1, 2)) + weights["_fc.bias"]
    assert int(np.argmax(logits)) == 652


@pytest.mark.models
def test_conversion_gives_the_same_bytes_twice(sources, tmp_path):
    for name in ("a", "b"):
        arguments = ["--weights", sources / "efficientnet-lite0.pth", "--out", tmp_path / f"{name}.onnx"]
        code = convert_photo_model.main([*map(str, arguments), "--record", str(tmp_path / f"{name}.json")])
        assert code == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
