"""What a request asks of the evidence reader: question, conversation, tools, and what was found so far.

Both systems' wordings are understood, since nothing is read but the shape of it:

- A tool is known by how its name ends: ``search``, ``cite``, ``execute_code``.
- A result of a search is a list of chunks. Each begins with a line ``[id]`` with a rank, a score or
  ``Source: "title"`` behind it, or with a line ``Source:`` below it; ``Type:`` and the like may follow. What
  stands behind ``Content:`` (or, without it, the rest) is the chunk's text. A line of several words in
  brackets between two chunks is a heading of those below it, as compaction writes them, and part of neither.
- What was called since the last message of the user belongs to its question; what was shown before it, under
  the same form, is evidence too.
- A system message that speaks of a line ``ANSWER:`` wants numbers to end in one.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from remeasure.embedded.chat import BadRequest, ChatRequest, Message, images_of, texts_of
from remeasure.embedded.chat_tools import NamedTool

KINDS = ("search", "cite", "execute_code")
# An id may hold spaces, but then something must stand behind it: texts have lines like "[1]" too.
_HEAD = re.compile(
    r"^\[([^\]\n]{1,300})\](?: \[rank \d[^\n]*| \(score: [^\n]*| Source: [^\n]*|(?=\nSource: ))$",
    re.MULTILINE,
)
_SOURCE = re.compile(r'Source: (?:"([^"\n]*)"|([^\n]*))')
_LABEL = re.compile(r"^(?:Source|Type|Title|Figure caption[^:\n]*): .*$", re.MULTILINE)
_RULE = re.compile(r"\n\s*---\s*$")
_HEADING = re.compile(r"\n[ \t]*\n\[\S+[ \t][^\n]*\]\s*$")
MAX_RESULT_CHARS = 200_000


@dataclass(frozen=True)
class Chunk:
    """A piece of a document, as a search showed it."""

    chunk_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool with its result."""

    kind: str
    """How its name ends (``KINDS``); empty for another tool."""
    arguments: dict[str, Any]
    result: str | None
    """Null where there is none yet."""

    @property
    def query(self) -> str:
        """What was searched for."""
        found = self.arguments.get("query")
        return found if isinstance(found, str) else ""


@dataclass(frozen=True)
class Asked:
    """A request taken apart."""

    question: str
    before: tuple[tuple[str, str], ...]
    """Earlier turns: role (user or assistant) and text."""
    tools: dict[str, str]
    """Kind to the name of the tool that is offered."""
    must_call: bool
    """Whether plain text is no reply."""
    calls: tuple[Call, ...]
    """Since the question."""
    shown_before: tuple[Chunk, ...]
    """Evidence of earlier questions that is still shown."""
    wants_number: bool

    def results(self, kind: str) -> list[Call]:
        """Return the calls of one kind since the question."""
        return [call for call in self.calls if call.kind == kind]

    def earlier(self, role: str) -> list[str]:
        """Return the texts of one side before the question, oldest first."""
        return [text for who, text in self.before if who == role]


def understand(request: ChatRequest) -> Asked:
    """Take a request apart.

    Raises:
        BadRequest: no question, or an image.
    """
    if any(images_of(message) for message in request.messages):
        raise BadRequest("messages: this model reads text only, the request has an image")
    places = [i for i, message in enumerate(request.messages) if message.role == "user"]
    question = "\n".join(texts_of(request.messages[places[-1]])).strip() if places else ""
    if not question:
        raise BadRequest("messages: there is no question; the last message of the user must have a text")
    earlier, since = request.messages[: places[-1]], request.messages[places[-1] + 1 :]
    told = "\n".join(
        text for message in request.messages if message.role == "system" for text in texts_of(message)
    )
    return Asked(
        question=question,
        before=tuple(
            (message.role, text)
            for message in earlier
            if message.role in ("user", "assistant") and (text := "\n".join(texts_of(message)).strip())
        ),
        tools=_offered(request),
        must_call=request.tool_choice == "required" or isinstance(request.tool_choice, NamedTool),
        calls=tuple(_calls(since)),
        shown_before=tuple(
            chunk
            for call in _calls(earlier)
            if call.kind == "search"
            for chunk in chunks_of(call.result or "")
        ),
        wants_number="ANSWER:" in told,
    )


def _offered(request: ChatRequest) -> dict[str, str]:
    choice = request.tool_choice
    if choice == "none":
        return {}
    names = [tool.function.name for tool in request.tools]
    if isinstance(choice, NamedTool):
        names = [choice.function.name]
    found = {kind_of(name): name for name in reversed(names)}
    return {kind: name for kind, name in found.items() if kind}


def kind_of(name: str) -> str:
    """Return what a tool is for by how its name ends; empty where that says nothing."""
    return next((kind for kind in KINDS if name == kind or name.endswith(f"_{kind}")), "")


def _calls(messages: list[Message]) -> list[Call]:
    results = {m.tool_call_id: "\n".join(texts_of(m)) for m in messages if m.role == "tool"}
    return [
        Call(kind_of(call.function.name), _arguments(call.function.arguments), results.get(call.id))
        for message in messages
        for call in message.tool_calls or ()
    ]


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call; a system may have kept one that cannot be read."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def chunks_of(result: str) -> list[Chunk]:
    """Return the chunks that a result of a search shows, in its order; none where it shows none."""
    result = result[:MAX_RESULT_CHARS]
    heads = list(_HEAD.finditer(result))
    starts = [*(head.start() for head in heads), len(result)]
    return [
        _chunk(head, result[start:end]) for head, (start, end) in zip(heads, pairwise(starts), strict=True)
    ]


def _chunk(head: re.Match, block: str) -> Chunk:
    block = _RULE.sub("", _HEADING.sub("", block.rstrip()))
    said, label, text = block.partition("\nContent:")
    if not label:
        said, _, text = block.partition("\n")
        lines = text.split("\n")
        while lines and _LABEL.fullmatch(lines[0]):
            said += "\n" + lines.pop(0)
        text = "\n".join(lines)
    source = _SOURCE.search(said)
    title = (source[1] if source[1] is not None else source[2]) if source else ""
    return Chunk(chunk_id=head[1], title=title.strip(), text=text.strip())


@dataclass
class Evidence:
    """Chunks by id, in the order in which they were shown first."""

    chunks: dict[str, Chunk] = field(default_factory=dict)

    def add(self, found: list[Chunk]) -> None:
        """Add chunks; of a chunk that was shown twice the longer text is kept."""
        for chunk in found:
            known = self.chunks.get(chunk.chunk_id)
            if known is None or len(chunk.text) > len(known.text):
                self.chunks[chunk.chunk_id] = chunk
