"""What the requests that are built come to: how many, which is the longest, which word cannot be said."""

from collections import Counter
from pathlib import Path
from typing import Any

from remeasure import executors, requests, tokens
from remeasure.errors import RemeasureError
from remeasure.image_check import Inspector
from remeasure.preflight.askings import Asking, Target
from remeasure.records import Record, Request


class Asked(Record, kw_only=True):
    """A request with what is needed to speak of it."""

    cell: str
    request: Request
    n_images: int
    prompt_tokens: int
    """By formula; an endpoint that answered it knows better."""
    counts_images: bool
    """Whether its images are in ``prompt_tokens``; without a formula they are not."""
    error: float
    """Share by which ``prompt_tokens`` may be wrong."""

    @property
    def max_tokens(self) -> int:
        """The longest answer that it allows."""
        return self.request.body["max_tokens"]

    @property
    def total_tokens(self) -> int:
        """What must fit into the context."""
        return self.prompt_tokens + self.max_tokens

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"request {self.request.custom_id!r} of {self.cell}"


class Survey(Record, kw_only=True):
    """What the requests of one model come to."""

    unbuilt: tuple[str, ...]
    """Cells whose requests are not built yet."""
    n_files: int
    n_requests: int
    widest: Asked | None
    """The one with the most images, and of these the longest."""
    longest: Asked | None
    """The one that needs the longest context, answer included."""
    problems: tuple[str, ...]


def survey(target: Target, root: Path) -> Survey:
    """Read every request of a model that is built; a file that is wrong is a problem and not counted.

    Args:
        target: the model.
        root: what paths start from.
    """
    with Inspector(root) as inspector:
        surveyor = _Surveyor(target, root, inspector)
        for asking in target.files:
            if (root / asking.path).exists():
                surveyor.read(asking)
            else:
                surveyor.unbuilt.append(asking.cell)
                surveyor.translate(asking.words | {"messages": []}, f"the settings of {asking.cell}")
        if target.role == "answerer":
            surveyor.translate(target.words | {"messages": []}, "what systems ask it")
        return surveyor.result()


class _Surveyor:
    """Reads the request files of one model."""

    def __init__(self, target: Target, root: Path, inspector: Inspector) -> None:
        self._target, self._root, self._inspector = target, root, inspector
        way = target.way
        self._dialect = requests.dialect_of(way.dialect) if isinstance(way, executors.Speaking) else None
        self._dialect_problem: str | None = None
        self._problems: list[str] = []
        self.unbuilt: list[str] = []
        self._n_files = self._n_requests = 0
        self._widest: Asked | None = None
        self._longest: Asked | None = None

    def read(self, asking: Asking) -> None:
        """Read one file to its end or to its first mistake."""
        self._n_files += 1
        try:
            for request in requests.read_requests(self._root / asking.path, self._target.name):
                self._n_requests += 1
                self._note(asking.cell, request)
        except RemeasureError as error:
            self._problems.append(str(error))

    def translate(self, body: dict[str, Any], where: str) -> None:
        """Remember the first word of the model's requests that its endpoint cannot express."""
        if self._dialect is None or self._dialect_problem is not None:
            return
        target = self._target
        try:
            requests.translate(body, self._dialect, target.served_name, target.way.thinking_default)
        except RemeasureError as error:
            self._dialect_problem = f"models.{target.name}: {where}: {error}"

    def result(self) -> Survey:
        """Return what all files came to."""
        dialect_problem = [self._dialect_problem] if self._dialect_problem else []
        return Survey(
            unbuilt=tuple(self.unbuilt),
            n_files=self._n_files,
            n_requests=self._n_requests,
            widest=self._widest,
            longest=self._longest,
            problems=(*self._problems, *dialect_problem),
        )

    def _note(self, cell: str, request: Request) -> None:
        where = f"request {request.custom_id!r} of {cell}"
        self.translate(request.body, where)
        size = tokens.request_size(
            request.body, lambda ref: self._inspector.size(ref, where), self._target.way.image_tokens
        )
        asked = Asked(
            cell=cell,
            request=request,
            n_images=size.n_images,
            prompt_tokens=size.text_tokens() + (size.image_tokens or 0),
            counts_images=size.image_tokens is not None,
            error=tokens.text_error(Counter(size.characters)),
        )
        if self._widest is None or _width(asked) > _width(self._widest):
            self._widest = asked
        if self._longest is None or asked.total_tokens > self._longest.total_tokens:
            self._longest = asked


def _width(asked: Asked) -> tuple[int, int]:
    return asked.n_images, asked.prompt_tokens
