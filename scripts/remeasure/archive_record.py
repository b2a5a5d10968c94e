"""The hash of an archive, from the record of the step that has read it whole."""

from pathlib import Path

from remeasure import jsonl
from remeasure.archive import Archive
from remeasure.errors import RemeasureError
from remeasure.records import Stage


def known_hash(archive: Archive, pages: Path) -> dict[str, str]:
    """Return the SHA-256 of an archive by path, as the record beside its page list tells it.

    Every part of a corpus reads the same archive; hashing 111 GB in each would take longer than the work.

    Args:
        archive: opened archive.
        pages: page list that was chosen from it; its record has the same name and ends in ``.json``.

    Edges:
        Empty, so that the file is hashed, without such a record, where the archive was changed since it was
        written, and where size or the checksum at the archive's end are not those that it tells.
    """
    record = pages.with_suffix(".json")
    try:
        told = jsonl.read_json(record, Stage)
        is_older = archive.path.stat().st_mtime_ns < record.stat().st_mtime_ns
    except (RemeasureError, OSError):
        return {}
    sha256 = told.inputs.get(str(archive.path))
    if sha256 is None or not is_older or told.facts.get("archive") != archive.identity:
        return {}
    return {str(archive.path): sha256}
