"""Photographs out of large archives: one at a time is fetched, verified, and packed anew with what is wanted.

A killed job goes on with the next archive, and an archive that was half fetched with its next byte. The
bytes of photographs are those of the archive; nothing is encoded anew.
"""

import hashlib
import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from remeasure import addresses, downloads
from remeasure.errors import RemeasureError
from remeasure.files import naming, open_regular
from remeasure.image_tree import printable
from remeasure.images import MAX_BYTES
from remeasure.instances.shard_job import Done, Job, PhotoRow, append
from remeasure.instances.tar_stream import Damaged, Tar
from remeasure.instances.wanted import Wanted

log = logging.getLogger("remeasure.stream_photos")
_N_REFUSED = 100
_DIGEST = re.compile(r"\b([0-9a-fA-F]{64}|[0-9a-fA-F]{32})\b")
_LISTED = "archives of this photo set in the run's settings"


class Source(NamedTuple):
    """An archive and where its checksum stands."""

    number: str
    place: str
    """Address or path."""
    checksum: str | None
    """Address or path of a file with its MD5 or SHA-256; null: there is none."""

    @property
    def is_fetched(self) -> bool:
        """Return whether it comes from an address."""
        return "://" in self.place


def sources(place: str, checksum: str | None, numbers: Sequence[str]) -> list[Source]:
    """Return the archives of a part.

    Raises:
        RemeasureError: an address that is none, or not of the web.
    """
    found = [
        Source(n, place.replace("{number}", n), checksum.replace("{number}", n) if checksum else None)
        for n in numbers
    ]
    for source in found[:1]:
        for where in (source.place, source.checksum):
            # Plain HTTP is taken: old hosts have nothing else, and what comes is treated as hostile anyway.
            if where and "://" in where and (problem := _problem_of(where)):
                raise RemeasureError(f"{problem}; correct {_LISTED}")
        if source.place.startswith("http://") and not source.checksum and not _is_here(source.place):
            log.warning("%s: comes over plain HTTP without a checksum", addresses.said(source.place))
    return found


def _problem_of(url: str) -> str | None:
    return addresses.problem_of(url.replace("http://", "https://", 1))


def _is_here(url: str) -> bool:
    from urllib.parse import urlsplit

    return addresses.is_loopback(urlsplit(url).hostname)


def run(
    job: Job, todo: Sequence[Source], wanted: Wanted, patience: downloads.Patience | None = None
) -> list[Done]:
    """Bring all archives that the journal lacks; return what each has given, in order.

    Raises:
        RemeasureError: an archive is missing, damaged or not what its checksum says; two photographs of one
        name differ.
    """
    known = {wanted.names[photo.row]: photo.sha1 for done in job.done for photo in done.photos}
    for source in todo[len(job.done) :]:
        done = _bring(job, source, wanted, known, patience)
        job.add(done)
        known |= {wanted.names[photo.row]: photo.sha1 for photo in done.photos}
        log.info("archive %s: %s", source.number, done.counts)
        _part(job, source).unlink(missing_ok=True)
    return job.done


def _part(job: Job, source: Source) -> Path:
    return job.folder / f"{source.number}.archive.part"


def _bring(
    job: Job, source: Source, wanted: Wanted, known: Mapping[str, str], patience: downloads.Patience | None
) -> Done:
    """Fetch an archive and pack it; one that comes damaged is fetched anew once."""
    for is_last in (False, True) if source.is_fetched else (True,):
        path = _received(job, source, patience) if source.is_fetched else Path(source.place)
        try:
            sha256, size = _verified(path, source, job, patience)
            photos, counts, refused = _packed(path, job, wanted, known)
            break
        except Damaged as error:
            os.truncate(job.shard, job.end)
            if source.is_fetched:
                path.unlink(missing_ok=True)
            if is_last:
                what = "delete it and fetch it again" if not source.is_fetched else "wait, then rerun"
                raise RemeasureError(f"{_said(source.place)}: {error}; {what}") from None
            log.warning("%s: %s; fetched anew", _said(source.place), error)
    return Done(
        number=source.number,
        sha256=sha256,
        size_bytes=size,
        end=job.shard.stat().st_size,
        photos=photos,
        counts=dict(counts),
        refused=refused,
    )


def _said(place: str) -> str:
    return addresses.said(place) if "://" in place else printable(place)


def _received(job: Job, source: Source, patience: downloads.Patience | None) -> Path:
    part = _part(job, source)
    wanted = downloads.Wanted(
        url=source.place, sha256=None, out=part.with_name(part.name.removesuffix(".part")), listed=_LISTED
    )
    return downloads.receive(wanted, patience)


def _verified(path: Path, source: Source, job: Job, patience: downloads.Patience | None) -> tuple[str, int]:
    """Return SHA-256 and size of an archive that is what its checksum says.

    Raises:
        Damaged: it is not.
    """
    expected = _checksum(source, job, patience)
    digests = {32: hashlib.md5(usedforsecurity=False), 64: hashlib.sha256()}
    size = 0
    try:
        with open_regular(path) as stream:
            while block := stream.read(1 << 20):
                size += len(block)
                for digest in digests.values():
                    digest.update(block)
    except OSError as error:
        raise RemeasureError(
            f"{_said(source.place)}: cannot be read ({error.strerror}); put the archive there, or correct "
            f"{_LISTED}"
        ) from None
    if expected is not None and (found := digests[len(expected)].hexdigest()) != expected:
        kind = "MD5" if len(expected) == 32 else "SHA-256"
        raise Damaged(f"its {kind} is {found}, expected {expected}")
    return digests[64].hexdigest(), size


def _checksum(source: Source, job: Job, patience: downloads.Patience | None) -> str | None:
    """Return the checksum of an archive, in small letters; null where there is none."""
    if source.checksum is None:
        return None
    path = Path(source.checksum)
    if "://" in source.checksum:
        told = downloads.Wanted(
            url=source.checksum, sha256=None, out=job.folder / "checksum", size_bytes=None, listed=_LISTED
        )
        told.part.unlink(missing_ok=True)
        path = downloads.receive(told, patience)
    try:
        with open_regular(path) as stream:
            text = stream.read(4096).decode("latin-1")
    except OSError as error:
        raise RemeasureError(
            f"{_said(source.checksum)}: cannot be read ({error.strerror}); put the checksum there, or "
            f"correct {_LISTED}"
        ) from None
    found = _DIGEST.search(text)
    if not found:
        raise RemeasureError(
            f"{_said(source.checksum)}: holds no MD5 and no SHA-256, begins with {printable(text[:40])!r}; "
            f"correct {_LISTED}"
        )
    return found[1].lower()


def _packed(
    path: Path, job: Job, wanted: Wanted, known: Mapping[str, str]
) -> tuple[list[PhotoRow], Counter, list[tuple[str, str]]]:
    """Append what is wanted of an archive to the shard; return its photographs in canonical order."""
    counts = Counter(photos=0, not_wanted=0, refused=0, doubled=0)
    refused: list[tuple[str, str]] = []
    found: dict[int, PhotoRow] = {}
    with Tar(path) as tar, naming(job.shard), open(job.shard, "r+b") as shard:
        shard.seek(job.end)
        for member in tar.members():
            row = wanted.find(member.path)
            if row is None:
                counts["not_wanted"] += not member.kind
                continue
            problem = member.kind and f"is {member.kind}"
            if not problem and member.size > MAX_BYTES:
                problem = f"has {member.size} bytes, at most {MAX_BYTES} are taken"
            if problem:
                counts["refused"] += 1
                refused.append((printable(member.path), problem))
                continue
            data = tar.data()
            sha1 = hashlib.sha1(data, usedforsecurity=False).hexdigest()
            name = wanted.names[row]
            before = found[row].sha1 if row in found else known.get(name)
            if before is None:
                offset = append(shard, name, data)
                found[row] = PhotoRow(row, printable(member.path), offset, len(data), sha1)
            elif before == sha1:
                counts["doubled"] += 1
            else:
                raise RemeasureError(
                    f"{_said(str(path))}: {printable(name)} comes twice, as different photographs; take "
                    "the wrong one out"
                )
    counts["photos"] = len(found)
    return [found[row] for row in sorted(found)], counts, refused[:_N_REFUSED]
