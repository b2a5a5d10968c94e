"""The published ground truth (``gnd_*.pkl``), read without running anything that the file names.

A pickle can call any function. This reader knows lists, dictionaries, texts, numbers and numpy's arrays of
such, and refuses every other name. Even for these nothing of numpy is called: arrays are rebuilt from their
bytes here.
"""

import io
import logging
import math
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from remeasure import pickle_walk
from remeasure.errors import RemeasureError
from remeasure.image_tree import printable
from remeasure.instances.labels import Labels, Truth

log = logging.getLogger("remeasure.import_labels")
# Published files have about 0.5 MB.
MAX_BYTES = 1 << 24
# Small pickles can copy a large list very often; all that is copied counts.
_MAX_COPIED = 1_000_000
_NDARRAY = "numpy.ndarray"
_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_FIELDS = ("bbx", "easy", "hard", "junk")


class _Type:
    """A type of numpy's numbers: booleans, whole numbers, floats, and texts; nothing else."""

    def __init__(self, text: Any, *_) -> None:
        word = text.decode("ascii") if isinstance(text, bytes) else text
        if not isinstance(word, str) or len(word) > 8:
            raise pickle.UnpicklingError("an array of a type that is no number and no text")
        self.is_objects = word in ("O", "O8", "|O")
        self.dtype = np.dtype("V1") if self.is_objects else np.dtype(word)
        if not self.is_objects and (self.dtype.kind not in "biufUS" or self.dtype.itemsize > 4096):
            raise pickle.UnpicklingError(f"an array of the type {word!r}, expected numbers or texts")

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        order = order.decode("ascii") if isinstance(order, bytes) else order
        if order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("an array in an unknown order of bytes")
        # Files were written on little-endian machines, where "=" is the same.
        self.dtype = self.dtype.newbyteorder("<" if order == "=" else order)


class _Array:
    """An array that is being rebuilt; its values come with its state."""

    def __init__(self) -> None:
        self.values: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, data = state
        if not isinstance(kind, _Type) or len(shape) > 2 or not all(isinstance(n, int) for n in shape):
            raise pickle.UnpicklingError("an array that is not described by shape, type and bytes")
        n = math.prod(shape)
        if n < 0 or min(shape, default=0) < 0:
            raise pickle.UnpicklingError("an array with a side below 0")
        if kind.is_objects:
            if not isinstance(data, list) or len(data) != n or len(shape) != 1:
                raise pickle.UnpicklingError("an array of objects whose values are no list of its length")
            self.values = data
            return
        raw = _as_bytes(data)
        if len(raw) != n * kind.dtype.itemsize:
            raise pickle.UnpicklingError("an array with more or fewer bytes than its shape")
        found = np.frombuffer(raw, dtype=kind.dtype).reshape(shape, order="F" if is_fortran else "C")
        self.values = found.tolist()


def _as_bytes(data: Any) -> bytes:
    """Return bytes; Python 2 wrote them as text, of which every character is a byte."""
    if isinstance(data, str):
        return data.encode("latin-1")
    if not isinstance(data, bytes):
        raise pickle.UnpicklingError("an array whose values are not given as bytes")
    return data


def _reconstruct(kind: Any, *_) -> _Array:
    if kind != _NDARRAY:
        raise pickle.UnpicklingError("an array of another kind than numpy.ndarray")
    return _Array()


def _scalar(kind: Any, data: Any = None) -> Any:
    if not isinstance(kind, _Type) or kind.is_objects:
        raise pickle.UnpicklingError("a number that is not described by type and bytes")
    raw = _as_bytes(data)
    if len(raw) != kind.dtype.itemsize:
        raise pickle.UnpicklingError("a number with more or fewer bytes than its type")
    return np.frombuffer(raw, dtype=kind.dtype)[0].item()


def _encode(text: Any, coding: Any = "latin1", *_) -> bytes:
    """Do what ``_codecs.encode`` does for bytes in pickles of protocol 2."""
    if not isinstance(text, str) or coding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("a text in a coding that bytes do not need")
    return text.encode("latin-1")


class _Callable:
    """Something that a pickle may call, and may not change."""

    __slots__ = ("_made",)

    def __init__(self, made: Any) -> None:
        self._made = made

    def __call__(self, *values: Any) -> Any:
        return self._made(*values)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes what it may only call")


class _Unpickler(pickle.Unpickler):
    """Knows the names that a ground truth may need."""

    def __init__(self, data: bytes) -> None:
        # Python 2 wrote texts as bytes; names of photographs are ASCII.
        super().__init__(io.BytesIO(data), encoding="latin-1")
        self._n_copied = 0
        builtins: dict[str, Any] = {name: self._container(kind) for name, kind in _CONTAINERS.items()}
        builtins |= {name: _plain(kind) for name, kind in _PLAIN.items()}
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): self._container(OrderedDict),
            ("numpy", "dtype"): _Type,
            ("_codecs", "encode"): _encode,
        }
        for module in ("builtins", "__builtin__"):
            known |= {(module, name): made for name, made in builtins.items()}
        for module in _MODULES:
            known |= {(module, "_reconstruct"): _reconstruct, (module, "scalar"): _scalar}
        self._known = {place: _Callable(made) for place, made in known.items()}
        self._known[("numpy", "ndarray")] = _NDARRAY

    def _container(self, kind: type):
        def made(values: Any = ()) -> Any:
            if not isinstance(values, (list, tuple, set, dict)):
                raise pickle.UnpicklingError(f"a {kind.__name__} that is not made from a list")
            self._n_copied += len(values)
            if self._n_copied > _MAX_COPIED:
                raise pickle.UnpicklingError(f"it copies more than {_MAX_COPIED} values")
            return kind(values)

        return made

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no ground truth needs")
        return self._known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside itself")


_CONTAINERS = {"dict": dict, "list": list, "tuple": tuple, "set": set}
_PLAIN = {"str": str, "bytes": bytes, "int": int, "float": float, "bool": bool}


def _plain(kind: type):
    """Return what makes a number or a text; never from another kind of value, which could take long."""

    def made(*values: Any) -> Any:
        if not values:
            return kind()
        if len(values) == 1 and isinstance(values[0], kind):
            return values[0]
        if len(values) == 1 and kind in (int, float, bool) and isinstance(values[0], (int, float)):
            return kind(values[0])
        raise pickle.UnpicklingError(f"a {kind.__name__} that is made from something else")

    return made


def read(path: Path, data: bytes, dataset: str, sha256: str) -> Labels:
    """Read a published ground truth.

    Args:
        path: where it came from, for errors.
        data: its bytes.
        dataset: what the benchmark is called.
        sha256: of the bytes.

    Returns:
        Labels whose rows ascend; what is wrong with them otherwise is for ``labels.check``.

    Raises:
        RemeasureError: the pickle names something else than lists, texts, numbers and arrays, is damaged,
        or holds
            no ground truth.
    """
    if len(data) > MAX_BYTES:
        raise RemeasureError(f"{path}: has {len(data)} bytes, at most {MAX_BYTES} are read as a ground truth")
    try:
        raw = _Unpickler(data[: pickle_walk.end_of(data)]).load()
    except pickle_walk.ERRORS as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RemeasureError(
            f"{path}: refused as a ground truth: {printable(reason)}; nothing in it was run: delete it and "
            "fetch the file with the expected SHA-256"
        ) from None
    try:
        return _labels(raw, dataset, sha256)
    except _Wrong as error:
        raise RemeasureError(
            f"{path}: holds no ground truth: {error}; expected a dictionary of imlist, qimlist and gnd, of "
            "which each has bbx, easy, hard and junk"
        ) from None


class _Wrong(Exception):
    """What a pickle holds is not a ground truth; the text says where."""


def _labels(raw: Any, dataset: str, sha256: str) -> Labels:
    if not isinstance(raw, dict) or not {"imlist", "qimlist", "gnd"} <= set(raw):
        raise _Wrong("its top level")
    gnd = _list(raw["gnd"], "gnd")
    _tell_unused(set(raw) - {"imlist", "qimlist", "gnd"}, "the top level")
    return Labels(
        schema=1,
        dataset=dataset,
        source_sha256=sha256,
        imlist=tuple(_text(one, "imlist") for one in _list(raw["imlist"], "imlist")),
        qimlist=tuple(_text(one, "qimlist") for one in _list(raw["qimlist"], "qimlist")),
        gnd=tuple(_truth(one, f"gnd[{number}]") for number, one in enumerate(gnd)),
    )


def _truth(raw: Any, place: str) -> Truth:
    # Without junk nothing is passed over; the published evaluator reads it the same way.
    if not isinstance(raw, dict) or not {"bbx", "easy", "hard"} <= set(raw):
        raise _Wrong(place)
    if place == "gnd[0]":
        _tell_unused(set(raw) - set(_FIELDS), place)
    box = [_number(one, f"{place} bbx") for one in _list(raw["bbx"], f"{place} bbx")]
    if len(box) != 4:
        raise _Wrong(f"{place} bbx has {len(box)} numbers, expected 4")
    return Truth(
        bbx=(box[0], box[1], box[2], box[3]),
        easy=_rows(raw["easy"], f"{place} easy"),
        hard=_rows(raw["hard"], f"{place} hard"),
        junk=_rows(raw.get("junk", []), f"{place} junk"),
    )


def _tell_unused(names: set, place: str) -> None:
    if names:
        told = ", ".join(sorted(printable(str(name)) for name in names)[:5])
        log.warning("%s has %d keys that are not used: %s", place, len(names), told)


def _list(raw: Any, place: str) -> list:
    values = raw.values if isinstance(raw, _Array) else raw
    if not isinstance(values, (list, tuple)):
        raise _Wrong(f"{place} is no list")
    return list(values)


def _text(raw: Any, place: str) -> str:
    if isinstance(raw, bytes):
        return raw.decode("latin-1")
    if not isinstance(raw, str):
        raise _Wrong(f"{place} holds something that is no name")
    return raw


def _number(raw: Any, place: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not abs(raw) < 1e15:
        raise _Wrong(f"{place} holds something that is no number, or none of a photograph")
    return float(raw)


def _rows(raw: Any, place: str) -> tuple[int, ...]:
    """Return rows in ascending order; one that stands twice stays, for ``labels.check`` to find."""
    found = []
    for one in _list(raw, place):
        if _number(one, place) != int(one):
            raise _Wrong(f"{place} holds {one!r}, expected whole numbers")
        found.append(int(one))
    return tuple(sorted(found))
