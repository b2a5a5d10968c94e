"""Compose triplets of pictures: an object in a place, the place without it, the place with another object."""

import argparse
import collections
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remeasure import cli, images, provenance, scenes

log = logging.getLogger("remeasure.compose_triplets")


def work(args: argparse.Namespace) -> None:
    """Plan all triplets, compose and write one after the other."""
    settings = scenes.read_settings(args.settings)
    objects = {name: f"72x72/{code}.png" for name, code in settings.objects.items()}
    composer = scenes.Composer(
        settings,
        scenes.read_members(args.panoramas, {name: f"hdri/{name}.jpg" for name in settings.places}),
        scenes.read_members(args.objects, objects),
    )
    start = time.monotonic()
    triplets = scenes.plan(settings)
    counts = collections.Counter(triplets=len(triplets), with_bystander=0, pictures=0)

    def members() -> Iterator[tuple[str, bytes]]:
        for triplet in triplets:
            counts["with_bystander"] += triplet.bystander is not None
            for path, data in composer.pictures(triplet):
                counts["pictures"] += 1
                yield path, data

    images.write_store(args.out, members())
    provenance.write_stage(
        args.record,
        stage="compose_triplets",
        script="compose_triplets.py",
        settings=msgspec.to_builtins(settings, str_keys=True),
        inputs=[args.panoramas, args.objects],
        outputs=[args.out],
        packages=["numpy", "pillow"],
        counts=dict(counts),
        facts={"shown": [msgspec.to_builtins(triplet) for triplet in triplets]},
    )
    log.info("%d triplets composed in %.1f s", len(triplets), time.monotonic() - start)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="resolved settings of the scenes, JSON")
    parser.add_argument("--panoramas", type=Path, required=True, help="data wheel with the places")
    parser.add_argument("--objects", type=Path, required=True, help="data wheel with the objects")
    parser.add_argument(
        "--out", type=Path, required=True, help="pictures below benchmark/, an uncompressed zip"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
