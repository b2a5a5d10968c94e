"""Ways to get requests answered, behind one interface.

An executor takes calls one by one, so that memory stays flat, and hands each outcome over as soon as it is
there. It has no memory of its own (``journal`` has) and knows nothing of studies.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from remeasure.records import JournalEntry, Record


class Call(Record, kw_only=True):
    """One request that is to be sent."""

    key: str
    custom_id: str
    body: dict[str, Any]
    """Neutral body with image references."""
    after: str | None = None
    """Of a later turn of a live conversation: id of the request of the turn before."""


class Keeper(Protocol):
    """Where an executor hands its outcomes to."""

    def sent(self, key: str) -> None:
        """Note that a request goes out now; call it before each sending."""

    def keep(self, entry: JournalEntry) -> None:
        """Keep an outcome; when this returns, it cannot be lost.

        Raises:
            RemeasureError: it cannot be kept (full disk); everything before it is.
        """

    def kept(self, custom_id: str) -> JournalEntry | None:
        """Return the outcome that is there of another request of the cell; null where there is none."""

    def enough(self) -> str | None:
        """Return why nothing more may be sent (a spend limit), null while all is well; ask before sending."""


class Executor(Protocol):
    """Anything that answers calls."""

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; give each outcome, failures included, to ``keeper`` once, in any order.

        Raises:
            RemeasureError: nothing more can be answered (wrong key, quota spent, dead server, spend limit).
                What was under way is waited for first; what was kept stays kept.
            KeyboardInterrupt: the process was told to end; as above, within a few seconds.
        """


class Price(Record, kw_only=True):
    """What an endpoint charges, US dollars per million tokens."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float


class Money(Record, kw_only=True):
    """What answers cost, and when to stop."""

    price: Price
    spend_usd: float | None = None
    """Nothing more is sent once the run has spent this much."""
    estimate_usd: float | None = None
    """Nothing is sent where the run's spending and the estimate of what is missing are above this."""
    ledger: str
    """Folder in which the cells of a run tell each other what they have spent."""


class Way(Record, kw_only=True):
    """What every way has; nothing of it is part of an answer's identity."""

    money: Money | None = None
    image_tokens: str | None = None
    """Name of the formula for the tokens of an image (``remeasure.tokens``)."""


class Speaking(Way, kw_only=True):
    """What every way of speaking to a model needs."""

    dialect: str
    """Name in ``config/dialects.yaml``."""
    thinking_default: bool | None = None
    """Whether the model thinks when the request says nothing; null: not known, it is always said."""
    also_named: tuple[str, ...] = ()
    """Model names in replies that are right as well, such as the dated name behind an alias."""


class Attempts(Record, kw_only=True):
    """How often a request is sent in all, by the class of its last failure."""

    timeout: int = 3
    connection: int = 6
    rate_limit: int = 8
    server_error: int = 5
    cut_stream: int = 3
    empty: int = 3
    not_json: int = 3
    html: int = 3


class Endpoint(Speaking, kw_only=True):
    """What every way of talking to a server over HTTP needs."""

    concurrency: int
    """Most requests in flight to one address; fewer where the server shows that they are too many."""
    timeout_s: float
    """Per sending, from the moment it is sent."""
    attempts: Attempts = Attempts()
    base_wait_s: float = 1.0
    """Wait after the first failure; doubles with each further one."""
    max_wait_s: float = 60.0
    patience_s: float = 300.0
    """How long no address may answer before the step stops."""


class HttpSettings(Endpoint, kw_only=True, tag_field="kind", tag="http"):
    """One or several endpoints that are there and serve the same model."""

    base_url: str | tuple[str, ...]
    """Up to and including ``/v1``."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class ServerSettings(Endpoint, kw_only=True, tag_field="kind", tag="server"):
    """A server program of ours that runs while it is needed."""

    program: str
    """File name below ``scripts/``."""
    files: dict[str, str] = {}
    """Option name to path."""
    options: dict[str, str | int | float | bool] = {}
    ready_timeout_s: float = 300.0


class BatchSettings(Speaking, kw_only=True, tag_field="kind", tag="batch"):
    """A batch service in the form of OpenAI's: files are handed in, answers are fetched hours later."""

    base_url: str
    api_key_env: str | None = None
    max_requests: int = 50_000
    """Per batch."""
    max_bytes: int = 190_000_000
    """Per batch file, images included."""
    max_open: int = 4
    """Batches that are under way at one time."""
    poll_s: float = 60.0
    rounds: int = 3
    """How often a request that failed or expired is handed in, in all."""
    timeout_s: float = 600.0
    """Per HTTP request."""


class VllmBatchSettings(Speaking, kw_only=True, tag_field="kind", tag="vllm-batch"):
    """``vllm run-batch`` on this node: loads the model, answers a file, keeps nothing when it is stopped."""

    model: str
    """Folder or name of the model."""
    options: dict[str, str | int | float | bool] = {}
    timeout_s: float = 86_400.0
    """For the whole file."""


class ReplaySettings(Way, kw_only=True, tag_field="kind", tag="replay"):
    """Answers that older runs have kept; a request that they lack is an error."""

    folder: str
    """Every ``journal/*.jsonl`` below it is read."""
    files: dict[str, str] = {}
    """What the server would read: part of an answer's identity."""


class ImportSettings(Way, kw_only=True, tag_field="kind", tag="import"):
    """Answers of an original system from the file that it wrote."""

    format: str
    """Name in ``remeasure.imports``."""
    path: str
    sha256: str | None = None
    """Hash of the file, as the identity of its answers says it (``importing.located``)."""


class Part(Record, kw_only=True):
    """A model that a system asks."""

    served_name: str
    way: "HttpSettings | ServerSettings"


class SystemSettings(Way, kw_only=True, tag_field="kind", tag="system"):
    """A system under test, driven by its adapter (``systems.contract``)."""

    adapter: str
    vector_dim: int
    options: dict[str, Any] = {}
    """Of its database and of its own."""
    embedder: Part
    answerer: Part | None = None
    reranker: Part | None = None
    case_timeout_s: float
    concurrency: int = 1
    """How many adapters work side by side; conversations and questions are shared out between them."""
    database: str | None = None
    """Record of the database, as the cell says it."""
    environment: str | None = None
    """Record of the environment; null: that of the workflow."""


Settings = (
    HttpSettings
    | ServerSettings
    | BatchSettings
    | VllmBatchSettings
    | ReplaySettings
    | ImportSettings
    | SystemSettings
)


@contextlib.contextmanager
def opened(settings: Settings, served_name: str, images_root: Path, journal: Path) -> Iterator[Executor]:
    """Give the executor that the settings describe; whatever it needs is stopped afterwards.

    Args:
        settings: which kind, and how.
        served_name: the model name that the server knows.
        images_root: folder that the paths of image references start from.
        journal: the cell's journal folder, for what an executor must remember and for a server's log.
    """
    match settings:
        case HttpSettings():
            from remeasure.executors.http import HttpExecutor

            yield HttpExecutor(settings, served_name, images_root, settings.base_url, settings.api_key_env)
        case ServerSettings():
            from remeasure import model_server
            from remeasure.executors.http import HttpExecutor

            command = model_server.command(settings.program, served_name, settings.files, settings.options)
            log_path = journal / "server.log"
            with model_server.running(command, served_name, log_path, settings.ready_timeout_s) as server:
                yield HttpExecutor(
                    settings,
                    served_name,
                    images_root,
                    server.base_url,
                    died=server.died,
                    described=server.description,
                )
        case BatchSettings():
            from remeasure.executors.batch import BatchExecutor

            yield BatchExecutor(settings, served_name, images_root, journal)
        case VllmBatchSettings():
            from remeasure.executors.vllm_batch import VllmBatchExecutor

            yield VllmBatchExecutor(settings, served_name, images_root, journal)
        case ReplaySettings():
            from remeasure.executors.replay import ReplayExecutor

            yield ReplayExecutor(settings)
        case ImportSettings():
            from remeasure.executors.importing import ImportExecutor

            yield ImportExecutor(settings, journal)
        case SystemSettings():
            from remeasure.executors.system import SystemExecutor

            with SystemExecutor(settings, journal) as executor:
                yield executor
