"""Compose photographs: benchmarks with ground truth, classes to train on, distractors."""

import argparse
import collections
import gzip
import hashlib
import io
import logging
import random
import tarfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from remeasure import cli, files, images, jsonl, provenance, scenes
from remeasure.instances import composed_benchmarks, composed_classes, composed_views, composing, deb

log = logging.getLogger("remeasure.compose_photos")


def write_tar(out: Path, members: Iterable[tuple[str, bytes]], *, packed: bool = False) -> None:
    """Write a tar archive, whole or not at all; equal content is equal bytes."""
    with files.atomic_open(out, "wb") as stream:
        inner = gzip.GzipFile("", "wb", compresslevel=1, fileobj=stream, mtime=0) if packed else stream
        with tarfile.open(fileobj=inner, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        if packed:
            inner.close()


class Composer:
    """Writes all sets into one folder and remembers what it wrote."""

    def __init__(
        self, settings: composing.Composition, camera: composing.Photographer, out: Path, threads: int
    ) -> None:
        self._settings, self._camera, self._out, self._threads = settings, camera, out, threads
        self.written: list[Path] = []
        self.counts: collections.Counter[str] = collections.Counter()

    def _path(self, name: str) -> Path:
        self.written.append(self._out / name)
        return self.written[-1]

    def write_benchmark(self, name: str, source_sha256: str) -> dict[str, str]:
        """Write photographs and ground truth; return the scene of every photograph."""
        bench = composed_benchmarks.take(name, self._camera, self._settings)
        members = ((f"{stem}.jpg", data) for stem, data in sorted(bench.photos.items()))
        images.write_store(self._path(f"{name}.zip"), members)
        jsonl.write_json(self._path(f"{name}.json"), bench.labels(name, source_sha256))
        self.counts[f"{name}_queries"] = len(bench.queries)
        self.counts[f"{name}_gallery"] = len(bench.photos) - len(bench.queries)
        return bench.scene_of

    def write_training(self) -> None:
        """Write the archives of photographs with their checksums, and the two lists of classes."""
        settings, plan = self._settings, composed_classes.plan(self._settings)
        n_archives = settings.training.archives
        for number in range(n_archives):
            stored = [p for p in plan.photos if p.stored and plan.archive(p, n_archives) == number]
            stored.sort(key=lambda photo: photo.member)
            path = self._path(f"images_{number:03d}.tar")
            write_tar(path, self._taken(stored, composed_classes.take, [photo.member for photo in stored]))
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            files.write_text(self._path(f"md5.images_{number:03d}.txt"), f"{digest}  {path.name}\n")
        files.write_text(self._path("train_clean.csv"), plan.clean_csv())
        categories = plan.category_csv(settings.training.categories)
        files.write_text(self._path("train_label_to_category.csv"), categories)
        self.counts["classes"] = len(plan.landmark_of)
        self.counts["class_photos"] = sum(photo.listed for photo in plan.photos)

    def write_views(self) -> None:
        """Write the archives of distractors and their list."""
        views = composed_views.plan(self._settings)
        for number in range(1, len(self._settings.views.archives) + 1):
            stored = [view for view in views if view.archive == number]
            # The canonical order is that of the list, and an archive need not have it.
            random.Random(f"{self._settings.seed}/archive/{number}").shuffle(stored)
            members = self._taken(stored, composed_views.take, [view.path for view in stored])
            write_tar(self._path(f"views.{number}.tar.gz"), members, packed=True)
        # A small run takes the first archive alone: its list must hold nothing else.
        for name, some in (("views.txt", views), ("views.1.txt", [v for v in views if v.archive == 1])):
            files.write_text(self._path(name), "".join(f"{view.path}\n" for view in some))
        self.counts["views"] = len(views)

    def _taken(self, photos: list, take, names: list[str]) -> Iterator[tuple[str, bytes]]:
        found = composing.taken(
            photos, lambda photo: take(photo, self._camera, self._settings), self._threads
        )
        return zip(names, found, strict=True)


def work(args: argparse.Namespace) -> None:
    """Read the sources, write one set after the other."""
    settings, start = composing.read_settings(args.settings), time.monotonic()
    photos = deb.read_members(args.opencv, {name: name for name in settings.files()})
    members = {name: f"hdri/{name}.jpg" for name in settings.panoramas()}
    camera = composing.Photographer(settings, photos, scenes.read_members(args.panoramas, members))
    log.info("%d photographs and %d panoramas read", len(photos), len(members))
    source = files.sha256_file(args.opencv)
    composer = Composer(settings, camera, args.out, args.threads)
    shown = {name: composer.write_benchmark(name, source) for name in settings.benchmarks}
    composer.write_training()
    composer.write_views()
    provenance.write_stage(
        args.record,
        stage="compose_photos",
        script="compose_photos.py",
        settings=msgspec.to_builtins(settings, str_keys=True),
        inputs=[args.opencv, args.panoramas],
        outputs=composer.written,
        packages=["numpy", "pillow"],
        counts=dict(composer.counts),
        facts={"sources": settings.sources(), "shown": shown},
        known={str(args.opencv): source},
    )
    log.info("%s in %.1f s", dict(composer.counts), time.monotonic() - start)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="resolved settings of the sets, JSON")
    parser.add_argument("--opencv", type=Path, required=True, help="Debian package opencv-doc")
    parser.add_argument("--panoramas", type=Path, required=True, help="data wheel with the panoramas")
    parser.add_argument("--threads", type=int, default=1, help="how many photographs are made at once")
    parser.add_argument("--out", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
