"""Small pages, questions and encoders for the tests of embedding and retrieval."""

from remeasure.encoders import EncoderSettings
from remeasure.encoders.text import TextEncoder
from remeasure.records import ImageRef, Item, PictureRef, RenderedPage, TileRef


def settings(**other):
    return EncoderSettings(**{"unit": "tiles", "model": "bge-small-en-v1.5", "max_tokens": 512} | other)


def text_encoder(sources, threads=1, trained=None, **other):
    weights = sources / "bge-small-en-v1.5.onnx", sources / "bge-small-en-v1.5.tokenizer.json"
    return TextEncoder(settings(**other), *weights, threads, trained)


def page(heights=(10, 10), boxes=((2, 8, 3, 4),)):
    tiles, top = [], 0
    for number, height in enumerate(heights):
        tiles.append(
            TileRef(tile_id=f"p/{number:04}", member="m", sha256="s", y_px=top, height_px=height, width_px=8)
        )
        top += height
    found = [
        PictureRef(picture_id=f"p/picture-{number:02}", x_px=x, y_px=y, width_px=w, height_px=h)
        for number, (x, y, w, h) in enumerate(boxes)
    ]
    return RenderedPage(
        page_id="p", status="rendered", width_px=8, height_px=top, tiles=tuple(tiles), pictures=tuple(found)
    )


def item(name, question, relevant=("peru",), n_images=0):
    refs = tuple(ImageRef(sha256="s", path="x") for _ in range(n_images))
    return Item(
        item_id=name, question=question, images=refs, references=("r",), relevant=relevant, group=name
    )
