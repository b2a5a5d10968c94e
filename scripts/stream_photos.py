"""Bring the photographs of some archives that are wanted: fetch, verify, pack anew with an index."""

import argparse
import logging
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, files, parts, provenance
from remeasure.errors import RemeasureError
from remeasure.instances import shard_job, streaming
from remeasure.instances.settings import Archives
from remeasure.instances.wanted import Wanted, read_list, read_plan
from remeasure.options import decode

log = logging.getLogger("remeasure.stream_photos")
_N_MISSING = 10_000


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the stage reads."""

    photos: str
    piece: str
    archives: Archives


def read_wanted(args: argparse.Namespace) -> tuple[Wanted, Path]:
    """Read what is wanted, and return the file that it stands in.

    Raises:
        RemeasureError: neither or both are given, or it cannot be read.
    """
    if (args.plan is None) == (args.list is None):
        raise RemeasureError("give either --plan or --list: which photographs are wanted")
    return (read_plan(args.plan), args.plan) if args.plan else (read_list(args.list), args.list)


def total(done: list[shard_job.Done]) -> dict[str, int]:
    """Return the counts of all archives together."""
    counts: dict[str, int] = {}
    for one in done:
        for name, n in one.counts.items():
            counts[name] = counts.get(name, 0) + n
    return counts


def missing(done: list[shard_job.Done], wanted: Wanted) -> list[str]:
    """Return what is wanted and was in none of the archives, in order."""
    found = {photo.row for one in done for photo in one.photos}
    return [name for row, name in enumerate(wanted.names) if row not in found]


def facts_of(done: list[shard_job.Done], lacking: list[str] | None) -> dict[str, Any]:
    """Return what the record keeps of archives, refused members and missing photographs."""
    facts: dict[str, Any] = {
        "archives": [
            {
                "number": one.number,
                "sha256": one.sha256,
                "size_bytes": one.size_bytes,
                "photos": len(one.photos),
            }
            for one in done
        ],
        "refused": [[one.number, *pair] for one in done for pair in one.refused],
    }
    if lacking is not None:
        facts["missing"] = lacking[:_N_MISSING]
    return facts


def work(args: argparse.Namespace) -> None:
    """Bring what is missing, put the shard in place, write its index last."""
    settings = decode(args.settings, Settings)
    wanted, listed = read_wanted(args)
    parts.read_part(settings.piece)
    numbers = settings.archives.of_part(settings.piece)
    if not numbers:
        raise RemeasureError(
            f"{settings.photos}: no archive belongs to part {settings.piece}, there are "
            f"{settings.archives.numbers[1]}; correct `parts`"
        )
    todo = streaming.sources(settings.archives.place, settings.archives.md5, numbers)
    listed_sha256 = files.sha256_file(listed)
    about = f"{msgspec.json.encode(settings, order='sorted').decode()} {listed_sha256}"
    job = shard_job.Job(args.shard.parent / f".{settings.piece}.work", about)
    log.info("%d archives, %d done, %d photographs are wanted", len(todo), len(job.done), len(wanted))
    done = streaming.run(job, todo, wanted)
    counts = total(done)
    if not counts["photos"]:
        raise RemeasureError(
            f"{todo[0].place if todo else settings.piece}: none of {counts['not_wanted']} files is wanted; "
            f"compare a path in the archive with one of {listed} (such as {wanted.names[0]}), then delete "
            f"{job.folder}"
        )
    # Only a single part knows what is in no archive.
    lacking = missing(done, wanted) if settings.piece == "1of1" else None
    if lacking:
        log.warning("%d photographs are in no archive, the first is %s", len(lacking), lacking[0])
    with shard_job.finished(job, args.shard):
        shard_job.write_index(args.index, done, wanted)
    counts |= {"archives": len(done), "size_bytes": args.shard.stat().st_size}
    counts |= {} if lacking is None else {"missing": len(lacking)}
    log.info("%s %s: %s", settings.photos, settings.piece, counts)
    known = {one.place: result.sha256 for one, result in zip(todo, done, strict=True)}
    provenance.write_stage(
        args.record,
        stage="stream_photos",
        script="stream_photos.py",
        settings=msgspec.to_builtins(settings),
        inputs=[listed, *args.archives],
        outputs=[args.shard, args.index],
        packages=["pyarrow"],
        counts=counts,
        facts=facts_of(done, lacking),
        known=known | {str(listed): listed_sha256},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="where archives are, which of them, as JSON")
    parser.add_argument(
        "--archives", type=Path, nargs="*", default=[], help="those that lie in a folder, for the record"
    )
    parser.add_argument("--plan", type=Path, help="photographs of a training set, Parquet")
    parser.add_argument("--list", type=Path, help="photographs in canonical order, a path per line")
    parser.add_argument("--shard", type=Path, required=True, help="the photographs, tar")
    parser.add_argument("--index", type=Path, required=True, help="where each lies, Parquet; written last")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
