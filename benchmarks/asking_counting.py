"""Run ``collect_responses.py`` and count the bytes that it hashes, encodes and checks; print them as JSON.

The counters stand in place of the functions of the standard library before anything is imported that uses
them. This costs time, so that such a run is never timed.
"""

import binascii
import hashlib
import json
import resource
import runpy
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

counts: Counter[str] = Counter()
_sha256, _b2a_base64, _crc32 = hashlib.sha256, binascii.b2a_base64, zlib.crc32


class _CountingHash:
    """A SHA-256 that notes what it is given."""

    def __init__(self, data: Any = b"", **words: bool) -> None:
        self._hash = _sha256(data, **words)
        counts["hashed"] += memoryview(data).nbytes

    def update(self, data: Any) -> None:
        """See ``hashlib``."""
        counts["hashed"] += memoryview(data).nbytes
        self._hash.update(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hash, name)


def _counting_base64(data: Any, **words: bool) -> bytes:
    counts["encoded"] += memoryview(data).nbytes
    return _b2a_base64(data, **words)


def _counting_crc32(data: Any, value: int = 0) -> int:
    counts["checked"] += memoryview(data).nbytes
    return _crc32(data, value)


def _count_pybase64() -> None:
    """Count the faster base64 too, where it is installed; ``b64encode_as_string`` is the other way to it."""
    try:
        import pybase64
    except ImportError:
        return
    for name in ("b64encode", "b64encode_as_string"):
        encode = getattr(pybase64, name)

        def counting(data: Any, *words: Any, _encode: Any = encode) -> Any:
            counts["encoded"] += memoryview(data).nbytes
            return _encode(data, *words)

        setattr(pybase64, name, counting)


def _read_bytes() -> int:
    """Return how many bytes this process has read from files; sockets count too, replies are small."""
    with open("/proc/self/io") as lines:
        return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def main() -> None:
    """Run the script whose path and arguments follow."""
    hashlib.sha256, binascii.b2a_base64, zlib.crc32 = _CountingHash, _counting_base64, _counting_crc32
    _count_pybase64()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
    # With GLIBC_TUNABLES as asking.py sets it every buffer of 64 kB or more is fresh memory, and each page of
    # it that is written is one fault.
    written = resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize()
    print(json.dumps(dict(counts) | {"read": _read_bytes(), "written": written}), flush=True)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
