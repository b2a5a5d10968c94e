"""Hosted endpoints: keys, what they serve, and one real request to each.

The real request is the only one that costs anything: of those that are built, the one with the most images
and then the longest, with an answer of one token. So images, context and words are tried as they are used.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path

import aiohttp
import msgspec

from remeasure import executors, oversize
from remeasure.errors import RemeasureError
from remeasure.executors import Call, served
from remeasure.executors.keys import Key
from remeasure.executors.payload import Payloads
from remeasure.executors.replies import Failure, Outcome, of_http, one_line
from remeasure.executors.served import Served
from remeasure.preflight import contexts
from remeasure.preflight.askings import Target
from remeasure.preflight.report import Group, plural
from remeasure.preflight.surveys import Survey
from remeasure.records import Record

Hosted = executors.HttpSettings | executors.BatchSettings
# A model of the step may take minutes for its longest answer; for one token nobody should wait longer.
_TRY_LIMIT_S = 60.0
# Nothing can be asked where a look ends like this.
_NOT_THERE = ("timeout", "connection", "html", "not_http", "redirect")
# What OpenAI's thinking models say where one token is not enough to begin an answer; the prompt was taken.
_TAKEN = re.compile(r"max_tokens or model output limit was reached")

# What embedders and rerankers are tried with.
_TEXT = {"input": ["Hello"], "encoding_format": "float"}
_PAIR = {"query": "Hello", "documents": ["Hello"]}
# Stands for requests that are not built yet.
_ONE_WORD = [{"role": "user", "content": "Hello"}]


class Address(Record, kw_only=True):
    """One address of one model."""

    target: Target
    url: str

    @property
    def place(self) -> str:
        """How a problem begins."""
        return f"models.{self.target.name}: {self.url}"


class Visit(Record, kw_only=True):
    """What came of an address."""

    address: Address
    look: Served | Failure
    reply: Outcome | Failure | None
    """To the real request; null where none was sent."""
    problems: tuple[str, ...]


def addresses(targets: list[Target]) -> list[Address]:
    """Return every address of every hosted model."""
    found = []
    for target in targets:
        if isinstance(target.way, Hosted):
            urls = target.way.base_url
            found += [Address(target=target, url=url) for url in ([urls] if isinstance(urls, str) else urls)]
    return found


def keys(targets: list[Target]) -> list[Key]:
    """Return every key that can be read."""
    found = [_key(target) for target in targets if isinstance(target.way, Hosted)]
    return [key for key in found if key is not None]


def check_keys(targets: list[Target]) -> Group:
    """Look at the environment variables that hold keys; nothing of a key is told, not even its length."""
    named = sorted({t.way.api_key_env for t in targets if isinstance(t.way, Hosted) and t.way.api_key_env})
    problems = []
    for variable in named:
        try:
            Key(variable)
        except RemeasureError as error:
            users = [t.name for t in targets if isinstance(t.way, Hosted) and t.way.api_key_env == variable]
            problems.append(f"models.{', '.join(dict.fromkeys(users))}: {error}")
    said = plural(len(named), "environment variable") if named else "none is needed"
    return Group(title="keys", said=(said,), problems=tuple(problems))


async def visit(address: Address, surveyed: asyncio.Future[Survey], root: Path) -> Visit:
    """Look at an address, then send it one real request.

    Args:
        address: where, and whose.
        surveyed: what the model's requests come to; that may take longer than the look.
        root: what image paths start from.
    """
    target, reply = address.target, None
    key = _key(target)
    headers = {"Content-Type": "application/json"} | (key.headers() if key else {})
    async with aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as session:
        clean = key.out_of_bytes if key else bytes
        look = await served.look(session, address.url, target.served_name, clean)
        problems = _look_problems(address, look, key)
        survey = await surveyed
        if key is not None and not problems and isinstance(target.way, executors.HttpSettings):
            reply, problems = await _try(session, address, survey, key, root)
    said = look.context_tokens if isinstance(look, Served) else None
    usage = reply.usage if isinstance(reply, Outcome) else None
    counted = usage.get("prompt_tokens") if usage and survey.widest else None
    problems += contexts.problems(address.place, target, survey, said, counted)
    return Visit(address=address, look=look, reply=reply, problems=tuple(problems))


def check(visits: list[Visit]) -> Group:
    """Return what came of all addresses."""
    answering = [v for v in visits if isinstance(v.look, Served) or isinstance(v.reply, Outcome)]
    n_all = plural(len(visits), "address", "addresses")
    said = [f"{len(answering)} of {n_all} answered" if visits else "none is used"]
    builds = sorted({v.look.build for v in visits if isinstance(v.look, Served) and v.look.build})
    said += [", ".join(builds)] if builds else []
    classes = Counter(
        v.reply.status if isinstance(v.reply, Outcome) else v.reply.kind for v in visits if v.reply
    )
    if classes:
        counts = ", ".join(f"{n} {name}" for name, n in sorted(classes.items()))
        said.append(f"one real request to each, answer of one token: {counts}")
    said += [f"{v.address.url} keeps no list of models" for v in answering if isinstance(v.look, Failure)]
    problems = tuple(problem for v in visits for problem in v.problems)
    return Group(title="endpoints", said=tuple(said), problems=problems)


def _key(target: Target) -> Key | None:
    """Return the key; null where it is missing or wrong: whether anybody is there can be seen without."""
    try:
        return Key(target.way.api_key_env)
    except RemeasureError:
        return None  # told by ``check_keys``


def _look_problems(address: Address, look: Served | Failure, key: Key | None) -> list[str]:
    target = address.target
    if isinstance(look, Served):
        if not look.models or {target.served_name, *target.way.also_named} & set(look.models):
            return []
        return [f"models.{target.name}: {served.wrong_name(address.url, target.served_name, look.models)}"]
    if look.kind == "auth":
        return [_refused(address, look, key)] if key else []
    if look.kind in _NOT_THERE:
        return [f"{address.place} cannot be asked: {look.message}; start the server, or correct base_url"]
    if isinstance(target.way, executors.BatchSettings):
        return [f"{address.place} does not list its models: {look.kind}: {look.message}; {_remedy(look)}"]
    return []  # the real request shows whether it answers


def _refused(address: Address, failure: Failure, key: Key) -> str:
    # Without the reply's own words: some services show the ends of the key in them.
    return f"{address.place} refuses the key (status {failure.status}); check {key.where}"


async def _try(
    session: aiohttp.ClientSession, address: Address, survey: Survey, key: Key, root: Path
) -> tuple[Outcome | Failure | None, list[str]]:
    """Send the real request; return its reply and what is wrong with it."""
    target, asked = address.target, survey.widest
    if target.role in ("embedder", "reranker"):
        return await _try_part(session, address, key)
    body = asked.request.body if asked else target.words | {"messages": _ONE_WORD}
    call = Call(key="", custom_id="preflight", body=body | {"max_tokens": 1})
    try:
        with Payloads(target.way, target.served_name, root) as payloads:
            data = b"".join(payloads.pieces(call, payloads.template(call)))
    except RemeasureError as error:
        # A word that the endpoint lacks is told once, with the requests.
        is_told = any(str(error) in problem for problem in survey.problems)
        return None, [] if is_told else [f"{address.place}: {error}"]
    url, limit_s = address.url.rstrip("/") + "/chat/completions", min(target.way.timeout_s, _TRY_LIMIT_S)
    page = await served.fetch(session, "POST", url, limit_s, data, key.out_of_bytes)
    names = (target.served_name, *target.way.also_named)
    reply = page if isinstance(page, Failure) else of_http(page.status, page.headers, page.body, names)
    if isinstance(reply, Outcome) or _TAKEN.search(reply.message):
        return reply, []
    if reply.kind == "auth":
        return reply, [_refused(address, reply, key)]
    what = f"{asked.name}, {plural(asked.n_images, 'image')}" if asked else "a request of one word"
    return reply, [f"{address.place} does not answer {what}: {reply.kind}: {reply.message}; {_remedy(reply)}"]


async def _try_part(
    session: aiohttp.ClientSession, address: Address, key: Key
) -> tuple[Outcome | Failure | None, list[str]]:
    """Send one real request to an embedder or reranker; return what is wrong with the reply."""
    target = address.target
    path, told = ("embeddings", _TEXT) if target.role == "embedder" else ("rerank", _PAIR)
    told = told | {"model": target.served_name}
    limit_s = min(target.way.timeout_s, _TRY_LIMIT_S)
    url = f"{address.url.rstrip('/')}/{path}"
    page = await served.fetch(session, "POST", url, limit_s, msgspec.json.encode(told), key.out_of_bytes)
    if isinstance(page, Failure):
        return page, [f"{address.place} does not answer: {page.kind}: {page.message}; {_remedy(page)}"]
    if page.status in (401, 403):
        return None, [_refused(address, Failure(kind="auth", message="", status=page.status), key)]
    if page.status != 200:
        said = one_line(page.body.decode("utf-8", "replace"), 200)
        return None, [
            f"{address.place}: /{path}: status {page.status}: {said}; serve a model that is made for it"
        ]
    if target.role == "embedder" and (n := _n_dimensions(page.body)) != target.vector_dim:
        return None, [
            f"{address.place}: gives vectors of {n or 'no'} dimensions, vector_dim is {target.vector_dim}; "
            "correct vector_dim of the database, or the model"
        ]
    return None, []


def _n_dimensions(body: bytes) -> int | None:
    """Return the length of the vector in a reply of ``/v1/embeddings``; null where there is none."""
    try:
        return len(msgspec.json.decode(body)["data"][0]["embedding"])
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError):
        return None


def _remedy(failure: Failure) -> str:
    match failure.kind:
        case "quota":
            return "raise the quota"
        case "wrong_model":
            return "correct served_name, or add the name to also_named where it is the same model"
        case "rate_limit" | "timeout" | "connection" | "server_error" | "cut_stream" | "empty":
            return "look at the server; if this passes by itself, call again"
        case "rejected" | oversize.PAYLOAD_TOO_LARGE | oversize.CONTEXT_OVERFLOW:
            return "change the setting that it names, the server's limits, or the dialect"
    return "check that base_url leads to an OpenAI-compatible endpoint, up to and including /v1"
