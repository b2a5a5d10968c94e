"""Make the page of a table: its units one by one, with pictures, prompts, answers and verdicts."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, Struct

from remeasure import cli, graders, jsonl
from remeasure.errors import RemeasureError
from remeasure.files import write_text
from remeasure.images import ImageReader
from remeasure.instances.photo_store import open_photos
from remeasure.options import decode
from remeasure.page import choice, html, prompt, rankings, thumbnails, traces
from remeasure.records import Graded, Item, Request, Response
from remeasure.tables.block_text import BlockText
from remeasure.tables.limits import OverLimit

log = logging.getLogger("remeasure.make_page")


class PageCell(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell of the table and what it is called on the page."""

    bench: str
    title: str
    asked: bool = True
    """Whether its reader is asked, and there are requests."""


class PageBench(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bench and what it is called."""

    name: str
    title: str
    photos: bool = False
    """Whether a gallery of photographs is ranked in it."""


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page depends on beside its cells."""

    run: str
    title: str
    lines: tuple[str, ...]
    """Sentences under the title."""
    benches: tuple[PageBench, ...]
    """In the order of ``--items``."""
    graders: dict[str, str]
    """Name of each bench's grader."""
    cells: tuple[PageCell, ...]
    """In the order of ``--graded``, ``--responses`` and ``--requests``."""
    n_units: int
    """At most so many of each bench."""


class Files(NamedTuple):
    """A cell's title and what is read of it."""

    title: str
    graded: Path
    responses: Path
    requests: Path | None
    """Null for a reader that is not asked."""
    judged: Path | None
    """The judge's ``responses.jsonl``."""


class Known(NamedTuple):
    """What a cell says about the wanted units, by unit or item."""

    title: str
    graded: Mapping[str, Graded]
    responses: Mapping[str, Response]
    prompts: Mapping[str, prompt.Prompt]
    replies: Mapping[str, Response]
    """The judge's, by id; none where it is not known."""
    asked: bool = True


class TableNote(Struct, frozen=True):
    """What is read of the table that the page belongs to; everything else is passed over."""

    over_limit: OverLimit | None = None
    comparability: str = ""
    """Whether the table may be compared with the paper, as the table's own page says it."""
    left_out: str = ""
    """Which readers this computer cannot run."""
    blocks: tuple[BlockText, ...] = ()
    """Its numbers, where they stand in blocks."""
    spread: tuple[BlockText, ...] = ()
    """How far numbers move over seeds."""


def units_of(path: Path, grader: graders.UnitGrader, wanted: Sequence[str]) -> dict[str, tuple[Item, ...]]:
    """Return the items of the wanted units."""
    kept = set(wanted)
    found = groupby(jsonl.read(path, Item), key=grader.unit_of)
    return {unit: tuple(items) for unit, items in found if unit in kept}


def responses_of(path: Path, wanted: set[str]) -> dict[str, Response]:
    """Return the responses to the wanted items."""
    return {line.custom_id: line for line in jsonl.read(path, Response) if line.custom_id in wanted}


def prompts_of(path: Path | None, wanted: set[str]) -> dict[str, prompt.Prompt]:
    """Return what was given for the wanted items."""
    if path is None:
        return {}
    return {
        line.custom_id: prompt.of_request(line)
        for line in jsonl.read(path, Request)
        if line.custom_id in wanted
    }


def replies_of(path: Path | None, wanted: set[str]) -> dict[str, Response]:
    """Return a judge's replies about the wanted items, those to further questions included."""
    if path is None:
        return {}
    lines = jsonl.read(path, Response)
    return {line.custom_id: line for line in lines if line.custom_id.partition("--")[0] in wanted}


def titles(
    items: Mapping[str, Sequence[Item]], cells: Sequence[Known], documents: Sequence[Path]
) -> dict[str, str]:
    """Return the titles of all documents that are named on the page of a bench."""
    members = [item for unit in items.values() for item in unit]
    wanted = {
        uri
        for cell in cells
        for item in members
        if item.item_id in cell.responses
        for uri in traces.uris_of(item, cell.responses[item.item_id])
    }
    return traces.titles_of(documents, wanted)


class Gallery(NamedTuple):
    """Photographs that the rankings of a bench show."""

    path: Path
    photos: rankings.PhotoSource
    album: rankings.Album


def shown(
    cells: Sequence[Known],
    unit: str,
    items: Sequence[Item],
    named: Mapping[str, str],
    gallery: Gallery | None = None,
) -> tuple[html.Shown, ...]:
    """Return what every cell says about a unit.

    Raises:
        RemeasureError: a cell lacks the unit, one of its answers or one of its requests.
    """
    found = []
    for cell in cells:
        answers = tuple(cell.responses.get(item.item_id) for item in items)
        if unit not in cell.graded or None in answers:
            raise RemeasureError(
                f"{cell.title}: unit {unit!r} has no verdict or no answer; delete its graded.jsonl and rerun"
            )
        given = tuple(cell.prompts.get(item.item_id) for item in items) if cell.asked else ()
        if None in given:
            raise RemeasureError(
                f"{cell.title}: unit {unit!r} has an answer but no request; delete its requests.jsonl and "
                "rerun"
            )
        did = [
            box
            for item, answer in zip(items, answers, strict=True)
            for box in (
                *traces.boxes_of(item, answer, named),
                *traces.judged_boxes(item.item_id, cell.replies),
            )
        ]
        ranked = [answer.placed for answer in answers if answer.placed is not UNSET]
        strips = [rankings.strip(placed, *gallery) for placed in ranked if gallery is not None]
        found.append(html.Shown(cell.title, cell.graded[unit], answers, given, tuple(did), "".join(strips)))
    return tuple(found)


def pictures_of(item: Item, reader: ImageReader, gallery: Gallery | None) -> tuple[str, ...]:
    """Return the images of an item; of a query to a gallery also the photograph that it was cut out of."""
    images = tuple(thumbnails.data_url(reader, ref) for ref in item.images)
    return images if gallery is None else (*images, *rankings.whole(item, gallery.photos))


def bench_part(
    title: str,
    grader: graders.UnitGrader,
    items: Path,
    cells: Sequence[Files],
    n_units: int,
    reader: ImageReader,
    documents: Sequence[Path] = (),
    gallery: Gallery | None = None,
) -> html.BenchPart:
    """Return the units of one bench that are shown.

    Args:
        title: of the bench.
        grader: tells which items belong together.
        items: ``items.jsonl``.
        cells: of every cell the title, ``graded.jsonl``, ``responses.jsonl`` and ``requests.jsonl``.
        n_units: at most so many.
        reader: reads images.
        documents: ``documents.jsonl`` of the datasets, for titles.
        gallery: photographs that rankings show.
    """
    names, n_all = choice.chosen([cell.graded for cell in cells], n_units)
    units = units_of(items, grader, names)
    lost = [name for name in names if name not in units]
    if lost:
        raise RemeasureError(
            f"{items}: has no unit {lost[0]!r}, which was graded; delete the cells' graded.jsonl and rerun"
        )
    wanted = {item.item_id for members in units.values() for item in members}
    known = [
        Known(
            cell.title,
            choice.lines_of(cell.graded, names),
            responses_of(cell.responses, wanted),
            prompts_of(cell.requests, wanted),
            replies_of(cell.judged, wanted),
            cell.requests is not None,
        )
        for cell in cells
    ]
    named = titles(units, known, documents)
    return html.BenchPart(
        title=title,
        n_units=n_all,
        units=tuple(
            html.UnitPart(
                unit_id=name,
                items=units[name],
                pictures=tuple(pictures_of(item, reader, gallery) for item in units[name]),
                cells=shown(known, name, units[name], named, gallery),
            )
            for name in names
        ),
    )


def parts(
    settings: PageSettings, args: argparse.Namespace, album: rankings.Album
) -> Mapping[str, html.BenchPart]:
    """Return every bench's part; photographs of rankings are put into the album."""
    asked = [cell for cell in settings.cells if cell.asked]
    given = {"--graded": args.graded, "--responses": args.responses}
    for option, paths in given.items():
        if len(paths) != len(settings.cells):
            raise RemeasureError(
                f"{option}: {len(paths)} files for {len(settings.cells)} cells; give one each"
            )
    if len(args.requests) != len(asked):
        raise RemeasureError(
            f"--requests: {len(args.requests)} files for {len(asked)} cells whose readers are asked; give "
            "one each"
        )
    of_benches = {"--items": (args.items, settings.benches), "--photos": (args.photos, _ranked(settings))}
    for option, (paths, benches) in of_benches.items():
        if len(paths) != len(benches):
            raise RemeasureError(f"{option}: {len(paths)} files for {len(benches)} benches; give one each")
    judged = {path.parent.parent: path for path in args.judged}
    lost = [path for folder, path in judged.items() if folder not in {one.parent for one in args.responses}]
    if lost:
        raise RemeasureError(f"--judged {lost[0]}: belongs to none of the cells; take it out")
    requests = iter(args.requests)
    files = [
        (
            cell.bench,
            Files(cell.title, *paths, next(requests) if cell.asked else None, judged.get(paths[1].parent)),
        )
        for cell, *paths in zip(settings.cells, args.graded, args.responses, strict=True)
    ]
    photos = dict(zip((bench.name for bench in _ranked(settings)), args.photos, strict=True))
    found = {}
    with ImageReader() as reader, ExitStack() as opened:
        for bench, items in zip(settings.benches, args.items, strict=True):
            cells = [one for name, one in files if name == bench.name]
            grader = graders.by_name(settings.graders[bench.name])
            path = photos.get(bench.name)
            gallery = path and Gallery(path, opened.enter_context(open_photos(path)), album)
            found[bench.name] = bench_part(
                bench.title, grader, items, cells, settings.n_units, reader, args.documents, gallery
            )
    return found


def _ranked(settings: PageSettings) -> list[PageBench]:
    return [bench for bench in settings.benches if bench.photos]


def work(args: argparse.Namespace) -> None:
    """Read, choose, write."""
    settings = decode(args.settings, PageSettings)
    album = rankings.Album()
    found = parts(settings, args, album)
    headline = {bench: graders.by_name(name).headline for bench, name in settings.graders.items()}
    table = jsonl.read_json(args.table, TableNote)
    told = table.over_limit.sentence if table.over_limit else None
    lines = [*settings.lines, *filter(None, [table.comparability, table.left_out])]
    lines += [rankings.LEGEND] if _ranked(settings) else []
    blocks = [*table.blocks, *table.spread]
    text = html.render(settings.title, settings.run, lines, headline, found, told, blocks, album.style)
    write_text(args.out, text)
    n_shown = sum(len(part.units) for part in found.values())
    log.info("%s: %d units, %d kB", args.out, n_shown, len(text.encode("utf-8", "replace")) // 1000)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="title, benches, cells, as JSON")
    parser.add_argument("--items", type=Path, nargs="+", required=True, help="items.jsonl of every bench")
    parser.add_argument("--graded", type=Path, nargs="+", required=True, help="graded.jsonl of every cell")
    parser.add_argument("--responses", type=Path, nargs="+", required=True, help="its responses.jsonl")
    parser.add_argument(
        "--requests", type=Path, nargs="*", default=[], help="its requests.jsonl, where the reader is asked"
    )
    parser.add_argument(
        "--photos", type=Path, nargs="*", default=[], help="photographs of every bench that ranks a gallery"
    )
    parser.add_argument(
        "--judged", type=Path, nargs="*", default=[], help="judge/responses.jsonl of cells that have one"
    )
    parser.add_argument(
        "--documents", type=Path, nargs="*", default=[], help="documents.jsonl of the datasets, for titles"
    )
    parser.add_argument("--table", type=Path, required=True, help="the table's provenance, JSON")
    parser.add_argument("--out", type=Path, required=True, help="page, HTML")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
