"""Archives of photographs, well made and hostile."""

import gzip
import io
import json
import random
import tarfile
from collections.abc import Mapping
from pathlib import Path

import stream_photos

# Bytes that are no photographs: nothing of archives looks into them.
PHOTOS = {f"a/b/{n}.jpg": random.Random(n).randbytes(10_000 * n) for n in range(1, 7)}


def tar_of(members: Mapping[str, bytes], *, is_packed: bool = False, **more: tarfile.TarInfo) -> bytes:
    """Return an archive; further entries are given whole, as keyword arguments of any name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for entry in more.values():
            archive.addfile(entry)
    data = stream.getvalue()
    return gzip.compress(data, mtime=0) if is_packed else data


def entry(name: str, kind: bytes, **fields) -> tarfile.TarInfo:
    """Return an entry without data."""
    made = tarfile.TarInfo(name)
    made.type = kind
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Return the header of an entry with a right checksum, whatever stands in it."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def hurt(data: bytes, rng: random.Random) -> bytes:
    """Return data with a few bytes changed, lost or added."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(damaged))
        match rng.randrange(3):
            case 0:
                damaged[place] = rng.randrange(256)
            case 1:
                del damaged[place : place + rng.randint(1, 20)]
            case 2:
                damaged[place:place] = rng.randbytes(rng.randint(1, 8))
    return bytes(damaged)


class Stage:
    """The script in a folder, with a list of what is wanted."""

    def __init__(self, folder: Path, names=tuple(PHOTOS)) -> None:
        self.folder = folder
        self.list = folder / "list.txt"
        self.list.write_text("".join(f"{name}\n" for name in names))
        self.shard, self.index = folder / "out" / "1of1.tar", folder / "out" / "1of1.index.parquet"
        self.record = folder / "out" / "1of1.json"

    def put(self, number: int, data: bytes) -> Path:
        """Write an archive."""
        path = self.folder / f"images_{number}.tar"
        path.write_bytes(data)
        return path

    def words(self, n: int, place: str | None = None, piece: str = "1of1", **more) -> list[str]:
        """Return the command line for archives 0 to n - 1."""
        archives = {"place": place or str(self.folder / "images_{number}.tar"), "numbers": [0, n]} | more
        settings = json.dumps({"photos": "tiny", "piece": piece, "archives": archives})
        options = ["--settings", settings, "--list", self.list, "--shard", self.shard]
        return [str(word) for word in (*options, "--index", self.index, "--record", self.record)]

    def run(self, n: int, place: str | None = None, **more) -> int:
        """Run the script."""
        return stream_photos.main(self.words(n, place, **more))

    def counts(self) -> dict:
        """Return the counts of the record."""
        return json.loads(self.record.read_text())["counts"]

    def facts(self) -> dict:
        """Return the facts of the record."""
        return json.loads(self.record.read_text())["facts"]
