"""A batch service: the few calls of files and batches that are needed, each tried until it is answered.

Through the ``openai`` package, which knows how files are sent and fetched. Its own retries are off: a batch
that is created twice is paid twice, so that what may be tried again is decided here, call by call. What comes
back is read into types of ours; the package would take an HTML page for a batch.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

from remeasure.errors import RemeasureError
from remeasure.executors import BatchSettings, bounded
from remeasure.executors.batch_lines import URL, error_in, results_in
from remeasure.executors.batch_parts import Part
from remeasure.executors.keys import Key
from remeasure.executors.replies import PASSING, REJECTED, Failure, Outcome, of_http, one_line

log = logging.getLogger("remeasure.batch")
T = TypeVar("T", bound=Struct)
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
# With waits that double up to ``poll_s`` (a minute): five minutes of a service that does not answer. Little
# is lost by giving up, the next start goes on.
_TRIES = 10
_MAX_PAGES = 100  # of a list: what goes on beyond ten thousand batches goes on for ever
_TRIES_UNKNOWN = 4  # for what the service does not know: a moment after it was made, that passes
_NOT_HEARD = ("rate_limit", *REJECTED)  # after these it is clear that nothing was begun
_LONGEST_WAIT_S = 600.0
OPEN = ("validating", "in_progress", "finalizing", "cancelling")
ENDED = ("completed", "expired", "cancelled", "failed")
_PART = "remeasure_part"
TOKEN_LIMIT = "token_limit_exceeded"


class Trouble(Failure, kw_only=True):
    """A call without a result."""

    code: str | None = None
    """The service's own word for it."""


class Counts(Struct):
    """How many requests of a batch are how far."""

    total: int | None = None
    completed: int | None = None
    failed: int | None = None


class Problem(Struct):
    """Why a service refuses a file."""

    code: str | None = None
    line: int | None = None
    message: str | None = None


class Batch(Struct):
    """A batch as the service describes it; what is not needed is not read."""

    id: Id
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: Any = None
    request_counts: Counts | None = None

    @property
    def counts(self) -> Counts:
        """How many requests are how far; nulls where the service does not say."""
        return self.request_counts or Counts()

    @property
    def problems(self) -> list[Problem]:
        """Why the file was refused; empty where the service gives no reasons in the form that is known."""
        try:
            return msgspec.convert(self.errors["data"], list[Problem])
        except (msgspec.ValidationError, TypeError, KeyError):
            return []


class _File(Struct):
    id: Id
    bytes: int | None = None


class _Listed(Struct):
    """A batch or a file in a list; those of others are in it, in whatever form."""

    id: Id
    status: Any = None
    input_file_id: Any = None
    metadata: Any = None
    filename: Any = None
    bytes: Any = None


class _Page(Struct):
    data: list[_Listed]
    has_more: bool = False


class Refusal(Exception):
    """The service says no to a part: it has no batch of it."""

    def __init__(self, trouble: Trouble, lost_file: bool, error: RemeasureError) -> None:
        super().__init__(trouble.message)
        self.code = trouble.code
        self.lost_file = lost_file
        """Whether the service does not know the part's file."""
        self.error = error


class Service:
    """The service; a context manager."""

    def __init__(self, settings: BatchSettings, key: Key) -> None:
        self._settings, self._key = settings, key
        self._first_wait_s = settings.poll_s / 30

    def __enter__(self) -> "Service":
        import httpx2
        import openai

        # The transport logs addresses at every request and, for debugging, headers with the key.
        for name in ("openai", "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._openai, self._transport = openai, httpx2
        self._client = openai.OpenAI(
            # Without one the package would take OPENAI_API_KEY and send it to whatever address is given.
            api_key=self._key.value() or "none",
            base_url=self._settings.base_url,
            timeout=self._settings.timeout_s,
            max_retries=0,
            http_client=bounded.client(self._settings.timeout_s),
        )
        return self

    def __exit__(self, *_) -> None:
        self._client.close()

    def upload(self, path: Path, part: Part) -> str:
        """Send a part's file; return the id that the service gives it.

        Raises:
            RemeasureError: it cannot be sent, or arrives with another size.
        """

        def send() -> bytes:
            with open(path, "rb") as stream:
                files = self._client.files.with_raw_response
                return files.create(file=(file_name(part), stream), purpose="batch").content

        found = self._tried(f"sending {file_name(part)}", send, _File)
        if found.bytes not in (None, part.n_bytes):
            raise RemeasureError(
                f"{self._settings.base_url}: of {part.n_bytes} bytes of a batch file {found.bytes} have "
                "arrived; run the same command again"
            )
        return found.id

    def submit(self, part: Part) -> Batch:
        """Start the batch of a part whose file is there, once.

        Where it is not clear whether the service has heard (timeout, broken connection, server error), it is
        asked what it has before anything is submitted again.

        Raises:
            Refusal: it does not take the part.
            RemeasureError: it does not answer, or refuses the account.
        """
        what = "submitting a batch"
        for n_tries in range(1, _TRIES + 1):
            found = self._once(lambda: self._create(part), Batch)
            if isinstance(found, Batch):
                return found
            # A file is sometimes not known yet right after it was sent.
            lost_file = found.status in (400, 404) and part.file_id in found.message
            is_last = n_tries == (_TRIES_UNKNOWN if lost_file else _TRIES)
            if is_last or found.code == TOKEN_LIMIT or not (lost_file or _passes(found)):
                break
            self._wait(found, n_tries, what)
            if found.kind not in _NOT_HEARD and (batch := self.find(part)):
                return batch
        error = self._error(what, found, n_tries)
        if found.kind in (*REJECTED, "wrong_model") or found.code == TOKEN_LIMIT:
            raise Refusal(found, lost_file, error)
        raise error

    def _create(self, part: Part) -> bytes:
        return self._client.batches.with_raw_response.create(
            input_file_id=part.file_id,
            endpoint=URL,
            completion_window="24h",
            metadata={_PART: part.part_id},
            # Services that know this word keep a second sending from becoming a second batch.
            extra_headers={"Idempotency-Key": f"{part.part_id}-{part.n_refused}"},
        ).content

    def find(self, part: Part) -> Batch | None:
        """Return the batch of a part if the service has one.

        All pages are read: a page too few is a batch paid twice. The input file tells a batch as well as our
        note does, for services that keep no notes.

        Raises:
            RemeasureError: the service does not say.
        """
        # A submission that was on its way when its sender gave up may arrive after the first look.
        found = self._find(part)
        if found is None:
            time.sleep(self._settings.poll_s / 6)
            found = self._find(part)
        return found

    def _find(self, part: Part) -> Batch | None:
        try:
            for listed in self._list("batches"):
                note = listed.metadata.get(_PART) if isinstance(listed.metadata, dict) else None
                # Nothing of a failed one was answered: it is one that the full queue refused before.
                is_ours = note == part.part_id or listed.input_file_id == part.file_id
                if is_ours and listed.status != "failed":
                    return self.retrieve(listed.id)
        except RemeasureError as error:
            raise RemeasureError(
                f"{error}; until the service lists its batches it is not known whether it has one of file "
                f"{part.file_id}: if you see none there, set the status of part {part.part_id} to 'uploaded' "
                "in batches.json, else to 'submitted' with its batch_id"
            ) from None
        return None

    def find_file(self, part: Part) -> str | None:
        """Return the id of a part's file if it has arrived whole; null also where files cannot be listed."""
        try:
            for listed in self._list("files", purpose="batch"):
                if listed.filename == file_name(part) and listed.bytes == part.n_bytes:
                    return listed.id
        except RemeasureError as error:
            log.warning("the part is sent again: %s", error)
        return None

    def open_ids(self) -> set[str]:
        """Return the newest open batches of the account, others' as well; empty where none can be listed."""
        found = self._once(lambda: self._page("batches", None, {}), _Page)
        return set() if isinstance(found, Trouble) else {one.id for one in found.data if one.status in OPEN}

    def retrieve(self, batch_id: str) -> Batch:
        """Return how far a batch is.

        Raises:
            RemeasureError: the service does not answer, does not know it or says what nobody knows.
        """
        batches = self._client.batches.with_raw_response
        batch = self._tried(f"asking for batch {batch_id}", lambda: batches.retrieve(batch_id).content, Batch)
        if batch.status not in OPEN + ENDED:
            raise RemeasureError(
                f"{self._settings.base_url}: batch {batch_id} has status {one_line(batch.status, 40)!r}, "
                f"known are {', '.join(OPEN + ENDED)}; see there what that means"
            )
        return batch

    def fetch(self, batch: Batch, asked: Set[str], place: Callable[[str], Path]) -> list[Path]:
        """Fetch the result files of an ended batch, the output first.

        Files that hold less than they should (a proxy's page in their place, a reply that ended early, a file
        that is not there yet) must not pass for requests without an answer: those are paid again.

        Args:
            batch: the batch.
            asked: keys of its requests.
            place: gives the path for a file by its name.

        Raises:
            RemeasureError: the files cannot be fetched, or stay incomplete.
        """
        for n_tries in range(1, _TRIES_UNKNOWN + 1):
            named = {"output": batch.output_file_id, "errors": batch.error_file_id}
            files = [self._download(file_id, place(name)) for name, file_id in named.items() if file_id]
            found = [results_in(path, asked) for path in files]
            n_there, n_said = len(set().union(*filter(None, found))), batch.counts.completed or 0
            if None not in found and n_there >= n_said:
                return files
            if n_tries < _TRIES_UNKNOWN:
                short = Trouble(kind="cut_stream", message=f"{n_there} results, the service counts {n_said}")
                self._wait(short, n_tries, f"fetching batch {batch.id}")
                batch = self.retrieve(batch.id)
        raise RemeasureError(
            f"{self._settings.base_url}: the result files of batch {batch.id} are not whole: {n_there} "
            f"results, the service counts {n_said}; nothing of it is handed in again, rerun later"
        )

    def _download(self, file_id: str, target: Path) -> Path:
        def get() -> bytes:
            with self._client.files.with_streaming_response.content(file_id) as reply:
                with open(target, "wb") as stream:
                    for piece in reply.iter_bytes(1 << 16):
                        stream.write(piece)
            return b"{}"

        self._tried(f"fetching file {file_id}", get, Struct)
        return target

    def delete(self, file_id: str) -> None:
        """Remove a file from the service; that it cannot be removed is no reason to stop."""
        found = self._once(lambda: self._client.files.with_raw_response.delete(file_id).content, Struct)
        if isinstance(found, Trouble) and found.status != 404:
            log.warning("file %s stays at the service: %s", file_id, self._key.out_of(found.message))

    def _list(self, kind: str, **query: str) -> Iterator[_Listed]:
        after = None
        for _ in range(_MAX_PAGES):
            page = self._tried(f"listing {kind}", lambda: self._page(kind, after, query), _Page)  # noqa: B023
            yield from page.data
            # A service that says the same place twice would be asked for ever.
            if not page.has_more or not page.data or page.data[-1].id == after:
                return
            after = page.data[-1].id

    def _page(self, kind: str, after: str | None, query: dict[str, str]) -> bytes:
        place = {"after": after} if after else {}
        return getattr(self._client, kind).with_raw_response.list(limit=100, **place, **query).content

    def _tried(self, what: str, act: Callable[[], bytes], kind: type[T]) -> T:
        """Return what a call that may be repeated gives."""
        for n_tries in range(1, _TRIES + 1):
            found = self._once(act, kind)
            if not isinstance(found, Trouble):
                return found
            unknown = found.status == 404
            is_last = n_tries == (_TRIES_UNKNOWN if unknown else _TRIES)
            if is_last or not (unknown or _passes(found)):
                break
            self._wait(found, n_tries, what)
        raise self._error(what, found, n_tries)

    def _once(self, act: Callable[[], bytes], kind: type[T]) -> T | Trouble:
        """Call once and read the reply."""
        try:
            body = act()
        except (self._openai.APITimeoutError, self._transport.TimeoutException):
            return Trouble(kind="timeout", message=f"no reply within {self._settings.timeout_s:g} s")
        except self._openai.APIConnectionError as error:
            return Trouble(kind="connection", message=type(error.__cause__).__name__)
        except self._transport.RequestError:
            return Trouble(kind="cut_stream", message="the reply ended before its end")
        except self._openai.APIStatusError as error:
            return _trouble(error.status_code, error.response.headers, error.response.content)
        try:
            return msgspec.json.decode(body, type=kind)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            start = one_line(body[:80].decode("utf-8", "replace"))
            return Trouble(kind="not_json", message=f"the reply is not what was asked for: {start!r}")

    def _wait(self, trouble: Trouble, n_tries: int, what: str) -> None:
        pause = min(self._settings.poll_s, self._first_wait_s * 2 ** (n_tries - 1))
        pause = pause if trouble.wait_s is None else min(trouble.wait_s, _LONGEST_WAIT_S)
        said = self._key.out_of(f"{trouble.kind}: {trouble.message}")
        log.warning("%s: %s, again in %.0f s", what, said, pause)
        time.sleep(pause)

    def _error(self, what: str, trouble: Trouble, n_tries: int) -> RemeasureError:
        said = self._key.out_of(trouble.message)
        if trouble.kind == "auth":
            text = f"the service refuses the key ({said}); check {self._key.where}"
        elif trouble.kind == "quota":
            text = f"the quota is spent ({said}); raise it or wait for the next period, then rerun"
        else:
            after = f" after {n_tries} tries" if n_tries > 1 else ""
            text = f"{what} failed{after} ({trouble.kind}: {said}); run the same command again to go on"
            if trouble.status == 404:
                text += (
                    ", or, if that is gone for good, take its part out of batches.json to pay for it again"
                )
        return RemeasureError(f"{self._settings.base_url}: {text}; batches under way go on at the service")


def file_name(part: Part) -> str:
    """Return the name that a part's file has at the service."""
    return f"remeasure-{part.part_id}.jsonl"


def _trouble(status: int, headers: Mapping[str, str], body: bytes) -> Trouble:
    found = of_http(status, headers, body, ())
    try:
        code = error_in(msgspec.json.decode(body)).get("code")
    except (ValueError, msgspec.MsgspecError, RecursionError):
        code = None
    code = code if isinstance(code, str) else None
    if isinstance(found, Outcome):  # a content filter, in the words of chat; here it refuses like any other
        found = Failure(kind="rejected", message=str(found.error))
    return Trouble(kind=found.kind, message=found.message, wait_s=found.wait_s, status=status, code=code)


def _passes(trouble: Trouble) -> bool:
    return trouble.kind in PASSING and (trouble.wait_s or 0) <= _LONGEST_WAIT_S
