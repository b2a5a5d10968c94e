"""What the sections of a run about photographs say together; part of ``settings.load_run``."""

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from remeasure.errors import RemeasureError
from remeasure.instances.settings import SECTIONS, Archives, LocalFeatures, Ranker, Reranker
from remeasure.needs import check_needs
from remeasure.setting_checks import check_known

if TYPE_CHECKING:
    from remeasure.settings import Run

__all__ = ["SECTIONS", "check_run"]
_MAX_ARCHIVES = 100_000


def _role(run: "Run", name: str, roles: Container[str], place: str) -> None:
    check_known("photo set", name, run.photo_sets, place)
    role = run.photo_sets[name].role
    if role not in roles:
        raise RemeasureError(f"{place}: {name!r} is a set of role {role}; name one of another role")


def check_run(run: "Run", path: Path) -> None:
    """Check what points from one section to another.

    Raises:
        RemeasureError: names the place, what was found, and what to do.
    """
    for name, photos in run.photo_sets.items():
        place = f"{path}: photo_sets.{name}"
        check_needs(photos.needs, f"{place}.needs")
        needed = ("photos", "labels") if photos.role == "benchmark" else ("archives",)
        needed += ("list",) if photos.role == "distractors" else ()
        missing = [field for field in needed if getattr(photos, field) is None]
        if missing:
            raise RemeasureError(
                f"{place}: lacks {missing[0]}, which a set of role {photos.role} needs; add it"
            )
        if photos.role == "training" and "clean" not in photos.classes:
            raise RemeasureError(
                f"{place}.classes: lacks `clean`, the file of classes and photographs; add it"
            )
        if photos.role == "benchmark" and photos.parts != 1:
            raise RemeasureError(f"{place}.parts: {photos.parts}; a benchmark is one part: take it out")
        if photos.archives:
            _check_archives(photos.archives, f"{place}.archives")
        if photos.archives and photos.parts > photos.archives.numbers[1]:
            raise RemeasureError(
                f"{place}.parts: {photos.parts}, and there are {photos.archives.numbers[1]} archives"
            )
    for section in ("backbones", "local_features", "heads", "rerankers"):
        for name, found in getattr(run, section).items():
            check_needs(found.needs, f"{path}: {section}.{name}.needs")
    for name, backbone in run.backbones.items():
        if not backbone.scales:
            raise RemeasureError(f"{path}: backbones.{name}.scales: empty; give at least one, such as [1.0]")
        if backbone.max_px < backbone.patch_px:
            raise RemeasureError(
                f"{path}: backbones.{name}.max_px: {backbone.max_px}, less than a patch "
                f"({backbone.patch_px}); correct it"
            )
    for name, head in run.heads.items():
        place = f"{path}: heads.{name}"
        _role(run, head.training, ("training",), f"{place}.training")
        check_known("backbone", head.backbone, run.backbones, f"{place}.backbone")
        for gallery in (head.select_on, *head.report_on):
            check_known("gallery", gallery, run.galleries, place)
            if run.galleries[gallery].distractors is not None:
                raise RemeasureError(
                    f"{place}: gallery {gallery!r} has distractors, and a head is measured without; name one "
                    "that has none"
                )
        if head.decontaminated and run.photo_sets[head.training].leaks is None:
            raise RemeasureError(
                f"{place}.decontaminated: photo set {head.training!r} has no `leaks`; add them"
            )
    for name, reranker in run.rerankers.items():
        place = f"{path}: rerankers.{name}"
        check_known("local features", reranker.local_features, run.local_features, f"{place}.local_features")
        if (reranker.training is None) == ("checkpoint" not in reranker.files):
            raise RemeasureError(f"{place}: give either files: {{checkpoint: …}} or training")
        _check_sizes(reranker, run.local_features[reranker.local_features], place)
        if reranker.training:
            _role(run, reranker.training.photos, ("training",), f"{place}.training.photos")
    for name, gallery in run.galleries.items():
        _role(run, gallery.photos, ("benchmark",), f"{path}: galleries.{name}.photos")
        if gallery.distractors is not None:
            _role(run, gallery.distractors, ("distractors",), f"{path}: galleries.{name}.distractors")
    for name, model in run.models.items():
        if model.ranker is not None:
            _check_ranker(model.ranker, run, f"{path}: models.{name}.ranker")


def _check_archives(archives: Archives, place: str) -> None:
    if archives.numbers[1] > _MAX_ARCHIVES:
        raise RemeasureError(f"{place}.numbers: {archives.numbers[1]} archives, at most {_MAX_ARCHIVES}")
    for field in ("place", "md5"):
        pattern = getattr(archives, field)
        if pattern and "{number}" not in pattern and archives.numbers[1] > 1:
            raise RemeasureError(
                f"{place}.{field}: {pattern!r} has no {{number}}, and there are {archives.numbers[1]} "
                "archives; write it where their numbers stand"
            )


def _check_sizes(reranker: Reranker, local: LocalFeatures, place: str) -> None:
    if reranker.width % reranker.heads:
        raise RemeasureError(
            f"{place}.width: {reranker.width} cannot be shared by {reranker.heads} heads; correct one of them"
        )
    for field in ("tokens_query", "tokens_gallery"):
        if (n := getattr(reranker, field)) > local.n:
            raise RemeasureError(
                f"{place}.{field}: {n}, and local features {reranker.local_features!r} keep {local.n} of a "
                "photograph; correct one of them"
            )


def _check_ranker(ranker: Ranker, run: "Run", place: str) -> None:
    if ranker.head is not None:
        check_known("head", ranker.head, run.heads, f"{place}.head")
    if ranker.backbone is not None:
        check_known("backbone", ranker.backbone, run.backbones, f"{place}.backbone")
    if ranker.reranker is not None:
        check_known("reranker", ranker.reranker, run.rerankers, f"{place}.reranker")
    for gallery in ranker.first_stage:
        check_known("gallery", gallery, run.galleries, f"{place}.first_stage")
    if ranker.head is None and ranker.backbone is None and not ranker.first_stage:
        raise RemeasureError(f"{place}: give a head, a backbone or a first_stage")
    if ranker.head is not None and ranker.first_stage:
        raise RemeasureError(f"{place}: head and first_stage both rank; take one out")
