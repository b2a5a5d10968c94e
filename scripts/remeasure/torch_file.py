"""Tensors in torch's files, of all three formats, without torch and without running their pickle.

A torch file is a pickle of a dictionary of tensors and the numbers behind it: raw arrays that follow it
(before torch 1.6), or members of a zip (since). A tensor may also be pickled by itself, its numbers in the
pickle. A pickle can call any function; ``torch_pickle`` reads these and knows a few harmless names.
"""

import os
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from remeasure import torch_pickle
from remeasure.errors import RemeasureError
from remeasure.files import open_regular
from remeasure.number_types import NUMBERS, Spec
from remeasure.torch_pickle import ERRORS, MAGIC, PROTOCOL, Refused, Storage, Tensor

__all__ = ["MAGIC", "PROTOCOL", "TorchFile", "read"]
_ZIP = b"PK\x03\x04"


class _Contents(NamedTuple):
    """What a file describes, and where the numbers of its storages stand."""

    objects: Any
    starts: dict[str, int]
    """By storage the place in the file,"""
    held: dict[str, bytes]
    """or the numbers themselves."""


class TorchFile:
    """The tensors of a torch file; their numbers are read when they are asked for.

    Args:
        path: a weight file (``.bin``, ``.pt``, ``.pth``), or a pickled tensor, whose name is "" then.
        under: where a checkpoint of a training has its weights: a key of its dictionary. What else stands
            there is left out; a file without that key is a dictionary of weights itself.
        mixed: the dictionary holds other things as well, which ``others`` has then: texts, numbers, lists.

    Raises:
        RemeasureError: missing, damaged, another format, or a pickle that wants to do more than describe
            tensors. Nothing that the file names is imported or called.
    """

    def __init__(self, path: Path, under: str | None = None, *, mixed: bool = False) -> None:
        self.path = Path(path)
        try:
            with open_regular(self.path) as stream:
                is_zip = stream.read(len(_ZIP)) == _ZIP
                stream.seek(0)
                found = (_of_zip if is_zip else _of_stream)(stream)
            self._starts, self._held = found.starts, found.held
            self._tensors, self.others = _chosen(found.objects, under, mixed)
            for tensor in self._tensors.values():
                _check_reach(tensor)
        except OSError as error:
            raise RemeasureError(f"{path}: cannot be read ({error.strerror}); fetch it again") from None
        except ERRORS as error:
            raise self._refused(error) from None
        self.specs = {name: Spec(t.storage.kind, t.shape) for name, t in self._tensors.items()}

    def _refused(self, error: BaseException) -> RemeasureError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return RemeasureError(
            f"{self.path}: refused as a weight file: {reason[:300]}; delete it and fetch the file "
            "with the expected SHA-256"
        )

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return a tensor, or the rows ``start`` to ``stop`` of its first axis, laid out in axis order.

        Raises:
            RemeasureError: the file was changed since it was opened.
        """
        tensor = self._tensors[name]
        dtype = NUMBERS[tensor.storage.kind]
        begin, rows, shape = tensor.offset, slice(None), tensor.shape
        if tensor.shape and tensor.is_plain():
            stop = tensor.shape[0] if stop is None else min(stop, tensor.shape[0])
            width = int(np.prod(tensor.shape[1:], dtype=np.int64))
            shape = (max(0, stop - start), *tensor.shape[1:])
            begin, count = tensor.offset + start * width, shape[0] * width
        else:  # convolutions of some files: the whole storage is needed
            rows, begin, count = slice(start, stop), 0, tensor.storage.count
        flat = self._numbers(tensor.storage, begin, count, dtype)
        if tensor.shape and tensor.is_plain():
            return flat.reshape(shape)
        strides = [stride * dtype.itemsize for stride in tensor.strides]
        view = np.lib.stride_tricks.as_strided(flat[tensor.offset :], shape, strides, writeable=False)
        return np.ascontiguousarray(view[rows] if tensor.shape else view).reshape(
            view[rows].shape if shape else ()
        )

    def _numbers(self, storage: Storage, begin: int, count: int, dtype: np.dtype) -> np.ndarray:
        if storage.key in self._held:
            return np.frombuffer(self._held[storage.key], dtype, count, begin * dtype.itemsize)
        place = self._starts[storage.key] + begin * dtype.itemsize
        with open(self.path, "rb") as stream:
            stream.seek(place)
            data = stream.read(count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise self._refused(EOFError(f"storage {storage.key} is cut off"))
        return np.frombuffer(data, dtype=dtype)


def read(path: Path, under: str | None = None) -> dict[str, np.ndarray]:
    """Read all tensors of a torch file; arguments and errors as of ``TorchFile``."""
    opened = TorchFile(path, under)
    return {name: opened.read(name) for name in opened.specs}


def _chosen(objects: Any, under: str | None, mixed: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors that are asked for by name, and what stands beside them."""
    if under is not None and isinstance(objects, dict) and under in objects:
        objects = objects[under]
    if isinstance(objects, Tensor):
        objects = {"": objects}
    if not isinstance(objects, dict):
        raise Refused("it is not a dictionary of tensors")
    if not all(isinstance(name, str) for name in objects):
        raise Refused("a tensor's name is no text")
    tensors = {name: found for name, found in objects.items() if isinstance(found, Tensor)}
    others = {name: found for name, found in objects.items() if name not in tensors}
    if others and not mixed:
        raise Refused("it is not a dictionary of tensors")
    return tensors, others


def _check_reach(tensor: Tensor) -> None:
    """Refuse a tensor that lies outside its storage, or is larger."""
    count = tensor.storage.count
    if 0 in tensor.shape:
        raise Refused("a tensor reaches beyond its storage")
    reach = tensor.offset + sum(
        (n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    if reach >= count:
        raise Refused("a tensor reaches beyond its storage")
    if np.prod(tensor.shape, dtype=np.float64) > count:
        raise Refused("a tensor has more values than its storage")


def _of_stream(stream: BinaryIO) -> _Contents:
    """Read the format before 1.6: pickles, then per storage an 8-byte count and the values; or one pickle."""
    if not torch_pickle.begins_as_torch(stream):
        objects, held = torch_pickle.load_plain(stream)
        if stream.read(1):
            raise Refused(
                "it is no zip, no little-endian torch file of the format before 1.6 and no pickled tensor: "
                "something follows its first pickle"
            )
        return _Contents(objects, {}, held)
    torch_pickle.check_heads([torch_pickle.load(stream)[0] for _ in range(3)])
    objects, storages = torch_pickle.load(stream)
    keys, _ = torch_pickle.load(stream)
    if not isinstance(keys, list) or sorted(storages) != sorted(keys):
        raise Refused("its list of storages does not fit its tensors")
    size, starts = os.fstat(stream.fileno()).st_size, {}
    for key in keys:
        head = stream.read(8)
        starts[key] = stream.tell()
        if len(head) != 8 or struct.unpack("<q", head)[0] != storages[key].count:
            raise Refused(f"storage {key} is cut off or of another size than declared")
        if stream.seek(storages[key].size, os.SEEK_CUR) > size:
            raise Refused(f"storage {key} is cut off or of another size than declared")
    return _Contents(objects, starts, {})


def _of_zip(stream: BinaryIO) -> _Contents:
    """Read the format since 1.6: a zip whose members lie uncompressed in it. Nothing is unpacked."""
    with zipfile.ZipFile(stream) as store:
        members = {member.filename: member for member in store.infolist()}
        described = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(described) != 1:
            raise Refused("a zip without one data.pkl")
        folder = described[0].removesuffix("data.pkl")
        order = members.get(f"{folder}byteorder")
        if order is not None and (order.file_size > 8 or store.read(order) != b"little"):
            raise Refused("its numbers are not little-endian")
        description = members[described[0]]
        if description.file_size > torch_pickle.MAX_BYTES:
            raise Refused("its description is too large for one of tensors")
        if description.compress_type != zipfile.ZIP_STORED or description.flag_bits & 1:
            raise Refused("its description is compressed or encrypted")
        with store.open(description) as text:
            objects, storages = torch_pickle.load(text)
        starts = {}
        for key, storage in storages.items():
            member = members.get(f"{folder}data/{key}")
            if member is None or member.file_size != storage.size:
                raise Refused(f"storage {key} is cut off or of another size than declared")
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise Refused(f"storage {key} is compressed or encrypted")
            starts[key] = _start(stream, member)
    return _Contents(objects, starts, {})


def _start(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Return where the bytes of a member begin: behind its own header, whose length differs."""
    stream.seek(member.header_offset)
    head = stream.read(30)
    if len(head) != 30 or head[:4] != _ZIP:
        raise zipfile.BadZipFile(f"{member.filename} has no header")
    name, extra = struct.unpack("<HH", head[26:30])
    begin = member.header_offset + 30 + name + extra
    if begin + member.file_size > os.fstat(stream.fileno()).st_size:
        raise zipfile.BadZipFile(f"{member.filename} is cut off")
    return begin
