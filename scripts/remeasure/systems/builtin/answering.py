"""A question is answered by a model that searches and cites, within budgets; all that it does is counted."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from remeasure.systems.builtin import tools
from remeasure.systems.builtin.citing import bare, repaired
from remeasure.systems.builtin.compacting import shown
from remeasure.systems.builtin.database import Row
from remeasure.systems.builtin.failing import Failed
from remeasure.systems.builtin.options import Options

Message = dict[str, Any]
# A case without connection to a server says nothing about the model: it fails and is asked again.
_NOT_THE_MODELS = ("connection", "timeout", "fatal", "bad_filter")


@dataclass(kw_only=True)
class Work:
    """What was done for one question so far."""

    messages: list[Message] = field(default_factory=list)
    """Of this turn after the question: calls, results, the answer."""
    evidence: list[int] = field(default_factory=list)
    """Which of them are results of a search, one that found nothing or was refused included."""
    retrieved: dict[str, Row] = field(default_factory=dict)
    cited: dict[str, Row] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)
    """What was searched for; a text that was sent twice counts once, a search that failed does not."""
    searched_at: int = 0
    """Number of the reply that asked for the last search; 0: none did."""
    declared_at: int = 0
    """Number of the reply that last said what the answer rests on."""
    rests_on_some: bool = False
    """Whether anything was named since the last search."""
    requests: list[dict[str, int]] = field(default_factory=list)
    calls: Counter = field(default_factory=Counter)
    events: Counter = field(default_factory=Counter)

    @property
    def status(self) -> str:
        """What the answer rests on: what was named after the last search, by a reply that saw its results.

        Source:
            RAG card 2.4; as haiku.rag 0.77.0 has it, so that the word means the same of both systems: a
            search that finds nothing is evidence too, and naming nothing does not take back what was named.
        """
        if self.declared_at <= self.searched_at:
            return "missing"
        return "grounded" if self.rests_on_some else "ungrounded"

    def searched(self, query: str) -> None:
        """Note that the model is shown what a search found."""
        self.searched_at = len(self.requests)
        self.queries.add(query)
        self.events["search_keys"] = len(self.queries)

    def declared(self, names_some: bool) -> None:
        """Note that the model said what the answer rests on."""
        if self.searched_at > self.declared_at:
            self.rests_on_some = False
        self.rests_on_some |= names_some
        self.declared_at = len(self.requests)

    def trace(self) -> dict[str, Any]:
        """Return it as ``records.Trace`` has it."""
        return {
            "cited": list(dict.fromkeys(row.uri for row in self.cited.values())),
            "cited_chunks": list(self.cited),
            "searched": list(dict.fromkeys(row.uri for row in self.retrieved.values())),
            "citation_status": self.status,
            "requests": self.requests,
            "tools": dict(self.calls),
            "events": dict(self.events),
        }


class Answerer:
    """Answers one question after the other.

    Args:
        ask: sends a request's messages, tools and choice of tools and returns the reply.
        search: from a query and a limit to chunks, best first.
        look_up: from ids to chunks that the database has.
        budget: ``Options``.
    """

    def __init__(
        self,
        ask: Callable[[list[Message], list[dict[str, Any]], str], Awaitable[dict[str, Any]]],
        search: Callable[[str, int], Awaitable[list[Row]]],
        look_up: Callable[[list[str]], Awaitable[list[Row]]],
        budget: Options,
    ) -> None:
        self._ask, self._search, self._look_up, self._budget = ask, search, look_up, budget

    async def answer(self, before: list[Message], work: Work) -> tuple[str, str]:
        """Ask the model until it answers.

        Args:
            before: what every request begins with, the question last.
            work: gets what is done, also where there is no answer in the end.

        Returns:
            The answer, empty where the model said nothing, and how it ended: stop, length.

        Raises:
            Failed: no reply that can be used, or a model that goes on asking for tools.
        """
        more = 0
        while True:
            offered, choice = self._offered(len(work.requests), more)
            if choice != "auto" or len(offered) == 1:
                work.events["request_limit_reached"] = 1
            reply = await self._ask([*before, *work.messages], offered, choice)
            message, finish = _read(reply, work)
            calls = _calls(message)
            text = message.get("content") if isinstance(message.get("content"), str) else ""
            if not calls or (choice == "none" and text.strip()):
                work.messages.append({"role": "assistant", "content": text})
                if not text.strip():
                    work.events["null_answers"] += 1
                return text, finish
            if choice == "none":
                n = len(work.requests)
                raise Failed("request_limit", f"after {n} requests the model still asked for tools")
            more += len(offered) == 1
            work.messages.append(_with_calls(text, calls))
            for call in calls:
                await self._run(call, {tool["function"]["name"] for tool in offered}, work)

    def _offered(self, n_sent: int, more: int) -> tuple[list[dict[str, Any]], str]:
        """Return the tools of the next request, and whether the model may choose one."""
        if n_sent < self._budget.max_requests:
            return [tools.SEARCH, tools.CITE], "auto"
        return [tools.CITE], "auto" if more < self._budget.more_requests else "none"

    async def _run(self, call: tools.Call, offered: set[str], work: Work) -> None:
        """Run a call; its result, or why there is none, is the next message."""
        try:
            given = tools.arguments(call)
        except ValueError as error:
            work.events["unknown_tools"] += 1
            _reply(work, call, f"Error: {error}")
            return
        work.calls[call.name] += 1
        if call.name not in offered:
            work.events["rejected_searches"] += 1
            _reply(work, call, "Error: no requests are left to search; cite and answer with what was found.")
        elif isinstance(given, tools.Search):
            await self._run_search(call, given, work)
        else:
            await self._run_cite(call, given, work)

    async def _run_search(self, call: tools.Call, given: tools.Search, work: Work) -> None:
        if work.calls["search"] > self._budget.max_searches:
            work.events["rejected_searches"] += 1
            work.evidence.append(len(work.messages))
            text = f"Error: all {self._budget.max_searches} searches are used; answer with what was found."
            _reply(work, call, text)
            return
        try:
            rows = await self._search(given.query, given.limit or self._budget.search_limit)
        except Failed as error:
            if error.kind in _NOT_THE_MODELS:
                raise
            work.events["tool_errors"] += 1
            _reply(work, call, f"Error: the search failed: {error}")
            return
        work.searched(given.query)
        work.evidence.append(len(work.messages))
        if not rows:
            work.events["empty_searches"] += 1
            _reply(work, call, "Nothing was found.")
            return
        work.retrieved.update((row.chunk, row) for row in rows)
        parts = [
            shown(row._asdict(), f" [rank {rank} of {len(rows)}]") for rank, row in enumerate(rows, start=1)
        ]
        _reply(work, call, "\n\n".join(parts))

    async def _run_cite(self, call: tools.Call, given: tools.Cite, work: Work) -> None:
        told = [bare(one) for one in given.chunk_ids]
        ids = [repaired(one, list(work.retrieved)) for one in told]
        rows = await self._look_up(ids)
        found = {row.chunk for row in rows}
        work.events["repaired_citations"] += sum(a != b for a, b in zip(told, ids, strict=True))
        work.events["unresolved_citations"] += sum(one not in found for one in ids)
        work.events = +work.events  # zeros are left out
        if told and not rows:
            work.events["tool_errors"] += 1
            _reply(work, call, "Error: these are no ids of chunks; give those in square brackets, or none.")
            return
        work.cited.update((row.chunk, row) for row in rows)
        work.declared(bool(rows))
        _reply(work, call, f"Cited: {len(rows)}." if rows else "Nothing cited.")


def _reply(work: Work, call: tools.Call, text: str) -> None:
    work.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _with_calls(text: str, calls: list[tools.Call]) -> Message:
    told = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
        for one in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": told}


def _read(reply: dict[str, Any], work: Work) -> tuple[Message, str]:
    """Return the message of a reply and how it ended; its usage is counted.

    Raises:
        Failed: it is none.
    """
    try:
        choice, usage = reply["choices"][0], reply["usage"]
        tokens = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
        message, finish = choice["message"], choice.get("finish_reason")
        right = isinstance(message, dict) and all(type(n) is int and n >= 0 for n in tokens.values())
    except (KeyError, TypeError, IndexError, AttributeError):
        right = False
    if not right:
        raise Failed("server_error", "the reply is no completion with a message and its usage")
    work.requests.append(tokens)
    if finish == "content_filter":
        raise Failed("refused", "the model's server withheld the answer (content_filter)")
    return message, "length" if finish == "length" else "stop"


def _calls(message: Message) -> list[tools.Call]:
    try:
        return tools.calls_of(message)
    except ValueError as error:
        raise Failed("server_error", f"the reply's {error}") from None
