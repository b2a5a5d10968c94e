"""Settings as they stand in ``config/``: typed, complete, every mistake one line with the place and the fix.

Runs and studies are YAML files. ``remeasure.plan`` turns them into what each stage is told.
"""

import functools
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from remeasure import repeats
from remeasure.adapters import Adapted, check_adapted
from remeasure.encoders import BACKENDS
from remeasure.errors import RemeasureError, did_you_mean
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
from remeasure.systems.settings import Database, Dataset, Environment, System
from remeasure.yaml_files import Count, Pieces, Positive, Seconds, Settings, convert, merge, read_yaml

Axis = Literal["bench", "arm", "model", "metric"]


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


class Arm(Settings, kw_only=True):
    """One column of a table: what the reader is given as evidence."""

    title: str
    evidence: str
    retriever: str | None = None
    photo: bool = False
    images: bool = True
    """Whether the images of the questions themselves are shown."""
    options: dict[str, Any] = {}
    """What the study's messages are told about it."""


class Sampling(Settings, kw_only=True):
    """How a reader samples; a word that is null is not sent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None


class Bench(Settings, kw_only=True):
    """One row of a table: how its questions are asked and graded."""

    title: str
    grader: str
    max_tokens: Positive
    thinking: bool | dict[str, bool]
    sampling: Sampling | None = None
    """Instead of the study's."""
    instruction: str | None = None
    layout: str | None = None
    gold: str = "first"
    """What a judge is told to be right: the first reference, or any_of all."""
    options: dict[str, Any] = {}
    """Settings of the grader itself."""
    files: dict[str, str] = {}
    """Files that the grader reads, by name."""
    task: dict[str, Any] | None = None
    """What a system is to do with a question (``systems.contract.DOES`` and what it needs); null: nothing."""
    index: str | None = None
    """The index file that its items are made from; null: the study's first."""
    answer_tokens: Positive | None = None
    """For estimates: how long an answer is, without thinking; null: as long as one of SimpleQA."""
    requests_per_case: Annotated[float, Meta(gt=0)] | None = None
    """For estimates: how many requests a system sends to its model for one question."""
    input_tokens: Positive | None = None
    """For estimates: how much such a request holds, what was found included."""
    judge_tokens: Positive | None = None
    """For estimates: how long a judge's reply is, without thinking; null: as long as such an answer too."""


class Retrieve(Settings, kw_only=True):
    """How many units are fetched, and how many of them the reader is shown."""

    n_docs: Positive
    n_shown: Positive


class Tables(Settings, kw_only=True):
    """Tables with images inside, and where they are looked for."""

    files: Annotated[dict[str, str], Meta(min_length=1)]
    """Index file to the table that it is made from, a place below the run's `source`."""
    images: str
    """Store that the images are put into."""
    environment: str
    """Where a run names no `source`: variable that names a folder with ..."""
    folder: str
    """... this folder in it. A folder that is not there is an error."""
    fetched: str
    """Where neither is given: folder that a rule brings the tables to."""


class Index(Settings, kw_only=True):
    """How a study lists the images of the run's `source`; the study's `options` are told to it too."""

    files: Annotated[list[str], Meta(min_length=1)]
    """What is written, the file that items are made from first."""
    tables: Tables | None = None
    """Null where the source is a folder or store of images."""
    options: dict[str, Any] = {}
    """Settings of the study's index module; a run may lay others on top."""


class Block(Settings, kw_only=True):
    """Some benches of a table under a title, with the metrics that are shown of them."""

    title: str
    benches: Annotated[list[str], Meta(min_length=1)]
    metrics: Annotated[list[str], Meta(min_length=1)]


class Layout(Settings, kw_only=True):
    """What stands where in the wide table; an unnamed axis with several values joins the rows."""

    rows: tuple[Axis, ...] = ("bench",)
    columns: tuple[Axis, ...] = ("arm",)
    metrics: tuple[str, ...] = ()
    """The metrics that it shows, in this order; none: all that the graders have. Other files have all."""
    blocks: tuple[Block, ...] = ()
    """Parts of the table with columns of their own; none: it is one."""
    anchors: str | None = None
    """File of others' numbers that stand below blocks as a reading aid, relative to the repository."""
    figure: Literal["conditions"] | None = None
    """What the picture shows: the arms of every bench and their differences, model by model. Null: bars by
    arm, or points by metric where metrics are columns."""


class Contrast(Settings, kw_only=True):
    """Two arms, or two benches with the same items, whose difference is shown: first minus second."""

    first: str
    second: str
    axis: Literal["arm", "bench"] = "arm"
    name: str | None = None
    """What the difference is called; null: it has no name."""
    title: str | None = None


class Judging(Settings, kw_only=True):
    """How a judge is asked."""

    max_tokens: Positive = 1000
    temperature: float | None = 0.0
    """Null: it is not sent."""
    thinking: bool | None = None
    """Null: nothing is said."""
    further: bool = False
    """Whether it is asked further questions about an answer, each with a prompt `judge_<name>` of its own."""
    response_format: dict[str, Any] | None = None
    """Shape that a verdict must have, in the form of the chat protocol."""


class Study(Settings, kw_only=True):
    """``config/studies/<study>.yaml``: the published protocol."""

    title: str
    published: str
    unit: str
    decimals: Annotated[int, Meta(ge=0, le=6)] = 1
    """How many the table prints."""
    bootstrap_samples: Annotated[int, Meta(ge=100, le=1_000_000)] = 2000
    """Of every interval that is not Wilson's."""
    notes: list[str] = []
    """What a reader of the table must know beside its numbers, one sentence or more each."""
    layout: Layout = Layout()
    datasets: bool = False
    """Whether its questions come from datasets."""
    galleries: bool = False
    """Whether its questions are photographs, for which galleries are ranked."""
    retrieve: Retrieve | None = None
    """Null where no arm retrieves."""
    index: Index | None = None
    options: dict[str, Any] = {}
    """What listing images and grading must know alike."""
    sampling: Sampling
    arms: dict[str, Arm]
    contrasts: list[tuple[str, str] | Contrast] = []
    """Pairs of arms whose difference is shown: first minus second."""
    judging: Judging = Judging()
    max_failed_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of a cell's answers that may have failed before its table is not published; null: no limit, and
    the models' own stop a cell before it is graded."""
    max_judge_failed_share: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """Share of the judge's replies that may be missing before a cell is refused: they leave the denominator,
    or are zeros, and would flatter or empty it (pitfall P3)."""
    training_sets: list[str] = []
    benches: dict[str, Bench]

    @property
    def compared(self) -> list[Contrast]:
        """The pairs of arms whose difference is shown, each with what it is called."""
        return [
            pair if isinstance(pair, Contrast) else Contrast(first=pair[0], second=pair[1])
            for pair in self.contrasts
        ]


class Cell(Settings, kw_only=True):
    """One line of ``config/cells.tsv``."""

    study: str
    bench: str
    arm: str
    table: str


EVIDENCE = ("none", "text", "tiles")
LAYOUTS = ("choice",)
GOLDS = ("first", "any_of")
UNITS = ("tiles", "passages", "pictures", "lines")
INDEX_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.jsonl?\Z")
STORE_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.zip\Z")
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")


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


def _known(kind: str, word: str, known, place: str) -> None:
    if word not in known:
        raise RemeasureError(
            f"{place}: {kind} {word!r} is not defined{did_you_mean(word, known)}; known: {', '.join(known)}"
        )


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
        _known("unit", encoder.unit, UNITS, f"{path}: encoders.{name}")
        _known("backend", encoder.backend, BACKENDS, f"{path}: encoders.{name}")
        if encoder.backend != "onnx" and "model" not in encoder.files:
            raise RemeasureError(f"{path}: encoders.{name}.files: lacks `model`, the folder of the weights")
        if encoder.training and encoder.training.base == name:
            raise RemeasureError(f"{path}: encoders.{name}.training.base: the encoder itself; name another")
        if encoder.training:
            _known("encoder", encoder.training.base, run.encoders, f"{path}: encoders.{name}.training.base")
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
        _known("model", database.embedder, run.models, f"{place}.embedder")
        if database.environment is not None:
            _known("environment", database.environment, run.environments, f"{place}.environment")
        for dataset in database.prebuilt:
            _known("dataset", dataset, run.datasets, f"{place}.prebuilt")
    for name, study in run.studies.items():
        place = f"{path}: studies.{name}"
        for bench, dataset in study.dataset_of_bench.items():
            _known("dataset", dataset, run.datasets, f"{place}.dataset_of_bench.{bench}")
        for bench, gallery in study.gallery_of_bench.items():
            _known("gallery", gallery, run.galleries, f"{place}.gallery_of_bench.{bench}")
        for group, several in study.spread_of.items():
            for reader in several:
                _known("reader", reader, study.models, f"{place}.spread_of.{group}")
            if len(set(several)) < max(2, len(several)):
                raise RemeasureError(
                    f"{place}.spread_of.{group}: {', '.join(several) or 'none'}; name at least two readers, "
                    "each once"
                )
        for reader in study.stands_for:
            _known("reader", reader, study.models, f"{place}.stands_for")
        for cell, readers in study.readers_of.items():
            for reader in readers:
                _known("reader", reader, study.models, f"{place}.readers_of.{cell}")
        if study.corpus is not None:
            _known("corpus", study.corpus, run.corpora, f"{place}.corpus")
        if study.judge is not None:
            _known("model", study.judge, run.models, f"{place}.judge")
        _check_readers(study, run, place)
        for bench, corpus in study.corpus_of_bench.items():
            _known("corpus", corpus, run.corpora, f"{place}.corpus_of_bench.{bench}")
        for judge in study.calibration.judges if study.calibration else ():
            _known("model", judge, run.models, f"{place}.calibration.judges")
        for role, encoder in study.encoders.items():
            _known("encoder", encoder, run.encoders, f"{place}.encoders.{role}")
    for judge in run.judge_agreement.judges if run.judge_agreement else ():
        _known("model", judge, run.models, f"{path}: judge_agreement.judges")


def _check_system(system: System, run: Run, place: str) -> None:
    """Check what a system's parts are."""
    _known("database", system.database, run.databases, f"{place}.database")
    for role in ("answerer", "reranker"):
        name = getattr(system, role)
        if name is not None:
            _known("model", name, run.models, f"{place}.{role}")
            if run.models[name].system is not None:
                raise RemeasureError(f"{place}.{role}: {name!r} is a system itself; name a model")


def _check_readers(study: StudyRun, run: Run, place: str) -> None:
    """Check the models that answer and which of them are compared."""
    for number, reader in enumerate(study.models):
        _known("model", reader, run.models, f"{place}.reader")
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
            _known("reader", reader, study.models, f"{place}.compare")
    _check_pairs(study.compare, f"{place}.compare")


def _check_pairs(pairs: list[tuple[str, str]], place: str) -> None:
    """Check that every pair is two, and once: a second one would count twice in the correction of tests."""
    seen: list[set[str]] = []
    for first, second in pairs:
        if first == second:
            raise RemeasureError(f"{place}: {first!r} with itself; name two")
        if {first, second} in seen:
            raise RemeasureError(f"{place}: {first!r} and {second!r} stand twice; remove one pair")
        seen.append({first, second})


def check_bench(bench: Bench, study: Study, place: str) -> None:
    """Check the names that a bench's settings use.

    Raises:
        RemeasureError: an unknown grader, layout or gold, or a thinking switch that leaves an arm open.
    """
    from remeasure import graders

    _known("grader", bench.grader, graders.GRADERS, f"{place}.grader")
    _known("gold", bench.gold, GOLDS, f"{place}.gold")
    if bench.layout is not None:
        _known("layout", bench.layout, LAYOUTS, f"{place}.layout")
    if isinstance(bench.thinking, dict) and set(bench.thinking) != set(study.arms):
        raise RemeasureError(
            f"{place}.thinking: names {', '.join(bench.thinking)}; give true or false for each of "
            f"{', '.join(study.arms)}"
        )


@functools.cache
def load_study(folder: Path, name: str) -> Study:
    """Load ``studies/<name>.yaml`` below the configuration folder."""
    path = folder / "studies" / f"{name}.yaml"
    study = convert(read_yaml(path), Study, path)
    for arm_name, arm in study.arms.items():
        _known("evidence", arm.evidence, EVIDENCE, f"{path}: arms.{arm_name}.evidence")
        if (arm.evidence == "none") != (arm.retriever is None):
            raise RemeasureError(
                f"{path}: arms.{arm_name}: evidence {arm.evidence!r} and retriever contradict"
            )
        if arm.retriever is not None and study.retrieve is None:
            raise RemeasureError(f"{path}: retrieve: is missing, and arm {arm_name!r} retrieves; add it")
    if study.index:
        _check_index(study, study.index, path)
    doubled = [axis for axis in study.layout.rows if axis in study.layout.columns]
    if doubled or len({*study.layout.rows}) != len(study.layout.rows):
        raise RemeasureError(f"{path}: layout: an axis stands twice; name each once")
    if study.layout.metrics or study.layout.blocks:
        _check_shown(study, path)
    if study.layout.blocks:
        _check_blocks(study, path)
    for bench_name, bench in study.benches.items():
        check_bench(bench, study, f"{path}: benches.{bench_name}")
    for pair in study.compared:
        known = study.arms if pair.axis == "arm" else study.benches
        _known(pair.axis, pair.first, known, f"{path}: contrasts")
        _known(pair.axis, pair.second, known, f"{path}: contrasts")
    _check_pairs([(pair.first, pair.second) for pair in study.compared], f"{path}: contrasts")
    named = [pair.name for pair in study.compared if pair.name is not None]
    if doubled := [name for name in dict.fromkeys(named) if named.count(name) > 1]:
        raise RemeasureError(f"{path}: contrasts: name {doubled[0]!r} stands twice; rename one")
    return study


def _check_index(study: Study, index: Index, path: Path) -> None:
    """Check the names of index files, and that benches and tables name such."""
    for name in index.files:
        if not INDEX_FILE.match(name):
            raise RemeasureError(
                f"{path}: index.files: {name!r}; expected a plain file name that ends in .json or .jsonl"
            )
    for name in index.tables.files if index.tables else ():
        _known("file", name, index.files, f"{path}: index.tables.files")
    if index.tables and not STORE_FILE.match(index.tables.images):
        raise RemeasureError(
            f"{path}: index.tables.images: {index.tables.images!r}; expected a plain file name that ends in "
            ".zip"
        )
    for name, bench in study.benches.items():
        if bench.index is not None:
            _known("file", bench.index, index.files, f"{path}: benches.{name}.index")


def _check_shown(study: Study, path: Path) -> None:
    """Check the names of the metrics that the wide table and its blocks show."""
    from remeasure import graders

    used = [
        graders.GRADERS[bench.grader] for bench in study.benches.values() if bench.grader in graders.GRADERS
    ]
    known = dict.fromkeys(metric.name for grader in used for metric in grader.metrics)
    lists = {"layout.metrics": study.layout.metrics}
    lists |= {f"layout.blocks: {block.title}": block.metrics for block in study.layout.blocks}
    for place, metrics in lists.items():
        for number, name in enumerate(metrics):
            _known("metric", name, known, f"{path}: {place}")
            if name in metrics[:number]:
                raise RemeasureError(f"{path}: {place}: {name!r} stands twice; remove one")


def _check_blocks(study: Study, path: Path) -> None:
    """Check that every bench stands in one block, and that blocks fit the layout."""
    place = f"{path}: layout.blocks"
    if "bench" not in study.layout.rows or study.layout.columns != ("metric",):
        raise RemeasureError(
            f"{place}: blocks have benches as rows and metrics as columns; correct the layout"
        )
    seen: list[str] = []
    for block in study.layout.blocks:
        for bench in block.benches:
            _known("bench", bench, study.benches, place)
            if bench in seen:
                raise RemeasureError(f"{place}: bench {bench!r} stands twice; remove one")
            seen.append(bench)
    lost = [name for name in study.benches if name not in seen]
    if lost:
        raise RemeasureError(f"{place}: bench {lost[0]!r} stands in none; add it to one")


def load_cells(folder: Path) -> list[Cell]:
    """Load ``cells.tsv``: one line per cell, in table order.

    Raises:
        RemeasureError: wrong header, wrong number of columns, or a cell that stands twice.
    """
    path = folder / "cells.tsv"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RemeasureError(f"{path}: cannot be read as UTF-8 text ({error}); restore it") from None
    header = list(Cell.__struct_fields__)
    if not lines or lines[0].split("\t") != header:
        raise RemeasureError(f"{path} line 1: expected the tab-separated columns {', '.join(header)}")
    cells: dict[Cell, int] = {}
    owners: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        values = line.split("\t")
        if len(values) != len(header):
            raise RemeasureError(f"{path} line {number}: {len(values)} columns, expected {len(header)}")
        cell = Cell(**dict(zip(header, values, strict=True)))
        if cell in cells:
            raise RemeasureError(
                f"{path} line {number}: the cell stands already in line {cells[cell]}; remove it"
            )
        cells[cell] = number
        if not SLUG.match(cell.table):
            raise RemeasureError(
                f"{path} line {number}: table {cell.table!r} may hold only a-z, 0-9, _ and -; rename it"
            )
        owner = owners.setdefault(cell.table, cell.study)
        if owner != cell.study:
            raise RemeasureError(
                f"{path} line {number}: table {cell.table!r} is one of study {owner!r}, and a table has one "
                f"study; name another table for {cell.study!r}"
            )
        study = load_study(folder, cell.study)
        _known("bench", cell.bench, study.benches, f"{path} line {number}")
        _known("arm", cell.arm, study.arms, f"{path} line {number}")
    if not cells:
        raise RemeasureError(f"{path}: holds no cell; restore it")
    return list(cells)
