"""Draw SVG pictures with the installed Chromium, many in one page."""

import base64
from collections.abc import Mapping
from pathlib import Path

from remeasure.browser import launch_flags
from remeasure.errors import RemeasureError

_AT_ONCE = 20
_TIMEOUT_MS = 60_000

# Each picture on white in a canvas of the wanted size: no window, no screenshot, no tile.
_DRAW = """async ([pictures, width, height]) => {
  const canvas = document.createElement('canvas');
  canvas.width = width; canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const found = [];
  for (const picture of pictures) {
    const image = new Image();
    image.src = 'data:image/svg+xml;base64,' + picture;
    try { await image.decode(); } catch { found.push(null); continue; }
    context.fillStyle = 'white';
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    found.push(canvas.toDataURL('image/png').split(',')[1]);
  }
  return found;
}"""


def draw(
    program: Path, sandbox: bool, pictures: Mapping[str, bytes], width_px: int, height_px: int
) -> dict[str, bytes]:
    """Return a PNG of each SVG, by the same names.

    Args:
        program: the browser.
        sandbox: whether its sandbox is on.
        pictures: name to SVG bytes.
        width_px: width of every PNG.
        height_px: height of every PNG; the picture is stretched to the whole of it.

    Raises:
        RemeasureError: the browser does not start, or a picture is no SVG that it can draw.
    """
    from playwright.sync_api import Error, sync_playwright

    drawn: dict[str, bytes] = {}
    try:
        with sync_playwright() as driver:
            launched = driver.chromium.launch(
                executable_path=program, args=launch_flags(None, sandbox), chromium_sandbox=sandbox
            )
            page = launched.new_page()
            page.set_default_timeout(_TIMEOUT_MS)
            for part in _parts(list(pictures)):
                texts = [base64.b64encode(pictures[name]).decode() for name in part]
                answers = page.evaluate(_DRAW, [texts, width_px, height_px])
                found = zip(part, answers, strict=True)
                drawn |= {name: base64.b64decode(text) for name, text in found if text is not None}
            launched.close()
    except Error as error:
        raise RemeasureError(
            f"{program}: the browser could not draw ({error.message.splitlines()[0]}); "
            "run it by hand to see more, or give --sandbox false where its sandbox is not allowed"
        ) from None
    if missing := [name for name in pictures if name not in drawn]:
        raise RemeasureError(
            f"pictures {', '.join(missing[:5])}: no SVG that Chromium can draw; fetch them again"
        )
    return drawn


def _parts(names: list[str]) -> list[list[str]]:
    return [names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)]
