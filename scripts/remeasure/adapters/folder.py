"""A model's folder, written shard by shard under a temporary name: what is finished is not written again."""

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from remeasure import safetensors_file
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file, write_text
from remeasure.number_types import Spec

SHARD_BYTES = 5_000_000_000
_MARGIN_BYTES = 500_000_000


class Folder:
    """A folder under construction, beside its place.

    Args:
        target: its place; must not be there yet.
        key: what its content depends on. Shards of an earlier try with another key are thrown away.
    """

    def __init__(self, target: Path, key: str) -> None:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise RemeasureError(f"{target}: is there already; delete it to have it made again")
        self._target, self._key = target, key
        self.path = target.with_name(f".{target.name}.part")
        self._notes = self.path / ".done.json"
        self._done = self._read_notes()
        if not self._done:
            shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)

    def _read_notes(self) -> dict[str, tuple[str, int]]:
        """Return SHA-256 and size of the shards that an earlier try has finished."""
        try:
            key, done = json.loads(self._notes.read_bytes())
            if key != self._key:
                return {}
            return {
                n: (sha, size) for n, (sha, size) in done.items() if (self.path / n).stat().st_size == size
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def check_room(self, n_bytes: int) -> None:
        """Check that the disk has room for what is still to be written.

        Raises:
            RemeasureError: it has not.
        """
        missing = n_bytes - sum(size for _, size in self._done.values()) + _MARGIN_BYTES
        free = shutil.disk_usage(self.path).free
        if free < missing:
            raise RemeasureError(
                f"{self._target}: {free / 1e9:.1f} GB free, {missing / 1e9:.1f} GB needed; make room and run "
                "again"
            )

    def write_weights(
        self,
        specs: dict[str, Spec],
        blocks: Callable[[str], Iterable[np.ndarray]],
        shard_bytes: int = SHARD_BYTES,
    ) -> dict[str, str]:
        """Write tensors in shards with their index; return SHA-256 by file name.

        Args:
            specs: tensors in the order of the files.
            blocks: numbers by name.
            shard_bytes: a shard ends where the next tensor would make it larger.
        """
        shards = _shards(specs, shard_bytes)
        names = [f"model-{n:05d}-of-{len(shards):05d}.safetensors" for n in range(1, len(shards) + 1)]
        for name, shard in zip(names, shards, strict=True):
            if name not in self._done:
                self._done[name] = safetensors_file.write(self.path / name, shard, blocks)
                write_text(self._notes, json.dumps([self._key, self._done]))
        places = {tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
        index = {"metadata": {"total_size": sum(s.n_bytes for s in specs.values())}, "weight_map": places}
        write_text(
            self.path / "model.safetensors.index.json", json.dumps(index, indent=2, sort_keys=True) + "\n"
        )
        return {name: self._done[name][0] for name in names}

    def link(self, source: Path) -> None:
        """Take a file as it is: a second name for it, or a copy where the disk is another."""
        place = self.path / source.name
        place.unlink(missing_ok=True)
        try:
            os.link(source.resolve(), place)
        except OSError:
            shutil.copyfile(source, place)

    def finish(self, known: dict[str, str]) -> dict[str, str]:
        """Put the folder in its place; return SHA-256 by path there.

        Args:
            known: hashes by file name that need not be computed.
        """
        self._notes.unlink(missing_ok=True)
        for left_over in self.path.glob(".*.part"):
            left_over.unlink()
        hashes = {p.name: known.get(p.name) or sha256_file(p) for p in sorted(self.path.iterdir())}
        os.replace(self.path, self._target)
        return {str(self._target / name): sha256 for name, sha256 in hashes.items()}


def _shards(specs: dict[str, Spec], shard_bytes: int) -> list[dict[str, Spec]]:
    shards: list[dict[str, Spec]] = [{}]
    size = 0
    for name, spec in specs.items():
        if shards[-1] and size + spec.n_bytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = spec
        size += spec.n_bytes
    return shards
