"""Which files the stages of photographs read, as functions of wildcards; part of ``wiring.Wiring``.

Names are the script's option names. What belongs to a set of photographs lies in ``photos/<set>/``, what to a
gallery in ``galleries/<gallery>/``, heads and rerankers beside them.
"""

from collections.abc import Callable
from typing import Any

from remeasure import lineage, repeats
from remeasure.instances.settings import PIECES
from remeasure.needs import Needs
from remeasure.plan import Plan


class InstanceFiles:
    """Input functions of the rules about photographs, over one plan."""

    plan: Plan

    def _raw(self, path: str) -> Any:
        """Mark a source of fixed content as ancient; what a rule of ours makes may be made again."""
        from snakemake.io import ancient

        is_fixed = path.startswith("results/sources/") and not lineage.is_made(self.plan, path)
        return ancient(path) if is_fixed else path

    # -- what is asked of a machine ------------------------------------------------------------------------

    def photo_needs(self, stage: str) -> Callable[[Any], Needs]:
        """A function of wildcards: what bringing a set asks of a machine (plan, stream)."""
        return lambda wildcards: getattr(self.plan.photo_set(wildcards.run, wildcards.photos).needs, stage)

    def section_needs(self, section: str, wildcard: str) -> Callable[[Any], Needs]:
        """A function of wildcards: what a section of the run (backbones, heads …) asks of a machine."""
        return lambda w: getattr(self.plan.run(w.run), section)[w[wildcard]].needs

    # -- photographs ---------------------------------------------------------------------------------------

    def labels_source(self, wildcards) -> Any:
        """The ground truth as it comes."""
        return self._raw(self.plan.photo_set(wildcards.run, wildcards.photos).labels)

    def classes(self, wildcards) -> dict[str, Any]:
        """The files that list the classes of a training set, and lists of classes that leak."""
        found = self.plan.photo_set(wildcards.run, wildcards.photos)
        named = {name: self._raw(path) for name, path in found.classes.items()}
        if found.leaks:
            leaks = {"ids": found.leaks.ids, "other_ids": found.leaks.other_ids}
            named |= {f"leak_{name}": self._raw(path) for name, path in leaks.items() if path}
        return named

    def streamed(self, wildcards) -> dict[str, Any]:
        """What says which members of archives are wanted; archives that lie in a folder of ours."""
        run, photos = wildcards.run, wildcards.photos
        found = self.plan.photo_set(run, photos)
        named: dict[str, Any] = {"archives": self._archives(run, photos, wildcards.piece)}
        if found.role == "training":
            return named | {"plan": f"results/{run}/photos/{photos}/plan.parquet"}
        return named | {"list": self._raw(found.list)}

    def _archives(self, run: str, photos: str, piece: str) -> list[Any]:
        """The archives of a part that lie in a folder, with their checksums; none where they are fetched."""
        archives = self.plan.photo_set(run, photos).archives
        assert archives is not None, photos
        return [self._raw(path) for path in archives.paths(piece)]

    def photo_shards(self, wildcards, name: str) -> list[str]:
        """One file of every part of a set."""
        here = f"results/{wildcards.run}/photos/{wildcards.photos}/shards"
        return [f"{here}/{piece}.{name}" for piece in self.plan.pieces(wildcards.run, wildcards.photos)]

    def order(self, wildcards) -> dict[str, Any]:
        """Index files of all parts and, of distractors, the list that they must agree with."""
        found = self.plan.photo_set(wildcards.run, wildcards.photos)
        listed = {"list": self._raw(found.list)} if found.list else {}
        return {"indexes": self.photo_shards(wildcards, "index.parquet")} | listed

    def pictures_of(self, wildcards) -> dict[str, Any]:
        """What the photographs of a piece are read from: a shard, or a benchmark's folder with its labels."""
        run, photos, piece = wildcards.run, wildcards.photos, wildcards.piece
        found, here = self.plan.photo_set(run, photos), f"results/{run}/photos/{photos}"
        if found.role == "benchmark":
            return {"pictures": self._raw(found.photos), "labels": f"{here}/labels.json"}
        return {"shard": f"{here}/shards/{piece}.tar", "index": f"{here}/shards/{piece}.index.parquet"}

    def cls(self, wildcards) -> dict[str, Any]:
        """What a piece is described from: photographs and weights, or vectors that somebody has."""
        found = self.plan.backbone(wildcards.run, wildcards.backbone)
        given = found.given.get(f"{wildcards.photos}/{wildcards.piece}")
        if given:
            # What its rows are called: of a benchmark its labels say it, of others the file itself.
            pictures = self.pictures_of(wildcards)
            return {"given": self._raw(given)} | {k: v for k, v in pictures.items() if k == "labels"}
        waits = self._projection(wildcards, "cls", wildcards.backbone)
        files = {name: self._raw(path) for name, path in found.files.items()}
        return waits | self.pictures_of(wildcards) | files

    def locals(self, wildcards) -> dict[str, Any]:
        """What local descriptors are made from; of distractors those that are wanted."""
        run, photos, local = wildcards.run, wildcards.photos, wildcards.local
        found = self.plan.local_features(run, local)
        named = self.pictures_of(wildcards) | {name: self._raw(path) for name, path in found.files.items()}
        named |= self._projection(wildcards, "locals", local)
        if self.plan.photo_set(run, photos).role == "distractors":
            named["wanted"] = f"results/{run}/photos/{photos}/wanted.parquet"
        checks = [f"results/{run}/photos/{name}/locals/{local}/check.json" for name in found.checked]
        return named | ({"checked": checks} if checks else {})

    def _projection(self, wildcards, folder: str, name: str) -> dict[str, Any]:
        """What further parts of a set wait for: what they will take, by the first."""
        if wildcards.piece.startswith("1of") or wildcards.piece in PIECES:
            return {}
        here = f"results/{wildcards.run}/photos/{wildcards.photos}"
        return {"projection": f"{here}/{folder}/{name}/projection.json"}

    def first_piece(self, folder: str, name: str = "h5") -> Callable[[Any], str]:
        """A function of wildcards: a file of the first part of a set (folder ``cls`` or ``locals``)."""

        def resolved(wildcards) -> str:
            by = wildcards.backbone if folder == "cls" else wildcards.local
            here = f"results/{wildcards.run}/photos/{wildcards.photos}/{folder}/{by}"
            first = self.plan.pieces(wildcards.run, wildcards.photos)[0]
            return f"{here}/logs/{first}.{name}" if name == "benchmark.tsv" else f"{here}/{first}.{name}"

        return resolved

    def local_check(self, wildcards) -> dict[str, Any]:
        """What local descriptors are compared with, and what they are made from."""
        found = self.plan.local_features(wildcards.run, wildcards.local)
        here = self.plan.photo_set(wildcards.run, wildcards.photos)
        named = {"pictures": self._raw(here.photos), "published": self._raw(found.checked[wildcards.photos])}
        labels = f"results/{wildcards.run}/photos/{wildcards.photos}/labels.json"
        return named | {"labels": labels} | {name: self._raw(path) for name, path in found.files.items()}

    def tokens(self, wildcards) -> dict[str, Any]:
        """What tokens are made from: local descriptors, ours or published, and the reranker's weights."""
        run, photos, piece = wildcards.run, wildcards.photos, wildcards.piece
        name = self.plan.reranker(run, wildcards.reranker).local_features
        given = self.plan.local_features(run, name).given.get(f"{photos}/{piece}")
        ours = f"results/{run}/photos/{photos}/locals/{name}/{piece}.h5"
        return {
            "locals": self._raw(given) if given else ours,
            "checkpoint": self.checkpoint(run, wildcards.reranker),
        }

    def checkpoint(self, run: str, reranker: str) -> str:
        """The weights of a reranker in the one form that is read."""
        return f"results/{run}/rerankers/{reranker}.safetensors"

    def checkpoint_source(self, wildcards) -> Any:
        """The published weights of a reranker."""
        return self._raw(self.plan.reranker(wildcards.run, wildcards.reranker).files["checkpoint"])

    def reranker_training(self, wildcards) -> dict[str, Any]:
        """Classes and local descriptors that a reranker is trained on."""
        found = self.plan.reranker(wildcards.run, wildcards.reranker)
        assert found.training is not None, wildcards.reranker
        here = f"results/{wildcards.run}/photos/{found.training.photos}"
        pieces = self.plan.pieces(wildcards.run, found.training.photos)
        locals_ = [f"{here}/locals/{found.local_features}/{piece}.h5" for piece in pieces]
        return {"plan": f"{here}/plan.parquet", "locals": locals_}

    def audited_photos(self, wildcards) -> dict[str, Any]:
        """What the audit of a benchmark looks at: labels, photographs, vectors of queries."""
        run, photos = wildcards.run, wildcards.photos
        found, name = self.plan.photo_set(run, photos), self.plan.audit_backbone(run, photos)
        here = f"results/{run}/photos/{photos}"
        pieces = {"queries": "queries", "whole": "whole", "gallery": "1of1"}
        named = {"labels": f"{here}/labels.json", "pictures": self._raw(found.photos)}
        named |= {option: f"{here}/cls/{name}/{piece}.h5" for option, piece in pieces.items()}
        weights = {option: self._raw(path) for option, path in self.plan.backbone(run, name).files.items()}
        return named | weights | {option: self._raw(path) for option, path in found.anchor.items()}

    # -- heads ---------------------------------------------------------------------------------------------

    def head_training(self, wildcards) -> dict[str, Any]:
        """Vectors and classes that a head is trained on, and the galleries that it is measured by."""
        run, found = wildcards.run, self.plan.head(wildcards.run, wildcards.head)
        here = f"results/{run}/photos/{found.training}"
        pieces = self.plan.pieces(run, found.training)
        named: dict[str, Any] = {
            "plan": f"{here}/plan.parquet",
            "cls": [f"{here}/cls/{found.backbone}/{piece}.h5" for piece in pieces],
        }
        if found.files:
            named = {"weights": self._raw(found.files["weights"])}
        sets = dict.fromkeys(self.plan.gallery(run, name).photos for name in self.plan.measured_on(found))
        return named | {
            "labels": [f"results/{run}/photos/{name}/labels.json" for name in sets],
            "audits": [f"results/{run}/photos/{name}/audit.json" for name in sets],
            "gallery_cls": [f"results/{run}/photos/{name}/cls/{found.backbone}/1of1.h5" for name in sets],
            "query_cls": [f"results/{run}/photos/{name}/cls/{found.backbone}/queries.h5" for name in sets],
        }

    def projected(self, wildcards) -> dict[str, Any]:
        """The head of a projection and the vectors of a piece."""
        run, found = wildcards.run, self.plan.projection(wildcards.run, wildcards.projection)
        selection = "" if found.selection == "published" else f".{found.selection}"
        backbone = self.plan.backbone_of(run, wildcards.projection)
        return {
            "head": f"results/{run}/heads/{found.head}/{found.seed}{selection}.safetensors",
            "cls": f"results/{run}/photos/{wildcards.photos}/cls/{backbone}/{wildcards.piece}.h5",
        }

    def heads(self, run: str) -> list[str]:
        """The reports of every head and seed that the cells of a run use."""
        galleries = self.plan.run(run).galleries
        rankers = [found for name in galleries for *_, found in self.plan.rankers_of(run, name)]
        used = dict.fromkeys((found.head, found.seed) for found in rankers if found.head)
        return [f"results/{run}/heads/{head}/{seed}.report.json" for head, seed in used]

    # -- rankings ------------------------------------------------------------------------------------------

    def ranked_first(self, wildcards) -> dict[str, Any]:
        """Descriptors of queries and of everything in a gallery, distractors in their order."""
        run, found = wildcards.run, self.plan.gallery(wildcards.run, wildcards.gallery)
        here, name = f"results/{run}/photos/{found.photos}", wildcards.projection
        named: dict[str, Any] = {
            "labels": f"{here}/labels.json",
            "audit": f"{here}/audit.json",
            "queries": f"{here}/descriptors/{name}/queries.h5",
            "gallery": f"{here}/descriptors/{name}/1of1.h5",
        }
        if found.distractors:
            there = f"results/{run}/photos/{found.distractors}"
            pieces = self.plan.pieces(run, found.distractors)
            named["order"] = f"{there}/order.json"
            named["distractors"] = [f"{there}/descriptors/{name}/{piece}.h5" for piece in pieces]
        return named

    def given_first(self, wildcards) -> dict[str, Any]:
        """A published ranking of a gallery, and its labels."""
        model = wildcards.reader
        found, ranker = (
            self.plan.gallery(wildcards.run, wildcards.gallery),
            self.plan.ranker(wildcards.run, model),
        )
        assert ranker is not None, model
        here = f"results/{wildcards.run}/photos/{found.photos}"
        source = self._raw(ranker.first_stage[wildcards.gallery])
        return {"ranking": source, "labels": f"{here}/labels.json", "audit": f"{here}/audit.json"}

    def wanted(self, wildcards) -> dict[str, Any]:
        """The first stages whose shortlists say which distractors get local descriptors."""
        run, photos = wildcards.run, wildcards.photos
        firsts = {
            f"results/{run}/galleries/{gallery}/first/{name}.h5"
            for gallery in self.plan.galleries_with(run, photos)
            for reranker in self.plan.run(run).rerankers
            for name in self.plan.reranked(run, gallery, reranker)
        }
        return {"order": f"results/{run}/photos/{photos}/order.json", "first": sorted(firsts)}

    def pairs(self, wildcards) -> dict[str, Any]:
        """Shortlists of a gallery, tokens of queries and photographs, and pairs that are scored."""
        run, gallery, reranker = wildcards.run, wildcards.gallery, wildcards.reranker
        found, here = self.plan.gallery(run, gallery), f"results/{run}/galleries/{gallery}"
        photos = f"results/{run}/photos/{found.photos}"
        named: dict[str, Any] = {
            "labels": f"{photos}/labels.json",
            "checkpoint": self.checkpoint(run, reranker),
            "first": [f"{here}/first/{name}.h5" for name in self.plan.reranked(run, gallery, reranker)],
            "queries": f"{photos}/tokens/{reranker}/queries.h5",
            "tokens": [f"{photos}/tokens/{reranker}/1of1.h5"],
        }
        if found.distractors:
            named |= self._compared(run, gallery, reranker)
            there = f"results/{run}/photos/{found.distractors}"
            named["order"] = f"{there}/order.json"
            pieces = self.plan.pieces(run, found.distractors)
            named["tokens"] += [f"{there}/tokens/{reranker}/{piece}.h5" for piece in pieces]
            plain = [
                name
                for name, other in self.plan.run(run).galleries.items()
                if other.photos == found.photos
                and not other.distractors
                and self.plan.reranked(run, name, reranker)
            ]
            named["known"] = [f"results/{run}/galleries/{name}/pairs/{reranker}.parquet" for name in plain]
        return named

    def _compared(self, run: str, gallery: str, reranker: str) -> dict[str, Any]:
        """Reports that let published local descriptors stand beside ours, where a gallery has both."""
        found, local = self.plan.gallery(run, gallery), self.plan.reranker(run, reranker).local_features
        features = self.plan.local_features(run, local)
        pieces = [f"{found.photos}/queries", f"{found.photos}/1of1"]
        pieces += [f"{found.distractors}/{name}" for name in self.plan.pieces(run, str(found.distractors))]
        if len({piece in features.given for piece in pieces}) == 1 or not features.checked:
            return {}
        return {
            "checked": [f"results/{run}/photos/{name}/locals/{local}/check.json" for name in features.checked]
        }

    def read_out(self, wildcards) -> dict[str, Any]:
        """Vectors of a gallery and of the three forms of its queries."""
        run, found = wildcards.run, self.plan.gallery(wildcards.run, wildcards.gallery)
        photos = f"results/{run}/photos/{found.photos}"
        here = f"{photos}/cls/{wildcards.backbone}"
        pieces = {name: f"{here}/{name}.h5" for name in PIECES}
        named = {
            "labels": f"{photos}/labels.json",
            "audit": f"{photos}/audit.json",
            "gallery": f"{here}/1of1.h5",
        }
        return named | pieces

    def read_outs(self, wildcards) -> list[str]:
        """The read-outs of every gallery that a backbone ranks."""
        names = self.plan.read_out_galleries(wildcards.run, wildcards.backbone)
        return [
            f"results/{wildcards.run}/galleries/{name}/read_outs/{wildcards.backbone}.h5" for name in names
        ]

    def placed(self, wildcards) -> dict[str, Any]:
        """What the ranking of a cell is made from."""
        run, model = wildcards.run, repeats.model_of(wildcards.model)
        ranker = self.plan.ranker(run, model)
        gallery = self.plan.gallery_of(run, wildcards.study, wildcards.bench)
        assert ranker is not None and gallery is not None, model
        found, here = self.plan.gallery(run, gallery), f"results/{run}/galleries/{gallery}"
        named = {"labels": f"results/{run}/photos/{found.photos}/labels.json"}
        if found.distractors:
            named["order"] = f"results/{run}/photos/{found.distractors}/order.json"
        if ranker.head is None and not ranker.first_stage:
            chosen = f"results/{run}/read_outs/{ranker.backbone}.json"
            return named | {"read_outs": f"{here}/read_outs/{ranker.backbone}.h5", "chosen": chosen}
        named["first"] = f"{here}/first/{self.plan.projection_of(ranker, model)}.h5"
        if self.plan.study(wildcards.study).arms[wildcards.arm].options.get("rerank"):
            named["pairs"] = f"{here}/pairs/{ranker.reranker}.parquet"
        return named

    def ranked_photos(self, wildcards) -> list[Any]:
        """The photographs of the benchmark of every bench of a table that ranks a gallery, in table order."""
        found = dict.fromkeys(
            (cell.study, cell.bench) for cell in self.plan.cells_of(wildcards.table, wildcards.run)
        )
        named = [self.plan.gallery_of(wildcards.run, *place) for place in found]
        sets = [self.plan.gallery(wildcards.run, name).photos for name in named if name]
        return [self._raw(self.plan.photo_set(wildcards.run, name).photos) for name in sets]
