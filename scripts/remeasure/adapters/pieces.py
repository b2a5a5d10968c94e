"""LLaMA's sentencepiece model as ``tokenizer.json``: serving then needs neither sentencepiece nor protobuf.

Only what LLaMA's tokenizer is: byte-pair pieces, no normalisation but a blank before the text, unknown
characters as bytes. Anything else is refused.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from remeasure.errors import RemeasureError

_BLANK = "\u2581"
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_BPE = 2


class Piece(NamedTuple):
    """A token: its text, its rank as a score (larger comes first), its type."""

    text: str
    score: float
    kind: int


def read(path: Path) -> list[Piece]:
    """Read the pieces of a sentencepiece model, in the order of their ids.

    Raises:
        RemeasureError: the file is none, or of another kind than LLaMA's.
    """
    try:
        found, settings = _read(path.read_bytes())
    except OSError as error:
        raise RemeasureError(f"{path}: cannot be read ({error.strerror}); fetch it again") from None
    except (IndexError, KeyError, ValueError, struct.error, AttributeError):
        raise RemeasureError(f"{path}: is no sentencepiece model; fetch it again") from None
    kinds = [piece.kind for piece in found[:3]]
    wanted = {"model": _BPE, "name": b"identity", "extra_blanks_go": 0, "blank_first": 1}
    if kinds != [_UNKNOWN, _CONTROL, _CONTROL] or settings != wanted:
        raise RemeasureError(
            f"{path}: a tokenizer of another kind than LLaMA's ({settings}, first pieces of types {kinds}); "
            "it cannot be converted here"
        )
    return found


def _read(data: bytes) -> tuple[list[Piece], dict[str, Any]]:
    found: list[Piece] = []
    settings: dict[str, Any] = {"model": 1, "name": b"", "extra_blanks_go": 1, "blank_first": 1}
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            score = struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0
            found.append(Piece(piece[1].decode(), score, piece.get(3, _NORMAL)))
        elif number == 2:
            settings["model"] = dict(_fields(value)).get(3, 1)
        elif number == 3:
            rules = dict(_fields(value))
            settings |= {
                "name": rules.get(1, b""),
                "blank_first": rules.get(3, 1),
                "extra_blanks_go": rules.get(4, 1),
            }
    if not found:
        raise ValueError
    return found, settings


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of the fields of a protobuf message: bytes, or a whole number."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
        else:
            length, at = _varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = data[at : at + length], at + length
            if at > len(data):
                raise ValueError
        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError


def merges(pieces: list[Piece]) -> list[tuple[str, str]]:
    """Return which two pieces make which, most frequent first.

    Source:
        The conversion of sentencepiece models in transformers: every way to cut a piece into two others, by
        its score, and where one piece has several, the longer left half first.
    """
    known = {piece.text for piece in pieces}
    found = []
    for text in (piece for piece in pieces if piece.kind in (_NORMAL, _USER_DEFINED)):
        word = text.text
        cuts = ((word[:k], word[k:]) for k in range(1, len(word)))
        found += [
            (-text.score, -len(left), left, right) for left, right in cuts if left in known and right in known
        ]
    return [(left, right) for *_, left, right in sorted(found, key=lambda one: one[:2])]


def tokenizer(pieces: list[Piece]) -> dict[str, Any]:
    """Return ``tokenizer.json``, with a blank before every stretch between special tokens.

    The original LLaVA cuts its prompt at the image and reads the stretches one by one, so that each has that
    blank.
    """
    first = pieces[1].text
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special(piece.text) | {"id": number} for number, piece in enumerate(pieces[:3])],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": _BLANK},
                {"type": "Replace", "pattern": {"String": " "}, "content": _BLANK},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": first, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": first, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": first, "type_id": 1}},
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {first: {"id": first, "ids": [1], "tokens": [first]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _BLANK}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[0].text,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece.text: number for number, piece in enumerate(pieces)},
            "merges": [list(pair) for pair in merges(pieces)],
        },
    }


def special(text: str) -> dict[str, Any]:
    """Return how ``tokenizer.json`` describes a token that is no text."""
    shape = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {"content": text} | shape
