"""An adapter with its database open: started, and started again where it was lost."""

import contextlib
from pathlib import Path
from typing import Any

from remeasure import model_server
from remeasure.errors import RemeasureError
from remeasure.executors.replies import one_line
from remeasure.records import Record
from remeasure.systems import adapter, database, models, replying
from remeasure.systems.adapter import Adapter, Lost

READY_LIMIT_S = 300.0
"""For starting an adapter and opening its database."""
AGAIN = "run the same command again: what is finished is kept"


class What(Record, kw_only=True):
    """What is opened."""

    adapter: str
    environment: str | None
    """Record of the adapter's environment; null: the workflow's own."""
    folder: str
    create: bool
    """Whether the database may be made and written."""
    options: dict[str, Any]
    served_name: str
    """Of the embedder."""
    vector_dim: int


class Session:
    """See above. Ended with ``stop``.

    Args:
        what: adapter and database.
        reached: the models that it asks.
        log_path: where it logs; written afresh.
        number: of several side by side, from 0: they share out the addresses of a model.
    """

    adapter: Adapter
    stamp: Any
    versions: dict[str, str]

    def __init__(self, what: What, reached: models.Models, log_path: Path, number: int = 0) -> None:
        self.what, self.log_path = what, log_path
        self._models = reached
        self._endpoints = reached.endpoints[number % len(reached.endpoints)]
        self._running = contextlib.ExitStack()
        log_path.unlink(missing_ok=True)

    def start(self) -> None:
        """Start the adapter and open the database in it.

        Raises:
            RemeasureError: it does not start, or the database is not what was configured.
        """
        what = self.what
        self.adapter = self._running.enter_context(
            adapter.started(
                what.adapter, what.environment, self._models.keys, self.log_path, self._models.clean
            )
        )
        command = {
            "do": "open",
            "database": str(Path(what.folder).absolute()),
            "create": what.create,
            "options": what.options,
            "embedder": self._endpoints["embedder"],
            "reranker": self._endpoints.get("reranker"),
            "answerer": self._endpoints.get("answerer"),
        }
        try:
            told = self.adapter.ask({"do": "describe"}, READY_LIMIT_S)
            reply = self.adapter.ask(command, READY_LIMIT_S) if told["ok"] else told
        except Lost as lost:
            reply = {"ok": False, "error": f"{lost}; {self.log_end()}"}
        if not reply["ok"]:
            self.check_servers()
            said = one_line(str(reply.get("error")), 1000)
            raise RemeasureError(
                f"{what.folder}: adapter {what.adapter!r} cannot open it: {said}; repair the cause and "
                f"{AGAIN}"
            )
        self.stamp, self.versions = reply.get("stamp"), replying.versions(told)
        database.check_stamp(self.stamp, what.served_name, what.vector_dim, what.folder)

    def stop(self) -> None:
        """End the adapter with all that it started; it may be started again."""
        self._running.close()

    def again(self) -> None:
        """Start it anew."""
        self.stop()
        self.check_servers()
        self.start()

    def check_servers(self) -> None:
        """Raise where a server of ours is gone."""
        if reason := self._models.died():
            raise RemeasureError(f"{reason}; repair the cause and {AGAIN}")

    def log_end(self) -> str:
        """Return where its log is and how it ends."""
        return f"its log {self.log_path} ends: {model_server.log_end(self.log_path)}"
