"""Finished blocks of a piece that is being described, beside the file that they become."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.files import atomic_open, sha256_bytes
from remeasure.instances.vectors_file import Rows

log = logging.getLogger("remeasure.describing")


class KeptBlocks:
    """The blocks of a piece; they lie in ``<file>.blocks``.

    Args:
        out: that file.
        identity: what decides their content; what was made with another one is thrown away.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any]) -> None:
        self.folder = out.with_name(f"{out.name}.blocks")
        self._digest = sha256_bytes(jsonl.encode(identity))
        note = self.folder / "identity"
        if not note.is_file() or note.read_text(encoding="utf-8") != self._digest:
            shutil.rmtree(self.folder, ignore_errors=True)
            with atomic_open(note) as stream:
                stream.write(self._digest)

    def path(self, start: int) -> Path:
        """Return where the block lies that begins at a row."""
        return self.folder / f"{start:09}.h5"

    def get(self, start: int, n: int) -> Rows | None:
        """Return a finished block; null where there is none of that length."""
        if not self.path(start).is_file():
            return None
        try:
            rows = Rows(self.path(start))
        except RemeasureError as error:
            log.warning("%s; this block is made again", error)
            return None
        return rows if len(rows) == n else None

    def forget(self) -> None:
        """Take all blocks away."""
        shutil.rmtree(self.folder, ignore_errors=True)
