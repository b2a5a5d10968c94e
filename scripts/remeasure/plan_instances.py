"""What the stages that bring, describe and rank photographs are told; part of ``plan.Plan``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from remeasure import parts, repeats
from remeasure.catalogue import Catalogue
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_file
from remeasure.instances.settings import Backbone, Gallery, Head, LocalFeatures, PhotoSet, Ranker, Reranker
from remeasure.models import Model
from remeasure.settings import Run, Study, StudyRun

# What decides nothing in what a stage writes.
_ASIDE = ("needs", "given", "checked", "img_per_s", "pairs_per_s", "files", "title")


def _told(section: msgspec.Struct, *without: str) -> dict[str, Any]:
    aside = (*_ASIDE, *without)
    return {name: value for name, value in msgspec.to_builtins(section).items() if name not in aside}


class InstancesPlan:
    """Settings of photo sets, descriptors, heads, rerankers and galleries, resolved on demand."""

    folder: Path
    catalogue: Catalogue

    def run(self, name: str) -> Run:
        """Return one run's settings."""
        raise NotImplementedError

    def study(self, name: str) -> Study:
        """Return one study's protocol."""
        raise NotImplementedError

    def study_run(self, run: str, study: str) -> StudyRun:
        """Return what a run says about a study."""
        raise NotImplementedError

    def model(self, run: str, model: str) -> Model:
        """Return one model of a run."""
        raise NotImplementedError

    # -- sections ------------------------------------------------------------------------------------------

    def _section(self, run: str, section: str, name: str) -> Any:
        known = getattr(self.run(run), section)
        if name not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: {section}: no {name!r}{did_you_mean(name, known)}; known: "
                f"{', '.join(known) or 'none'}"
            )
        return known[name]

    def photo_set(self, run: str, name: str) -> PhotoSet:
        """Return one set of photographs of a run; an unknown name is an error, as in what follows."""
        return self._section(run, "photo_sets", name)

    def backbone(self, run: str, name: str) -> Backbone:
        """Return one backbone of a run."""
        return self._section(run, "backbones", name)

    def local_features(self, run: str, name: str) -> LocalFeatures:
        """Return one kind of local descriptors of a run."""
        return self._section(run, "local_features", name)

    def head(self, run: str, name: str) -> Head:
        """Return one head of a run."""
        return self._section(run, "heads", name)

    def reranker(self, run: str, name: str) -> Reranker:
        """Return one reranker of a run."""
        return self._section(run, "rerankers", name)

    def gallery(self, run: str, name: str) -> Gallery:
        """Return one gallery of a run."""
        return self._section(run, "galleries", name)

    # -- cells ---------------------------------------------------------------------------------------------

    def ranker(self, run: str, model: str) -> Ranker | None:
        """Return how a reader ranks; null where it is one that is asked."""
        return self.model(run, model).ranker

    def gallery_of(self, run: str, study: str, bench: str) -> str | None:
        """Return the gallery that is ranked for the questions of a bench; null where it has none."""
        return self.study_run(run, study).gallery_of_bench.get(bench)

    def rankers_of(self, run: str, gallery: str) -> list[tuple[str, str, Ranker]]:
        """Return model, arm and how it ranks, of every cell of a run that ranks a gallery, each once."""
        found: dict[tuple[str, str], Ranker] = {}
        for study, here in self.run(run).studies.items():
            for bench, name in here.gallery_of_bench.items():
                for arm in self.study(study).arms if name == gallery else ():
                    for reader in self.readers(run, study, bench, arm):
                        ranker = self.ranker(run, reader)
                        if ranker is not None:
                            found[repeats.model_of(reader), arm] = ranker
        return [(model, arm, ranker) for (model, arm), ranker in found.items()]

    def readers(self, run: str, study: str, bench: str, arm: str) -> tuple[str, ...]:
        """Return the readers of a cell."""
        raise NotImplementedError

    def projection_of(self, ranker: Ranker, model: str) -> str:
        """Return the name of a ranker's first stage: head, seed and checkpoint, or a given one."""
        if ranker.head is None:
            return f"given-{model}"
        other = f"-{ranker.backbone}" if ranker.backbone else ""
        return f"{ranker.head}-{ranker.seed}-{ranker.selection}{other}"

    def projections(self, run: str) -> dict[str, Ranker]:
        """Return every projection by a head that the models of a run use, by name."""
        found = {}
        for name, model in self.run(run).models.items():
            if model.ranker is not None and model.ranker.head is not None:
                found[self.projection_of(model.ranker, name)] = model.ranker
        return found

    def projection(self, run: str, name: str) -> Ranker:
        """Return a projection of a run.

        Raises:
            RemeasureError: no model of the run uses one of that name.
        """
        known = self.projections(run)
        if name not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models: none projects as "
                f"{name!r}{did_you_mean(name, known)}; "
                f"known: {', '.join(known) or 'none'}"
            )
        return known[name]

    def backbone_of(self, run: str, projection: str) -> str:
        """Return the backbone whose vectors a projection is made of."""
        found = self.projection(run, projection)
        assert found.head is not None, projection
        return found.backbone or self.head(run, found.head).backbone

    def reranked(self, run: str, gallery: str, reranker: str) -> list[str]:
        """Return the first stages of a gallery that a reranker works on, in order."""
        found = [
            self.projection_of(ranker, model)
            for model, arm, ranker in self.rankers_of(run, gallery)
            if ranker.reranker == reranker and self.reranks(run, gallery, arm)
        ]
        return list(dict.fromkeys(found))

    def reranks(self, run: str, gallery: str, arm: str) -> bool:
        """Return whether an arm reranks, which its options say (``rerank: true``)."""
        studies = [
            name for name, here in self.run(run).studies.items() if gallery in here.gallery_of_bench.values()
        ]
        arms = [self.study(name).arms[arm] for name in studies if arm in self.study(name).arms]
        return any(found.options.get("rerank") for found in arms)

    def pieces(self, run: str, photos: str) -> list[str]:
        """Return the pieces that the photographs of a set are in, in order, queries left out."""
        return parts.names(self.photo_set(run, photos).parts)

    def audit_backbone(self, run: str, photos: str) -> str:
        """Return the backbone that the audit of a benchmark looks at crops with: the first head's.

        Raises:
            RemeasureError: the run has no head.
        """
        heads = self.run(run).heads
        if not heads:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: heads: none, and the audit of "
                f"{photos!r} needs a backbone; add one"
            )
        return next(iter(heads.values())).backbone

    def galleries_with(self, run: str, distractors: str) -> Iterator[str]:
        """Yield the galleries that a set of distractors is part of."""
        for name, gallery in self.run(run).galleries.items():
            if gallery.distractors == distractors:
                yield name

    # -- stages --------------------------------------------------------------------------------------------

    def import_labels(self, run: str, photos: str) -> dict[str, Any]:
        """Settings of ``import_labels``."""
        found = self.photo_set(run, photos)
        pinned = {source.path: source.sha256 for source in self.catalogue.by_url().values()}
        sha256 = found.labels_sha256 or pinned.get(found.labels or "") or None
        return {"photos": photos, "expected": found.expected, "labels_sha256": sha256}

    def plan_photos(self, run: str, photos: str) -> dict[str, Any]:
        """Settings of ``plan_photos``."""
        found = self.photo_set(run, photos)
        leaks = None
        if found.leaks:
            # Of a file of the configuration the content counts, not where the working directory is.
            path = self.folder.parent / found.leaks.subjects
            path = path if path.is_file() else Path(found.leaks.subjects)
            if not path.is_file():
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: photo_sets.{photos}.leaks.subjects: there is no "
                    f"{found.leaks.subjects}; correct it"
                )
            leaks = msgspec.to_builtins(found.leaks) | {"subjects_sha256": sha256_file(path)}
        floors = {
            name: head.min_class for name, head in self.run(run).heads.items() if head.training == photos
        }
        return {"photos": photos, "expected": found.expected, "leaks": leaks, "min_class": floors}

    def stream_photos(self, run: str, photos: str, piece: str) -> dict[str, Any]:
        """Settings of ``stream_photos``: the archives of one part."""
        found = self.photo_set(run, photos)
        archives = msgspec.to_builtins(found.archives)
        return {"photos": photos, "piece": piece, "archives": archives}

    def order_photos(self, run: str, photos: str) -> dict[str, Any]:
        """Settings of ``order_photos``."""
        return {
            "photos": photos,
            "pieces": self.pieces(run, photos),
            "expected": self.photo_set(run, photos).expected,
        }

    def audit_photos(self, run: str, photos: str) -> dict[str, Any]:
        """Settings of ``audit_photos``."""
        found = self.photo_set(run, photos)
        backbone = self.audit_backbone(run, photos)
        return {"photos": photos, "expected": found.expected, "backbone": self.extract_cls(run, backbone)}

    def extract_cls(self, run: str, backbone: str) -> dict[str, Any]:
        """Settings of ``extract_cls``."""
        return {"name": backbone} | _told(self.backbone(run, backbone))

    def extract_locals(self, run: str, local: str) -> dict[str, Any]:
        """Settings of ``extract_locals``."""
        return {"name": local} | _told(self.local_features(run, local))

    def remap_tokens(self, run: str, reranker: str) -> dict[str, Any]:
        """Settings of ``remap_tokens``: what decides the stored tokens of a photograph."""
        return {"name": reranker, "n": self._n_tokens(run, reranker)} | self._shape(run, reranker)

    def _n_tokens(self, run: str, reranker: str) -> int:
        found = self.reranker(run, reranker)
        return max(found.tokens_query, found.tokens_gallery)

    def _shape(self, run: str, reranker: str) -> dict[str, Any]:
        found = self.reranker(run, reranker)
        dim = self.local_features(run, found.local_features).dim
        return {"dim": dim} | {name: getattr(found, name) for name in ("width", "heads", "layers", "ffn")}

    def train_reranker(self, run: str, reranker: str) -> dict[str, Any]:
        """Settings of ``train_reranker``."""
        training = self.reranker(run, reranker).training
        assert training is not None, reranker
        n = {"n": self._n_tokens(run, reranker)}
        return {"name": reranker} | n | self._shape(run, reranker) | msgspec.to_builtins(training)

    def train_head(self, run: str, head: str, seed: str) -> dict[str, Any]:
        """Settings of ``train_head``."""
        found = self.head(run, head)
        told = _told(found, "select_on", "report_on")
        leaks = self.photo_set(run, found.training).leaks is not None
        return (
            {"name": head, "seed": int(seed), "has_leaks": leaks}
            | told
            | {
                "backbone": self.extract_cls(run, found.backbone),
                "select_on": found.select_on,
                "report_on": list(found.report_on),
                "photos_of": [[name, self.gallery(run, name).photos] for name in self.measured_on(found)],
            }
        )

    def measured_on(self, head: Head) -> list[str]:
        """Return the galleries that a head is measured on, that of its choice first."""
        return list(dict.fromkeys((head.select_on, *head.report_on)))

    def project(self, run: str, projection: str) -> dict[str, Any]:
        """Settings of ``project``."""
        found = self.projection(run, projection)
        assert found.head is not None, projection
        head = self.head(run, found.head)
        return {
            "name": projection,
            "hidden": head.hidden,
            "dim": head.dim,
            "backbone": self.backbone_of(run, projection),
        }

    def rank_first(self, run: str, gallery: str, projection: str) -> dict[str, Any]:
        """Settings of ``rank_first``: how many of a ranking are kept."""
        found = self.gallery(run, gallery)
        sizes = [reranker.shortlist for reranker in self.run(run).rerankers.values()]
        return {
            "gallery": gallery,
            "projection": projection,
            "shortlist": max(sizes, default=100),
            "photos": found.photos,
        }

    def given_first(self, run: str, gallery: str) -> dict[str, Any]:
        """Settings of ``import_ranking``."""
        return {"gallery": gallery, "photos": self.gallery(run, gallery).photos}

    def want_locals(self, run: str, photos: str) -> dict[str, Any]:
        """Settings of ``want_locals``: of which photographs of a set local descriptors are wanted."""
        galleries = list(self.galleries_with(run, photos))
        full = any(self.gallery(run, name).locals == "full" for name in galleries)
        return {"photos": photos, "all": full}

    def score_pairs(self, run: str, gallery: str, reranker: str) -> dict[str, Any]:
        """Settings of ``score_pairs``."""
        found = self.reranker(run, reranker)
        named = ("tokens_query", "tokens_gallery", "shortlist", "numeric")
        told = {name: getattr(found, name) for name in named}
        return {"gallery": gallery, "name": reranker} | self._shape(run, reranker) | told

    def read_out(self, run: str, gallery: str, backbone: str) -> dict[str, Any]:
        """Settings of ``read_out``."""
        return {"gallery": gallery, "backbone": backbone, "dim": self.backbone(run, backbone).dim}

    def choose_read_out(self, run: str, backbone: str) -> dict[str, Any]:
        """Settings of ``choose_read_out``."""
        return {"backbone": backbone, "galleries": self.read_out_galleries(run, backbone)}

    def read_out_galleries(self, run: str, backbone: str) -> list[str]:
        """Return the galleries that the read-outs of a backbone rank, in order."""
        return [
            gallery
            for gallery in self.run(run).galleries
            if any(r.head is None and r.backbone == backbone for _, _, r in self.rankers_of(run, gallery))
        ]

    def place(self, run: str, study: str, bench: str, arm: str, model: str) -> dict[str, Any]:
        """Settings of ``place_photos``: how the queries of a cell rank its gallery."""
        ranker, gallery = self.ranker(run, model), self.gallery_of(run, study, bench)
        assert ranker is not None and gallery is not None, (bench, model)
        told: dict[str, Any] = {
            "study": study,
            "bench": bench,
            "arm": arm,
            "model": model,
            "gallery": gallery,
        }
        if self.study(study).arms[arm].options.get("rerank"):
            if ranker.reranker is None:
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: models.{model}.ranker.reranker: is missing, and "
                    f"arm {arm!r} reranks; name one, or take the arm out of `arms`"
                )
            found = self.reranker(run, ranker.reranker)
            named = ("shortlist", "weight", "temperature", "grid_weights", "grid_temperatures")
            told["rerank"] = {name: getattr(found, name) for name in named}
        return told
