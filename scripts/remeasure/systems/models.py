"""The models that a system asks: servers of ours are started, endpoints of others are checked for a key."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remeasure import model_server
from remeasure.executors import HttpSettings, Part, ServerSettings
from remeasure.executors.keys import Key

log = logging.getLogger("remeasure.systems")
Roles = Mapping[str, Part | None]


class Models(NamedTuple):
    """Models that can be asked."""

    endpoints: list[dict[str, dict[str, Any] | None]]
    """By role, as the contract has them; several where a model has several addresses."""
    keys: list[str]
    """Names of the variables that hold their keys."""
    description: str
    """What answers, for the journal; empty without an answerer."""
    died: Callable[[], str | None]
    """Says why a server of ours is gone."""
    clean: Callable[[bytes], bytes]
    """Takes keys out of a line."""


@contextlib.contextmanager
def opened(parts: Roles, vector_dim: int, log_folder: Path) -> Iterator[Models]:
    """Give the models of a system for as long as they are needed.

    Args:
        parts: models by role; null for a role that nobody plays.
        vector_dim: of the embedder's vectors.
        log_folder: where the logs of servers go.

    Raises:
        RemeasureError: a server does not start, or a key is not set.
    """
    urls: dict[str, tuple[str, ...]] = {}
    servers: list[model_server.Server] = []
    keys: dict[str, Key] = {}
    said = ""
    with contextlib.ExitStack() as stack:
        for role, part in parts.items():
            if part is None:
                continue
            if isinstance(part.way, HttpSettings):
                given = part.way.base_url
                urls[role] = (given,) if isinstance(given, str) else given
                if part.way.api_key_env is not None:
                    keys[part.way.api_key_env] = Key(part.way.api_key_env)
                described = ""
            else:
                server = stack.enter_context(_running(part, part.way, log_folder / f"{role}.log"))
                servers.append(server)
                urls[role] = (server.base_url,)
                described = server.description
            if role == "answerer":
                said = described
        n = max((len(found) for found in urls.values()), default=1)
        yield Models(
            endpoints=[
                {role: _endpoint(role, parts[role], urls.get(role), i, vector_dim) for role in parts}
                for i in range(n)
            ],
            keys=sorted(keys),
            description=said,
            died=lambda: next((reason for server in servers if (reason := server.died())), None),
            clean=lambda line: _cleaned(line, list(keys.values())),
        )


def _running(part: Part, way: ServerSettings, log_path: Path):
    words = model_server.command(way.program, part.served_name, way.files, way.options)
    return model_server.running(words, part.served_name, log_path, way.ready_timeout_s)


def _endpoint(
    role: str, part: Part | None, urls: tuple[str, ...] | None, number: int, vector_dim: int
) -> dict[str, Any] | None:
    if part is None or urls is None:
        return None
    return {
        "base_url": urls[number % len(urls)].rstrip("/"),
        "model": part.served_name,
        "key_env": part.way.api_key_env if isinstance(part.way, HttpSettings) else None,
        "timeout_s": part.way.timeout_s,
        "concurrency": part.way.concurrency,
        "dialect": part.way.dialect,
    } | ({"vector_dim": vector_dim} if role == "embedder" else {})


def _cleaned(line: bytes, keys: list[Key]) -> bytes:
    for key in keys:
        line = key.out_of_bytes(line)
    return line
