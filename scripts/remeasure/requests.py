"""Requests: the neutral body, the identity of an answer, the words that an endpoint understands."""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from remeasure import images, jsonl
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.fingerprint import SCRIPTS
from remeasure.records import ImageRef, Record, Request

# Part of every answer's identity: raise it when the meaning of a neutral word changes.
PROTOCOL_VERSION = 1
DIALECTS = SCRIPTS.parent / "config" / "dialects.yaml"
CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_LENGTH, _HASH_LENGTH = 64, 16
# Ids of questions leave room for the suffix of a further question about an answer (`--refusal`).
_QUESTION_ID_LENGTH = 50


class Body(Record, kw_only=True, omit_defaults=True):
    """The neutral body of a request: what is asked, in no endpoint's own words."""

    model: str
    """Slug of the logical model; the name that a server knows is put in while sending."""
    messages: list[dict[str, Any]]
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: list[str] | None = None
    thinking: bool | None = None
    """Thinking on or off; null says nothing."""
    response_format: dict[str, Any] | None = None
    """Shape that the answer must have, in the form of the chat protocol (``{"type": "json_schema", …}``)."""
    logprobs: bool | None = None
    """Whether the log-probabilities of the answer's tokens are returned; they stay in the journal."""
    top_logprobs: int | None = None
    """How many alternatives per token, with ``logprobs``."""
    task: dict[str, Any] | None = None
    """What a system is to do with the messages (``systems.contract.Task``); a model does nothing but answer."""


class Dialect(Record, kw_only=True):
    """How one kind of endpoint spells a neutral body (``config/dialects.yaml``)."""

    name: str
    fields: dict[str, str]
    """Neutral word to the word on the wire, for all words but model, messages and thinking."""
    thinking: Literal["chat_template_kwargs"] | None
    """Where the thinking switch goes; null where the endpoint has none."""
    image_detail: bool = False
    """Whether an image may say how much detail of it is looked at."""


def read_dialects(path: Path = DIALECTS) -> dict[str, Dialect]:
    """Read the dialect table.

    Raises:
        RemeasureError: missing file or wrong table; names file and field.
    """
    try:
        table = msgspec.yaml.decode(Path(path).read_bytes(), type=dict[str, dict[str, Any]])
        return {name: msgspec.convert({"name": name} | row, Dialect) for name, row in table.items()}
    except OSError as error:
        raise jsonl.unreadable(path, error) from None
    except msgspec.MsgspecError as error:
        raise RemeasureError(f"{path}: not a dialect table: {error}; correct the file") from None


def dialect_of(name: str) -> Dialect:
    """Return a dialect by name.

    Raises:
        RemeasureError: there is none of that name.
    """
    table = read_dialects()
    if name not in table:
        raise RemeasureError(
            f"dialect {name!r} is not defined in {DIALECTS.name}{did_you_mean(name, table)} "
            f"({', '.join(table)}); correct the model's `dialect` in the run"
        )
    return table[name]


def safe_id(text: str, length: int = _ID_LENGTH) -> str:
    """Return an id that every batch service takes, for an id from outside.

    Ids of other systems (paths, ``a<::>b``, 300 characters) become ids of items and requests by this function
    and no other, so that their answer files and our requests can be compared.

    Args:
        text: the id.
        length: the longest id that is allowed, at most 64.

    Returns:
        The text itself where it fits ``CUSTOM_ID`` and is not too long; else its letters and digits, a hyphen
        and the first 16 hexadecimal digits of the SHA-256 of its UTF-8 bytes, cut before the hyphen.

    Edges:
        A text without a usable character becomes ``id-`` and the digits. Texts are compared as they are:
        two Unicode spellings of one name are two ids.
    """
    if CUSTOM_ID.fullmatch(text) and len(text) <= length:
        return text
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[: length - _HASH_LENGTH - 1].strip("-") or "id"
    return f"{slug}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_LENGTH]}"


def question_id(original: str) -> str:
    """Return the id of a dataset's question, at most 50 characters: as ``safe_id``."""
    return safe_id(original, _QUESTION_ID_LENGTH)


def make_request(custom_id: str, body: Body) -> Request:
    """Return the request line of a body; words that are not set do not stand in it.

    Raises:
        RemeasureError: the id does not fit into the strictest batch service.
    """
    if not CUSTOM_ID.fullmatch(custom_id):
        raise RemeasureError(
            f"item {custom_id!r}: an id has 1 to 64 characters of A-Z a-z 0-9 _ -; rename it in the item file"
        )
    return Request(custom_id=custom_id, body=msgspec.to_builtins(body))


def read_requests(path: Path, model: str) -> Iterator[Request]:
    """Yield the checked requests of a file.

    Raises:
        RemeasureError: names file and line: bad JSON, unknown word in a body, a doubled or unusable id,
            another model than ``model``, an image that is not a reference.
    """
    requests = jsonl.unique(jsonl.read(path, Request), "custom_id", path)
    for number, request in enumerate(requests, start=1):
        try:
            body = msgspec.convert(request.body, Body)
            for _ in image_refs(request.body):
                pass
        except (msgspec.ValidationError, RemeasureError) as error:
            unknown = set(request.body) - set(Body.__struct_fields__)
            hint = "".join(did_you_mean(word, Body.__struct_fields__) for word in sorted(unknown))
            raise RemeasureError(
                f"{path} line {number}, request {request.custom_id!r}: {error}{hint}; "
                "delete the file and rerun the target that writes it"
            ) from None
        if not CUSTOM_ID.fullmatch(request.custom_id):
            raise RemeasureError(
                f"{path} line {number}: custom_id {request.custom_id[:80]!r} must be 1 to 64 characters of "
                "A-Z a-z 0-9 _ -; rename the item"
            )
        if body.model != model:
            raise RemeasureError(
                f"{path} line {number}, request {request.custom_id!r}: model {body.model!r}, the settings "
                f"ask {model!r}; delete the file and rerun the target that writes it"
            )
        yield request


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in body["messages"]:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                raise RemeasureError(
                    f"a part of a message is {str(part)[:40]!r}, expected an object with a type"
                )
            yield part


def image_refs(body: dict[str, Any]) -> Iterator[ImageRef]:
    """Yield the image references of a body in the order in which they are shown.

    Raises:
        RemeasureError: a part is no object, or an image is no reference.
    """
    for part in _parts(body):
        if part.get("type") == "image_url":
            place = part.get("image_url")
            url = place.get("url") if isinstance(place, dict) else None
            if not isinstance(url, str):
                raise RemeasureError('an image part needs {"image_url": {"url": "remeasure-image:…"}}')
            yield images.from_url(url)


def details(body: dict[str, Any]) -> list[str]:
    """Return what the images of a body say of the detail that is looked at, each word once, sorted."""
    images_of = (part["image_url"] for part in _parts(body) if part.get("type") == "image_url")
    return sorted({place["detail"] for place in images_of if "detail" in place})


def with_detail(messages: list[dict[str, Any]], detail: str | None) -> list[dict[str, Any]]:
    """Return messages whose images say how much detail is looked at; as they are where that is null."""

    def told(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") != "image_url":
            return part
        return part | {"image_url": part["image_url"] | {"detail": detail}}

    if detail is None:
        return messages
    return [
        message | {"content": list(map(told, message["content"]))}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def with_image_urls(body: dict[str, Any], url_of: Callable[[ImageRef], str]) -> dict[str, Any]:
    """Return a copy of the body with every image reference replaced by ``url_of(reference)``."""

    def renewed(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") != "image_url":
            return part
        ref = images.from_url(part["image_url"]["url"])
        return part | {"image_url": part["image_url"] | {"url": url_of(ref)}}

    messages = [
        message | {"content": [renewed(part) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    return body | {"messages": messages}


def canonical_body(body: dict[str, Any]) -> bytes:
    """Return the bytes that identify a question: sorted keys, images by content and not by place."""
    return jsonl.encode(with_image_urls(body, lambda ref: images.SCHEME + ref.sha256))


def identity_digest(identity: dict[str, Any]) -> str:
    """Return the SHA-256 of what else could change an answer: weights, server build, threads, revision."""
    return hashlib.sha256(jsonl.encode(identity)).hexdigest()


def answer_key(body: dict[str, Any], model: str, digest: str, sample: int) -> str:
    """Return the identity of an answer.

    Args:
        body: neutral body with image references.
        model: slug of the logical model.
        digest: ``identity_digest`` of that model.
        sample: number of the repetition, 0 for the first.
    """
    head = {"model": model, "identity": digest, "sample": sample, "protocol": PROTOCOL_VERSION}
    return hashlib.sha256(jsonl.encode(head) + b"\n" + canonical_body(body)).hexdigest()


def translate(
    body: dict[str, Any], dialect: Dialect, served_name: str, thinking_default: bool | None
) -> dict[str, Any]:
    """Return the body in the words of an endpoint; image references are left as they are.

    Args:
        body: neutral body.
        dialect: the endpoint's words.
        served_name: the model name that the server knows.
        thinking_default: whether the model thinks when nothing is said; null: not known, always say it.

    Raises:
        RemeasureError: a word that the endpoint cannot express; names it.

    Source:
        Page-image card 1.4: with thinking on, the published runs sent nothing to a model that thinks by
        default, with thinking off the chat-template argument ``enable_thinking=false``.
    """
    if not dialect.image_detail and (said := details(body)):
        raise _not_expressible("image_detail", said[0], dialect)
    wire: dict[str, Any] = {"model": served_name, "messages": body["messages"]}
    for word, value in body.items():
        if word in ("model", "messages"):
            continue
        if word == "thinking":
            if value == thinking_default:
                continue
            if dialect.thinking is None:
                raise _not_expressible("thinking", value, dialect)
            wire["chat_template_kwargs"] = {"enable_thinking": value}
        elif word not in dialect.fields:
            raise _not_expressible(word, value, dialect)
        else:
            wire[dialect.fields[word]] = value
    return wire


def _not_expressible(word: str, value: Any, dialect: Dialect) -> RemeasureError:
    more = (
        "; set `thinking_default` of the model if that is what it does anyway, or ask without the switch"
        if word == "thinking"
        else "; take the setting out or add the word to config/dialects.yaml"
    )
    return RemeasureError(f"dialect {dialect.name!r} cannot express {word}={value!r}{more}")
