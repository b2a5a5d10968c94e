"""What differs between the versions of haiku.rag that the adapter knows."""

import importlib.metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "haiku.rag-slim",
    "pydantic-ai-slim",
    "lancedb",
    "pylance",
    "pyarrow",
    "docling-core",
    "docling-slim",
    "docling",
    "transformers",
    "openai",
)


def versions() -> dict[str, str]:
    """Return the versions of haiku.rag and of what its results depend on most, as far as they are there."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def is_merged() -> bool:
    """Return whether one capability does both: search and code (after 0.77.0)."""
    # Looked for as a file: importing takes seconds.
    package = importlib.metadata.distribution("haiku.rag-slim")
    return not Path(package.locate_file("haiku/rag/capabilities/analysis.py")).is_file()


def arms() -> list[str]:
    """Return what can be asked of this version."""
    return ["search", "rag"] if is_merged() else ["search", "rag", "analysis"]


def capability(target: str, **words: Any) -> Any:
    """Return a new capability: ``rag``, or ``analysis`` where there is one.

    Its tools are there from the first request on: by default 0.77.0 lets the model ask for them first.
    """
    if target == "analysis":
        from haiku.rag.capabilities.analysis import create_capability
    else:
        from haiku.rag.capabilities.rag import create_capability
    return create_capability(defer_loading=False, **words)


def chat_model(config: Any) -> Any:
    """Return the model that a configuration names, as the library makes it."""
    try:
        from haiku.rag.utils.models import get_model
    except ModuleNotFoundError:
        from haiku.rag.utils import get_model
    return get_model(config.qa.model, config)
