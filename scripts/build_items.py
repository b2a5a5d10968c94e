"""Make the items of one bench or training set: from facts, images, a dataset, photo queries, or your own."""

import argparse
import functools
import itertools
import logging
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from remeasure import cli, image_tree, images, items, jsonl, opaque, pictures, provenance, studies
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.instances import labels as labels_file
from remeasure.instances import photo_store, query_pictures
from remeasure.options import decode
from remeasure.records import Document, Fact, ImageRef, Item, Page, Question

log = logging.getLogger("remeasure.build_items")


def read_flags(store: Path | None) -> dict[str, bytes]:
    """Read all pictures of a store by page id; without a store there are none.

    Raises:
        RemeasureError: the store cannot be read.
    """
    if store is None:
        return {}
    try:
        with zipfile.ZipFile(store) as members:
            return {Path(name).stem: members.read(name) for name in sorted(members.namelist())}
    except (OSError, zipfile.BadZipFile) as error:
        raise RemeasureError(
            f"{store}: picture store cannot be read ({error}); delete it and rerun"
        ) from None


def photograph(
    chosen: Sequence[Any], flags: Mapping[str, bytes], settings: pictures.PictureSettings
) -> Iterator[tuple[Item, bytes | None]]:
    """Give every item that needs one its query picture, made from the page's flag."""
    for one in chosen:
        if one.kind in ("pictured", "choice"):
            flag = pictures.load_picture(flags[one.page_id], one.page_id)
            yield one.item, pictures.photograph(flag, one.item.item_id, settings)
        else:
            yield one.item, None


class Made(NamedTuple):
    """Where the outputs come from; the store is written before the first item is asked for."""

    settings: Any
    found: Iterable[Item]
    store: Iterable[tuple[str, bytes]]


def own(study: ModuleType, args: argparse.Namespace, opened: ExitStack) -> Made:
    """Check the user's own questions."""
    settings = decode(args.settings, items.OwnSettings)
    pages = list(jsonl.read(args.pages, Page)) if args.pages else None
    uris = [one.uri for one in jsonl.read(args.documents, Document)] if args.documents else ()
    units = study.units if settings.task is None else functools.partial(study.units, task=settings.task)
    return Made(settings, items.own(args.own, settings, pages, units, uris), ())


def from_facts(study: ModuleType, args: argparse.Namespace, opened: ExitStack) -> Made:
    """Choose questions made from facts and take their pictures."""
    settings = decode(args.settings, study.Settings)
    if args.pages is None:
        raise RemeasureError("questions made from facts are about pages; give --pages")
    if study.needs_pictures(args.bench, settings) and args.pictures is None:
        raise RemeasureError(f"bench {args.bench} has questions with a picture; give --pictures")
    flags = read_flags(args.pictures) if study.needs_pictures(args.bench, settings) else {}
    photos = settings.questions.pictures
    alike = pictures.too_alike(flags, photos.alike_below)
    usable = frozenset(set(flags) - set(alike) - set(photos.skip))
    book = study.FactBook(jsonl.read(args.facts, Fact))
    chosen = study.bench_items(args.bench, settings, list(jsonl.read(args.pages, Page)), book, usable)
    found: list[Item] = []
    store: dict[str, bytes] = {}
    for item, photo in photograph(chosen, flags, photos):
        if photo is not None:
            digest = sha256_bytes(photo)
            store[f"{digest}.jpg"] = photo
            ref = ImageRef(sha256=digest, path=str(args.images_out), member=f"{digest}.jpg")
            item = msgspec.structs.replace(item, images=(ref,))
        found.append(item)
    return Made(settings, found, sorted(store.items()))


def from_index(study: ModuleType, args: argparse.Namespace, opened: ExitStack) -> Made:
    """Take the first lines of an index; the images stay where they are, but for transparent ones."""
    settings = decode(args.settings, items.IndexSettings)
    tree = opened.enter_context(image_tree.open_tree(args.store or Path(settings.source)))
    n_rows = sum(1 for _ in jsonl.read(args.index, study.Row))
    if n_rows < settings.n_units:
        log.warning(
            "%s: has %d lines, %d were asked for; all are taken", args.index, n_rows, settings.n_units
        )

    def found() -> Iterator[Item]:
        for row in itertools.islice(jsonl.read(args.index, study.Row), settings.n_units):
            yield from study.from_row(row, tree.ref)

    on_white = opaque.OnWhite(args.images_out)
    return Made(settings, on_white.applied(found()), on_white.members(found()))


def from_dataset(study: ModuleType, args: argparse.Namespace, opened: ExitStack) -> Made:
    """Take the first questions of a dataset that the bench has a use for."""
    settings = decode(args.settings, items.DatasetSettings)

    def found() -> Iterator[Item]:
        n_found = 0
        questions = jsonl.read(args.dataset, Question)
        for unit in study.from_questions(questions, settings.task, settings.n_items):
            n_found += 1
            yield from unit
        if n_found < settings.n_items:
            log.warning(
                "%s: has %d for this bench, %d were asked for; all are taken",
                args.dataset,
                n_found,
                settings.n_items,
            )

    return Made(settings, found(), ())


def from_labels(study: ModuleType, args: argparse.Namespace, opened: ExitStack) -> Made:
    """Take the first queries of a benchmark of photographs, cut to their boxes."""
    settings = decode(args.settings, items.QuerySettings)
    if args.queries is None:
        raise RemeasureError("queries are photographs; give --queries, the folder or store that has them")
    labels = labels_file.read(args.labels)
    photos = opened.enter_context(photo_store.open_photos(args.queries))
    if len(labels.qimlist) < settings.n_items:
        log.warning(
            "%s: has %d queries, %d were asked for; all are taken",
            args.labels,
            len(labels.qimlist),
            settings.n_items,
        )
    found: list[Item] = []
    store: dict[str, bytes] = {}
    for query in range(min(settings.n_items, len(labels.qimlist))):
        box, crop = query_pictures.picture(photos, labels, query)
        digest = sha256_bytes(crop)
        store[f"{digest}.jpg"] = crop
        ref = ImageRef(sha256=digest, path=str(args.images_out), member=f"{digest}.jpg")
        found.append(study.from_query(labels, query, box, ref))
    return Made(settings, found, sorted(store.items()))


WAYS = {
    "own": (own, "units"),
    "facts": (from_facts, "bench_items"),
    "index": (from_index, "from_row"),
    "dataset": (from_dataset, "from_questions"),
    "labels": (from_labels, "from_query"),
}
"""By the option that names what items are made from: how, and the function that the study needs for it."""


def counted(found: Iterable[Item], counts: Counter) -> Iterator[Item]:
    """Pass items through and count them."""
    for item in found:
        counts["items"] += 1
        counts["with_picture"] += bool(item.images)
        yield item


def work(args: argparse.Namespace) -> None:
    """Make items in one of the ways; write."""
    study = studies.load(args.study, "items")
    given = [name for name in WAYS if getattr(args, name) is not None]
    if len(given) != 1:
        raise RemeasureError(
            f"give one of {', '.join(f'--{name}' for name in WAYS)}: what items are made from"
        )
    way, needed = WAYS[given[0]]
    if not hasattr(study, needed):
        raise RemeasureError(
            f"--{given[0]}: study {args.study!r} makes no items in this way ({study.__name__} has no "
            f"{needed}); correct the study's settings"
        )
    counts = Counter(items=0, with_picture=0)
    with ExitStack() as opened:
        made = way(study, args, opened)
        n_members = images.write_store(args.images_out, made.store)
        jsonl.write(args.out, counted(made.found, counts))
    log.info(
        "%s: %d items, %d with an image, %d images in the store",
        args.bench,
        counts["items"],
        counts["with_picture"],
        n_members,
    )
    named = ("pages", "facts", "own", "documents", "index", "store", "pictures", "dataset")
    inputs = [getattr(args, name) for name in (*named, "labels", "queries")]
    provenance.write_stage(
        args.record,
        stage="build_items",
        script="build_items.py",
        settings=msgspec.to_builtins(made.settings) | {"study": args.study, "bench": args.bench},
        inputs=[path for path in inputs if path],
        outputs=[args.out, args.images_out],
        packages=["pillow", "numpy"],
        also=(f"remeasure.studies.{args.study}_items",),
        counts=dict(counts),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--settings", required=True, help="how many items of what, question templates, as JSON"
    )
    parser.add_argument("--study", required=True)
    parser.add_argument("--bench", required=True, help="bench or training set")
    parser.add_argument("--pages", type=Path, help="chosen pages of the corpus; none where there is none")
    parser.add_argument("--facts", type=Path, help="facts of the whole archive, to make questions from")
    parser.add_argument("--own", type=Path, help="your own questions instead, JSONL")
    parser.add_argument("--documents", type=Path, help="documents that your own questions name, JSONL")
    parser.add_argument("--dataset", type=Path, help="questions of a dataset, JSONL")
    parser.add_argument("--index", type=Path, help="index of a collection of images, the study's first file")
    parser.add_argument(
        "--store", type=Path, help="zip store of the index's images; none: the settings' source"
    )
    parser.add_argument(
        "--pictures", type=Path, help="flags by page id, zip; needed for questions with a picture"
    )
    parser.add_argument("--labels", type=Path, help="ground truth of a benchmark of photographs, labels.json")
    parser.add_argument("--queries", type=Path, help="its photographs, folder or zip store")
    parser.add_argument("--out", type=Path, required=True, help="questions, JSONL")
    parser.add_argument("--images-out", type=Path, required=True, help="query pictures, zip")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
