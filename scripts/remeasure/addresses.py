"""Sources that are fetched from an address, as ``config/sources_by_url.tsv`` lists them.

A row without a commit or without a hash is not pinned yet: nothing is fetched for it, and it says what is
missing.
"""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from remeasure.errors import RemeasureError

LIST = "config/sources_by_url.tsv"
_PLACE = "{revision}"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"[1-9][0-9]{0,14}")
_LONGEST_SAID = 300


class ByUrl(NamedTuple):
    """A source that is fetched from an address; one line of the list."""

    name: str
    """Its place below ``results/sources``."""
    url: str
    """May hold ``{revision}``."""
    revision: str
    """The commit, 40 hexadecimal digits; empty: not pinned yet."""
    sha256: str
    """Of the file; empty: not pinned yet."""
    size_bytes: str
    """Empty where it is not known."""
    licence: str
    note: str

    @property
    def path(self) -> str:
        """Its place from the working directory."""
        return f"results/sources/{self.name}"

    @property
    def rule(self) -> str:
        """Name of the rule that fetches it."""
        return f"download_{re.sub('[^a-z0-9]+', '_', self.name.lower())}"

    @property
    def log(self) -> str:
        """Log of that rule."""
        return f"results/sources/logs/{self.rule}.log"

    @property
    def in_rules(self) -> str:
        """What stands in a rule as it is."""
        return self.name

    @property
    def is_pinned(self) -> bool:
        """Return whether it is decided which bytes are meant."""
        return bool(self.sha256 and (self.revision or _PLACE not in self.url))

    @property
    def address(self) -> str:
        """The address with the commit in it."""
        return self.url.replace(_PLACE, self.revision)

    def problem(self) -> str:
        """Return the sentence for one that is not pinned yet."""
        more = f"; {self.note}" if self.note else ""
        return (
            f"{self.path} is not pinned yet, so nothing is fetched: choose a commit on "
            f"{commit_page(self.url)} and put it as `revision`, and the SHA-256 of the file there as "
            f"`sha256`, into its row of {LIST} (licence: {self.licence}{more})"
        )

    def options(self) -> list[str]:
        """Return the command line of ``fetch_url``."""
        if not self.is_pinned:
            return ["--not-pinned", self.problem(), "--out", self.path]
        size = ["--size-bytes", self.size_bytes] if self.size_bytes else []
        return ["--url", self.address, "--sha256", self.sha256, *size, "--out", self.path]

    def check(self, place: str) -> None:
        """Check the fields of the row; the name is checked with those of all sources.

        Args:
            place: how the error begins.

        Raises:
            RemeasureError: the first field that is wrong.
        """
        probe = self.url.replace(_PLACE, "0" * 40)
        wrong = None
        if {"{", "}"} & set(probe) or self.url.count(_PLACE) > 1:
            wrong = f"url {self.url[:120]!r}: expected {_PLACE} once or not at all, and no other braces"
        elif problem := problem_of(probe):
            wrong = f"url {problem}"
        elif self.revision and not _COMMIT.fullmatch(self.revision):
            wrong = (
                f"revision {self.revision[:60]!r}: expected the 40 hexadecimal digits of a commit; "
                "branches and tags move"
            )
        elif self.sha256 and not _SHA256.fullmatch(self.sha256):
            wrong = f"sha256 {self.sha256[:80]!r}: expected 64 hexadecimal digits in lower case"
        elif self.size_bytes and not _SIZE.fullmatch(self.size_bytes):
            wrong = f"size_bytes {self.size_bytes[:40]!r}: expected a number above 0, or nothing"
        elif not self.licence:
            wrong = "licence is empty"
        if wrong:
            raise RemeasureError(f"{place}: {wrong}; correct it")


def problem_of(url: str) -> str | None:
    """Return why nothing may be fetched from an address; null where it may.

    Only https, but for this computer itself: what goes over plain HTTP can be changed on its way.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"{said(url)} is no address ({error})"
    if not url.isascii() or not url.isprintable() or " " in url or not host:
        return f"{said(url)} is no address; expected https://…"
    if parts.username is not None or parts.password is not None:
        return f"{said(url)} holds a user or a password, which no list and no redirect may"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return None
    return f"{said(url)} is not https; what goes over {parts.scheme or 'nothing'} can be changed on its way"


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this computer, said so that no name server is asked."""
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def said(url: str) -> str:
    """Return an address as it may be told: without user, password and query, which can be secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        text = f"{parts.scheme}://{host}{parts.path}"
    except ValueError:
        text = url.partition("?")[0]
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= _LONGEST_SAID else f"{text[:_LONGEST_SAID]}…"


def commit_page(url: str) -> str:
    """Return the page that lists the commits behind an address; the address itself where none is known."""
    parts = urlsplit(url)
    words = parts.path.strip("/").split("/")
    if parts.hostname == "huggingface.co" and "resolve" in words[:4]:
        return f"https://huggingface.co/{'/'.join(words[: words.index('resolve')])}/commits/main"
    if parts.hostname == "raw.githubusercontent.com" and len(words) > 2:
        return f"https://github.com/{words[0]}/{words[1]}/commits"
    return said(url)
