"""Tensors in torch's files, of both formats, without torch and without running their pickle.

A torch file is a pickle of a dictionary of tensors and the numbers behind it: raw arrays that follow it
(before torch 1.6), or members of a zip (since). A pickle can call any function; this reader knows four
harmless names and refuses everything else. It is the only reader of pickles here.
"""

import io
import os
import pickle
import pickletools
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.number_types import NUMBERS, Spec

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_ZIP = b"PK\x03\x04"
# A tensor takes about 30 opcodes and 200 bytes; the largest models have some thousand in a file.
_MAX_PICKLE_BYTES, _MAX_OPCODES = 1 << 24, 1_000_000
_MAX_DEPTH = 100
# What a damaged or hostile pickle raises inside the unpickler, and a damaged zip inside its reader.
_ERRORS = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    NotImplementedError,
)
_STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "BoolStorage": "BOOL",
}


class _Storage(NamedTuple):
    key: str
    kind: str
    count: int

    @property
    def size(self) -> int:
        return self.count * NUMBERS[self.kind].itemsize


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def is_plain(self) -> bool:
        """Whether its numbers lie in the order of its axes."""
        wanted = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != wanted:
                return False
            wanted *= n
        return True


def _rebuild_tensor(storage, offset, shape, strides, *_) -> _Tensor:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor that is not made of a storage and whole numbers")
    if len(shape) != len(strides) or len(shape) > 8:
        raise pickle.UnpicklingError("a tensor whose shape and strides differ in length")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _rebuild_parameter(tensor, *_) -> _Tensor:
    if not isinstance(tensor, _Tensor):
        raise pickle.UnpicklingError("a parameter that is no tensor")
    return tensor


class _Item(NamedTuple):
    """What is known, before anything is made, of an object that a pickle puts on its stack."""

    depth: int = 0
    """How many containers lie in one another."""
    is_text: bool = False


_MARK = _Item()
_GETS, _PUTS = ("GET", "BINGET", "LONG_BINGET"), ("PUT", "BINPUT", "LONG_BINPUT")
# These change the container below their values.
_FILLING = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")
_TEXTS = (pickletools.pyunicode, pickletools.pybytes_or_str)


def _end_of(data: bytes) -> int:
    """Return where a pickle ends, after a walk through its opcodes that makes nothing.

    Raises:
        UnpicklingError: too many opcodes, containers nested too deeply (hashing such a tuple ends the
            process), a key of a dictionary that is no text, or a number for an object that there cannot be.
            Other damage raises what ``_ERRORS`` lists.
    """
    stack: list[_Item] = []
    memo: dict[int, _Item] = {}
    for n, (opcode, argument, place) in enumerate(pickletools.genops(data)):
        name = opcode.name
        if n >= _MAX_OPCODES:
            raise pickle.UnpicklingError(f"it has more than {_MAX_OPCODES} opcodes")
        if name == "STOP":
            return place + 1
        if name == "MARK":
            stack.append(_MARK)
        elif name in _GETS:
            stack.append(memo[int(argument)])
        elif name == "MEMOIZE" or name in _PUTS:
            number = len(memo) if name == "MEMOIZE" else int(argument)
            if number > n:
                raise pickle.UnpicklingError(f"it counts {number} objects after {n} opcodes")
            memo[number] = stack[-1]
        elif name == "DUP":
            stack.append(stack[-1])
        else:
            _apply(opcode, stack)
    raise EOFError("it has no end")


def _apply(opcode: pickletools.OpcodeInfo, stack: list[_Item]) -> None:
    """Take from a stack what an opcode takes, and put there what it leaves."""
    taken: list[_Item] = []
    wanted = list(opcode.stack_before)
    if pickletools.markobject in wanted:
        while (item := stack.pop()) is not _MARK:
            taken.append(item)
        wanted = wanted[: wanted.index(pickletools.markobject)]
    taken += [stack.pop() for _ in wanted]
    taken.reverse()
    name = opcode.name
    keys = {"DICT": taken[::2], "SETITEM": taken[1:2], "SETITEMS": taken[1::2]}.get(name, ())
    if not all(key.is_text for key in keys):
        raise pickle.UnpicklingError("a key of a dictionary is no text")
    if name in _FILLING:
        depth = max(taken[0].depth, *(1 + item.depth for item in taken[1:]), 0)
    else:
        depth = 1 + max((item.depth for item in taken), default=0)
    if depth > _MAX_DEPTH:
        raise pickle.UnpicklingError(f"its containers are nested more than {_MAX_DEPTH} deep")
    stack.extend(_Item(depth, kind in _TEXTS) for kind in opcode.stack_after)


def _load(stream: BinaryIO) -> Any:
    """Read one pickle of a stream; the stream stands behind it then."""
    begin = stream.tell()
    data = stream.read(_MAX_PICKLE_BYTES)
    end = _end_of(data)
    stream.seek(begin + end)
    return _Unpickler(io.BytesIO(data[:end])).load()


class _Unpickler(pickle.Unpickler):
    """Knows ordered dictionaries, torch's records of tensors and the names of number types; nothing else."""

    _n_pairs = 0

    def _ordered(self, pairs: Sequence[Any] = ()) -> OrderedDict:
        """Make an ordered dictionary; what is copied counts, for a few opcodes can copy much and often."""
        self._n_pairs += len(pairs)
        if self._n_pairs > _MAX_OPCODES:
            raise pickle.UnpicklingError(f"its dictionaries have more than {_MAX_OPCODES} entries")
        return OrderedDict(pairs)

    def find_class(self, module: str, name: str):
        if (module, name) == ("collections", "OrderedDict"):
            return self._ordered
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _rebuild_parameter
        if module == "torch" and name in _STORAGES:
            return name
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no weight file needs")

    def persistent_load(self, pid) -> _Storage:
        match pid:
            # Before torch 1.6 a sixth word, of views, which is null.
            case ("storage", str(kind), str(key), str(), int(count)) | (
                "storage",
                str(kind),
                str(key),
                str(),
                int(count),
                None,
            ) if kind in _STORAGES and count >= 0:
                return _Storage(key, _STORAGES[kind], count)
        raise pickle.UnpicklingError("a storage record of unknown form")


class TorchFile:
    """The tensors of a torch file; their numbers are read when they are asked for.

    Args:
        path: a weight file (``.bin``, ``.pt``, ``.pth``).

    Raises:
        RemeasureError: missing, damaged, another format, or a pickle that wants to do more than describe
            tensors. Nothing that the file names is imported or called.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            with open(self.path, "rb") as stream:
                is_zip = stream.read(len(_ZIP)) == _ZIP
                stream.seek(0)
                self._tensors, self._starts = (_of_zip if is_zip else _of_stream)(stream)
            for tensor in self._tensors.values():
                _check_reach(tensor)
        except OSError as error:
            raise RemeasureError(f"{path}: cannot be read ({error.strerror}); fetch it again") from None
        except _ERRORS as error:
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

    def _numbers(self, storage: _Storage, begin: int, count: int, dtype: np.dtype) -> np.ndarray:
        place = self._starts[storage.key] + begin * dtype.itemsize
        with open(self.path, "rb") as stream:
            stream.seek(place)
            data = stream.read(count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise self._refused(EOFError(f"storage {storage.key} is cut off"))
        return np.frombuffer(data, dtype=dtype)


def read(path: Path) -> dict[str, np.ndarray]:
    """Read all tensors of a torch file; errors as of ``TorchFile``."""
    opened = TorchFile(path)
    return {name: opened.read(name) for name in opened.specs}


def _check_tensors(tensors: Any) -> dict[str, _Storage]:
    """Return the storages that tensors lie in, by key."""
    if not isinstance(tensors, dict) or not all(isinstance(tensor, _Tensor) for tensor in tensors.values()):
        raise pickle.UnpicklingError("it is not a dictionary of tensors")
    if not all(isinstance(name, str) for name in tensors):
        raise pickle.UnpicklingError("a tensor's name is no text")
    found: dict[str, _Storage] = {}
    for tensor in tensors.values():
        if found.setdefault(tensor.storage.key, tensor.storage) != tensor.storage:
            raise pickle.UnpicklingError(f"storage {tensor.storage.key} is described in two ways")
    return found


def _check_reach(tensor: _Tensor) -> None:
    """Refuse a tensor that lies outside its storage, or is larger."""
    count = tensor.storage.count
    if 0 in tensor.shape:
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    reach = tensor.offset + sum(
        (n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    if reach >= count:
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    if np.prod(tensor.shape, dtype=np.float64) > count:
        raise pickle.UnpicklingError("a tensor has more values than its storage")


def _of_stream(stream: BinaryIO) -> tuple[dict[str, _Tensor], dict[str, int]]:
    """Read the format before 1.6: pickles, then per storage an 8-byte count and the values."""
    found = [_load(stream) for _ in range(3)]
    if found[0] != MAGIC or found[1] != PROTOCOL or found[2].get("little_endian") is not True:
        raise pickle.UnpicklingError("it is no zip, and no little-endian torch file of the format before 1.6")
    tensors = _load(stream)
    keys = _load(stream)
    storages = _check_tensors(tensors)
    if sorted(storages) != sorted(keys):
        raise pickle.UnpicklingError("its list of storages does not fit its tensors")
    size, starts = os.fstat(stream.fileno()).st_size, {}
    for key in keys:
        head = stream.read(8)
        starts[key] = stream.tell()
        if len(head) != 8 or struct.unpack("<q", head)[0] != storages[key].count:
            raise pickle.UnpicklingError(f"storage {key} is cut off or of another size than declared")
        if stream.seek(storages[key].size, os.SEEK_CUR) > size:
            raise pickle.UnpicklingError(f"storage {key} is cut off or of another size than declared")
    return tensors, starts


def _of_zip(stream: BinaryIO) -> tuple[dict[str, _Tensor], dict[str, int]]:
    """Read the format since 1.6: a zip whose members lie uncompressed in it. Nothing is unpacked."""
    with zipfile.ZipFile(stream) as store:
        members = {member.filename: member for member in store.infolist()}
        described = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(described) != 1:
            raise pickle.UnpicklingError("a zip without one data.pkl")
        folder = described[0].removesuffix("data.pkl")
        order = members.get(f"{folder}byteorder")
        if order is not None and (order.file_size > 8 or store.read(order) != b"little"):
            raise pickle.UnpicklingError("its numbers are not little-endian")
        description = members[described[0]]
        if description.file_size > _MAX_PICKLE_BYTES:
            raise pickle.UnpicklingError("its description is too large for one of tensors")
        if description.compress_type != zipfile.ZIP_STORED or description.flag_bits & 1:
            raise pickle.UnpicklingError("its description is compressed or encrypted")
        with store.open(description) as text:
            tensors = _load(text)
        starts = {}
        for key, storage in _check_tensors(tensors).items():
            member = members.get(f"{folder}data/{key}")
            if member is None or member.file_size != storage.size:
                raise pickle.UnpicklingError(f"storage {key} is cut off or of another size than declared")
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise pickle.UnpicklingError(f"storage {key} is compressed or encrypted")
            starts[key] = _start(stream, member)
    return tensors, starts


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
