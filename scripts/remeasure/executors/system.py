"""Questions answered by a system under test through its adapter."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from remeasure.errors import RemeasureError
from remeasure.executors import Call, Keeper, SystemSettings
from remeasure.records import JournalEntry
from remeasure.systems import adapter, conversing, database, models, replying, tasks
from remeasure.systems.adapter import Lost
from remeasure.systems.conversing import GOES_ON, Before
from remeasure.systems.replying import Answered
from remeasure.systems.session import AGAIN, Session, What

log = logging.getLogger("remeasure.system")
MOST_RESTARTS = 3
"""How often an adapter that ended is started again, without an answer in between."""
# Failures that pass by themselves: so often is such a question asked in all, after these waits.
_PASSING = ("connection", "server_error")
_WAITS_S = (1.0, 2.0)
# So many failures of these kinds in a row, nothing answered between, are an outage and not bad luck.
_OUTAGE = (*_PASSING, "timeout")
_FAILED_IN_A_ROW = 25


class _Worker:
    """An adapter and what it is at."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.group: deque[Call] = deque()
        """What is not finished."""
        self.asked: list[Call] = []
        """What is under way."""
        self.before = Before()
        self.most = tasks.MOST_QUERIES
        self.n_sent = 0


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
            raise RemeasureError("a system is asked without --database; give the record of its database")
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
            self._check_money()
            self._give_out()
            busy = {worker.session.adapter: worker for worker in self._workers if worker.group}
            if not busy:
                return
            for one, reply in adapter.receive(list(busy)):
                self._came(busy[one], reply)

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
        """Return work that can be done now; conversations that share turns wait for each other."""
        unfinished = [*(worker.group for worker in self._workers), *self._waiting]
        ids = {call.custom_id for group in unfinished for call in group}
        for group in self._waiting:
            if group[0].after not in ids:
                self._waiting.remove(group)
                return group
        for group in self._groups:
            if group[0].after not in ids:
                return group
            self._waiting.append(group)
            ids.update(call.custom_id for call in group)
        return None

    def _before(self, call: Call) -> Before | None:
        """Return what a turn goes on from; null where the turn before has no answer."""
        if call.after is None:
            return Before()
        return conversing.from_journal(self._keeper.kept(call.after), tasks.conversation(call)[-2].text)

    def _not_sent(self, group: Iterable[Call]) -> None:
        for call in group:
            self._keeper.keep(conversing.not_sent(call.key, call.custom_id))

    def _check_money(self) -> None:
        if reason := self._keeper.enough():
            raise RemeasureError(reason)

    # -- one command after the other -----------------------------------------------------------------------

    def _send(self, worker: _Worker) -> None:
        """Give the next command of a worker's group."""
        call = worker.group[0]
        worker.asked = [call]
        match tasks.task_of(call)["do"]:
            case "search":
                worker.asked = list(worker.group)[: worker.most]
                command = tasks.search(worker.asked)
            case "answer":
                command = tasks.answer(call, self._thinking_default)
            case _:
                command = tasks.converse(call, worker.before.carry, self._thinking_default)
        for asked in worker.asked:
            self._keeper.sent(asked.key)
        worker.n_sent += 1
        worker.session.adapter.send(command, self._settings.case_timeout_s)

    def _came(self, worker: _Worker, reply: dict[str, Any] | Lost) -> None:
        """Keep what a reply says, and go on."""
        seconds = time.monotonic() - worker.session.adapter.began
        if isinstance(reply, Lost):
            self._lost(worker, reply, seconds)
            return
        outcomes = self._outcomes(worker, reply, seconds)
        kinds = {outcome.kind for outcome in outcomes}
        if len(kinds) == 1 and kinds <= set(_PASSING) and worker.n_sent <= len(_WAITS_S):
            worker.session.check_servers()
            time.sleep(_WAITS_S[worker.n_sent - 1])
            self._send(worker)
            return
        self._keep(worker, outcomes)

    def _lost(self, worker: _Worker, lost: Lost, seconds: float) -> None:
        """Start an adapter again that ended or had to be ended; the question is not asked again.

        Raises:
            RemeasureError: it was started too often; the failure is kept before.
        """
        failure = replying.failed(lost.kind, lost.message, seconds, before=worker.before.turns)
        worker.session.stop()
        worker.session.check_servers()
        if lost.kind != "timeout":
            self._n_restarts += 1
        if self._n_restarts > MOST_RESTARTS:
            self._keeper.keep(self._entry(worker, worker.asked[0], failure))
            raise RemeasureError(
                f"system {self._settings.adapter}: {lost} at request {worker.asked[0].custom_id!r}, started "
                f"{MOST_RESTARTS} times again without an answer; {worker.session.log_end()}; repair the "
                f"cause and {AGAIN}"
            )
        worker.session.start()
        if len(worker.asked) > 1:  # which of them it was, each says alone
            worker.most = 1
            self._send(worker)
        else:
            self._keep(worker, [failure])

    def _outcomes(self, worker: _Worker, reply: dict[str, Any], seconds: float) -> list[Answered]:
        task, asked = tasks.task_of(worker.asked[0]), worker.asked
        if not reply["ok"] and reply.get("kind") == "fatal":
            said = replying.reason(reply)
            raise RemeasureError(f"system {self._settings.adapter}: {said}; repair the cause and {AGAIN}")
        if task["do"] == "search":
            outcomes = replying.of_searches(reply, len(asked), task["limit"], seconds)
        else:
            outcomes = [replying.of_answer(reply, seconds, worker.before.turns)]
        if bad := next((one for one in outcomes if one.kind == "bad_filter"), None):
            raise RemeasureError(
                f"system {self._settings.adapter}: filter {task.get('filter')!r}: {bad.error}; correct "
                "`filter` of the study in the run"
            )
        return outcomes

    def _keep(self, worker: _Worker, outcomes: list[Answered]) -> None:
        """Keep outcomes, then give the rest of the group."""
        for call, outcome in zip(worker.asked, outcomes, strict=True):
            self._keeper.keep(self._entry(worker, call, outcome))
            worker.group.popleft()
            self._count(worker, call, outcome)
        last, worker.n_sent = outcomes[-1], 0
        if worker.group and tasks.task_of(worker.group[0])["do"] == "converse":
            if last.status not in GOES_ON:
                self._not_sent(worker.group)
                worker.group.clear()
                return
            question = tasks.conversation(worker.asked[0])[-1].text
            worker.before = worker.before.then(question, last.text, last.carry)
        if worker.group:
            self._check_money()
            self._send(worker)

    def _entry(self, worker: _Worker, call: Call, outcome: Answered) -> JournalEntry:
        return JournalEntry(
            key=call.key,
            custom_id=call.custom_id,
            status=outcome.status,
            text=outcome.text,
            finish=outcome.finish,
            usage=replying.usage(outcome.trace),
            error=outcome.error,
            attempts=worker.n_sent,
            seconds=outcome.trace.seconds,
            server=self._description(worker),
            raw=outcome.carry,
            trace=outcome.trace,
        )

    def _description(self, worker: _Worker) -> str:
        versions = sorted(worker.session.versions.items())
        said = ", ".join(f"{name} {version}" for name, version in versions)
        return "; ".join(filter(None, (f"{self._settings.adapter} ({said})", self._models.description)))

    def _count(self, worker: _Worker, call: Call, outcome: Answered) -> None:
        if outcome.kind is None:
            self._n_restarts = self._failed_in_a_row = 0
            return
        log.warning("request %s failed: %s", call.custom_id, outcome.error)
        self._failed_in_a_row = self._failed_in_a_row + 1 if outcome.kind in _OUTAGE else 0
        worker.session.check_servers()
        if self._failed_in_a_row >= _FAILED_IN_A_ROW:
            raise RemeasureError(
                f"system {self._settings.adapter}: {_FAILED_IN_A_ROW} questions failed one after the "
                f"other, the last ({call.custom_id!r}) with {outcome.error}; repair the cause and {AGAIN}"
            )

    # -- starting ------------------------------------------------------------------------------------------

    def _start(self, do: str) -> None:
        """Start models and adapters; the answerer only where answers are wanted."""
        settings = self._settings
        facts = database.read(Path(settings.database))
        # Before anything is started; the database itself is asked when it is open.
        database.check_stamp(
            facts.stamp, settings.embedder.served_name, settings.vector_dim, settings.database
        )
        answerer = None if do == "search" else settings.answerer
        if do != "search" and answerer is None:
            raise RemeasureError(
                f"system {settings.adapter}: is to {do} and has no `answerer`; give it one, or take the "
                "arm out"
            )
        parts = {"embedder": settings.embedder, "reranker": settings.reranker, "answerer": answerer}
        self._thinking_default = answerer.way.thinking_default if answerer else None
        self._models = self._stack.enter_context(models.opened(parts, settings.vector_dim, self._log_folder))
        what = What(
            adapter=settings.adapter,
            environment=settings.environment,
            folder=facts.folder,
            create=False,
            options=settings.options,
            served_name=settings.embedder.served_name,
            vector_dim=settings.vector_dim,
        )
        for number in range(settings.concurrency):
            log_path = self._log_folder / ("adapter.log" if not number else f"adapter{number + 1}.log")
            session = Session(what, self._models, log_path, number)
            self._stack.callback(session.stop)
            session.start()
            self._workers.append(_Worker(session))
