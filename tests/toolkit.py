"""A scripted loop over tool calls, as a system would run it, and an encoder that counts words."""

import json

from remeasure.embedded.case_words import words
from remeasure.embedded.chat import parse


class WordEncoder:
    """Scores a pair by the share of the first text's words in the second, from -5 to 5."""

    def __init__(self) -> None:
        self.n_scored = 0

    def score(self, text, other):
        self.n_scored += 1
        wanted = {*words(text)}
        share = len(wanted & {*words(other)}) / max(1, len(wanted))
        return 10 * share - 5, len(words(text)) + len(words(other))

    def count(self, text):
        return len(text.split())

    def limited(self, text, max_tokens):
        said = text.split(" ")
        if max_tokens is None or len(said) <= max_tokens:
            return text, len(said), False
        return " ".join(said[:max_tokens]), max_tokens, True


def tool(name, **properties):
    parameters = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def body(messages, tools=(), **more):
    told = {"model": "m", "messages": list(messages), **more}
    return parse(json.dumps(told | ({"tools": list(tools)} if tools else {})).encode())


class Loop:
    """Answers one conversation; ``results`` gives what each kind of tool returns."""

    def __init__(self, engine, tools, **results) -> None:
        self.engine, self.tools, self.results = engine, tools, results
        self.messages: list[dict] = []
        self.calls: list[tuple[str, dict]] = []

    def ask(self, question, system=None, most=12, **more):
        """Return the answer to a question; the conversation goes on."""
        if system and not self.messages:
            self.messages.append({"role": "system", "content": system})
        self.messages.append({"role": "user", "content": question})
        for _ in range(most):
            reply = self.engine.answer(body(self.messages, self.tools, **more))
            if not reply.tool_calls:
                self.messages.append({"role": "assistant", "content": reply.text})
                return reply
            (call,) = reply.tool_calls
            arguments = json.loads(call.function.arguments)
            kind = call.function.name
            self.calls.append((kind, arguments))
            made = {"id": call.id, "type": "function"}
            made["function"] = {"name": kind, "arguments": call.function.arguments}
            self.messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
            result = self.results[kind.rpartition("_")[2]](arguments)
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        raise AssertionError(f"no answer after {most} requests: {self.calls}")
