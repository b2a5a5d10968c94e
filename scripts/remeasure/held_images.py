"""Images that tables hold as base64: decoded slot by slot, checked to the last pixel, each stored once."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from remeasure import eight_bits, images, looking
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.records import Record

_SPACE = re.compile(r"[ \t\n\r]*")
_SUFFIXES = {"png": "png", "jpeg": "jpg", "gif": "gif", "webp": "webp"}
_SHOWN = 40
# Four letters are three bytes; line breaks of mail programs add a little.
_MAX_LETTERS = images.MAX_BYTES // 3 * 4 + images.MAX_BYTES // 20


class Held(Record, kw_only=True):
    """An image of a row: where it lies in the store, and what it is."""

    slot: int
    """Its place in the row's list, from 1."""
    label: str | None = None
    """What the table calls it; null where it has no word for it."""
    sha256: str
    member: str
    """Name in the store."""
    width_px: int
    height_px: int
    format: str
    """png, jpeg, gif or webp, by content."""
    odd: tuple[str, ...] = ()
    """What servers treat differently (``image_check.ImageFacts``)."""
    converted: eight_bits.Converted | None = None
    """Null where the bytes are those of the table."""


def slots(cell: str) -> Iterator[Any]:
    """Yield the entries of a JSON list, each parsed when it is asked for; nothing is ever evaluated.

    Raises:
        RemeasureError: the cell is no JSON list, or something follows it. The text says what, not where.
    """
    decoder = json.JSONDecoder()
    at = _after_space(cell, 0)
    if cell[at : at + 1] != "[":
        raise RemeasureError(
            f"is no JSON list (begins with {_cut(cell[at : at + 2 * _SHOWN])}), expected one of base64 texts"
        )
    at = _after_space(cell, at + 1)
    is_open = cell[at : at + 1] != "]"
    while is_open:
        try:
            entry, at = decoder.raw_decode(cell, at)
        except RecursionError:
            raise RemeasureError("is no list of base64 texts: it is nested too deep") from None
        except ValueError as error:
            raise RemeasureError(f"is no JSON list ({error}), expected one of base64 texts") from None
        yield entry
        at = _after_space(cell, at)
        if cell[at : at + 1] not in (",", "]"):
            raise RemeasureError(
                f"is no JSON list: after an entry comes {_cut(cell[at : at + 2 * _SHOWN])}, expected , or ]"
            )
        is_open = cell[at] == ","
        at = _after_space(cell, at + 1) if is_open else at
    if (at := _after_space(cell, at + 1)) != len(cell):
        raise RemeasureError(f"is no JSON list: behind its end comes {_cut(cell[at : at + 2 * _SHOWN])}")


def _after_space(cell: str, at: int) -> int:
    found = _SPACE.match(cell, at)
    assert found is not None
    return found.end()


def _cut(text: str) -> str:
    return "nothing" if not text else ascii(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")


def decode(entry: Any) -> bytes:
    """Return the bytes of a slot.

    Args:
        entry: base64 of the standard alphabet; white space in it does not count.

    Raises:
        RemeasureError: it is empty, no text, or no base64. The text says what, not where.
    """
    if entry is None or (isinstance(entry, str) and not entry.strip()):
        raise RemeasureError("is empty: the image is missing")
    if not isinstance(entry, str):
        raise RemeasureError(f"is no text but {type(entry).__name__}, expected base64")
    if entry[:5].lower() == "data:":
        raise RemeasureError(
            f"begins with {_cut(entry)}, expected base64 alone: leave out all up to the comma"
        )
    if len(entry) > _MAX_LETTERS:
        raise RemeasureError(f"has {len(entry)} letters, at most {_MAX_LETTERS} are read")
    try:
        return base64.b64decode("".join(entry.split()).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        said = "letters outside its alphabet" if isinstance(error, UnicodeEncodeError) else error
        raise RemeasureError(f"is no base64 ({said}; begins with {_cut(entry)})") from None


class Images:
    """Images of a table on their way to the store; of those that were put there only the facts are kept."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Held, str | None]] = {}
        self._written: set[str] = set()
        self._new: list[tuple[str, bytes]] = []
        self.n_slots = 0

    @property
    def n_images(self) -> int:
        """Different images so far."""
        return len(self._written)

    def take(self, entry: Any, slot: int) -> Held:
        """Decode an entry of a list and look at the image to its last pixel.

        Raises:
            RemeasureError: as ``decode``, or it is no image, broken, cut off or too large. The text says
                what, not where.
        """
        data = decode(entry)
        digest = sha256_bytes(data)
        if digest not in self._known:
            self._known[digest] = self._looked(data, digest)
        held, problem = self._known[digest]
        if problem is not None:
            raise RemeasureError(problem)
        self.n_slots += 1
        return msgspec.structs.replace(held, slot=slot)

    def new(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of the images that came since the last call, and forget the bytes."""
        while self._new:
            yield self._new.pop(0)

    def _looked(self, data: bytes, digest: str) -> tuple[Held, str | None]:
        """Return what an image is, or what is wrong with it; one that is good goes to the store."""
        converted = None
        try:
            seen = looking.look(data, digest)
            if data.startswith(eight_bits.TIFF) or (seen.mode and eight_bits.is_deep(seen.mode)):
                data, converted = eight_bits.convert(data, digest)
                digest = sha256_bytes(data)
                seen = looking.look(data, digest)
            if seen.problem is not None:
                raise RemeasureError(seen.problem)
        except RemeasureError as error:
            return _NOTHING, str(error)
        name = f"{digest}.{_SUFFIXES[str(seen.format)]}"
        if name not in self._written:
            self._written.add(name)
            self._new.append((name, data))
        held = Held(
            slot=0,
            sha256=digest,
            member=name,
            width_px=seen.width_px or 0,
            height_px=seen.height_px or 0,
            format=str(seen.format),
            odd=seen.odd,
            converted=converted,
        )
        return held, None


_NOTHING = Held(slot=0, sha256="", member="", width_px=0, height_px=0, format="")
