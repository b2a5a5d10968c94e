"""The words of the chat protocol: what a request may say, what a completion is, how a request is refused."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from remeasure.embedded import chat_tools
from remeasure.embedded.chat_tools import TOOL_WORDS, Tool, ToolCall, ToolChoice, Words

# Words that only some engines understand (``Engine.more_words``), ``TOOL_WORDS`` beside them.
MORE_WORDS = ("response_format", "logprobs", "top_logprobs")


class BadRequest(Exception):
    """A request that cannot be answered as it is; becomes a 400 with this text."""


class ImageUrl(Words, kw_only=True):
    """Where the bytes of an image are: only ``data:`` addresses are read."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class TextPart(Words, kw_only=True, tag_field="type", tag="text"):
    """A text block of a message."""

    text: str


class ImagePart(Words, kw_only=True, tag_field="type", tag="image_url"):
    """An image of a message."""

    image_url: ImageUrl


class Message(Words, kw_only=True):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[TextPart | ImagePart] | None = None
    """Null only beside calls of tools."""
    tool_calls: list[ToolCall] | None = None
    """Of the assistant."""
    tool_call_id: str | None = None
    """Of a tool's result: the call that it answers."""


class TemplateSwitches(Words, kw_only=True):
    """Switches of the chat template."""

    enable_thinking: bool | None = None


class TextFormat(Words, kw_only=True, tag_field="type", tag="text"):
    """Any text."""


class ObjectFormat(Words, kw_only=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class NamedSchema(Words, kw_only=True):
    """A JSON schema."""

    name: str
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class SchemaFormat(Words, kw_only=True, tag_field="type", tag="json_schema"):
    """JSON that keeps to a schema."""

    json_schema: NamedSchema


class ChatRequest(Words, kw_only=True):
    """Body of ``POST /v1/chat/completions``, as far as the embedded servers speak it."""

    model: str
    messages: list[Message]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    """The newer name of the same; only ``parse`` sees it."""
    temperature: float = 0.0
    """Greedy unless the request says otherwise."""
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    n: Literal[1] = 1
    stream: Literal[False] = False
    thinking: bool | None = None
    chat_template_kwargs: TemplateSwitches | None = None
    response_format: TextFormat | ObjectFormat | SchemaFormat | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    tools: list[Tool] = []
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None

    def more_words(self) -> list[str]:
        """Return the words of the request that not every engine understands."""
        plain = (None, False, [], "none", TextFormat())
        found = [word for word in (*MORE_WORDS, *TOOL_WORDS) if getattr(self, word) not in plain]
        used = any(message.tool_calls or message.role == "tool" for message in self.messages)
        return [*found, "tools"] if used and "tools" not in found else found

    def thinks(self) -> bool:
        """Whether the request switches thinking on; without a word about it the embedded models do not."""
        said = self.chat_template_kwargs.enable_thinking if self.chat_template_kwargs else None
        return bool(self.thinking if said is None else said)

    def stops(self) -> tuple[str, ...]:
        """Return the stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


@dataclass(frozen=True)
class Completion:
    """What a model answers; token counts by its own tokenizer."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Literal["stop", "length", "tool_calls"] = "stop"
    logprobs: list[dict[str, Any]] | None = None
    """Log-probability of each token in the protocol's form, where they were asked for."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools that are to be called before there is an answer; the text is then empty."""


class Engine(Protocol):
    """A model behind the protocol; called by one request at a time."""

    more_words: frozenset[str]
    """Which of ``MORE_WORDS`` and ``TOOL_WORDS`` it understands; others are refused by name before."""

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a request, or raise ``BadRequest``."""

    def close(self) -> None:
        """Give back what the model holds."""


def parse(body: bytes) -> ChatRequest:
    """Read a request body.

    Raises:
        BadRequest: no JSON, a missing, unknown or mistyped key (named), no messages, a number out of range.
    """
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"request body: {error}") from None
    if request.max_completion_tokens is not None:
        if request.max_tokens not in (None, request.max_completion_tokens):
            raise BadRequest("request body: max_tokens and max_completion_tokens differ; give one")
        request = msgspec.structs.replace(
            request, max_tokens=request.max_completion_tokens, max_completion_tokens=None
        )
    problems = [
        (not request.messages, "messages is empty"),
        (request.max_tokens is not None and request.max_tokens < 1, "max_tokens must be at least 1"),
        (not 0 <= request.temperature <= 2, "temperature must be between 0 and 2"),
        (request.top_p is not None and not 0 < request.top_p <= 1, "top_p must be in (0, 1]"),
        (request.top_k is not None and request.top_k < 1, "top_k must be at least 1"),
        (any(not stop for stop in request.stops()), "stop strings must not be empty"),
        (not 0 <= (request.top_logprobs or 0) <= 20, "top_logprobs must be between 0 and 20"),
        (request.top_logprobs is not None and not request.logprobs, "top_logprobs needs logprobs: true"),
        *chat_tools.problems(request.tools, request.tool_choice),
        *chat_tools.messages_problems(request.messages),
    ]
    for wrong, text in problems:
        if wrong:
            raise BadRequest(f"request body: {text}")
    return request


def image_bytes(url: str) -> bytes:
    """Return the bytes of a ``data:`` address.

    Raises:
        BadRequest: another kind of address, or not base64.
    """
    head, comma, data = url.partition(",")
    if not head.startswith("data:"):
        raise BadRequest(
            f"image_url: {url[:40]!r} is not a data: address; this server opens neither files nor network"
        )
    if not comma or not head.endswith(";base64"):
        raise BadRequest("image_url: a data: address must be base64 (data:<type>;base64,<data>)")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"image_url: not base64: {error}") from None


def texts_of(message: Message) -> list[str]:
    """Return the text blocks of a message in order."""
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content or () if isinstance(part, TextPart)]


def images_of(message: Message) -> list[bytes]:
    """Return the images of a message in order; errors as in ``image_bytes``."""
    if isinstance(message.content, str):
        return []
    return [image_bytes(part.image_url.url) for part in message.content or () if isinstance(part, ImagePart)]
