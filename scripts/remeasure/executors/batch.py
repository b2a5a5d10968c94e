"""The batch executor: requests are handed in as files and answered hours later, at half the price.

Every request is handed in once, whatever happens on this side in between (``batch_parts``); only what failed
in a way that passes is handed in again, up to a limit. Answers of requests that nobody asks any more are
fetched all the same: they are paid for.
"""

import itertools
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from remeasure.errors import RemeasureError
from remeasure.executors import BatchSettings, Call, Keeper
from remeasure.executors.batch_lines import line_of
from remeasure.executors.batch_merge import Merged, Merger, bring_to_disk, has_answers, kept_already
from remeasure.executors.batch_parts import UNDER_WAY, Part, Parts, Pending, Supply
from remeasure.executors.batch_service import ENDED, TOKEN_LIMIT, Batch, Problem, Refusal, Service
from remeasure.executors.keys import Key
from remeasure.executors.payload import Payloads
from remeasure.executors.replies import HOPELESS, Failure, entry_of, one_line

log = logging.getLogger("remeasure.batch")


class BatchExecutor:
    """Answers calls through a batch service; see ``Executor``.

    Args:
        settings: the service and its limits.
        served_name: the model name that it knows.
        images_root: folder that the paths of image references start from.
        journal: the cell's journal folder; ``batches.json`` and ``batches/`` are kept there.
    """

    def __init__(self, settings: BatchSettings, served_name: str, images_root: Path, journal: Path) -> None:
        self._settings = settings
        self._served_name = served_name
        self._root = images_root
        self._journal = journal
        self._key = Key(settings.api_key_env)
        self._blockers: set[str] = set()
        self._lost_a_file = False

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; see ``Executor.run``. What is under way when this ends is not lost."""
        with (
            Payloads(self._settings, self._served_name, self._root) as self._payloads,
            Parts(self._journal, self._settings.base_url) as self._parts,
            Service(self._settings, self._key) as self._service,
        ):
            try:
                self._run(calls, keeper)
            except (KeyboardInterrupt, RemeasureError, OSError):
                if n_open := len(self._parts.of("submitting", *UNDER_WAY)):
                    log.warning("%d batches stay at the service; the same command picks them up", n_open)
                raise

    def _run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        self._pick_up()
        under_way = {call.key for part in self._parts.unfinished() for call in self._parts.pending(part)}
        supply = Supply(calls, under_way)
        pause = _Pause(self._settings.poll_s)
        reason = None
        while True:
            reason = reason or self._hand_in(supply, keeper, pause)
            if not self._parts.of(*UNDER_WAY) and (reason or not self._blockers):
                break
            ended = self._poll()
            # All that has ended is kept before a word about one of them stops the work.
            stops = [self._settle(part, batch, supply, keeper) for part, batch in ended]
            if any(stops):
                raise RemeasureError(next(filter(None, stops)))
            if ended:
                pause.begin()
            else:
                pause.wait()
        if reason:
            raise RemeasureError(reason)

    def _pick_up(self) -> None:
        """Find out how far the parts of an earlier start are."""
        for part in self._parts.of("uploading"):
            file_id = self._service.find_file(part)
            self._parts.move(part, "uploaded" if file_id else "waiting", file_id=file_id)
        for part in self._parts.of("submitting"):
            if batch := self._service.find(part):
                self._parts.move(part, "submitted", batch_id=batch.id)
            else:
                self._parts.move(part, "uploaded")
        for part in self._parts.of("merging"):
            if len(kept_already(self._journal, self._parts.places(part))) == part.n_requests:
                self._service.delete(part.file_id)
                self._parts.move(part, "merged")
        if left := self._parts.unfinished():
            n_open = sum(part.n_requests for part in self._parts.of(*UNDER_WAY))
            n_all = sum(part.n_requests for part in left)
            log.info("picked up %d requests of earlier starts, %d of them in open batches", n_all, n_open)

    def _hand_in(self, supply: Supply, keeper: Keeper, pause: "_Pause") -> str | None:
        """Submit parts as long as the service takes them; return why nothing more may be sent, if so."""
        if self._blockers and self._blockers <= self._open_ids():
            return None
        self._blockers = set()
        while len(self._parts.of(*UNDER_WAY)) < self._settings.max_open and not self._blockers:
            if not self._is_left(supply):
                return None
            if reason := keeper.enough():
                return reason
            part = self._next_part(supply, keeper)
            if part is not None:
                if stop := self._submit(part, keeper):
                    raise RemeasureError(stop)
                pause.begin()
        return None

    def _is_left(self, supply: Supply) -> bool:
        return supply.is_left() or bool(self._parts.of("uploaded", "waiting"))

    def _open_ids(self) -> set[str]:
        return self._service.open_ids() | {part.batch_id for part in self._parts.of(*UNDER_WAY)}

    def _next_part(self, supply: Supply, keeper: Keeper) -> Part | None:
        """Return a part whose file is at the service; null where what was left need not be handed in.

        New calls come first: only when all are known is it known which older ones are still asked.
        """
        if supply.is_left():
            part, held = self._make_part(supply.fresh(), keeper)
            supply.put_back(held)
            return self._upload(part) if part else None
        for part in self._parts.of("uploaded"):
            if all(call.key in supply.asked for call in self._parts.pending(part)):
                return part
            self._take_back(part)
        return self._make_again(self._parts.of("waiting"), supply.asked, keeper)

    def _make_part(self, source: Iterator[Pending], keeper: Keeper) -> tuple[Part | None, Pending | None]:
        """Write the files of a part; return it and the call that found no room any more."""
        part_id = uuid.uuid4().hex
        try:
            with (
                self._parts.writing(part_id) as write,
                open(self._parts.scratch(part_id, "input"), "wb") as stream,
            ):
                n_requests, held = self._fill(source, write, stream, keeper)
                n_bytes = stream.tell()
            if n_requests:
                facts = {"n_requests": n_requests, "n_bytes": n_bytes}
                return self._parts.written(part_id, "uploading", self._served_name, **facts), held
        except BaseException:
            self._parts.remove_files(part_id)
            raise
        self._parts.remove_files(part_id)
        return None, held

    def _fill(
        self, source: Iterator[Pending], write: Callable[[Pending], object], stream: BinaryIO, keeper: Keeper
    ) -> tuple[int, Pending | None]:
        """Write calls until a limit is reached, one line in memory at a time."""
        n_requests = 0
        for call in source:
            if n_requests == self._settings.max_requests:
                return n_requests, call
            asked = Call(key=call.key, custom_id=call.custom_id, body=call.body)
            line = line_of(call.key, self._payloads.pieces(asked, self._payloads.template(asked)))
            if len(line) > self._settings.max_bytes:
                self._too_large(call, len(line), keeper)
                continue
            if stream.tell() + len(line) > self._settings.max_bytes:
                return n_requests, call
            write(call)
            stream.write(line)
            n_requests += 1
        return n_requests, None

    def _make_again(self, old: list[Part], asked: set[str], keeper: Keeper) -> Part | None:
        """Make one part of calls that were written down before, without those that nobody asks any more."""
        calls = itertools.chain.from_iterable(map(self._parts.pending, old))
        source = (call for call in calls if call.key in asked)
        part, held = self._make_part(source, keeper)
        rest = self._write_rest(held, source) if held is not None else None
        self._parts.put(*filter(None, (part, rest)), drop=old)
        n_left = sum(one.n_requests for one in old) - sum(one.n_requests for one in (part, rest) if one)
        if n_left:
            log.info("%d requests that are not asked any more, or are too large, are not handed in", n_left)
        return self._upload(part) if part else None

    def _write_rest(self, first: Pending, others: Iterator[Pending]) -> Part:
        rest_id = uuid.uuid4().hex
        n_requests = 1
        with self._parts.writing(rest_id) as write:
            write(first)
            for call in others:
                write(call)
                n_requests += 1
        return self._parts.written(rest_id, "waiting", self._served_name, n_requests=n_requests)

    def _too_large(self, call: Pending, n_bytes: int, keeper: Keeper) -> None:
        limit = self._settings.max_bytes
        failure = Failure(
            kind="too_large", message=f"{n_bytes} bytes with its images, a batch file takes {limit}"
        )
        log.warning("request %s is not handed in: %s", call.custom_id, failure.message)
        keeper.keep(entry_of(call.key, call.custom_id, failure, attempts=call.n_handed_in, seconds=0.0))

    def _upload(self, part: Part) -> Part:
        self._parts.put(part)
        path = self._parts.scratch(part.part_id, "input")
        try:
            file_id = self._service.upload(path, part)
        finally:
            path.unlink(missing_ok=True)
        return self._parts.move(part, "uploaded", file_id=file_id)

    def _take_back(self, part: Part) -> None:
        """Make a part wait whose file is at the service, so that it is written anew."""
        self._parts.move(part, "waiting", file_id=None, batch_id=None)
        self._service.delete(part.file_id)

    def _submit(self, part: Part, keeper: Keeper) -> str | None:
        """Start a part's batch, or put it back; return why nothing more can be answered, if so."""
        if part.submitted_at is None:
            for call in self._parts.pending(part):
                keeper.sent(call.key)
        part = self._parts.move(part, "submitting", submitted_at=time.time())
        try:
            batch = self._service.submit(part)
        except Refusal as refusal:
            if refusal.code == TOKEN_LIMIT:
                return self._wait_for_others(part, self._key.out_of(str(refusal)))
            self._take_back(part)
            if not refusal.lost_file or self._lost_a_file:
                return str(refusal.error)
            self._lost_a_file = True
            log.warning("the service does not know file %s any more; it is sent again", part.file_id)
        else:
            self._parts.move(part, "submitted", batch_id=batch.id)
            log.info("batch %s: %d requests, %d bytes", batch.id, part.n_requests, part.n_bytes)
        return None

    def _wait_for_others(self, part: Part, said: str) -> str | None:
        """Let a part wait until a batch has ended, one of ours or of another cell of the same account."""
        blockers = self._open_ids() - {part.batch_id}
        if not blockers:
            self._take_back(part)
            return (
                f"{self._settings.base_url}: the service enqueues no batch of {part.n_requests} requests "
                f"although no other is open ({said}); lower `batch.max_requests` of the model or have the "
                "limit raised, then run the same command again"
            )
        self._parts.move(part, "uploaded", batch_id=None, n_refused=part.n_refused + 1)
        self._blockers = blockers
        log.warning("%s; it waits until one of %d open batches has ended", said, len(blockers))
        return None

    def _poll(self) -> list[tuple[Part, Batch]]:
        """Ask how far the open batches are; return those that have ended."""
        found = [(part, self._service.retrieve(part.batch_id)) for part in self._parts.of(*UNDER_WAY)]
        lines = []
        for part, batch in found:
            counts = batch.counts
            done = f"{counts.completed or 0} done {counts.failed or 0} failed of {part.n_requests}"
            lines.append(f"{part.batch_id} {batch.status} {done}")
        log.info("%d open: %s", len(lines), self._key.out_of(", ".join(lines)) or "waiting for others")
        return [(part, batch) for part, batch in found if batch.status in ENDED]

    def _settle(self, part: Part, batch: Batch, supply: Supply, keeper: Keeper) -> str | None:
        """Deal with a batch that has ended; return why nothing more can be answered, if so."""
        if batch.status == "failed" and not (batch.output_file_id or batch.error_file_id):
            return self._refused(part, batch)
        try:
            merged = self._merge(part, batch, keeper)
        except RemeasureError as error:
            return str(error)
        level = logging.INFO if merged.n_answered else logging.WARNING
        none = "" if merged.n_answered else "; none of its requests was answered this time"
        log.log(level, "batch %s %s: %s%s", batch.id, batch.status, merged, none)
        nothing_works = not (merged.n_answered or merged.again or has_answers(self._journal))
        if (nothing_works or merged.failed.keys() & set(HOPELESS)) and self._is_left(supply):
            return (
                f"batch {batch.id}: {merged.n_answered} of {part.n_requests} requests were answered, first "
                f"failure {merged.first_failure}; nothing more is handed in: repair the cause and run the "
                "same command again"
            )
        return None

    def _merge(self, part: Part, batch: Batch, keeper: Keeper) -> Merged:
        """Keep what has come out of a batch, and write down what is to be handed in again."""
        journal = self._journal if part.status == "merging" else None
        places = self._parts.places(part)
        files = self._service.fetch(
            batch, places.keys(), lambda name: self._parts.scratch(part.part_id, name)
        )
        merging = self._parts.move(part, "merging")
        calls_path = self._parts.calls_path(part.part_id)
        merger = Merger(calls_path, places, merging, keeper, self._key, self._settings.rounds)
        again_id = uuid.uuid4().hex
        names = (part.served_name, *self._settings.also_named)
        with self._parts.writing(again_id) as write:
            merged = merger.merge(files, batch.status, names, journal, write)
        # What was sent can be made again from here, and holds whatever the requests hold: it does not stay at
        # the service. The results do, until they expire there: the only other copy of what was paid for.
        self._service.delete(part.file_id)
        n_again = merged.again.total()
        waiting = [self._parts.written(again_id, "waiting", self._served_name, n_requests=n_again)]
        bring_to_disk(self._journal)
        self._parts.put(msgspec.structs.replace(merging, status="merged"), *(waiting if n_again else []))
        if not n_again:
            self._parts.remove_files(again_id)
        return merged

    def _refused(self, part: Part, batch: Batch) -> str | None:
        """Deal with a file that the service did not take as a whole: nothing of it was answered."""
        problems = batch.problems or [Problem(message="it gives no reason")]
        first = problems[0]
        said = self._key.out_of(one_line(": ".join(filter(None, (first.code, first.message)))))
        if any(problem.code == TOKEN_LIMIT for problem in problems):
            return self._wait_for_others(part, said)
        where = ""
        if first.line:
            calls = enumerate(self._parts.pending(part), start=1)
            custom_id = next((call.custom_id for number, call in calls if number == first.line), None)
            where = f" line {first.line}, request {custom_id!r}:"
        more = f" and {len(problems) - 1} more problems" if len(problems) > 1 else ""
        self._service.delete(part.file_id)
        self._parts.move(part, "refused")
        return (
            f"batch {batch.id} was refused as a whole:{where} {said}{more}; repair the cause and run the "
            f"same command again, its {part.n_requests} requests are then handed in again"
        )


class _Pause:
    """Waits between two questions: short ones at first, then longer ones, at most ``poll_s``."""

    def __init__(self, poll_s: float) -> None:
        self._longest_s = poll_s
        self.begin()

    def begin(self) -> None:
        """Begin with short waits again."""
        self._next_s = self._longest_s / 30

    def wait(self) -> None:
        """Wait once."""
        time.sleep(self._next_s)
        self._next_s = min(self._longest_s, self._next_s * 1.5)
