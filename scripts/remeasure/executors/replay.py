"""The replay executor: answers that older runs have kept, and nothing else; it sends nothing."""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from remeasure import journal
from remeasure.errors import RemeasureError
from remeasure.executors import Call, Keeper, ReplaySettings
from remeasure.records import Status


class _Place(NamedTuple):
    """Where the outcome that counts for a key stands."""

    status: Status
    path: Path
    start: int
    length: int


class ReplayExecutor:
    """Hands over what the journals of older runs hold for each call, as it was recorded; see ``Executor``.

    An outcome that a rerun would ask again (``failed``) is none. Of several outcomes of one key, in whichever
    journals, the rule of ``journal`` says which counts. In memory are places, and only of what is called for.
    """

    def __init__(self, settings: ReplaySettings) -> None:
        self._folder = Path(settings.folder)

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Hand over all that is there, then report what is not; see ``Executor.run``."""
        wanted = {call.key: call.custom_id for call in calls}
        places = self._places(wanted)
        missing: list[str] = []
        for key in wanted:
            place = places.get(key)
            if place is None or place.status not in journal.FINAL:
                missing.append(key)
            else:
                with open(place.path, "rb") as stream:
                    keeper.keep(journal.entry_at(stream.fileno(), place.start, place.length))
        if missing:
            first = missing[0]
            where = f"request {wanted[first]!r}, key {first[:12]}…"
            raise self._misses(len(missing), len(wanted), where, failed=first in places)

    def _misses(self, n_missing: int, n_wanted: int, first: str, failed: bool) -> RemeasureError:
        reason = (
            "it failed there"
            if failed
            else "its text, its images, the model's name or what identifies the model (weights, code, "
            "revision) is not that of the older run"
        )
        return RemeasureError(
            f"{self._folder}: its journals have no answer for {n_missing} of {n_wanted} requests; first "
            f"{first}: {reason}; the other answers are kept, take `replay` off the model to ask for these"
        )

    def _places(self, wanted: Container[str]) -> dict[str, _Place]:
        places: dict[str, _Place] = {}
        for path in self._journals():
            for start, length, entry in journal.entries(path):
                if entry.key in wanted and (
                    entry.key not in places or journal.counts_over(entry.status, places[entry.key].status)
                ):
                    places[entry.key] = _Place(entry.status, path, start, length)
        return places

    def _journals(self) -> list[Path]:
        found = journal.journals_below(self._folder)
        if not found:
            problem = "holds no journal/*.jsonl" if self._folder.is_dir() else "is not a folder"
            raise RemeasureError(
                f"{self._folder}: {problem}; `replay` of the model must name the folder of a finished run, "
                "such as results/<run>"
            )
        return found
