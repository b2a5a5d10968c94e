"""One file from an address: streamed, continued after a break, bounded, in place only when its hash is right.

What has arrived lies beside the target as ``<name>.part``, survives every kind of end and is continued by the
next try. Its hash decides in the end: a part of another content is noticed there, and fetched anew once.
"""

import contextlib
import errno
import fcntl
import http.client
import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from remeasure import addresses, opening
from remeasure.errors import RemeasureError
from remeasure.executors.replies import retry_after_s
from remeasure.files import sha256_file
from remeasure.sources import check_disk

log = logging.getLogger("remeasure.fetch_url")
# Where a row says no size: more than any file that we know of.
CAP_BYTES = 20_000_000_000
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT_S = 600.0
_BLOCK_BYTES = 1 << 20
_EVERY_S = 10.0
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)")


class Wanted(Struct, frozen=True, kw_only=True):
    """What is fetched."""

    url: str
    sha256: str | None
    """Null only where the caller verifies in another way what it receives."""
    out: Path
    size_bytes: int | None = None
    """Null: not known, ``CAP_BYTES`` at most."""
    listed: str = addresses.LIST
    """Where the address stands and can be corrected."""

    @property
    def part(self) -> Path:
        """Where it grows."""
        return self.out.with_name(f"{self.out.name}.part")


class Patience(Struct, frozen=True, kw_only=True):
    """How long is waited, seconds, and how often tried."""

    attempts: int = 6
    """In a row without anything new."""
    base_s: float = 1.0
    """Before the second try; doubled each time."""
    max_s: float = 60.0
    timeout_s: float = 60.0
    """For a connection and for each of its blocks."""
    least_bytes_per_s: float = 100.0
    """What a connection must bring over ``timeout_s``."""


class _Passing(Exception):
    """A try that failed and may not fail again; may carry how long the server asks to wait."""

    def __init__(self, text: str, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.wait_s = wait_s


def fetch(wanted: Wanted, patience: Patience | None = None) -> None:
    """Fetch a file and put it in place.

    Raises:
        RemeasureError: an address that is not allowed, no connection, a status that will not change, another
            size or hash than expected, a file that is too large, no room, a folder that cannot be written,
            another process at the same file.
    """
    patience = patience or Patience()
    if problem := addresses.problem_of(wanted.url):
        raise RemeasureError(f"{wanted.out}: {problem}; correct {wanted.listed}")
    with _told(wanted):
        _fetch(wanted, patience)


def receive(wanted: Wanted, patience: Patience | None = None) -> Path:
    """Fill the part of a file and return it, unverified and not put in place: both are the caller's to do.

    Raises:
        RemeasureError: as ``fetch``, but for the address and the hash, which are the caller's to check.
    """
    with _told(wanted):
        check_disk(wanted.out.parent, wanted.size_bytes or 0)
        with _alone(wanted.part):
            _receive(wanted, patience or Patience())
    return wanted.part


@contextlib.contextmanager
def _told(wanted: Wanted) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # of the folder and the files in it: connections have their own
        raise RemeasureError(
            f"{error.filename or wanted.part}: cannot be written ({error.strerror}); make room, make it "
            f"writable or correct --out, then rerun: {_kept(wanted.part)}"
        ) from None


def _kept(part: Path) -> str:
    with contextlib.suppress(OSError):
        return f"{_size(part)} bytes are kept"
    return "nothing is kept"


def _fetch(wanted: Wanted, patience: Patience) -> None:
    check_disk(wanted.out.parent, wanted.size_bytes or 0)
    if wanted.out.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(wanted.out))
    with _alone(wanted.part):
        begin = time.monotonic()
        was_continued = _receive(wanted, patience)
        if was_continued and sha256_file(wanted.part) != wanted.sha256:
            log.warning("%s: what was there of an earlier try does not fit; fetched anew", wanted.part)
            _empty(wanted.part)
            _receive(wanted, patience)
        found, n_bytes = sha256_file(wanted.part), _size(wanted.part)
        if found != wanted.sha256:
            _empty(wanted.part)
            raise RemeasureError(
                f"{addresses.said(wanted.url)}: SHA-256 is {found}, expected {wanted.sha256}; the address "
                f"serves another file than {wanted.listed} names: do not use it, or correct the row if you "
                "changed it"
            )
        _put_in_place(wanted)
    log.info("%s: %d bytes, hash verified, %.1f s", wanted.out, n_bytes, time.monotonic() - begin)


@contextlib.contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Keep another process from writing to the same part; an empty one is not left behind."""
    with open(part, "ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RemeasureError(
                f"{part}: another process fetches this file; wait for it, then rerun"
            ) from None
        try:
            yield
        finally:
            if part.exists() and not _size(part):
                part.unlink()


def _receive(wanted: Wanted, patience: Patience) -> bool:
    """Fill the part; return whether some of it is of an earlier connection.

    Raises:
        RemeasureError: see ``fetch``; the part is kept where it may be continued.
    """
    n_failed, furthest = 0, _size(wanted.part)
    while True:
        try:
            return _connect_once(wanted, patience)
        except _Passing as failure:
            if _size(wanted.part) >= furthest + _BLOCK_BYTES:
                n_failed, furthest = 0, _size(wanted.part)
            n_failed += 1
            doubled = min(patience.max_s, patience.base_s * 2 ** (n_failed - 1))
            pause = doubled if failure.wait_s is None else failure.wait_s
            if n_failed >= patience.attempts or pause > _LONGEST_WAIT_S:
                asked = f" and asks to wait {pause:.0f} s" if pause > _LONGEST_WAIT_S else ""
                raise RemeasureError(
                    f"{addresses.said(wanted.url)}: {failure}{asked}; connect or wait, then rerun: "
                    f"{_size(wanted.part)} bytes are kept"
                ) from None
            log.info("%s, again in %.1f s", failure, pause)
            time.sleep(pause)


def _connect_once(wanted: Wanted, patience: Patience) -> bool:
    """Ask for what is missing of the part and append it; return whether there was something before."""
    have = _size(wanted.part)
    if have and have == wanted.size_bytes:
        return True
    if have > (wanted.size_bytes or CAP_BYTES):
        have = _empty(wanted.part)
    ranged = {"Range": f"bytes={have}-"} if have else {}
    with _open(wanted, ranged, patience) as reply:
        start, total = _begins_at(reply, have, wanted)
        if start is None:
            return True
        if start != have:
            log.info("the server begins anew; %d bytes of an earlier try are dropped", have)
            _empty(wanted.part)
        _check_size(wanted, total)
        n_bytes = _write(reply, wanted, start, total, patience)
    expected = wanted.size_bytes if total is None else total
    if expected is not None and n_bytes < expected:
        raise _Passing(f"the connection ended after {n_bytes} of {expected} bytes")
    return start > 0


def _begins_at(reply: http.client.HTTPResponse, have: int, wanted: Wanted) -> tuple[int | None, int | None]:
    """Return where the bytes of a reply belong, and how many the whole file has, where that is said.

    The place is null where nothing is missing.

    Raises:
        RemeasureError: a status that another try does not change.
        _Passing: one that it may change.
    """
    status, headers = reply.status, reply.headers
    if headers.get("Content-Encoding", "identity") != "identity":
        raise RemeasureError(
            f"{addresses.said(wanted.url)}: comes compressed although that was not asked for"
        )
    if status == 200:
        length = headers.get("Content-Length", "")
        return 0, int(length) if length.isascii() and length.isdigit() else None
    parts = _RANGE.fullmatch(headers.get("Content-Range", "")) if have and status == 206 else None
    if parts and int(parts[1]) == have:
        return have, None if parts[2] == "*" else int(parts[2])
    if have and status == 416 and headers.get("Content-Range") == f"bytes */{have}":
        return None, have
    if have and status in (206, 416):
        _empty(wanted.part)
        raise _Passing("the server has another part than was asked for", wait_s=0.0)
    if status in _AGAIN:
        raise _Passing(f"status {status}", retry_after_s(headers.get("Retry-After"), time.time()))
    said = addresses.said(wanted.url)
    if status in (401, 403):
        raise RemeasureError(
            f"{said}: status {status}, it is not for everybody; fetch it with your own account and put it at "
            f"{wanted.out}"
        )
    raise RemeasureError(f"{said}: status {status}; correct the address and the commit in {wanted.listed}")


def _check_size(wanted: Wanted, total: int | None) -> None:
    said = addresses.said(wanted.url)
    if total is not None and wanted.size_bytes is not None and total != wanted.size_bytes:
        raise RemeasureError(
            f"{said}: has {total} bytes, expected {wanted.size_bytes}; the address serves another file than "
            f"{wanted.listed} names: do not use it, or correct the row if you changed it"
        )
    if total is not None and total > CAP_BYTES:
        raise _too_large(wanted, f"has {total} bytes")


def _too_large(wanted: Wanted, what: str) -> RemeasureError:
    limit = wanted.size_bytes or CAP_BYTES
    return RemeasureError(
        f"{addresses.said(wanted.url)}: {what}, at most {limit} may come; correct size_bytes in "
        f"{wanted.listed}"
    )


def _write(
    reply: http.client.HTTPResponse, wanted: Wanted, start: int, total: int | None, patience: Patience
) -> int:
    """Append what comes to the part; return how many bytes it has then."""
    n_bytes, limit = start, wanted.size_bytes or CAP_BYTES
    told, looked, n_then = time.monotonic(), time.monotonic(), start
    with open(wanted.part, "ab") as target:
        while block := _read(reply):
            n_bytes += len(block)
            if n_bytes > limit:
                _empty(wanted.part)
                raise _too_large(wanted, "does not end")
            target.write(block)
            now = time.monotonic()
            if now - looked >= patience.timeout_s:
                if n_bytes - n_then < patience.least_bytes_per_s * (now - looked):
                    raise _Passing(f"only {n_bytes - n_then} bytes in {now - looked:.0f} s")
                looked, n_then = now, n_bytes
            if now - told >= _EVERY_S:
                log.info("%s %d of %s bytes", wanted.out.name, n_bytes, total or "unknown")
                told = now
    return n_bytes


def _read(reply: http.client.HTTPResponse) -> bytes:
    try:
        return reply.read1(_BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _Passing(f"the connection broke ({type(error).__name__})") from None


def _open(wanted: Wanted, ranged: dict[str, str], patience: Patience) -> http.client.HTTPResponse:
    try:
        return opening.open_url(wanted.url, ranged, patience.timeout_s, wanted.listed)
    except opening.NoConnection as error:
        raise _Passing(str(error)) from None


def _put_in_place(wanted: Wanted) -> None:
    with open(wanted.part, "rb") as written:
        os.fsync(written.fileno())
    os.replace(wanted.part, wanted.out)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _empty(part: Path) -> int:
    """Drop what has arrived; the file itself stays, as it carries the lock."""
    with contextlib.suppress(FileNotFoundError):
        os.truncate(part, 0)
    return 0
