"""How a run describes a model: what it is, how it is reached, what it costs."""

import re
from typing import Annotated, Any, Literal

from msgspec import Meta

from remeasure.errors import RemeasureError
from remeasure.instances.settings import Ranker
from remeasure.needs import Needs, check_needs
from remeasure.systems.settings import System
from remeasure.yaml_files import Positive, Seconds, Settings

# No user, no white space, nothing beyond ASCII: what else stands in an address is a mistake or a secret.
URL = re.compile(
    r"https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?\Z|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?(/[A-Za-z0-9._~/-]*)?\Z"
)
_PLACEHOLDERS = ("{study}", "{bench}", "{arm}", "{repeat}")


class BatchLimits(Settings, kw_only=True):
    """Bounds of a batch service (``executors.BatchSettings``)."""

    max_requests: Positive = 50_000
    max_bytes: Positive = 190_000_000
    max_open: Positive = 4
    poll_s: Seconds = 60.0
    rounds: Positive = 3


class Imported(Settings, kw_only=True):
    """Answers that an original system has written."""

    format: Literal["haiku", "pixelrag", "tosc", "vlmevalkit"]
    """Name in ``remeasure.imports``."""
    path: str
    """May hold ``{study}``, ``{bench}``, ``{arm}`` and ``{repeat}``."""


class Model(Settings, kw_only=True):
    """A reader or judge, and one way to reach it.

    ``server`` (a program that the step starts), ``base_url`` (an endpoint, or several that serve the same
    model), ``system`` (it searches documents and asks models), ``ranker`` (a gallery of photographs is
    ranked), ``imported`` (answers that are there), or ``replay`` beside one of them (answers of older runs).
    """

    title: str
    server: str | None = None
    files: dict[str, str] = {}
    corpus_files: dict[str, str] = {}
    packages: list[str] = []
    options: dict[str, bool | float | int | str] = {}
    base_url: str | list[str] | None = None
    system: System | None = None
    ranker: Ranker | None = None
    imported: Imported | None = None
    replay: str | None = None
    """Folder of an older run: answers come from its journals, and a request that they lack is an error."""
    executor: Literal["http", "batch", "vllm-batch"] | None = None
    """How ``base_url`` or ``server`` is used where it is not the usual way."""
    served_name: str | None = None
    also_named: list[str] = []
    """Names in replies that are right as well, such as the dated name behind an alias."""
    revision: str | None = None
    dialect: str = "embedded"
    thinking_default: bool | None = None
    """Whether the model thinks when nothing is said; null: the switch is always sent."""
    api_key_env: str | None = None
    concurrency: Positive = 1
    timeout_s: Seconds = 600.0
    ready_timeout_s: Seconds = 300.0
    patience_s: Seconds = 300.0
    requests_per_minute: Annotated[float, Meta(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Meta(gt=0)] | None = None
    batch: BatchLimits = BatchLimits()
    max_failed_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of a cell's requests that may end without an answer before the cell is refused."""
    price: str | None = None
    """Row of ``config/prices.yaml``; null: it costs nothing per token."""
    image_tokens: str | None = None
    """Formula for the tokens of an image (``remeasure.tokens``)."""
    image_detail: Literal["auto", "low", "high"] | None = None
    """What is asked for with every image, part of an answer's identity; null: nothing is said."""
    context_tokens: Positive | None = None
    """Context length where the endpoint does not tell it."""
    needs: Needs = Needs()
    """What asking it asks of a machine."""
    where: Literal["node", "login"] | None = None
    """On a cluster: on a node, or beside the Snakemake that plans, where there is a network."""

    def on_login(self) -> bool:
        """Return whether it is asked beside the Snakemake that plans; nodes often have no network."""
        return (
            self.where == "login"
            if self.where
            else self.server is None and self.system is None and self.ranker is None
        )

    def vllm_batch(self) -> dict[str, Any]:
        """Return model and options of ``vllm run-batch``; a hub's name stands in the options."""
        options = dict(self.options)
        named = options.pop("model", "")
        return {"model": self.files.get("model", named), "options": options}


def _check_imported(model: Model, place: str) -> None:
    unknown = [word for word in re.findall(r"\{\w*\}", model.imported.path) if word not in _PLACEHOLDERS]
    if unknown:
        raise RemeasureError(
            f"{place}.imported.path: {unknown[0]} stands for nothing; it may hold {', '.join(_PLACEHOLDERS)}"
        )
    if model.replay is not None:
        raise RemeasureError(f"{place}: imported answers cost nothing and need no `replay`; take it out")


def check_model(model: Model, place: str) -> None:
    """Check what a model's fields say together.

    Raises:
        RemeasureError: no way or two ways to reach it, an address that is none, a key where its name belongs.
    """
    ways = {name: getattr(model, name) for name in ("server", "base_url", "system", "ranker", "imported")}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        raise RemeasureError(
            f"{place}: give exactly one of {', '.join(ways)}, found {' and '.join(given) or 'none'}"
        )
    if model.imported is not None:
        _check_imported(model, place)
    check_needs(model.needs, f"{place}.needs")
    if model.needs.gpu and ((model.server or model.system) is None or model.on_login()):
        raise RemeasureError(
            f"{place}.needs.gpu: {model.needs.gpu}, but no node is started for it ("
            f"{'where: login' if model.server else given[0]}); take `gpu` out"
        )
    urls = [model.base_url] if isinstance(model.base_url, str) else model.base_url or []
    for url in urls:
        if not URL.match(url):
            raise RemeasureError(f"{place}.base_url: {url!r}; expected http://host:port/v1 or https://…")
    fits = {None: given[0], "http": "base_url", "batch": "base_url", "vllm-batch": "server"}
    if fits[model.executor] != given[0] or (model.executor == "batch" and len(urls) != 1):
        raise RemeasureError(
            f"{place}.executor: {model.executor!r} does not go with {given[0]}; batch and http need a "
            "base_url (batch exactly one), vllm-batch needs server: serve_vllm.py"
        )
    if model.executor == "vllm-batch" and not model.vllm_batch()["model"]:
        raise RemeasureError(
            f"{place}: vllm-batch needs `model`: a folder under `files`, a hub's name under `options`"
        )
    if model.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", model.api_key_env):
        raise RemeasureError(
            f"{place}.api_key_env: must be the name of an environment variable, never the key itself; "
            "if this is a key, it has been in a file: have it replaced"
        )
