"""The ``vllm run-batch`` executor: a file of requests answered by a model that is loaded for it alone.

There is no resuming inside a file: vLLM 0.32 writes its results when the last request is done, others write
as they go. Whatever lines there are when it ends are kept, however it ends; it ends with status 0 also where
every request has failed, so that only the lines are believed.
"""

import contextlib
import logging
import os
import re
import select
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from remeasure import hardware, images, model_server, requests, scratch, vllm_server
from remeasure.errors import RemeasureError
from remeasure.executors import Call, Keeper, VllmBatchSettings
from remeasure.executors.batch_lines import Results, line_of
from remeasure.executors.keys import Key
from remeasure.executors.replies import Failure, Outcome, entry_of
from remeasure.process_group import Group
from remeasure.records import ImageRef, JournalEntry

log = logging.getLogger("remeasure.vllm_batch")
# What this module says to vLLM; its parser also takes unambiguous beginnings.
_OWNED = ("input-file", "output-file", "model", "served-model-name", "allowed-local-media-path", "config")
_PROGRESS = re.compile(rb"Running batch: +(\d+% Completed \| [^\[\r\n]+)")
_SAY_EVERY_S = 30.0
_POLL_S = 0.2
_FINGERPRINT = re.compile(r"vllm-(.+)-[0-9a-f]{8}")
_MISSING = Failure(kind="missing", message="vllm run-batch has written no line for the request")


class VllmBatchExecutor:
    """Answers calls through ``vllm run-batch``; see ``Executor``.

    Args:
        settings: the model and vLLM's options.
        served_name: the name that requests and replies give the model.
        images_root: folder that the paths of image references start from.
        journal: the cell's journal folder; requests, images and the log are put there.
    """

    def __init__(
        self, settings: VllmBatchSettings, served_name: str, images_root: Path, journal: Path
    ) -> None:
        self._settings = settings
        self._served_name = served_name
        self._dialect = requests.dialect_of(settings.dialect)
        self._root = images_root
        # vLLM takes no relative paths in its requests.
        self._folder = (journal / "vllm-batch").resolve()
        self._log_path = journal / "vllm-batch.log"
        self._words = _words(settings, served_name, self._folder)
        self._hardware = hardware.gpus() or hardware.cpu()
        self._said = time.monotonic()

    def run(self, calls: Iterator[Call], keeper: Keeper) -> None:
        """Answer all calls; see ``Executor.run``. What was not answered when it is stopped is asked again."""
        if reason := keeper.enough():
            raise RemeasureError(reason)
        shutil.rmtree(self._folder, ignore_errors=True)  # what a killed run has left
        self._folder.mkdir(parents=True)
        try:
            asked = self._write(calls)
            if asked:
                self._answer(asked, keeper)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, calls: Iterator[Call]) -> dict[str, str]:
        """Write the requests and put their images where vLLM may read them; return custom ids by key."""
        asked = {}
        with _Images(self._root, self._folder / "images") as placed, open(self._input, "wb") as stream:
            for call in calls:
                wire = requests.translate(
                    call.body, self._dialect, self._served_name, self._settings.thinking_default
                )
                body = msgspec.json.encode(requests.with_image_urls(wire, placed.url))
                stream.write(line_of(call.key, [body]))
                asked[call.key] = call.custom_id
        return asked

    def _answer(self, asked: dict[str, str], keeper: Keeper) -> None:
        log.info(
            "%d requests for vllm run-batch, which does not resume: what is not written when it is stopped "
            "is asked again; its log: %s",
            len(asked),
            self._log_path,
        )
        for key in asked:
            keeper.sent(key)
        began = time.monotonic()
        reading = _Reading(asked, (self._served_name, *self._settings.also_named), self._hardware)
        try:
            self._run()
        except BaseException:
            reading.keep(self._output, began, keeper)
            log.warning("%d of %d requests were answered before the end", reading.n_answered, len(asked))
            raise
        reading.keep(self._output, began, keeper)
        reading.keep_missing(began, keeper)
        if not reading.n_answered:
            log.warning(
                "vllm run-batch ended with status 0, and none of %d requests was answered", len(asked)
            )

    @property
    def _input(self) -> Path:
        return self._folder / "requests.jsonl"

    @property
    def _output(self) -> Path:
        return self._folder / "results.jsonl"

    def _run(self) -> None:
        """Run vLLM to its end.

        Raises:
            RemeasureError: it cannot be started, fails, takes too long or writes no results; with its log's
                end.
        """
        environment = model_server.environment(vllm_server.environment())
        group = Group([vllm_server.program(), *self._words], environment)
        try:
            with open(self._log_path, "wb") as stream:
                status = self._follow(group, stream)
        finally:
            group.stop()
        if status:
            raise self._failure(f"ended with exit status {status}")
        if not self._output.exists():
            raise self._failure("ended with exit status 0 and wrote no results")

    def _follow(self, group: Group, stream: BinaryIO) -> int:
        """Copy what vLLM writes to its log until it ends; return its exit status."""
        deadline = time.monotonic() + self._settings.timeout_s
        pipe, is_open = group.output.fileno(), True
        while True:
            # Something that has left the group may hold the pipe for ever: its end alone is no end.
            status = group.exit_status()
            if is_open and select.select([pipe], [], [], _POLL_S)[0]:
                data = os.read(pipe, 1 << 16)
                is_open = bool(data)
                # A log that cannot be written (full disk) must not stop vLLM, which waits until it is read.
                with contextlib.suppress(OSError):
                    stream.write(data)
                    stream.flush()
                self._say(data)
            elif status is not None:
                return status
            elif not is_open:
                time.sleep(_POLL_S)
            if time.monotonic() > deadline:
                raise self._failure(f"did not end within {self._settings.timeout_s:g} s (`timeout_s`)")

    def _say(self, data: bytes) -> None:
        """Log how far vLLM is, now and then."""
        found = _PROGRESS.findall(data)
        if found and time.monotonic() - self._said > _SAY_EVERY_S:
            self._said = time.monotonic()
            log.info("vllm: %s", found[-1].decode("ascii", "replace").strip())

    def _failure(self, what: str) -> RemeasureError:
        end = model_server.log_end(self._log_path)
        return RemeasureError(f"vllm run-batch {what}; its log {self._log_path} ends: {end}")


class _Images:
    """Puts images below one folder, the only one that vLLM may read; each content once."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._reader = images.ImageReader()
        self._placed: set[str] = set()

    def __enter__(self) -> "_Images":
        self._folder.mkdir()
        return self

    def __exit__(self, *_) -> None:
        self._reader.__exit__()

    def url(self, ref: ImageRef) -> str:
        """Return the address of an image for vLLM.

        Raises:
            RemeasureError: it is missing, damaged, no image, or another one than the reference says.
        """
        target = self._folder / ref.sha256[:2] / ref.sha256
        if ref.sha256 not in self._placed:
            source = self._root / ref.path
            data = self._reader.read(msgspec.structs.replace(ref, path=str(source)))
            images.media_type(data)
            target.parent.mkdir(exist_ok=True)
            self._place(source if ref.member is None else None, data, target)
            self._placed.add(ref.sha256)
        return target.as_uri()

    @staticmethod
    def _place(source: Path | None, data: bytes, target: Path) -> None:
        if source is not None:
            # A second name costs no room; not every file system can give one.
            with contextlib.suppress(OSError):
                os.link(source, target)
                return
        target.write_bytes(data)


class _Reading:
    """Hands the results of a file to the keeper."""

    def __init__(self, asked: dict[str, str], names: tuple[str, ...], machine: str) -> None:
        self._asked, self._machine = asked, machine
        self._results = Results(asked, names, Key(None))
        self.n_answered = 0

    def keep(self, path: Path, began: float, keeper: Keeper) -> None:
        """Keep what stands in the results; there may be none."""
        if not path.exists():
            return
        for key, result in self._results.read(path):
            self.n_answered += isinstance(result, Outcome)
            self._keep(key, result, began, keeper)
        if oddities := self._results.oddities():
            log.warning("%s", oddities)

    def keep_missing(self, began: float, keeper: Keeper) -> None:
        """Keep the failure of the requests without a line."""
        for key in self._asked:
            if key not in self._results.seen:
                self._keep(key, _MISSING, began, keeper)

    def _keep(self, key: str, result: Outcome | Failure, began: float, keeper: Keeper) -> None:
        seconds = time.monotonic() - began
        entry = entry_of(key, self._asked[key], result, attempts=1, seconds=seconds)
        keeper.keep(msgspec.structs.replace(entry, server=self._server(entry)))

    def _server(self, entry: JournalEntry) -> str | None:
        """Return what answered, in the words of a model server (``model_server``)."""
        if not isinstance(entry.raw, msgspec.Raw) or entry.status == "failed":
            return None
        said = msgspec.json.decode(entry.raw, type=_Fingerprint).system_fingerprint
        found = _FINGERPRINT.fullmatch(said) if isinstance(said, str) else None
        return f"vllm{f' {found[1]}' if found else ''}, {self._machine}"


class _Fingerprint(msgspec.Struct):
    system_fingerprint: object = None


def _words(settings: VllmBatchSettings, served_name: str, folder: Path) -> list[str]:
    """Return the command line without the program.

    Raises:
        RemeasureError: an option is ours to set; the model is written as a folder, and there is none.
    """
    words = ["run-batch", "-i", str(folder / "requests.jsonl"), "-o", str(folder / "results.jsonl")]
    model = vllm_server.checked_model(settings.model)
    if Path(model).is_dir():
        model = str(scratch.local_copy(Path(model)))
    words += ["--model", model, "--served-model-name", served_name]
    words += ["--allowed-local-media-path", str(folder / "images")]
    for name, value in settings.options.items():
        flag = name.replace("_", "-")
        if any(owned.startswith(flag.lower()) for owned in _OWNED):
            raise RemeasureError(
                f"option {name!r}: files, model and names of vllm run-batch are set here; take it out "
                "of the model's `options`"
            )
        words += model_server.option_words({name: value})
    return words
