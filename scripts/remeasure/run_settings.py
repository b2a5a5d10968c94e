"""A run as it stands in ``config/runs/``: sizes, data and models, and what it says of each study."""

import functools
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from remeasure import repeats
from remeasure.adapters import Adapted, check_adapted
from remeasure.encoders import BACKENDS
from remeasure.errors import RemeasureError
from remeasure.instances import checks as instance_checks
from remeasure.instances.settings import (
    Backbone,
    Gallery,
    Head,
    LocalFeatures,
    PhotoSet,
    Projection,
    Reranker,
)
from remeasure.models import Model, check_model
from remeasure.needs import CorpusNeeds, EncoderNeeds, check_needs
from remeasure.setting_checks import SLUG, check_known, check_pairs
from remeasure.systems.settings import Database, Dataset, Environment, System
from remeasure.yaml_files import Count, Pieces, Positive, Seconds, Settings, convert, merge, read_yaml


class Render(Settings, kw_only=True):
    """How pages become tiles."""

    width_px: Positive
    tile_height_px: Positive
    jpeg_quality: Annotated[int, Meta(ge=1, le=100)]
    page_timeout_s: Seconds
    max_height_px: Positive


class Ocr(Settings, kw_only=True):
    """How tiles are read."""

    engine: str
    tiles_per_page: Positive


class Text(Settings, kw_only=True):
    """How page text is extracted and cut into passages."""

    max_tokens: Positive
    tables: bool
    comments: bool


class Corpus(Settings, kw_only=True):
    """One archive and what is made of it."""

    archive: str
    facts: str | None = None
    pictures: str | None = None
    pages: dict[str, Count]
    render: Render
    ocr: Ocr
    text: Text
    tokenizer: str = "results/sources/bge-small-en-v1.5.tokenizer.json"
    """What counts the tokens of a passage: ``tokenizer.json`` of the encoder that will read it."""
    parts: Pieces = 1
    """Into how many jobs rendering, reading, extraction and embedding are split (``remeasure.parts``)."""
    needs: CorpusNeeds = CorpusNeeds()
    """What its stages ask of a machine."""


class Training(Settings, kw_only=True):
    """How an adapter is trained."""

    study: str
    base: str
    rank: Positive
    temperature: Annotated[float, Meta(gt=0)]
    learning_rate: Annotated[float, Meta(gt=0)]
    max_steps: Positive
    patience: Positive
    seed: Count


class Encoder(Settings, kw_only=True):
    """What turns one unit of a corpus into vectors."""

    unit: str
    model: str
    backend: str = "onnx"
    """What runs the model (``encoders.BACKENDS``)."""
    files: dict[str, str] = {}
    """Its weights by option of the scripts, files or folders; none: the verified source ``<model>.onnx``."""
    max_tokens: Positive | None = None
    size_px: Positive | None = None
    training: Training | None = None
    needs: EncoderNeeds = EncoderNeeds()
    """What its stages ask of a machine."""


class Calibration(Settings, kw_only=True):
    """On which stored answers judges are compared with the study's own judge, and with people."""

    benches: Annotated[list[str], Meta(min_length=1)]
    """Judged benches of one grader, whose answers are drawn from."""
    n: Annotated[int, Meta(ge=2, le=100_000)] = 120
    """Half that passed, half that failed, as far as there are."""
    seed: Count = 1
    judges: Annotated[list[str], Meta(min_length=1)]
    """Models that are asked anew about every answer."""
    max_tokens: Positive | None = None
    """Of their replies; null: as the study's judge has it."""
    labels: str | None = None
    """The labelled sheet; null: nobody has labelled it yet."""


class StudyRun(Settings, kw_only=True):
    """What one run says about one study."""

    corpus: str | None = None
    """Where questions and evidence come from; null for a study that has no pages."""
    corpus_of_bench: dict[str, str] = {}
    """Benches whose evidence comes from another corpus."""
    source: str | None = None
    """Folder or zip store of images, or folder of tables, that the study's index is made from, where it has
    one."""
    options: dict[str, Any] = {}
    """Options of the study that differ in this run."""
    index: dict[str, Any] = {}
    """Options of the study's index that differ in this run."""
    reader: str | Annotated[list[str], Meta(min_length=1)]
    """The model that answers, or several: each is a row of its own, and they are compared."""
    readers_of: dict[str, list[str]] = {}
    """Benches (``nq``) or cells (``nq/base``) that only some of the readers answer; none: it is left out."""
    dataset_of_bench: dict[str, str] = {}
    """The dataset of each bench, where the study's questions come from datasets; others are left out."""
    gallery_of_bench: dict[str, str] = {}
    """The gallery of each bench, where the study ranks photographs; others are left out."""
    spread_of: dict[str, list[str]] = {}
    """Readers that are the same but for a seed, under a name: their mean and spread are shown."""
    calibration: Calibration | None = None
    """How the judge is checked; null: it is not."""
    filter: str | None = None
    """SQL WHERE over the documents of a database, for every search of a system."""
    compare: list[tuple[str, str]] = []
    """Pairs of readers whose difference is shown: first minus second."""
    stands_for: dict[str, list[str]] = {}
    """Readers of this run to those of the published table whose values they are shown beside, the first that
    has the value; a reader's own published value comes before."""
    judge: str | None = None
    prompts: str
    question_set: str = "test"
    items: str | None = None
    """Folder with your own questions, ``<bench>.jsonl``, instead of those made from the corpus's facts."""
    items_per_bench: Positive
    items_of_bench: dict[str, Positive] = {}
    """Benches with another number of questions."""
    training_items_per_page: Positive = 4
    encoders: dict[str, str] = {}
    fusion: dict[str, float] = {}
    """How the lists of the text and the photo encoder are put together, where there is a photo encoder."""
    benches: dict[str, dict[str, Any]] = {}
    """Settings of single benches that differ from ``config/studies/<study>.yaml`` in this run."""
    notes: list[str] = []
    """What a reader of this run's table must know beside its numbers, after the study's own notes."""
    shards: dict[str, Pieces] = {}
    """Into how many jobs the reader's requests of a bench (``nq``) or a cell (``nq/base``) are split."""
    repeat: Annotated[int, Meta(ge=1, le=20)] = 1
    """How often every question is asked; the table shows the first time, the drift between them apart."""
    max_failed_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Instead of the study's own limit."""
    max_judge_failed_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Instead of the study's own limit."""
    allow_failures: bool = False
    """Whether a table above the limit of failed answers is published all the same; it says so in its first
    line."""

    @property
    def models(self) -> tuple[str, ...]:
        """All models that answer, in the order of the table."""
        return (self.reader,) if isinstance(self.reader, str) else tuple(self.reader)

    @property
    def readers(self) -> tuple[str, ...]:
        """As ``models``, once more for every further time that they are asked (``repeats.name``)."""
        return tuple(repeats.name(model, n) for model in self.models for n in range(1, self.repeat + 1))


class Limits(Settings, kw_only=True):
    """What a run may cost; null: no limit."""

    estimate_usd: Annotated[float, Meta(ge=0)] | None = None
    """A cell sends nothing where the run's spending and the estimate of what it lacks are above this."""
    spend_usd: Annotated[float, Meta(ge=0)] | None = None
    """Nothing more is sent once all cells of the run together have spent this much."""


class Agreement(Settings, kw_only=True):
    """Which judges are compared on which stored answers."""

    study: str
    bench: str
    judges: Annotated[list[str], Meta(min_length=1)]
    n_answers: Positive


class Run(Settings, kw_only=True):
    """``config/runs/<run>.yaml`` after ``extends`` was followed."""

    title: str
    not_comparable: list[str] = []
    corpora: dict[str, Corpus]
    encoders: dict[str, Encoder]
    adapted: dict[str, Adapted] = {}
    """Models that a step puts together from a base and an adapter; a model's ``files`` name their folders."""
    datasets: dict[str, Dataset] = {}
    environments: dict[str, Environment] = {}
    databases: dict[str, Database] = {}
    photo_sets: dict[str, PhotoSet] = {}
    backbones: dict[str, Backbone] = {}
    local_features: dict[str, LocalFeatures] = {}
    heads: dict[str, Head] = {}
    rerankers: dict[str, Reranker] = {}
    galleries: dict[str, Gallery] = {}
    projection: Projection = Projection()
    models: dict[str, Model]
    studies: dict[str, StudyRun]
    limits: Limits = Limits()
    judge_agreement: Agreement | None = None


UNITS = ("tiles", "passages", "pictures", "lines")


@functools.cache
def load_run(folder: Path, name: str) -> Run:
    """Load ``runs/<name>.yaml`` below the configuration folder, following ``extends``."""
    seen: list[str] = []
    layers: list[dict[str, Any]] = []
    current: str | None = name
    while current is not None:
        if not isinstance(current, str) or not SLUG.match(current):
            raise RemeasureError(
                f"run {current!r}: a run is named by lower-case letters, digits, _ and -; "
                f"choose one of {folder}/runs/*.yaml"
            )
        if current in seen:
            raise RemeasureError(
                f"{folder}/runs/{current}.yaml: extends goes in a circle: {' > '.join(seen)}"
            )
        seen.append(current)
        layers.append(read_yaml(folder / "runs" / f"{current}.yaml"))
        current = layers[-1].pop("extends", None)
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        merged = merge(_without_what_it_replaces(merged, layer), layer)
    _leave_out_studies(merged, layers[0])
    path = folder / "runs" / f"{name}.yaml"
    run = convert(merged, Run, path)
    _check_run(run, path)
    return run


# What a run says of a study's images or models, and what it inherits that would be said of others.


_REPLACES = {
    "source": ("notes",),
    "items": ("notes", "calibration.labels"),
    "reader": ("notes", "compare", "stands_for", "readers_of", "spread_of", "calibration.labels"),
}


def _without_what_it_replaces(merged: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    """Return inherited settings without what was said of images or models that the run replaces."""
    inherited, own = merged.get("studies"), layer.get("studies")
    if not isinstance(inherited, dict) or not isinstance(own, dict):
        return merged
    kept = dict(inherited)
    for name, section in own.items():
        if isinstance(section, dict) and isinstance(kept.get(name), dict):
            gone = {word for key in section for word in _REPLACES.get(key, ())}
            kept[name] = _without(kept[name], gone)
    return merged | {"studies": kept}


def _without(section: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a section without some settings; ``a.b`` is the setting ``b`` of a section in it."""
    kept = {key: value for key, value in section.items() if key not in names}
    for name in sorted(names):
        head, _, tail = name.partition(".")
        if tail and isinstance(kept.get(head), dict):
            kept[head] = {key: value for key, value in kept[head].items() if key != tail}
    return kept


def _leave_out_studies(merged: dict[str, Any], own: dict[str, Any]) -> None:
    """Drop the studies that a run sets to null, and what it inherits that compares the judges of such."""
    studies, audit = merged.get("studies"), merged.get("judge_agreement")
    if not isinstance(studies, dict):
        return
    merged["studies"] = {name: section for name, section in studies.items() if section is not None}
    left_out = studies.keys() - merged["studies"].keys()
    if "judge_agreement" not in own and isinstance(audit, dict) and audit.get("study") in left_out:
        merged["judge_agreement"] = None


def _check_run(run: Run, path: Path) -> None:
    """Check what points from one section of a run to another."""
    named = [*run.corpora, *run.encoders, *run.adapted, *run.models]
    named += [name for section in instance_checks.SECTIONS for name in getattr(run, section)]
    for slug in [*named, *run.datasets, *run.environments, *run.databases]:
        if not SLUG.match(slug):
            raise RemeasureError(f"{path}: name {slug!r} may hold only a-z, 0-9, _ and -; rename it")
    for name, corpus in run.corpora.items():
        check_needs(corpus.needs, f"{path}: corpora.{name}.needs")
    for name, encoder in run.encoders.items():
        check_needs(encoder.needs, f"{path}: encoders.{name}.needs")
        check_known("unit", encoder.unit, UNITS, f"{path}: encoders.{name}")
        check_known("backend", encoder.backend, BACKENDS, f"{path}: encoders.{name}")
        if encoder.backend != "onnx" and "model" not in encoder.files:
            raise RemeasureError(f"{path}: encoders.{name}.files: lacks `model`, the folder of the weights")
        if encoder.training and encoder.training.base == name:
            raise RemeasureError(f"{path}: encoders.{name}.training.base: the encoder itself; name another")
        if encoder.training:
            check_known(
                "encoder", encoder.training.base, run.encoders, f"{path}: encoders.{name}.training.base"
            )
    for name, adapted in run.adapted.items():
        check_adapted(adapted, f"{path}: adapted.{name}")
        check_needs(adapted.needs, f"{path}: adapted.{name}.needs")
    instance_checks.check_run(run, path)
    for name, model in run.models.items():
        check_model(model, f"{path}: models.{name}")
        if model.system is not None:
            _check_system(model.system, run, f"{path}: models.{name}.system")
    for name, database in run.databases.items():
        place = f"{path}: databases.{name}"
        check_needs(database.needs, f"{place}.needs")
        check_known("model", database.embedder, run.models, f"{place}.embedder")
        if database.environment is not None:
            check_known("environment", database.environment, run.environments, f"{place}.environment")
        for dataset in database.prebuilt:
            check_known("dataset", dataset, run.datasets, f"{place}.prebuilt")
    for name, study in run.studies.items():
        place = f"{path}: studies.{name}"
        for bench, dataset in study.dataset_of_bench.items():
            check_known("dataset", dataset, run.datasets, f"{place}.dataset_of_bench.{bench}")
        for bench, gallery in study.gallery_of_bench.items():
            check_known("gallery", gallery, run.galleries, f"{place}.gallery_of_bench.{bench}")
        for group, several in study.spread_of.items():
            for reader in several:
                check_known("reader", reader, study.models, f"{place}.spread_of.{group}")
            if len(set(several)) < max(2, len(several)):
                raise RemeasureError(
                    f"{place}.spread_of.{group}: {', '.join(several) or 'none'}; name at least two readers, "
                    "each once"
                )
        for reader in study.stands_for:
            check_known("reader", reader, study.models, f"{place}.stands_for")
        for cell, readers in study.readers_of.items():
            for reader in readers:
                check_known("reader", reader, study.models, f"{place}.readers_of.{cell}")
        if study.corpus is not None:
            check_known("corpus", study.corpus, run.corpora, f"{place}.corpus")
        if study.judge is not None:
            check_known("model", study.judge, run.models, f"{place}.judge")
        _check_readers(study, run, place)
        for bench, corpus in study.corpus_of_bench.items():
            check_known("corpus", corpus, run.corpora, f"{place}.corpus_of_bench.{bench}")
        for judge in study.calibration.judges if study.calibration else ():
            check_known("model", judge, run.models, f"{place}.calibration.judges")
        for role, encoder in study.encoders.items():
            check_known("encoder", encoder, run.encoders, f"{place}.encoders.{role}")
    for judge in run.judge_agreement.judges if run.judge_agreement else ():
        check_known("model", judge, run.models, f"{path}: judge_agreement.judges")


def _check_system(system: System, run: Run, place: str) -> None:
    """Check what a system's parts are."""
    check_known("database", system.database, run.databases, f"{place}.database")
    for role in ("answerer", "reranker"):
        name = getattr(system, role)
        if name is not None:
            check_known("model", name, run.models, f"{place}.{role}")
            if run.models[name].system is not None:
                raise RemeasureError(f"{place}.{role}: {name!r} is a system itself; name a model")


def _check_readers(study: StudyRun, run: Run, place: str) -> None:
    """Check the models that answer and which of them are compared."""
    for number, reader in enumerate(study.models):
        check_known("model", reader, run.models, f"{place}.reader")
        if reader in study.models[:number]:
            raise RemeasureError(f"{place}.reader: {reader!r} stands twice; remove one")
        reads = run.models[reader].corpus_files
        if reads and study.corpus is None:
            raise RemeasureError(
                f"{place}.reader: {reader!r} reads files of a corpus (corpus_files), and the study has none; "
                "name a `corpus` or another reader"
            )
        if reads and study.corpus_of_bench:
            raise RemeasureError(
                f"{place}.corpus_of_bench: reader {reader!r} reads files of one corpus (corpus_files); "
                "take one of the two out"
            )
    for pair in study.compare:
        for reader in pair:
            check_known("reader", reader, study.models, f"{place}.compare")
    check_pairs(study.compare, f"{place}.compare")
