"""A walk through the opcodes of a pickle that makes nothing: refuses what would end the process."""

import pickle
import pickletools
import struct
from typing import NamedTuple

MAX_OPCODES = 1_000_000
# What a damaged or hostile pickle raises inside an unpickler.
ERRORS = (
    pickle.UnpicklingError,
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
_MAX_DEPTH = 100


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


def end_of(data: bytes) -> int:
    """Return where a pickle ends, after a walk through its opcodes that makes nothing.

    Raises:
        UnpicklingError: too many opcodes, containers nested too deeply (hashing such a tuple ends the
            process), a key of a dictionary that is no text, or a number for an object that there cannot be.
            Other damage raises what unpickling raises.
    """
    stack: list[_Item] = []
    memo: dict[int, _Item] = {}
    for n, (opcode, argument, place) in enumerate(pickletools.genops(data)):
        name = opcode.name
        if n >= MAX_OPCODES:
            raise pickle.UnpicklingError(f"it has more than {MAX_OPCODES} opcodes")
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
