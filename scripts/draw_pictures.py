"""Draw the flags of an archive's pages as pixels: one PNG per page, raw material of query pictures."""

import argparse
import collections
import logging
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from remeasure import browser, cli, drawing, images, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.records import Fact

log = logging.getLogger("remeasure.draw_pictures")

WIDTH_PX, HEIGHT_PX = 640, 480
# The fact whose value is the two-letter name of a page's flag.
FIELD = "flag"


def flag_codes(facts: Iterable[Fact]) -> tuple[dict[str, str], int]:
    """Return page id to flag code, in the order of the facts, and the number of pages that state none."""
    codes: dict[str, str] = {}
    pages: dict[str, None] = {}
    for fact in facts:
        pages[fact.page_id] = None
        if fact.field == FIELD:
            codes.setdefault(fact.page_id, fact.value.strip().lstrip(".").lower())
    return codes, len(pages) - len(codes)


def read_flags(path: Path, codes: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
    """Return the SVG bytes of each code, from whatever folder named ``4x3`` the wheel has, and unknown codes.

    Raises:
        RemeasureError: the wheel cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as store:
            places = {
                Path(name).stem: name
                for name in store.namelist()
                if name.endswith(".svg") and "/4x3/" in name
            }
            wanted = sorted(set(codes))
            return (
                {code: store.read(places[code]) for code in wanted if code in places},
                [code for code in wanted if code not in places],
            )
    except (OSError, zipfile.BadZipFile) as error:
        raise RemeasureError(
            f"{path}: flags cannot be read ({error}); delete it, it is fetched again"
        ) from None


def work(args: argparse.Namespace) -> None:
    """Find each page's flag, draw every flag once, write one member per page."""
    codes, n_without = flag_codes(jsonl.read(args.facts, Fact))
    flags, unknown = read_flags(args.flags, codes.values())
    if not flags:
        raise RemeasureError(f"{args.facts}: no page states a flag (field {FIELD!r}) that {args.flags} has")
    program = browser.find_browser(args.browser)
    start = time.monotonic()
    drawn = drawing.draw(program, browser.use_sandbox(args.sandbox), flags, WIDTH_PX, HEIGHT_PX)
    counts = collections.Counter(drawn=0, without_flag=n_without, unknown_flag=0)

    def members() -> Iterator[tuple[str, bytes]]:
        for page_id, code in sorted(codes.items()):
            counts["drawn" if code in drawn else "unknown_flag"] += 1
            if code in drawn:
                yield f"{page_id}.png", drawn[code]

    images.write_store(args.out, members())
    provenance.write_stage(
        args.record,
        stage="draw_pictures",
        script="draw_pictures.py",
        settings={"width_px": WIDTH_PX, "height_px": HEIGHT_PX},
        inputs=[args.flags, args.facts],
        outputs=[args.out],
        packages=["playwright"],
        counts=dict(counts),
        facts={"browser": browser.version(program), "unknown": unknown},
    )
    log.info(
        "pictures drawn=%d without_flag=%d unknown_flag=%d in %.1f s",
        counts["drawn"],
        n_without,
        counts["unknown_flag"],
        time.monotonic() - start,
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", type=Path, required=True, help="data wheel with the flags as SVG")
    parser.add_argument("--facts", type=Path, required=True, help="facts of the archive, JSONL")
    parser.add_argument(
        "--browser", type=Path, help="Chromium to use instead of the first on the search path"
    )
    parser.add_argument(
        "--sandbox",
        choices=("auto", "true", "false"),
        default="auto",
        help="the browser's own sandbox; auto: on wherever it can work",
    )
    parser.add_argument("--out", type=Path, required=True, help="one PNG per page, an uncompressed zip")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
