"""The import executor: answers that another system has written become ours; it sends nothing."""

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import executors, fingerprint, imports, journal
from remeasure.errors import RemeasureError
from remeasure.executors import Call, ImportSettings, Keeper
from remeasure.files import sha256_file, write_text
from remeasure.imports import Imported
from remeasure.records import JournalEntry
from remeasure.requests import safe_id

log = logging.getLogger("remeasure.import")
UNMATCHED = "unmatched.txt"
_N_NAMED, _LONGEST_NAMED = 10, 200


def located(settings: executors.Settings, path: Path | None) -> tuple[executors.Settings, dict[str, Any]]:
    """Tie an import to one file and its content; every other way of asking passes through.

    Args:
        settings: how a model is reached.
        path: the file of this cell; null: the settings name it.

    Returns:
        The settings with path and hash, and what belongs to the identity of the answers: a changed file, or
        a changed reader of its format, gives other answers and is read anew.

    Raises:
        RemeasureError: the format is not known or the file cannot be read.
    """
    if not isinstance(settings, ImportSettings):
        return settings, {}
    imports.by_name(settings.format)
    path = path or Path(settings.path)
    imports.check(path)
    sha256 = sha256_file(path)
    reader = fingerprint.of_script(f"remeasure/imports/{settings.format}.py")
    identity = {"format": settings.format, "reader": reader, "sha256": sha256}
    return msgspec.structs.replace(settings, path=str(path), sha256=sha256), {"imported": identity}


class ImportExecutor:
    """Hands over what a file says about each call; see ``Executor``.

    The file is read twice, as a stream: it is checked as a whole before the first answer is handed over. Ids
    are compared by ``requests.safe_id``. A call without an answer gets no outcome and ends as ``not_sent``.
    Such calls, and answers that nothing asks for, are counted in the log and listed in ``unmatched.txt``.

    Args:
        settings: format, file and hash, as ``located`` gives them.
        folder: the cell's journal folder.

    Edges:
        Requests with equal bodies each have the answer of their own row (``request_plan``).
    """

    def __init__(self, settings: ImportSettings, folder: Path) -> None:
        self._path, self._folder = Path(settings.path), folder
        self._read = imports.by_name(settings.format)
        sha256 = sha256_file(self._path)
        if settings.sha256 not in (None, sha256):
            raise RemeasureError(f"{self._path}: has changed while it was read; let it rest and rerun")
        self._source = f"{settings.format} {self._path.name} {sha256[:12]}"

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Hand over the answers that the file holds; see ``Executor.run``."""
        wanted = {safe_id(call.custom_id): call.key for call in calls}
        places = self._places()
        known = self._known()
        if not known and not wanted.keys() & places.keys():
            raise self._nothing_fits(wanted, places)
        for imported in self._read(self._path):
            custom_id = safe_id(imported.foreign_id)
            if custom_id in wanted:
                keeper.keep(self._entry(imported, custom_id, wanted[custom_id]))
        self._report(
            [custom_id for custom_id in wanted if custom_id not in places],
            [
                place
                for custom_id, place in places.items()
                if custom_id not in wanted and custom_id not in known
            ],
        )

    def _places(self) -> dict[str, str]:
        """Return the foreign ids with their places, as a person reads them, by our id."""
        places: dict[str, tuple[str, str]] = {}
        for imported in self._read(self._path):
            custom_id = safe_id(imported.foreign_id)
            if custom_id in places:
                raise RemeasureError(
                    f"{self._path} {imported.place}: id {imported.foreign_id[:80]!r} stands already in "
                    f"{places[custom_id][0]}, and which of the two counts is not known; remove one"
                )
            name = json.dumps(imported.foreign_id[:_LONGEST_NAMED])
            places[custom_id] = (imported.place, f"{name} ({imported.place})")
        return {custom_id: named for custom_id, (_, named) in places.items()}

    def _known(self) -> set[str]:
        """Return the ids whose outcome an earlier try has taken from this file."""
        return {
            entry.custom_id
            for path in sorted(self._folder.glob("*.jsonl"))
            for _, _, entry in journal.entries(path)
            if entry.server == self._source
        }

    def _nothing_fits(self, wanted: Iterable[str], places: dict[str, str]) -> RemeasureError:
        if not places:
            return RemeasureError(f"{self._path}: holds no answer; correct `imported.path` of the model")
        return RemeasureError(
            f"{self._path}: has no answer for any request; requests are called like {next(iter(wanted))!r}, "
            f"its {len(places)} answers like {next(iter(places.values()))}; give the items the ids of the "
            "original system, or correct `imported.path` of the model"
        )

    def _entry(self, imported: Imported, custom_id: str, key: str) -> JournalEntry:
        return JournalEntry(
            key=key,
            custom_id=custom_id,
            status=imported.status,
            text=imported.text,
            finish=imported.finish,
            usage=imported.usage,
            model=imported.model,
            error=imported.error,
            attempts=0,
            seconds=0.0,
            server=self._source,
            raw={"id": imported.foreign_id, "place": imported.place},
        )

    def _report(self, requests: list[str], answers: list[str]) -> None:
        """Say what has no counterpart; the list lies beside the journal."""
        listed = self._folder / UNMATCHED
        if not requests and not answers:
            listed.unlink(missing_ok=True)
            return
        lines = [f"request without an answer in {self._source}: {custom_id}" for custom_id in requests]
        lines += [f"answer without a request: {place}" for place in answers]
        write_text(listed, "".join(f"{line}\n" for line in lines))
        for what, found in (("requests have no answer", requests), ("answers have no request", answers)):
            if found:
                more = ", …" if len(found) > _N_NAMED else ""
                names = ", ".join(found[:_N_NAMED]) + more
                log.warning("%s: %d %s: %s; all in %s", self._path, len(found), what, names, listed)
