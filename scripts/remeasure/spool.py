"""Finished pages of an unfinished run: one file each, kept beside the output until the run is complete.

A workflow manager removes declared outputs of a job that was killed; the spool is not declared, so that the
next run goes on where the last one stopped.
"""

import contextlib
import hashlib
import os
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remeasure.capture import CapturedPage
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes


def page_key(*parts: str) -> str:
    """Return the name under which a page's result is kept: a hash of everything that decides it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Spool:
    """A folder of finished pages, addressed by ``page_key``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._decoder = msgspec.msgpack.Decoder(CapturedPage)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.page"

    def put(self, key: str, page: CapturedPage) -> None:
        """Keep a page, whole or not at all."""
        target = self._path(key)
        temporary = target.with_suffix(f".{socket.gethostname()}-{os.getpid()}.part")
        data = msgspec.msgpack.encode(page)
        while True:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Another part that has just ended may take the folder away while it is empty.
            with contextlib.suppress(FileNotFoundError):
                # Not forced to the disk: what a power cut takes is rendered again, ``get`` finds a torn one.
                temporary.write_bytes(data)
                os.replace(temporary, target)
                return

    def get(self, key: str) -> CapturedPage | None:
        """Return a page, or None where there is none or its bytes do not fit its hashes."""
        try:
            page = self._decoder.decode(self._path(key).read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        hashes = [sha256_bytes(data) for data in page.tiles]
        return page if hashes == [ref.sha256 for ref in page.page.tiles] else None

    def take(self, key: str) -> CapturedPage:
        """Return a page that was put before.

        Raises:
            RemeasureError: it is gone or damaged.
        """
        page = self.get(key)
        if page is None:
            raise RemeasureError(
                f"{self._path(key)}: a finished page is missing or damaged; run the same command again"
            )
        return page

    def remove(self, keys: Iterable[str] | None = None) -> None:
        """Delete pages, and the folder when it is empty; without keys the folder with everything in it."""
        if keys is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        paths = [self._path(key) for key in keys]
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in [*{path.parent for path in paths}, self.folder]:
            with contextlib.suppress(OSError):  # others put pages there, or have removed it
                folder.rmdir()
