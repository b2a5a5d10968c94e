"""What goes over the wire: a neutral body in an endpoint's words, the bytes of its images put in."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pybase64

from remeasure import images, requests
from remeasure.executors import Call, Speaking
from remeasure.records import ImageRef


class Payloads:
    """Makes wire bodies for one model. A context manager: keeps image stores open. Not for several threads.

    Args:
        way: dialect and thinking default.
        served_name: the model name that the server knows.
        images_root: folder that the paths of image references start from.
    """

    def __init__(self, way: Speaking, served_name: str, images_root: Path) -> None:
        self._dialect = requests.dialect_of(way.dialect)
        self._thinking_default = way.thinking_default
        self._served_name = served_name
        self._root = images_root
        self._reader = images.ImageReader()
        self._encoder = msgspec.json.Encoder()

    def __enter__(self) -> "Payloads":
        return self

    def __exit__(self, *_) -> None:
        self._reader.__exit__()

    def template(self, call: Call) -> bytes:
        """Return the body as JSON in which images still stand as references."""
        wire = requests.translate(call.body, self._dialect, self._served_name, self._thinking_default)
        return self._encoder.encode(wire)

    def pieces(self, call: Call, template: bytes) -> list[bytes]:
        """Return the body in pieces, images read, checked against their hash and encoded.

        Pieces are never joined: a tile is hashed, encoded and sent, and not copied or searched for quotes.

        Raises:
            RemeasureError: an image is missing, damaged or another one than the reference says.
        """
        return list(self._pieces(call, template))

    def _pieces(self, call: Call, template: bytes) -> Iterator[bytes]:
        start = 0
        for ref in requests.image_refs(call.body):
            # Only the value of a key "url" stands so in JSON: text that looks alike has its quotes escaped.
            mark = b'"url":"' + images.to_url(ref).encode() + b'"'
            place = template.index(mark, start) + len(b'"url":"')
            data = self._read(ref)
            yield template[start:place] + f"data:{images.media_type(data)};base64,".encode()
            yield pybase64.b64encode(data)
            start = place + len(mark) - len(b'"url":""')
        yield template[start:]

    def _read(self, ref: ImageRef) -> bytes:
        return self._reader.read(msgspec.structs.replace(ref, path=str(self._root / ref.path)))
