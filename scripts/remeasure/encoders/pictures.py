"""Pictures on pages: cut out of the tiles they lie in, and the way back from a picture to a tile."""

from collections.abc import Callable

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.records import PictureRef, RenderedPage, TileRef


def crop(page: RenderedPage, picture: PictureRef, pixels_of: Callable[[TileRef], np.ndarray]) -> np.ndarray:
    """Cut a picture out of its page; one that spans tiles is put together again.

    Args:
        page: with its tiles from top to bottom.
        picture: in page coordinates; parts beyond the page are left away.
        pixels_of: gives the decoded pixels of a tile, shape (height, width, 3).

    Returns:
        Shape (height, width, 3), at most the picture's size.

    Raises:
        RemeasureError: nothing of the picture lies on the tiles, or the tiles leave a gap in it.
    """
    top, bottom = max(0, picture.y_px), picture.y_px + picture.height_px
    left, right = max(0, picture.x_px), picture.x_px + picture.width_px
    parts, reached = [], top
    for tile in page.tiles:
        first, last = max(top, tile.y_px), min(bottom, tile.y_px + tile.height_px)
        if first >= last:
            continue
        if first != reached:
            break
        parts.append(pixels_of(tile)[first - tile.y_px : last - tile.y_px, left:right])
        reached = last
    expected = min(bottom, page.height_px or bottom)
    if not parts or reached < expected or not parts[0].size:
        raise RemeasureError(
            f"picture {picture.picture_id}: its box ({picture.x_px}, {picture.y_px}, {picture.width_px} x "
            f"{picture.height_px} px) does not lie on the tiles of its page; render the pages again"
        )
    return np.concatenate(parts)


def tile_under(page: RenderedPage, picture: PictureRef) -> str | None:
    """Return the id of the tile that holds the middle of a picture, or None when there is no such tile."""
    middle = picture.y_px + picture.height_px / 2
    for tile in page.tiles:
        if tile.y_px <= middle < tile.y_px + tile.height_px:
            return tile.tile_id
    return None
