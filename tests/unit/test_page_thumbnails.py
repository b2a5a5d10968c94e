"""Pictures of a page: what is transparent lies on white."""

import base64
import io

import pytest
from PIL import Image

from remeasure.files import sha256_bytes
from remeasure.images import ImageReader
from remeasure.page import thumbnails
from remeasure.records import ImageRef


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_a_transparent_corner_is_white_and_what_is_opaque_keeps_its_colour(tmp_path, mode):
    picture = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    picture.paste((40, 40, 40, 255), (16, 16, 48, 48))
    out = io.BytesIO()
    picture.convert(mode).save(out, "PNG")
    (tmp_path / "a.png").write_bytes(out.getvalue())
    with ImageReader() as reader:
        ref = ImageRef(sha256=sha256_bytes(out.getvalue()), path=str(tmp_path / "a.png"))
        url = thumbnails.data_url(reader, ref)
    data = base64.b64decode(url.removeprefix("data:image/jpeg;base64,"))
    with Image.open(io.BytesIO(data)) as small:
        assert (small.format, small.size, small.mode) == ("JPEG", (64, 64), "RGB")
        # Within what JPEG changes.
        assert min(small.getpixel((0, 0))) >= 250
        assert all(abs(value - 40) <= 8 for value in small.getpixel((32, 32)))
