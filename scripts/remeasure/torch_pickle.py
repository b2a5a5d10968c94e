"""What a pickle in a torch file describes, read without torch and without calling anything that it names.

A pickle can call any function; this reader knows the few harmless names that records of tensors are made of
and refuses everything else. Before anything is made, a walk through the opcodes refuses what would fill the
memory or end the process.
"""

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from remeasure import pickle_walk
from remeasure.number_types import NUMBERS

Refused = pickle.UnpicklingError
MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
# A tensor takes about 30 opcodes and 200 bytes; the largest models have some thousand in a file.
MAX_BYTES = 1 << 24
# A published ranking of 70 queries has 3.5 MB.
MAX_PLAIN_BYTES, _MAX_STORAGES = 1 << 28, 16
# What a damaged or hostile pickle raises inside the unpickler, and a damaged zip inside its reader.
ERRORS = (*pickle_walk.ERRORS, zipfile.BadZipFile)
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


class Storage(NamedTuple):
    """Numbers that tensors are views of; they stand outside the pickle, or in it as bytes."""

    key: str
    kind: str
    count: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * NUMBERS[self.kind].itemsize


class Tensor(NamedTuple):
    """Where the numbers of a tensor stand in a storage, counted in numbers."""

    storage: Storage
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


def _rebuild_tensor(storage, offset, shape, strides, *_) -> Tensor:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise Refused("a tensor that is not made of a storage and whole numbers")
    if len(shape) != len(strides) or len(shape) > 8:
        raise Refused("a tensor whose shape and strides differ in length")
    return Tensor(storage, offset, tuple(shape), tuple(strides))


def _rebuild_parameter(tensor, *_) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise Refused("a parameter that is no tensor")
    return tensor


def load(stream: BinaryIO) -> tuple[Any, dict[str, Storage]]:
    """Read one pickle of a stream, which stands behind it then.

    Returns:
        What it describes, made of ``Tensor``, dictionaries, lists, texts and numbers; all storages by key.

    Raises:
        one of ``ERRORS``.
    """
    unpickler = _Unpickler(io.BytesIO(_taken(stream, MAX_BYTES)))
    return unpickler.load(), unpickler.storages


def load_plain(stream: BinaryIO) -> tuple[Any, dict[str, bytes]]:
    """Read a pickle that was written by pickle itself: it holds its storages as bytes of torch's own format.

    Returns:
        What it describes, as ``load``; the numbers of the storages by key.

    Raises:
        one of ``ERRORS``.
    """
    unpickler = _PlainUnpickler(io.BytesIO(_taken(stream, MAX_PLAIN_BYTES)))
    return unpickler.load(), unpickler.held


def _taken(stream: BinaryIO, most: int) -> bytes:
    begin = stream.tell()
    data = stream.read(most)
    end = pickle_walk.end_of(data)
    stream.seek(begin + end)
    return data[:end]


class _Unpickler(pickle.Unpickler):
    """Knows ordered dictionaries, torch's records of tensors and the names of number types; nothing else."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self.storages: dict[str, Storage] = {}
        self._n_pairs = 0

    def _ordered(self, pairs: Sequence[Any] = ()) -> OrderedDict:
        """Make an ordered dictionary; what is copied counts, for a few opcodes can copy much and often."""
        self._n_pairs += len(pairs)
        if self._n_pairs > pickle_walk.MAX_OPCODES:
            raise Refused(f"its dictionaries have more than {pickle_walk.MAX_OPCODES} entries")
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
        raise Refused(f"it asks for {module}.{name}, which no weight file needs")

    def persistent_load(self, pid) -> Storage:
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
                found = Storage(key, _STORAGES[kind], count)
                if self.storages.setdefault(key, found) != found:
                    raise Refused(f"storage {key} is described in two ways")
                return found
        raise Refused("a storage record of unknown form")


class _PlainUnpickler(_Unpickler):
    """Knows also how torch's storages write themselves; numbers and tensors stand in one pickle then."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self.held: dict[str, bytes] = {}
        self._n_encoded = 0

    def find_class(self, module: str, name: str):
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return self._storage
        if (module, name) == ("_codecs", "encode"):
            return self._encode
        if module == "torch":
            raise Refused(f"it asks for {module}.{name}, which stands in the bytes of a storage only")
        return super().find_class(module, name)

    def persistent_load(self, pid) -> Storage:
        raise Refused("a storage outside the pickle")

    def _storage(self, data: bytes) -> Storage:
        """Read a storage in the place of torch's function, which would run the pickle that is in it."""
        if len(self.held) >= _MAX_STORAGES:
            raise Refused(f"it has more than {_MAX_STORAGES} storages")
        found, numbers = _of_bytes(data)
        key = str(len(self.held))
        self.held[key] = numbers
        return found._replace(key=key)

    def _encode(self, text: str, encoding: str) -> bytes:
        """Return bytes that a pickle of protocol 2 writes as text."""
        self._n_encoded += len(text)
        if encoding != "latin1" or self._n_encoded > MAX_PLAIN_BYTES:
            raise Refused("bytes that are not written as text of latin1, or too many")
        return text.encode("latin1")


def _of_bytes(data: bytes) -> tuple[Storage, bytes]:
    """Read one storage in the format before torch 1.6: heads, record, key, a count and the numbers."""
    if not isinstance(data, bytes):
        raise Refused("a storage that is no bytes")
    stream = io.BytesIO(data)
    check_heads([load(stream)[0] for _ in range(3)])
    found, keys = load(stream)[0], load(stream)[0]
    if not isinstance(found, Storage) or keys != [found.key]:
        raise Refused("bytes that are not one storage")
    count, numbers = stream.read(8), stream.read()
    if len(count) != 8 or struct.unpack("<q", count)[0] != found.count or len(numbers) != found.size:
        raise Refused("a storage is cut off or of another size than declared")
    return found, numbers


def begins_as_torch(stream: BinaryIO) -> bool:
    """Return whether a stream begins with the pickle of torch's number; it stands where it stood."""
    begin, wanted = stream.tell(), pickle.dumps(MAGIC, 2)
    found = stream.read(len(wanted))
    stream.seek(begin)
    return found == wanted


def check_heads(found: Sequence[Any]) -> None:
    """Check the three pickles that a file before torch 1.6 begins with."""
    if found[0] != MAGIC or found[1] != PROTOCOL or found[2].get("little_endian") is not True:
        raise Refused("it is no zip, and no little-endian torch file of the format before 1.6")
