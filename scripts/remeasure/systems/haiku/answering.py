"""Questions answered by haiku.rag's capabilities, each with all that it did."""

import dataclasses
from typing import Any

from remeasure.systems.haiku import configuration, failures, library, searching, traces
from remeasure.systems.haiku.failures import Failed

_NOT_SAMPLING = (
    "id",
    "do",
    "turns",
    "question",
    "carry",
    "compact",
    "preamble",
    "target",
    "filter",
)
"""Words of a command that are no words of sampling."""


@dataclasses.dataclass
class Host:
    """What the library calls dependencies: where it keeps its state."""

    state: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Asked:
    """One question as it is handed to the library."""

    question: str
    history: list[Any]
    state: dict[str, Any] | None
    """Of the conversation so far; null: it begins."""


def _prefix(turns: list[dict[str, str]]) -> list[Any]:
    """Return the turns before a question as messages: texts alone, without any use of tools."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    return [
        ModelRequest(parts=[UserPromptPart(content=turn["text"])])
        if turn["speaker"] == "user"
        else ModelResponse(parts=[TextPart(content=turn["text"])])
        for turn in turns
    ]


def asked(command: dict[str, Any]) -> Asked:
    """Return the question of an ``answer`` or ``converse`` command.

    Raises:
        Failed: turns do not end with a question, or what was carried over cannot be read.
    """
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    if command["do"] == "answer":
        turns = command["turns"]
        if not turns or turns[-1]["speaker"] != "user":
            raise Failed("fatal", "turns: must end with a question of the user")
        return Asked(turns[-1]["text"], _prefix(turns[:-1]), None)
    carry = command.get("carry")
    if carry is None:
        return Asked(command["question"], [], None)
    try:
        return Asked(
            command["question"], ModelMessagesTypeAdapter.validate_python(carry["history"]), carry["state"]
        )
    except (ValidationError, LookupError, TypeError) as error:
        said = failures.one_line(error)
        raise Failed("fatal", f"carry: not that of an earlier turn of this version: {said}") from error


class Answerer:
    """Answers questions with one open database."""

    def __init__(self, rag: Any, path: Any, endpoints: dict[str, Any], options: dict[str, Any]) -> None:
        self._rag, self._path, self._endpoints, self._options = rag, path, endpoints, options

    def _config(self, command: dict[str, Any]) -> Any:
        words = {name: value for name, value in command.items() if name not in _NOT_SAMPLING}
        return configuration.app_config(
            self._endpoints,
            self._options,
            preamble=command.get("preamble"),
            words=words,
            merged_code=library.is_merged(),
        )

    def _capability(self, target: str, config: Any) -> Any:
        if target not in library.arms() or target == "search":
            known = ", ".join(arm for arm in library.arms() if arm != "search")
            raise Failed("fatal", f"haiku.rag {library.versions()['haiku.rag-slim']}: no {target!r}; {known}")
        limit = {"request_limit": self._options["request_limit"]} if "request_limit" in self._options else {}
        # The connection is lent, so that no question pays for opening the database.
        return library.capability(target, config=config, rag=self._rag, db_path=self._path, **limit)

    async def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Answer ``answer`` or ``converse``; a failure comes with the trace of what went before it."""
        if self._endpoints.get("answerer") is None:
            raise Failed("fatal", "no answerer was given; this system only searches")
        question, clause = asked(command), command.get("filter")
        await searching.check_filter(self._rag, clause)
        capability = self._capability(command.get("target") or "rag", self._config(command))
        state = question.state or {
            capability.state_namespace: capability.state_type(document_filter=clause).model_dump(mode="json")
        }
        return await self._run(command, question, capability, Host(state))

    async def _run(
        self, command: dict[str, Any], question: Asked, capability: Any, host: Host
    ) -> dict[str, Any]:
        from pydantic_ai import Agent, capture_run_messages

        capabilities = [capability]
        if command.get("compact"):
            from haiku.rag.capabilities.compaction import create_capability

            capabilities.append(create_capability())
        answerer = self._endpoints["answerer"]
        with configuration.sending_key(answerer):
            agent = Agent(library.chat_model(capability.config), deps_type=Host, capabilities=capabilities)
        waits = {"timeout": answerer["timeout_s"]} if answerer.get("timeout_s") else None
        with capture_run_messages() as messages:
            try:
                result = await agent.run(
                    question.question,
                    deps=host,
                    message_history=question.history or None,
                    model_settings=waits,
                )
            except Exception as error:  # whatever a library below raises is the state of this question
                new = messages[len(question.history) :]
                return self._failed(error, self._trace(new, capability, host))
        new = result.new_messages()
        reply = {"ok": True, "text": result.output, "finish": _finish(new)}
        reply["trace"] = self._trace(new, capability, host)
        if command["do"] == "converse":
            reply["carry"] = _carried(result, host)
        return reply

    def _trace(self, messages: list[Any], capability: Any, host: Host) -> dict[str, Any]:
        state = capability.state_type.model_validate(host.state.get(capability.state_namespace) or {})
        return traces.trace_of(messages, state, capability)

    def _failed(self, error: Exception, trace: dict[str, Any]) -> dict[str, Any]:
        kind = failures.kind_of(error)
        if kind == "tool_error" and trace["events"].get("request_limit_reached"):
            # It went on to call what had been taken away.
            kind = "request_limit"
        said = f"{type(error).__name__}: {failures.one_line(getattr(error, 'message', error))}"
        return {"ok": False, "kind": kind, "error": said, "trace": trace}


def _finish(messages: list[Any]) -> str | None:
    from pydantic_ai.messages import ModelResponse

    replies = [message for message in messages if isinstance(message, ModelResponse)]
    return replies[-1].finish_reason if replies else None


def _carried(result: Any, host: Host) -> dict[str, Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return {
        "history": ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json"),
        "state": host.state,
    }
