"""Transparent images are laid on white before a model is shown them.

Servers differ in what they make of transparency: some lay such an image on white, others show the colours
that lie hidden below.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from remeasure.files import sha256_bytes
from remeasure.image_check import Inspector
from remeasure.images import ImageReader
from remeasure.looking import is_transparent
from remeasure.records import ImageRef, Item


def on_white(data: bytes) -> bytes | None:
    """Return an image laid on white, as an RGB PNG of the same size; null where all its pixels are opaque.

    Args:
        data: an image that can be decoded.
    """
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        image.load()
        if not is_transparent(image):
            return None
        white = Image.new("RGBA", image.size, "white")
        flat = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
        exif = {"exif": image.info["exif"]} if "exif" in image.info else {}  # it may turn the image
    out = io.BytesIO()
    flat.save(out, "PNG", **exif)
    return out.getvalue()


class OnWhite:
    """Makes the images of items opaque: first all that are not are put into a store, then items name these.

    Args:
        store: path of the store that ``members`` are written to.
    """

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        self._made: dict[str, ImageRef] = {}

    def members(self, found: Iterable[Item]) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of every image that has to be replaced, each content once.

        Raises:
            RemeasureError: an image is missing, or not the one that the item names.
        """
        written: set[str] = set()
        with Inspector(Path()) as inspector, ImageReader() as reader:
            for item in found:
                for ref in item.images:
                    if ref.sha256 in self._made or not inspector.facts(ref, item.item_id).has_alpha:
                        continue
                    flat = on_white(reader.read(ref))
                    if flat is None:
                        continue
                    digest = sha256_bytes(flat)
                    name = f"{digest}.png"
                    self._made[ref.sha256] = ImageRef(sha256=digest, path=self._store, member=name)
                    if name not in written:
                        written.add(name)
                        yield name, flat

    def applied(self, found: Iterable[Item]) -> Iterator[Item]:
        """Yield items with the images of the store in place of those that they were made from.

        The meta of an item that is changed names the original by its hash, as ``composited``.
        """
        for item in found:
            images = tuple(self._made.get(ref.sha256, ref) for ref in item.images)
            if images != item.images:
                first = next(ref.sha256 for ref in item.images if ref.sha256 in self._made)
                item = msgspec.structs.replace(item, images=images, meta=item.meta | {"composited": first})
            yield item
