"""Questions answered by a system under test through its adapter."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remeasure import model_server
from remeasure.errors import RemeasureError
from remeasure.executors import Call, Keeper, SystemSettings
from remeasure.records import JournalEntry, Trace, Turn
from remeasure.systems import adapter, database, models, replying, tasks
from remeasure.systems.adapter import Adapter, Lost
from remeasure.systems.replying import Answered

log = logging.getLogger("remeasure.system")
READY_LIMIT_S = 300.0
"""For starting an adapter and opening its database."""
MOST_RESTARTS = 3
"""How often an adapter that ended is started again, without an outcome in between."""
# Failures that pass by themselves: so often is such a question asked in all, after these waits.
_PASSING = ("connection", "server_error")
_WAITS_S = (1.0, 2.0)
# So many failures of these kinds in a row, nothing answered between, are an outage and not bad luck.
_OUTAGE = (*_PASSING, "timeout")
_FAILED_IN_A_ROW = 25
_GOES_ON = ("answered", "cut_off")
EARLIER_FAILED = "not_sent: an earlier turn failed"
AGAIN = "run the same command again: finished answers are kept"


class SystemExecutor:
    """Asks a system; see ``Executor``. A context manager: what it starts is ended with it.

    Nothing is started before something must be asked. The turns of a conversation are asked one after the
    other, each with what the one before has carried on; one that fails ends the conversation.

    Args:
        settings: adapter, models, limits, and where database and environment are.
        log_folder: where the logs of adapters and servers go.
    """

    def __init__(self, settings: SystemSettings, log_folder: Path) -> None:
        if settings.database is None:
            raise RemeasureError(
                "a system is asked and --database is not given; give the record of its database"
            )
        self._settings, self._log_folder = settings, Path(log_folder)
        self._stack = contextlib.ExitStack()
        self._workers: list[_Worker] = []
        self._waiting: deque[list[Call]] = deque()
        self._n_restarts = self._failed_in_a_row = 0

    def __enter__(self) -> "SystemExecutor":
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; see ``Executor.run``."""
        self._keeper = keeper
        self._groups = tasks.together(calls)
        while True:
            if reason := keeper.enough():
                raise RemeasureError(reason)
            self._give_out()
            busy = [worker for worker in self._workers if worker.group]
            if not busy:
                return
            for one, reply in adapter.receive([worker.adapter for worker in busy]):
                self._came(next(worker for worker in busy if worker.adapter is one), reply)

    # -- who does what -------------------------------------------------------------------------------------

    def _give_out(self) -> None:
        """Give work to everybody who has none."""
        while not self._workers or any(not worker.group for worker in self._workers):
            group = self._next()
            if group is None:
                return
            before = self._before(group[0])
            if before is None:
                self._not_sent(group)
                continue
            if not self._workers:
                self._start(tasks.task_of(group[0])["do"])
            worker = next(worker for worker in self._workers if not worker.group)
            worker.group, worker.before, worker.most = deque(group), before, tasks.MOST_QUERIES
            self._send(worker)

    def _next(self) -> list[Call] | None:
        """Return work that can be done now: of a conversation that somebody is at nothing."""
        open_groups = [*(worker.group for worker in self._workers), *self._waiting]
        open_ids = {call.custom_id for group in open_groups for call in group}
        for group in self._waiting:
            if group[0].after not in open_ids:
                self._waiting.remove(group)
                return group
        for group in self._groups:
            if group[0].after not in open_ids:
                return group
            self._waiting.append(group)
            open_ids.update(call.custom_id for call in group)
        return None

    def _before(self, call: Call) -> "_Before | None":
        """Return what a turn goes on from; null where the turn before has no answer."""
        if call.after is None:
            return _Before()
        entry = self._keeper.kept(call.after)
        if entry is None or entry.status not in _GOES_ON:
            return None
        return _Before().then(_previous_question(call), entry.text or "", entry.raw, entry.trace)

    def _not_sent(self, group: "list[Call] | deque[Call]") -> None:
        for call in group:
            self._keeper.keep(
                JournalEntry(
                    key=call.key,
                    custom_id=call.custom_id,
                    status="not_sent",
                    text=None,
                    error=EARLIER_FAILED,
                    attempts=0,
                    seconds=0.0,
                )
            )

    # -- one command after the other -----------------------------------------------------------------------

    def _send(self, worker: "_Worker") -> None:
        """Give the next command of a worker's group."""
        call, thinking = worker.group[0], self._thinking_default
        task = tasks.task_of(call)
        worker.asked = [call]
        if task["do"] == "search":
            worker.asked = list(worker.group)[: worker.most]
            command = tasks.search(worker.asked)
        elif task["do"] == "answer":
            command = tasks.answer(call, thinking)
        else:
            command = tasks.converse(call, worker.before.carry, thinking)
        for asked in worker.asked:
            self._keeper.sent(asked.key)
        worker.n_sent += 1
        worker.adapter.send(command, self._settings.case_timeout_s)

    def _came(self, worker: "_Worker", reply: dict[str, Any] | Lost) -> None:
        """Keep what a reply says, and go on."""
        seconds = time.monotonic() - worker.adapter.began
        if isinstance(reply, Lost):
            self._restart(worker, reply)
            if len(worker.asked) > 1:  # which of them it was, each says alone
                worker.most = 1
                self._send(worker)
                return
            outcomes = [replying.failed(reply.kind, reply.message, seconds, before=worker.before.turns)]
        else:
            outcomes = self._outcomes(worker, reply, seconds)
            again = outcomes[0].kind in _PASSING and worker.n_sent <= len(_WAITS_S)
            if again and len({outcome.kind for outcome in outcomes}) == 1:
                self._check_servers()
                time.sleep(_WAITS_S[worker.n_sent - 1])
                self._send(worker)
                return
        self._keep(worker, outcomes)

    def _outcomes(self, worker: "_Worker", reply: dict[str, Any], seconds: float) -> list[Answered]:
        task = tasks.task_of(worker.asked[0])
        if not reply["ok"] and reply.get("kind") in ("fatal", "bad_filter"):
            said = replying.failed("fatal", reply.get("error"), seconds).error.partition(": ")[2]
            what = f"filter {task.get('filter')!r}: {said}; correct `filter` of the study in the run"
            if reply["kind"] == "fatal":
                what = f"{said}; {AGAIN}"
            raise RemeasureError(f"system {self._settings.adapter}: {what}")
        if task["do"] != "search":
            return [replying.of_answer(reply, seconds, worker.before.turns)]
        n, share = len(worker.asked), seconds / len(worker.asked)
        if not reply["ok"]:
            return [replying.failed(str(reply.get("kind")), reply.get("error"), share)] * n
        results = reply.get("results")
        if not isinstance(results, list) or len(results) != n:
            said = f"the adapter gave {len(results) if isinstance(results, list) else 'no'} results for {n} queries"
            return [replying.failed("server_error", said, share)] * n
        found = [replying.of_search(one, task["limit"], share) for one in results]
        if odd := next((one for one in found if one.kind == "bad_filter"), None):
            raise RemeasureError(f"filter {task.get('filter')!r}: {odd.error}; correct `filter` of the study")
        return found

    def _keep(self, worker: "_Worker", outcomes: list[Answered]) -> None:
        for call, outcome in zip(worker.asked, outcomes, strict=True):
            self._keeper.keep(self._entry(call, outcome, worker.n_sent))
            worker.group.popleft()
            self._count(call, outcome)
        last = outcomes[-1]
        worker.n_sent = 0
        if worker.group and tasks.task_of(worker.group[0])["do"] == "converse":
            if last.status not in _GOES_ON:
                self._not_sent(worker.group)
                worker.group.clear()
                return
            question = tasks.conversation(worker.asked[0])[-1].text
            worker.before = worker.before.then(question, last.text or "", last.carry)
        if worker.group:
            if reason := self._keeper.enough():
                raise RemeasureError(reason)
            self._send(worker)

    def _entry(self, call: Call, outcome: Answered, n_sent: int) -> JournalEntry:
        return JournalEntry(
            key=call.key,
            custom_id=call.custom_id,
            status=outcome.status,
            text=outcome.text,
            finish=outcome.finish,
            usage=replying.usage(outcome.trace),
            error=outcome.error,
            attempts=n_sent,
            seconds=outcome.trace.seconds,
            server=self._server,
            raw=outcome.carry,
            trace=outcome.trace,
        )

    def _count(self, call: Call, outcome: Answered) -> None:
        if outcome.kind is None:
            self._n_restarts = self._failed_in_a_row = 0
            return
        log.warning("request %s failed: %s", call.custom_id, outcome.error)
        self._failed_in_a_row = self._failed_in_a_row + 1 if outcome.kind in _OUTAGE else 0
        self._check_servers()
        if self._failed_in_a_row >= _FAILED_IN_A_ROW:
            raise RemeasureError(
                f"system {self._settings.adapter}: {_FAILED_IN_A_ROW} questions failed one after the other, the "
                f"last ({call.custom_id!r}) with {outcome.error}; repair the cause and {AGAIN}"
            )

    def _check_servers(self) -> None:
        if reason := self._models.died():
            raise RemeasureError(f"{reason}; {AGAIN}")

    # -- starting ------------------------------------------------------------------------------------------

    def _start(self, do: str) -> None:
        """Start models and adapters; the answerer only where answers are wanted."""
        settings = self._settings
        facts = database.read(Path(settings.database))
        answerer = None if do == "search" else settings.answerer
        if do != "search" and answerer is None:
            raise RemeasureError(
                f"system {settings.adapter}: is to {do} and has no `answerer`; give it one, or take the arm away"
            )
        parts = {"embedder": settings.embedder, "reranker": settings.reranker, "answerer": answerer}
        self._thinking_default = answerer.way.thinking_default if answerer else None
        self._models = self._stack.enter_context(models.opened(parts, settings.vector_dim, self._log_folder))
        self._folder = facts.folder
        for number in range(settings.concurrency):
            log_path = self._log_folder / ("adapter.log" if not number else f"adapter{number + 1}.log")
            log_path.unlink(missing_ok=True)
            worker = _Worker(number, log_path)
            self._stack.callback(worker.stop)
            self._workers.append(worker)
        for worker in self._workers:
            self._open(worker)

    def _open(self, worker: "_Worker") -> None:
        """Start an adapter and open the database in it, read only.

        Raises:
            RemeasureError: it does not start, or the database is not what was configured.
        """
        settings, endpoints = self._settings, self._models.endpoints
        worker.start(settings, self._models)
        command = endpoints[worker.number % len(endpoints)] | {
            "do": "open",
            "database": str(Path(self._folder).absolute()),
            "create": False,
            "options": settings.options,
        }
        try:
            told = worker.adapter.ask({"do": "describe"}, READY_LIMIT_S)
            reply = worker.adapter.ask(command, READY_LIMIT_S) if told["ok"] else told
        except Lost as lost:
            reply = {"ok": False, "error": f"{lost}; its log ends: {model_server.log_end(worker.log_path)}"}
        if not reply["ok"]:
            raise RemeasureError(
                f"system {settings.adapter}: cannot open {self._folder}: {reply.get('error')}; repair the cause "
                f"and {AGAIN}"
            )
        database.check_stamp(
            reply.get("stamp"), settings.embedder.served_name, settings.vector_dim, self._folder
        )
        versions = replying.versions(told)
        said = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        self._server = "; ".join(filter(None, (f"{settings.adapter} ({said})", self._models.description)))

    def _restart(self, worker: "_Worker", lost: Lost) -> None:
        """Start an adapter again that ended or had to be ended.

        Raises:
            RemeasureError: it was started too often.
        """
        worker.stop()
        self._check_servers()
        if lost.kind != "timeout":
            self._n_restarts += 1
        if self._n_restarts > MOST_RESTARTS:
            first = worker.asked[0].custom_id
            failure = replying.failed(lost.kind, lost.message, 0.0, before=worker.before.turns)
            self._keeper.keep(self._entry(worker.asked[0], failure, worker.n_sent))
            raise RemeasureError(
                f"system {self._settings.adapter}: {lost} at request {first!r}, started {MOST_RESTARTS} times "
                f"again without an answer; its log {worker.log_path} ends: "
                f"{model_server.log_end(worker.log_path)}; repair the cause and {AGAIN}"
            )
        self._open(worker)


class _Before:
    """How a live conversation went so far."""

    def __init__(self, turns: tuple[Turn, ...] = (), carry: Any = None) -> None:
        self.turns, self.carry = turns, carry

    def then(self, question: str, answer: str, carry: Any, trace: Any = None) -> "_Before":
        """Return it with one more turn; what was before that one says its trace, where it comes from a journal."""
        earlier = trace.before if isinstance(trace, Trace) else self.turns
        asked = (Turn(speaker="user", text=question), Turn(speaker="agent", text=answer))
        return _Before((*earlier, *asked), carry)


def _previous_question(call: Call) -> str:
    return tasks.conversation(call)[-2].text


class _Worker:
    """An adapter and what it is at."""

    adapter: Adapter

    def __init__(self, number: int, log_path: Path) -> None:
        self.number, self.log_path = number, log_path
        self.group: deque[Call] = deque()
        self.asked: list[Call] = []
        self.before = _Before()
        self.most = tasks.MOST_QUERIES
        self.n_sent = 0
        self._running = contextlib.ExitStack()

    def start(self, settings: SystemSettings, reached: models.Models) -> None:
        """Start the adapter."""
        self.adapter = self._running.enter_context(
            adapter.started(
                settings.adapter, settings.environment, reached.keys, self.log_path, reached.clean
            )
        )

    def stop(self) -> None:
        """End the adapter with all that it started."""
        self._running.close()
