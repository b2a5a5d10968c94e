"""What is asked for: queries cut to their boxes, as people see them on a page."""

import io

from remeasure.errors import RemeasureError
from remeasure.instances import crops, decode
from remeasure.instances.crops import Box
from remeasure.instances.labels import Labels
from remeasure.instances.photo_store import Photos

_QUALITY = 90


def picture(photos: Photos, labels: Labels, query: int) -> tuple[Box, bytes]:
    """Return the box of a query and what is in it as a JPEG file.

    Raises:
        RemeasureError: the photograph is missing or cannot be decoded, or the box lies outside of it.
    """
    from PIL import Image

    stem = labels.qimlist[query]
    found = decode.decode(photos.read(stem))
    if found.pixels is None:
        raise RemeasureError(
            f"{photos.source}: query {stem!r} cannot be decoded ({found.problem}); copy its photograph again"
        )
    box = crops.pillow_box(labels.gnd[query].bbx, found.size, stem)
    left, top, right, bottom = box
    out = io.BytesIO()
    Image.fromarray(found.pixels[top:bottom, left:right]).save(out, "JPEG", quality=_QUALITY)
    return box, out.getvalue()
