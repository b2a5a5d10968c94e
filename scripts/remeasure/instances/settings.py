"""How a run describes sets of photographs, what describes them, and what ranks them."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from remeasure.needs import Needs
from remeasure.yaml_files import Count, Pieces, Positive, Settings

Share = Annotated[float, Meta(ge=0, le=1)]
Above0 = Annotated[float, Meta(gt=0)]
PIECES = ("queries", "whole", "instructed")
"""Pieces of a benchmark beside its gallery: query photos cropped to their boxes, uncropped, and cropped
with the instruction that an encoder has for queries."""


class PhotoNeeds(Settings, kw_only=True):
    """What bringing a set asks of a machine."""

    plan: Needs = Needs()
    stream: Needs = Needs()


class Archives(Settings, kw_only=True):
    """Numbered archives of photographs, at an address or in a folder."""

    place: str
    """Address or path of an archive, with ``{number}``."""
    numbers: tuple[Count, Positive]
    """First number, and how many there are."""
    digits: Count = 0
    """The number is filled with zeros up to so many."""
    md5: str | None = None
    """Address or path of the file with an archive's MD5 checksum, with ``{number}``; null: there is none."""

    def paths(self, piece: str) -> list[str]:
        """Return the archives of a part in a folder, with their checksums; none where they are fetched."""
        named = [pattern for pattern in (self.place, self.md5) if pattern and "://" not in pattern]
        return [p.replace("{number}", n) for p in named for n in self.of_part(piece)]

    def of_part(self, piece: str) -> list[str]:
        """Return the numbers of the archives of a part (``2of4``), as they stand in names."""
        part, _, n_parts = piece.partition("of")
        first, n = self.numbers
        mine = range(n * (int(part) - 1) // int(n_parts), n * int(part) // int(n_parts))
        return [str(first + i).zfill(self.digits) for i in mine]


class Leaks(Settings, kw_only=True):
    """Which classes of a training set show what the benchmarks ask for."""

    subjects: str
    """File of subjects with their names, cities and exclusions (``config/leaks/``)."""
    ids: str | None = None
    """The published list of class ids, if somebody has it."""
    other_ids: str | None = None
    """A list of others that should be contained in it; what is missing is listed."""
    expected_classes: Count | None = None
    expected_photos: Count | None = None


class PhotoSet(Settings, kw_only=True):
    """A set of photographs."""

    title: str
    role: Literal["benchmark", "distractors", "training"]
    photos: str | None = None
    """Of a benchmark: folder or zip store that holds ``<stem>.jpg`` of gallery and queries."""
    labels: str | None = None
    """Of a benchmark: its ground truth, the published pickle or JSON of our own form."""
    labels_sha256: str | None = None
    """SHA-256 of the ground truth, if it is no pinned source; a pickle without it is not read."""
    archives: Archives | None = None
    """Of the other two."""
    list: str | None = None
    """Of distractors: their names in canonical order, one path per line."""
    classes: dict[str, str] = {}
    """Of a training set: the files ``clean`` (classes with their photos) and ``categories``."""
    leaks: Leaks | None = None
    expected: dict[str, Count] = {}
    """Counts that must come out: ``queries`` and ``gallery``, ``photos``, ``classes``."""
    anchor: dict[str, str] = {}
    """Of a benchmark: public descriptors (``features``, a .mat file) whose mAP is known, for the audit."""
    bytes: Positive | None = None
    """For estimates: size of its archives."""
    parts: Pieces = 1
    """Into how many jobs bringing and describing it is split; archives go to parts in order."""
    needs: PhotoNeeds = PhotoNeeds()


class Backbone(Settings, kw_only=True):
    """What turns a photograph into one vector per scale."""

    title: str
    backend: Literal["dinov2", "efficientnet-lite0", "fusion-embedding"]
    files: dict[str, str]
    """Its weights, files or folders, by option of the script."""
    revision: str | None = None
    dim: Positive
    scales: tuple[Above0, ...] = (1.0, 1.414, 2.0)
    size_px: Positive = 224
    patch_px: Positive = 14
    max_px: Positive = 1022
    precision: Literal["float32", "float16", "bfloat16"] = "float32"
    batch: Positive = 8
    given: dict[str, str] = {}
    """Pieces that are not extracted: ``<photo set>/<piece>`` to a file of vectors that somebody has."""
    img_per_s: Above0 | None = None
    """For estimates: photographs per second on the machine that ``needs`` names."""
    needs: Needs = Needs()


class LocalFeatures(Settings, kw_only=True):
    """What turns a photograph into a set of local descriptors."""

    title: str
    backend: Literal["dinov2-detector", "efficientnet-lite0"]
    files: dict[str, str] = {}
    dim: Positive = 768
    n: Positive = 700
    """At most so many per photograph, the strongest first."""
    size_px: Positive | None = None
    """Longest side after scaling; null: as it is."""
    precision: Literal["float32", "float16", "bfloat16"] = "float32"
    """Of the network on a GPU; what weighs its patches always computes with 32 bits."""
    batch: Positive = 4
    given: dict[str, str] = {}
    """As of ``Backbone``: published files of both layouts."""
    checked: dict[str, str] = {}
    """Photo set to a published file whose first 50 photographs ours must agree with before any long run."""
    img_per_s: Above0 | None = None
    needs: Needs = Needs()


class Head(Settings, kw_only=True):
    """A projection of backbone vectors, trained to tell the classes of a training set apart."""

    title: str
    training: str
    """Photo set."""
    backbone: str
    decontaminated: bool = False
    """Whether classes that leak are masked, before small ones are dropped."""
    files: dict[str, str] = {}
    """``weights``: a head that is there already; it is not trained."""
    hidden: Positive = 2048
    dim: Positive = 512
    margin: Above0 = 0.3
    scale: Above0 = 32.0
    label_smoothing: Share = 0.1
    learning_rate: Above0 = 1e-3
    weight_decay: Annotated[float, Meta(ge=0)] = 5e-4
    epochs: Positive = 40
    batch: Positive = 4096
    patience: Positive = 8
    min_class: Positive = 3
    train_scale: Literal["mean", "random"] = "mean"
    select_on: str
    """Gallery whose Medium mAP chooses the epoch as published: the table's own test set."""
    holdout_share: Share = 0.05
    """Share of classes that are held out and choose the epoch of ``selection: holdout``."""
    report_on: tuple[str, ...] = ()
    """Galleries whose mAP is reported at the end."""
    needs: Needs = Needs()


class RerankerTraining(Settings, kw_only=True):
    """How a small reranker is trained where no checkpoint can be had."""

    photos: str
    """Photo set with classes."""
    steps: Positive
    batch: Positive
    learning_rate: Above0
    seed: Count = 0


class Reranker(Settings, kw_only=True):
    """What scores a query photo and a gallery photo by their local descriptors (AMES)."""

    title: str
    local_features: str
    files: dict[str, str] = {}
    """``checkpoint``; none: it is trained."""
    training: RerankerTraining | None = None
    width: Positive = 128
    heads: Positive = 2
    layers: Positive = 5
    ffn: Positive = 1024
    tokens_query: Positive = 600
    tokens_gallery: Positive = 600
    shortlist: Positive = 1600
    weight: Share = 0.55
    """Lambda: share of the first stage's cosine in the fused score."""
    temperature: Above0 = 0.30
    """Gamma: what a logit is multiplied by before the sigmoid."""
    grid_weights: tuple[Share, ...] = (0.35, 0.45, 0.55, 0.65, 0.75)
    grid_temperatures: tuple[Above0, ...] = (0.1, 0.3, 0.5)
    numeric: Literal["fp32", "tf32", "fp16"] = "fp32"
    pairs_per_s: Above0 | None = None
    needs: Needs = Needs()


class Gallery(Settings, kw_only=True):
    """What is ranked for the queries of a benchmark."""

    photos: str
    """Photo set of role benchmark."""
    distractors: str | None = None
    """Photo set whose photographs are ranked as well."""
    locals: Literal["on_demand", "full"] = "on_demand"
    """Whether distractors get local descriptors only where they are shortlisted, or all of them."""


class Ranker(Settings, kw_only=True):
    """One way to rank a gallery: a reader that is not asked but computes."""

    arms: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Arms of the study that it has."""
    head: str | None = None
    seed: Count = 0
    selection: Literal["published", "holdout"] = "published"
    backbone: str | None = None
    """Whose vectors the head is applied to, if not its own backbone's; without a head the read-outs'."""
    first_stage: dict[str, str] = {}
    """Instead of a head: gallery to a published ranking."""
    reranker: str | None = None
    """What arms that rerank use."""


class Projection(Settings, kw_only=True):
    """Cost rates of a run, for the projection before anything long is started."""

    usd_per_hour: Above0 = 1.10
    pause_if_usd: Above0 = 200.0
    download_mb_per_s: Above0 | None = None
    cpu_usd_per_hour: Annotated[float, Meta(ge=0)] = 0.0
    """Of the machine that downloads."""


SECTIONS: dict[str, Any] = {
    "photo_sets": PhotoSet,
    "backbones": Backbone,
    "local_features": LocalFeatures,
    "heads": Head,
    "rerankers": Reranker,
    "galleries": Gallery,
}
"""Sections of a run by name."""
