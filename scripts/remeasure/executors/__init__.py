"""Ways to get requests answered, behind one interface.

An executor takes calls one by one, so that memory stays flat, and hands each outcome over as soon as it is
there. It has no memory of its own (``journal`` has) and knows nothing of studies.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from remeasure.records import JournalEntry, Record


class Call(Record, kw_only=True):
    """One request that is to be sent."""

    key: str
    custom_id: str
    body: dict[str, Any]
    """Neutral body with image references."""


class Executor(Protocol):
    """Anything that answers calls."""

    def run(self, calls: Iterator[Call], keep: Callable[[JournalEntry], None]) -> None:
        """Answer all calls; give each outcome, failures included, to ``keep`` once, in any order.

        Raises:
            RemeasureError: nothing more can be answered (wrong key, dead server); what was kept stays kept.
        """


class Attempts(Record, kw_only=True):
    """How often a request is sent in all, by the class of its last failure."""

    timeout: int = 3
    connection: int = 6
    rate_limit: int = 8
    server_error: int = 5
    cut_stream: int = 3
    empty: int = 3
    not_json: int = 3


class Endpoint(Record, kw_only=True):
    """What every way of talking to a server needs; nothing of it is part of an answer's identity."""

    dialect: str
    """Name in ``config/dialects.yaml``."""
    thinking_default: bool | None = None
    """Whether the model thinks when the request says nothing; null: not known, it is always said."""
    concurrency: int
    timeout_s: float
    """Per sending, from the moment it is sent."""
    attempts: Attempts = Attempts()
    base_wait_s: float = 1.0
    """Wait after the first failure; doubles with each further one."""
    max_wait_s: float = 60.0
    also_named: tuple[str, ...] = ()
    """Model names in replies that are right as well, such as the dated name behind an alias."""


class HttpSettings(Endpoint, kw_only=True, tag_field="kind", tag="http"):
    """An endpoint that is there."""

    base_url: str
    """Up to and including ``/v1``."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key."""


class ServerSettings(Endpoint, kw_only=True, tag_field="kind", tag="server"):
    """A server program of ours that runs while it is needed."""

    program: str
    """File name below ``scripts/``."""
    files: dict[str, str] = {}
    """Option name to path."""
    options: dict[str, str | int | float | bool] = {}
    ready_timeout_s: float = 300.0


Settings = HttpSettings | ServerSettings


@contextlib.contextmanager
def opened(settings: Settings, served_name: str, images_root: Path, log_path: Path) -> Iterator[Executor]:
    """Give the executor that the settings describe; whatever it needs is stopped afterwards.

    Args:
        settings: which kind, and how.
        served_name: the model name that the server knows.
        images_root: folder that the paths of image references start from.
        log_path: where a started server's output goes.
    """
    from remeasure.executors.http import HttpExecutor

    if isinstance(settings, HttpSettings):
        yield HttpExecutor(settings, served_name, images_root, settings.base_url, settings.api_key_env)
        return
    from remeasure import model_server

    command = model_server.command(settings.program, served_name, settings.files, settings.options)
    with model_server.running(command, served_name, log_path, settings.ready_timeout_s) as server:
        yield HttpExecutor(settings, served_name, images_root, server.base_url, died=server.died)
