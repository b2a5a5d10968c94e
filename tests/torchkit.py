"""Torch's weight files of both formats, written without torch."""

import contextlib
import functools
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from io import BytesIO
from pathlib import Path

import numpy as np

from remeasure.number_types import NUMBERS
from remeasure.torch_file import MAGIC, PROTOCOL

STORAGES = {
    "F64": "DoubleStorage",
    "F32": "FloatStorage",
    "F16": "HalfStorage",
    "BF16": "BFloat16Storage",
    "I64": "LongStorage",
}
KINDS = {dtype: kind for kind, dtype in NUMBERS.items()}


class Stored:
    """A storage, which a pickle mentions by a record."""

    def __init__(self, *record) -> None:
        self.record = record


class Tensor:
    """A tensor, which a pickle describes as a call of torch's function."""

    def __init__(self, *arguments, function="_rebuild_tensor_v2") -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return getattr(sys.modules["torch._utils"], self.function), self.arguments


class Dumper(pickle.Pickler):
    """Writes storages by reference, as torch does."""

    def persistent_id(self, value):
        return value.record if isinstance(value, Stored) else None


@functools.cache
def _modules() -> tuple[types.ModuleType, types.ModuleType]:
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for module, words in ((torch, STORAGES.values()), (utils, ("_rebuild_tensor_v2", "_rebuild_parameter"))):
        for word in words:
            setattr(module, word, type(word, (), {"__module__": module.__name__}))
    return torch, utils


@contextlib.contextmanager
def names():
    """Modules with torch's names, so that the standard pickler writes them; a reader never sees them."""
    torch, utils = _modules()
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield torch
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def pickled(objects, protocol: int = 2) -> bytes:
    """Return the pickle of anything that may hold ``Tensor`` and ``Stored``."""
    stream = BytesIO()
    Dumper(stream, protocol=protocol).dump(objects)
    return stream.getvalue()


def write_zip(
    path: Path, data_pkl: bytes, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED
) -> Path:
    """Write a file of the format since torch 1.6."""
    with zipfile.ZipFile(path, "w", compression) as store:
        store.writestr("archive/data.pkl", data_pkl)
        store.writestr("archive/byteorder", b"little")
        for name, data in members.items():
            store.writestr(f"archive/data/{name}", data)
    return path


def write(
    path: Path, tensors: dict[str, np.ndarray], is_old: bool = False, parameters: tuple[str, ...] = ()
) -> Path:
    """Write tensors in one of the two formats.

    Args:
        path: the file.
        tensors: arrays by name.
        is_old: the format before torch 1.6.
        parameters: names that are written as torch writes parameters.
    """
    with names() as torch:
        described, data = OrderedDict(), {}
        for number, (name, values) in enumerate(tensors.items()):
            key, kind = str(number), getattr(torch, STORAGES[KINDS[values.dtype]])
            record = ("storage", kind, key, "cpu", values.size, *((None,) if is_old else ()))
            strides = tuple(step // values.itemsize for step in np.ascontiguousarray(values).strides)
            shape = values.shape
            found = Tensor(Stored(*record), 0, shape, strides if shape else (), False, OrderedDict())
            if name in parameters:
                found = Tensor(found, True, OrderedDict(), function="_rebuild_parameter")
            described[name], data[key] = found, np.ascontiguousarray(values).tobytes()
        if not is_old:
            return write_zip(path, pickled(described), data)
        with open(path, "wb") as stream:
            for value in (MAGIC, PROTOCOL, {"little_endian": True}):
                pickle.dump(value, stream, protocol=2)
            stream.write(pickled(described))
            pickle.dump(list(data), stream, protocol=2)
            for values, key in zip(tensors.values(), data, strict=True):
                stream.write(struct.pack("<q", values.size) + data[key])
    return path


def storage_bytes(values: np.ndarray, key: str = "7") -> bytes:
    """Return the bytes that a storage of torch writes for itself: the format before 1.6 with one record."""
    with names() as torch:
        record = ("storage", getattr(torch, STORAGES[KINDS[values.dtype]]), key, "cpu", values.size, None)
        heads = (MAGIC, PROTOCOL, {"little_endian": True}, Stored(*record), [key])
        described = b"".join(pickled(head) for head in heads)
    return described + struct.pack("<q", values.size) + values.tobytes()


def _numbers(numbers) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", n) for n in numbers) + b"t"


def plain(storage: bytes, shape: tuple[int, ...], strides: tuple[int, ...], as_text: bool = False) -> bytes:
    """Return what ``pickle.dump`` of a tensor writes: its numbers stand in the pickle.

    Args:
        storage: ``storage_bytes``.
        shape: of the tensor.
        strides: counted in numbers.
        as_text: bytes stand as text, as in protocol 2, or as bytes, as in protocol 3 and later.
    """
    if as_text:
        text = storage.decode("latin1").encode()
        held = b"c_codecs\nencode\nX" + struct.pack("<I", len(text)) + text + b"X\x06\x00\x00\x00latin1\x86R"
    else:
        held = b"B" + struct.pack("<I", len(storage)) + storage
    tensor = (
        b"(ctorch.storage\n_load_from_bytes\n" + held + b"\x85RK\x00" + _numbers(shape) + _numbers(strides)
    )
    return b"\x80\x04ctorch._utils\n_rebuild_tensor_v2\n" + tensor + b"\x89ccollections\nOrderedDict\n)RtR."
