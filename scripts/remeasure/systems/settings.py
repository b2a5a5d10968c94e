"""How a run describes datasets, databases of them, and the systems that search and answer with these."""

from typing import Annotated, Any

from msgspec import Meta

from remeasure.needs import Needs
from remeasure.yaml_files import Count, Positive, Seconds, Settings

HANDLING = ("max_failed_documents", "batch_documents", "document_timeout_s")
"""Options of a database that no adapter is told: they change nothing in it."""


class Dataset(Settings, kw_only=True):
    """Documents and questions from outside."""

    loader: str
    """Name in ``remeasure.datasets.LOADERS``."""
    files: Annotated[dict[str, str], Meta(min_length=1)]
    """What it is read from, files or folders, by the loader's own names."""
    expected: dict[str, Count] = {}
    """Counts that must come out: another number is an error."""
    options: dict[str, Any] = {}


class Environment(Settings, kw_only=True):
    """A Python environment of its own, installed by a step."""

    lock: str
    """File of pins with hashes."""
    python: Annotated[str, Meta(pattern=r"^3\.[0-9]{1,2}$")] = "3.12"
    """Lowest version."""


class Database(Settings, kw_only=True):
    """What a system makes of a dataset's documents."""

    adapter: str
    """``scripts/systems/<adapter>.py``."""
    environment: str | None = None
    """Null: that of the workflow."""
    embedder: str
    """A model of the run that serves ``/v1/embeddings``."""
    vector_dim: Positive
    options: dict[str, Any] = {}
    """Chunking and the like. ``max_failed_documents`` (0), ``batch_documents`` (512) and
    ``document_timeout_s`` (600) are the step's own (``HANDLING``)."""
    prebuilt: dict[str, str] = {}
    """Dataset to a database that is there already; it is checked and used instead of ingesting."""
    needs: Needs = Needs()


class System(Settings, kw_only=True):
    """One configuration of a system under test: a way to reach a model that is more than a model."""

    database: str
    """A database of the run."""
    answerer: str | None = None
    """The model that it asks; null: it only searches."""
    reranker: str | None = None
    """A model of the run that serves ``/v1/rerank``."""
    arms: Annotated[list[str], Meta(min_length=1)]
    """The arms that it has; cells of others leave it out."""
    options: dict[str, Any] = {}
    """Limits and budgets of its tools."""
    case_timeout_s: Seconds = 600.0
    """For one question with all that it asks of models."""
