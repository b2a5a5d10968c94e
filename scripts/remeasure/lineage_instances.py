"""Which stage records stand behind a reader that ranks a gallery; part of ``lineage``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from remeasure import repeats
from remeasure.instances.settings import PIECES, Ranker

if TYPE_CHECKING:
    from remeasure.plan import Plan


def records(plan: "Plan", run: str, gallery: str, reader: str, *, rerank: bool) -> list[str]:
    """Return the paths of the records of photographs, vectors, heads and rankings, each once.

    Args:
        plan: all settings.
        run: the run.
        gallery: what is ranked.
        reader: whose ranking it is.
        rerank: whether its arm reranks.
    """
    model, ranker = repeats.model_of(reader), plan.ranker(run, reader)
    assert ranker is not None, reader
    found = [*_sets(plan, run, gallery), *_ranking(plan, run, gallery, model, ranker)]
    if rerank and ranker.reranker:
        found += _reranking(plan, run, gallery, ranker.reranker)
    return list(dict.fromkeys(found))


def parts_of(plan: "Plan", run: str, gallery: str, reader: str) -> dict[str, list[str]]:
    """Return what a reader's ranking needs, by section of the run."""
    ranker, found = plan.ranker(run, reader), plan.gallery(run, gallery)
    assert ranker is not None, reader
    sets = [found.photos, *([found.distractors] if found.distractors else [])]
    backbones = [ranker.backbone] if ranker.backbone else []
    heads, rerankers = ([name] if name else [] for name in (ranker.head, ranker.reranker))
    for name in heads:
        head = plan.head(run, name)
        backbones.append(head.backbone)
        sets += [head.training] if not head.files else []
        sets += [plan.gallery(run, other).photos for other in (head.select_on, *head.report_on)]
    training = [plan.reranker(run, name).training for name in rerankers]
    sets += [one.photos for one in training if one]
    if plan.run(run).heads:
        backbones.append(plan.audit_backbone(run, found.photos))
    named = {"photo_sets": sets, "backbones": backbones, "heads": heads, "rerankers": rerankers}
    named["local_features"] = [plan.reranker(run, name).local_features for name in rerankers]
    return {section: list(dict.fromkeys(names)) for section, names in named.items()}


def sources(plan: "Plan", run: str, gallery: str, reader: str) -> list[str]:
    """Return every path of the settings that a reader's ranking is made from."""
    ranker, parts = plan.ranker(run, reader), parts_of(plan, run, gallery, reader)
    assert ranker is not None, reader
    paths = [ranker.first_stage[gallery]] if gallery in ranker.first_stage else []
    for name in parts["photo_sets"]:
        paths += of_set(plan, run, name)
    for section in ("backbones", "local_features", "heads", "rerankers"):
        for name in parts[section]:
            spec = getattr(plan.run(run), section)[name]
            for field in ("files", "given", "checked"):
                paths += getattr(spec, field, {}).values()
    return list(dict.fromkeys(paths))


def of_set(plan: "Plan", run: str, name: str) -> list[str]:
    """Return the paths that a set of photographs is made from; archives at an address are none."""
    photos = plan.photo_set(run, name)
    paths = [path for path in (photos.photos, photos.labels, photos.list) if path]
    paths += [*photos.classes.values(), *photos.anchor.values()]
    if photos.leaks:
        leaks = photos.leaks
        paths += [path for path in (leaks.subjects, leaks.ids, leaks.other_ids) if path]
    if photos.archives:
        for piece in plan.pieces(run, name):
            paths += photos.archives.paths(piece)
    return paths


def _sets(plan: "Plan", run: str, gallery: str) -> Iterator[str]:
    found = plan.gallery(run, gallery)
    here = f"results/{run}/photos/{found.photos}"
    yield from (f"{here}/labels.record.json", f"{here}/audit.record.json")
    if plan.run(run).heads:
        name = plan.audit_backbone(run, found.photos)
        yield from (f"{here}/cls/{name}/{piece}.json" for piece in ("1of1", "queries", "whole"))
    if found.distractors:
        yield from _streamed(plan, run, found.distractors)
        yield f"results/{run}/photos/{found.distractors}/order.record.json"


def _streamed(plan: "Plan", run: str, name: str) -> Iterator[str]:
    here = f"results/{run}/photos/{name}"
    if plan.photo_set(run, name).role == "training":
        yield f"{here}/plan.record.json"
    yield from (f"{here}/shards/{piece}.json" for piece in plan.pieces(run, name))


def _ranking(plan: "Plan", run: str, gallery: str, model: str, ranker: Ranker) -> Iterator[str]:
    found, here = plan.gallery(run, gallery), f"results/{run}/galleries/{gallery}"
    photos = f"results/{run}/photos/{found.photos}"
    if ranker.head is None and not ranker.first_stage:
        assert ranker.backbone is not None, model
        yield from (f"{photos}/cls/{ranker.backbone}/{piece}.json" for piece in ("1of1", *PIECES))
        yield f"{here}/read_outs/{ranker.backbone}.json"
        yield f"results/{run}/read_outs/{ranker.backbone}.record.json"
        return
    projection = plan.projection_of(ranker, model)
    yield f"{here}/first/{projection}.json"
    if ranker.head is None:
        return
    head, backbone = plan.head(run, ranker.head), plan.backbone_of(run, projection)
    if not head.files:
        yield from _streamed(plan, run, head.training)
        for piece in plan.pieces(run, head.training):
            yield f"results/{run}/photos/{head.training}/cls/{head.backbone}/{piece}.json"
    for name in plan.measured_on(head):
        yield from _sets(plan, run, name)
        here = f"results/{run}/photos/{plan.gallery(run, name).photos}/cls/{head.backbone}"
        yield from (f"{here}/{piece}.json" for piece in ("1of1", "queries"))
    yield f"results/{run}/heads/{ranker.head}/{ranker.seed}.json"
    yield f"results/{run}/heads/summary.record.json"
    parts = [(found.photos, piece) for piece in ("1of1", "queries")]
    if found.distractors:
        parts += [(found.distractors, piece) for piece in plan.pieces(run, found.distractors)]
    for name, piece in parts:
        yield f"results/{run}/photos/{name}/cls/{backbone}/{piece}.json"
        yield f"results/{run}/photos/{name}/descriptors/{projection}/{piece}.json"
    described = [(found.distractors, backbone)] if found.distractors else []
    described += [] if head.files else [(head.training, head.backbone)]
    for name, by in described:
        yield from _projected(plan, run, name, f"cls/{by}")


def _reranking(plan: "Plan", run: str, gallery: str, name: str) -> Iterator[str]:
    found, reranker = plan.gallery(run, gallery), plan.reranker(run, name)
    local = plan.local_features(run, reranker.local_features)
    yield f"results/{run}/rerankers/{name}.json"
    parts = [(found.photos, piece) for piece in ("1of1", "queries")]
    if found.distractors:
        yield f"results/{run}/photos/{found.distractors}/wanted.json"
        parts += [(found.distractors, piece) for piece in plan.pieces(run, found.distractors)]
    for photos, piece in parts:
        if f"{photos}/{piece}" not in local.given:
            yield f"results/{run}/photos/{photos}/locals/{reranker.local_features}/{piece}.json"
        yield f"results/{run}/photos/{photos}/tokens/{name}/{piece}.json"
    for photos in local.checked if any(f"{one}/{piece}" not in local.given for one, piece in parts) else ():
        yield f"results/{run}/photos/{photos}/locals/{reranker.local_features}/check.record.json"
    sets = [found.distractors, reranker.training.photos if reranker.training else None]
    for photos in filter(None, sets):
        yield from _projected(plan, run, photos, f"locals/{reranker.local_features}")
    if reranker.training:
        photos = reranker.training.photos
        yield from _streamed(plan, run, photos)
        for piece in plan.pieces(run, photos):
            yield f"results/{run}/photos/{photos}/locals/{reranker.local_features}/{piece}.json"
    yield f"results/{run}/galleries/{gallery}/pairs/{name}.json"


def _projected(plan: "Plan", run: str, photos: str, folder: str) -> Iterator[str]:
    """Yield the record of what further parts of a set waited for, where it has such."""
    if len(plan.pieces(run, photos)) > 1:
        yield f"results/{run}/photos/{photos}/{folder}/projection.record.json"
