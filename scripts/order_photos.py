"""Put the parts of a set in one canonical order, and compare it name by name with the published list."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, jsonl, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.image_tree import printable
from remeasure.instances.photo_store import read_index
from remeasure.instances.wanted import Wanted, read_list
from remeasure.options import decode

log = logging.getLogger("remeasure.order_photos")
_N_TOLD = 5


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the stage reads."""

    photos: str
    pieces: list[str]
    expected: dict[str, int] = {}
    """``photos``: how many there must be in all."""


def read_names(indexes: Sequence[Path], pieces: Sequence[str]) -> list[list[str]]:
    """Read the names of every part.

    Raises:
        RemeasureError: another number of files than of parts, a damaged one, or a name that stands in two
        of them.
    """
    if len(indexes) != len(pieces):
        raise RemeasureError(f"--indexes: {len(indexes)} files, expected one for each of {len(pieces)} parts")
    parts: list[list[str]] = []
    seen: dict[str, Path] = {}
    for index in indexes:
        names = read_index(index, ("name",))["name"]
        for name in names:
            if name in seen:
                raise RemeasureError(
                    f"{index}: {printable(name)!r} stands in {seen[name]} as well; one photograph is in "
                    "two archives: correct the list of archives"
                )
            seen[name] = index
        parts.append(names)
    return parts


def order_of(parts: Sequence[Sequence[str]], pieces: Sequence[str]) -> dict[str, Any]:
    """Return where each part begins in the whole set; ``list_sha256`` is of its names, a line each."""
    shards, start = [], 0
    for piece, names in zip(pieces, parts, strict=True):
        digest = sha256_bytes("".join(f"{name}\n" for name in names).encode())
        shards.append({"name": piece, "rows": len(names), "start": start, "list_sha256": digest})
        start += len(names)
    return {"n": start, "shards": shards}


def compare(parts: Sequence[Sequence[str]], wanted: Wanted, listed: Path) -> None:
    """Compare the photographs of all parts with a list, line by line.

    Raises:
        RemeasureError: some are missing, or they come in another order.
    """
    found: Iterator[str] = (name for names in parts for name in names)
    n = sum(len(names) for names in parts)
    if n != len(wanted):
        there = {name for names in parts for name in names}
        lacking = [name for name in wanted.names if name not in there]
        told = ", ".join(lacking[:_N_TOLD])
        raise RemeasureError(
            f"{listed}: {len(wanted)} photographs, {n} are in the shards; {len(lacking)} are in no archive "
            f"({told}): fetch the archives again, or take these out of the list"
        )
    for line, (name, expected) in enumerate(zip(found, wanted.names, strict=True), start=1):
        if name != expected:
            raise RemeasureError(
                f"{listed} line {line}: {printable(expected)}, the archives in their order have "
                f"{printable(name)} there; archives must come in the order of the list: correct `numbers`"
            )


def work(args: argparse.Namespace) -> None:
    """Read all indexes, compare, write the order."""
    settings = decode(args.settings, Settings)
    parts = read_names(args.indexes, settings.pieces)
    order = order_of(parts, settings.pieces)
    if args.list:
        compare(parts, read_list(args.list), args.list)
    if order["n"] != settings.expected.get("photos", order["n"]):
        raise RemeasureError(
            f"{settings.photos}: {order['n']} photographs, expected {settings.expected['photos']}; bring "
            "the missing ones, or correct `expected`"
        )
    jsonl.write_json(args.out, order)
    log.info("%s: %d photographs in %d parts", settings.photos, order["n"], len(parts))
    provenance.write_stage(
        args.record,
        stage="order_photos",
        script="order_photos.py",
        settings=msgspec.to_builtins(settings),
        inputs=[*args.indexes, *([args.list] if args.list else [])],
        outputs=[args.out],
        packages=["pyarrow"],
        counts={"photos": order["n"], "parts": len(parts)},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="names of the parts, expected counts, as JSON")
    parser.add_argument("--indexes", type=Path, nargs="+", required=True, help="index of every part, Parquet")
    parser.add_argument("--list", type=Path, help="published list, a path per line")
    parser.add_argument("--out", type=Path, required=True, help="rows and start of every part, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
