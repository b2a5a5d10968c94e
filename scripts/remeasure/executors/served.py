"""What an endpoint serves, as far as it says so: model names, build, context length.

An address in a settings file may lead anywhere. Every reply may be missing, slow, endless, the page of a
proxy or made to hurt; each of these is one ``Failure`` with one sentence.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from remeasure.errors import did_you_mean
from remeasure.executors import bounded
from remeasure.executors.replies import Failure, of_http, one_line
from remeasure.records import Record

if TYPE_CHECKING:
    import aiohttp

# The longest public lists of models are about 1 MB.
_MAX_BYTES = 8_000_000
_LIST_LIMIT_S = 10.0
# What only some servers have; waiting for it must not hold up the others.
_EXTRA_LIMIT_S = 2.0
# Where servers state the context length of a model: vLLM and SGLang, OpenRouter, Groq.
_CONTEXT_WORDS = ("max_model_len", "context_length", "context_window")
_LONGEST_CONTEXT = 2**40

Clean = Callable[[bytes], bytes]


class Served(Record, kw_only=True):
    """What an endpoint says of itself."""

    models: tuple[str, ...]
    """Names that it answers to, aliases included; may be empty."""
    build: str | None = None
    """What program answers, such as ``vllm 0.19.0``; null where it does not say."""
    context_tokens: int | None = None
    """Longest prompt and answer together, of the model that was asked for; null where it does not say."""


class Page(Record, kw_only=True):
    """A reply as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def look(
    session: "aiohttp.ClientSession",
    base_url: str,
    served_name: str | None = None,
    clean: Clean = bytes,
) -> Served | Failure:
    """Ask an endpoint what it serves, within ten seconds or the session's own limit.

    Args:
        session: its headers carry the key.
        base_url: up to and including ``/v1``.
        served_name: whose context length is wanted, where several models are listed; null: the smallest.
        clean: takes the key out of what a server may have echoed.

    Returns:
        What it says, or why there is no list of models. ``timeout``, ``connection``, ``html``, ``not_http``
        and ``redirect`` mean that nothing can be asked there; other failures that it keeps no such list.

    Source:
        ``/version`` beside ``/v1`` is vLLM's, ``/props`` llama.cpp's; others answer 404.
    """
    base = base_url.rstrip("/")
    root = base.removesuffix("/v1")
    listed = await fetch(session, "GET", f"{base}/models", _LIST_LIMIT_S, clean=clean)
    rows = _rows(listed) if isinstance(listed, Page) else listed
    if isinstance(rows, Failure):
        return rows
    # One after the other, over one connection: of idle ones, each that breaks later costs a request a try.
    version = _object(await fetch(session, "GET", f"{root}/version", _EXTRA_LIMIT_S, clean=clean))
    props = _object(await fetch(session, "GET", f"{root}/props", _EXTRA_LIMIT_S, clean=clean))
    return Served(
        models=tuple(dict.fromkeys(name for row in rows for name in _names(row))),
        build=_build(rows, version, props),
        context_tokens=_context_tokens(rows, props, served_name),
    )


def wrong_name(url: str, name: str, models: tuple[str, ...]) -> str:
    """Return the sentence for an endpoint whose list lacks the model that is asked for."""
    more = f" and {len(models) - 5} more" if len(models) > 5 else ""
    shown = ", ".join(repr(one_line(model, 80)) for model in models[:5]) or "no model at all"
    # Bounded, for a list may be made to take hours of comparing.
    hint = did_you_mean(name, [model for model in models[:2000] if len(model) <= 200])
    return f"{url}: serves {shown}{more} and not {name!r}{hint}; correct `served_name`, or start that model"


async def fetch(
    session: "aiohttp.ClientSession",
    method: str,
    url: str,
    limit_s: float,
    data: bytes | None = None,
    clean: Clean = bytes,
) -> Page | Failure:
    """Send one request; redirects are not followed, so that a key goes nowhere else.

    Args:
        session: its headers go along.
        method: GET or POST.
        url: the whole address.
        limit_s: for everything together, seconds; less where the session has less.
        data: the body of a POST.
        clean: takes the key out of the reply, before anything of it is cut to length.
    """
    import aiohttp

    limit_s = min(limit_s, session.timeout.total or limit_s)
    limits = aiohttp.ClientTimeout(total=limit_s)
    try:
        async with session.request(method, url, data=data, allow_redirects=False, timeout=limits) as response:
            body = await bounded.read(response, _MAX_BYTES)
    except TimeoutError:
        return Failure(kind="timeout", message=f"no reply within {limit_s:g} s")
    except aiohttp.ClientPayloadError:
        return Failure(kind="cut_stream", message="the reply ended before its end")
    except (aiohttp.ClientConnectionError, OSError) as error:
        return Failure(kind="connection", message=_why_unreachable(error))
    except (aiohttp.ClientError, ValueError) as error:
        return Failure(kind="not_http", message=f"what answers does not speak HTTP ({type(error).__name__})")
    if body is None:
        text = f"the reply is longer than {_MAX_BYTES // 1_000_000} MB"
        return Failure(kind="too_large", message=text, status=response.status)
    if 300 <= response.status < 400:
        return _redirect(response.status, response.headers.get("Location", "nowhere"), clean)
    return Page(status=response.status, headers=response.headers, body=clean(body))


def _redirect(status: int, place: str, clean: Clean) -> Failure:
    place = one_line(clean(place.encode("utf-8", "replace")).decode("utf-8", "replace"), 100)
    text = f"status {status}: leads on to {place}, which is not followed"
    return Failure(kind="redirect", message=text, status=status)


def _why_unreachable(error: OSError | Exception) -> str:
    """Return the reason without ports and addresses, which differ from run to run."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            return "no such host name"
        case aiohttp.ClientConnectorCertificateError():
            return "its TLS certificate is not accepted"
        case aiohttp.ClientConnectorSSLError():
            return "no TLS spoken there; is it http:// ?"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return "connection refused"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return "it closed the connection"
        case aiohttp.ClientConnectorError() if error.os_error.strerror:
            return error.os_error.strerror.lower()
    return type(error).__name__


def _rows(page: Page) -> list[dict[str, Any]] | Failure:
    """Return the models of a list, checked as far as they are read."""
    document = _decoded(page)
    if isinstance(document, Failure):
        return document
    # Most say {"data": [...]}, some the bare list; a server without models may say null.
    is_wrapped = isinstance(document, dict) and "data" in document
    rows = (document["data"] or []) if is_wrapped else document
    named = isinstance(rows, list) and all(isinstance(r, dict) and isinstance(r.get("id"), str) for r in rows)
    return rows if named else _no_list(page.status)


def _decoded(page: Page) -> Any | Failure:
    """Return what a page with status 200 holds as JSON; any other is a failure with its class."""
    if page.status == 200:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(page.body)
    # Only failures are left; where a chat would count as refused, there is no list either.
    reading = of_http(page.status, page.headers, page.body, ())
    return reading if isinstance(reading, Failure) else _no_list(page.status)


def _no_list(status: int) -> Failure:
    return Failure(kind="no_list", message=f"status {status}, but not a list of models", status=status)


def _object(page: Page | Failure) -> dict[str, Any]:
    """Return the JSON object of a page that need not be there; empty for everything else."""
    document = page if isinstance(page, Failure) else _decoded(page)
    return document if isinstance(document, dict) else {}


def _names(row: dict[str, Any]) -> list[str]:
    aliases = row.get("aliases")
    more = aliases if isinstance(aliases, list) else []
    return [row["id"], *(name for name in more if isinstance(name, str))]


def _build(rows: list[dict[str, Any]], version: dict[str, Any], props: dict[str, Any]) -> str | None:
    info, number = props.get("build_info"), version.get("version")
    if isinstance(info, str) and info:
        return one_line(f"llama.cpp {info}", 100)
    if not isinstance(number, str) or not number:
        return None
    owners = {owner for row in rows if isinstance(owner := row.get("owned_by"), str) and owner}
    return one_line(f"{owners.pop() if len(owners) == 1 else 'version'} {number}", 100)


def _context_tokens(rows: list[dict[str, Any]], props: dict[str, Any], name: str | None) -> int | None:
    wanted = [row for row in rows if name in _names(row)]
    # vLLM lists an adapter without a length of its own, and the model below it as its parent.
    below = {parent for row in wanted if isinstance(parent := row.get("parent"), str)}
    wanted += [row for row in rows if row["id"] in below]
    known = [tokens for row in wanted or rows if (tokens := _context_of(row)) is not None]
    settings = props.get("default_generation_settings")
    of_server = _tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None
    return min(known) if known else of_server


def _context_of(row: dict[str, Any]) -> int | None:
    # llama.cpp: the context of one slot, not the one that the model was trained with.
    meta = row.get("meta")
    of_slot = meta.get("n_ctx") if isinstance(meta, dict) else None
    stated = [*(row.get(word) for word in _CONTEXT_WORDS), of_slot]
    return next((tokens for value in stated if (tokens := _tokens(value)) is not None), None)


def _tokens(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < _LONGEST_CONTEXT else None
