"""What is known of a database: its record, and whether what it says of itself is what was configured."""

from pathlib import Path
from typing import Any

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import Record, Stage

STAGE = "ingest_documents"


class Facts(Record, kw_only=True):
    """What the record of a database says beside its settings."""

    folder: str
    """Where it lies."""
    is_prebuilt: bool = False
    documents: str
    """SHA-256 of the documents that it is made of."""
    stamp: dict[str, Any]
    """What it says of its embedder itself."""
    versions: dict[str, str]
    """Of what made it."""
    n_documents: int
    n_chunks: int
    failed: list[str] = []
    """Documents that are not in it."""
    files: str | None = None
    """Of a ready-made one: a hash of names and sizes of its files."""


def read(record: Path) -> Facts:
    """Read the record of a database.

    Raises:
        RemeasureError: it is none.
    """
    import msgspec

    stage = jsonl.read_json(record, Stage)
    try:
        return msgspec.convert(stage.facts, Facts)
    except msgspec.ValidationError as error:
        raise RemeasureError(
            f"{record}: no record of a database ({error}); delete it and rerun: it is checked and written "
            "again"
        ) from None


def identity(record: Path) -> dict[str, Any]:
    """Return what belongs to an answer's identity of a database: what is in it, not where it lies."""
    facts = read(record)
    return {
        name: getattr(facts, name)
        for name in ("documents", "stamp", "versions", "n_documents", "n_chunks", "failed", "files")
    }


def check_stamp(stamp: Any, served_name: str, vector_dim: int, folder: Path | str) -> None:
    """Compare what a database says of its embedder with what is configured.

    Args:
        stamp: reply to ``open``.
        served_name: the embedder's name, as it is asked by.
        vector_dim: length of its vectors.
        folder: the database, for the error.

    Raises:
        RemeasureError: it is another embedder or another length, or the database does not say; both sides.
    """
    told = stamp if isinstance(stamp, dict) else {}
    found = (told.get("model"), told.get("vector_dim"))
    if found == (served_name, vector_dim):
        return
    if not isinstance(found[0], str) or type(found[1]) is not int:
        said = f"does not say which embedder its vectors come from (it says {str(told)[:120]})"
    else:
        said = f"was built with embedder {found[0]!r} of {found[1]} dimensions"
    raise RemeasureError(
        f"{folder}: the database {said}, the run configures {served_name!r} of {vector_dim} dimensions; its "
        "vectors cannot be compared with those of other models: correct the embedder (`embedder`, "
        "`served_name`, `vector_dim`), or take a database of the configured one"
    )
