"""A shard of photographs that is being made: it grows in a folder of its own, beside a journal."""

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from remeasure.files import atomic_path, naming
from remeasure.instances.wanted import Wanted

_BLOCK = 512


class PhotoRow(msgspec.Struct, frozen=True, array_like=True):
    """A photograph in a shard."""

    row: int
    """Of what is wanted."""
    member: str
    """As the archive spells it."""
    offset: int
    size: int
    sha1: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An archive that is packed; a line of the journal."""

    number: str
    sha256: str
    """Of the archive."""
    size_bytes: int
    end: int
    """Bytes of the shard then."""
    photos: list[PhotoRow]
    counts: dict[str, int]
    refused: list[tuple[str, str]]
    """The first members that were wanted and not taken, and why."""


class Job:
    """A shard that is being made, in a hidden folder beside its place.

    Args:
        folder: where it grows; made if it is missing.
        about: what decides its content. A folder of another job is begun anew.
    """

    def __init__(self, folder: Path, about: str) -> None:
        self.folder = folder
        self.shard, self._journal = folder / "shard.tar", folder / "journal.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        head = msgspec.json.encode({"about": about}) + b"\n"
        self.done = self._resumed(head)
        if self.done is None:
            self.done = []
            with open(self._journal, "wb") as stream:
                stream.write(head)
            self.shard.write_bytes(b"")
        os.truncate(self.shard, self.end)

    @property
    def end(self) -> int:
        """Bytes of the shard that are whole."""
        return self.done[-1].end if self.done else 0

    def _resumed(self, head: bytes) -> list[Done] | None:
        """Return what was done, but for a torn last line; null where nothing of this job is there."""
        try:
            lines = self._journal.read_bytes().split(b"\n")
            size = self.shard.stat().st_size
        except OSError:
            return None
        if not lines or lines[0] + b"\n" != head:
            return None
        found: list[Done] = []
        for line in lines[1:-1]:
            try:
                done = msgspec.json.decode(line, type=Done)
            except msgspec.MsgspecError:
                break
            if done.end > size:
                break
            found.append(done)
        with open(self._journal, "wb") as stream:
            stream.write(head + b"".join(msgspec.json.encode(done) + b"\n" for done in found))
        return found

    def add(self, done: Done) -> None:
        """Note that an archive is packed; its photographs are on the disk before that is."""
        with open(self.shard, "rb") as stream:
            os.fsync(stream.fileno())
        with naming(self._journal), open(self._journal, "ab") as stream:
            stream.write(msgspec.json.encode(done) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.done.append(done)


def append(shard: BinaryIO, name: str, data: bytes) -> int:
    """Write a member of a tar; return where its bytes begin."""
    header = tarfile.TarInfo(name)
    header.size = len(data)
    shard.write(header.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict"))
    offset = shard.tell()
    shard.write(data)
    shard.write(bytes(-len(data) % _BLOCK))
    return offset


@contextmanager
def finished(job: Job, shard: Path) -> Iterator[None]:
    """Put a whole shard in its place, and clear the folder once the block (which writes the index) is done.

    A kill between the two leaves the shard without an index; the job begins anew then.
    """
    with naming(job.shard), open(job.shard, "r+b") as stream:
        stream.seek(job.end)
        stream.write(bytes(2 * _BLOCK))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(job.shard, shard)
    yield
    for left in job.folder.iterdir():
        left.unlink()
    job.folder.rmdir()


def write_index(path: Path, done: Sequence[Done], wanted: Wanted) -> None:
    """Write where every photograph of a shard lies, by archive, within each in canonical order."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [(int(one.number), photo) for one in done for photo in one.photos]
    classes = wanted.landmark_id
    table = pa.table(
        {
            "name": pa.array([wanted.names[photo.row] for _, photo in rows], pa.string()),
            "archive": pa.array([number for number, _ in rows], pa.int32()),
            "member": pa.array([photo.member for _, photo in rows], pa.string()),
            "offset": pa.array([photo.offset for _, photo in rows], pa.int64()),
            "size": pa.array([photo.size for _, photo in rows], pa.int64()),
            "sha1": pa.array([photo.sha1 for _, photo in rows], pa.string()),
            "landmark_id": pa.array(
                [None if classes is None else int(classes[photo.row]) for _, photo in rows], pa.int32()
            ),
        }
    )
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")
