"""Make the questions of one bench, or of a training set, from facts that the pages state."""

import argparse
import logging
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from remeasure import cli, images, items, jsonl, pictures, provenance, studies
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.options import decode
from remeasure.records import Fact, ImageRef, Item, Page

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


def made(
    study: ModuleType, args: argparse.Namespace, settings: Any, pages: list[Page]
) -> tuple[list[Item], dict[str, bytes]]:
    """Choose questions made from facts and take their pictures; returns items and picture members."""
    if study.needs_pictures(args.bench, settings) and args.pictures is None:
        raise RemeasureError(f"bench {args.bench} has questions with a picture; give --pictures")
    flags = read_flags(args.pictures) if study.needs_pictures(args.bench, settings) else {}
    photos = settings.questions.pictures
    alike = pictures.too_alike(flags, photos.alike_below)
    usable = frozenset(set(flags) - set(alike) - set(photos.skip))
    book = study.FactBook(jsonl.read(args.facts, Fact))
    chosen = study.bench_items(args.bench, settings, pages, book, usable)
    found: list[Item] = []
    store: dict[str, bytes] = {}
    for item, photo in photograph(chosen, flags, photos):
        if photo is not None:
            digest = sha256_bytes(photo)
            store[f"{digest}.jpg"] = photo
            ref = ImageRef(sha256=digest, path=str(args.images_out), member=f"{digest}.jpg")
            item = msgspec.structs.replace(item, images=(ref,))
        found.append(item)
    return found, store


def counted(found: Iterable[Item], counts: Counter) -> Iterator[Item]:
    """Pass items through and count them."""
    for item in found:
        counts["items"] += 1
        counts["with_picture"] += bool(item.images)
        yield item


def work(args: argparse.Namespace) -> None:
    """Make questions from facts, or check the user's own; write."""
    study = studies.load(args.study, "items")
    settings = decode(args.settings, study.Settings)
    if (args.own is None) == (args.facts is None):
        raise RemeasureError("give either --facts, to make questions, or --own, a file with your own")
    pages = list(jsonl.read(args.pages, Page))
    if args.own:
        found, store = items.own(args.own, pages, settings.n_items), {}
    else:
        found, store = made(study, args, settings, pages)
    images.write_store(args.images_out, sorted(store.items()))
    counts = Counter(items=0, with_picture=0)
    jsonl.write(args.out, counted(found, counts))
    log.info("%s: %d questions, %d with a picture", args.bench, counts["items"], counts["with_picture"])
    given = [args.pages, args.facts, args.own, args.pictures]
    provenance.write_stage(
        args.record,
        stage="build_items",
        script="build_items.py",
        settings=msgspec.to_builtins(settings) | {"study": args.study, "bench": args.bench},
        inputs=[path for path in given if path],
        outputs=[args.out, args.images_out],
        packages=["pillow", "numpy"],
        also=(f"remeasure.studies.{args.study}_items",),
        counts=dict(counts),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--settings", required=True, help="page set, number of items, question templates, as JSON"
    )
    parser.add_argument("--study", required=True)
    parser.add_argument("--bench", required=True, help="bench or training set")
    parser.add_argument("--pages", type=Path, required=True, help="chosen pages of the corpus")
    parser.add_argument("--facts", type=Path, help="facts of the whole archive, to make questions from")
    parser.add_argument("--own", type=Path, help="your own questions instead, JSONL")
    parser.add_argument(
        "--pictures", type=Path, help="flags by page id, zip; needed for questions with a picture"
    )
    parser.add_argument("--out", type=Path, required=True, help="questions, JSONL")
    parser.add_argument("--images-out", type=Path, required=True, help="query pictures, zip")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
