"""The steps of a run's galleries with their counts and rates, for the estimate; part of ``plan.Plan``."""

from collections.abc import Iterator
from typing import Any

import msgspec

from remeasure import repeats
from remeasure.instances import costs
from remeasure.instances.costs import Step
from remeasure.instances.settings import PIECES
from remeasure.needs import Needs
from remeasure.plan_instances import InstancesPlan
from remeasure.settings import Cell


class CostsPlan(InstancesPlan):
    """Estimates of describing and reranking, resolved on demand."""

    cells: list[Cell]

    def cells_of(self, table: str, run: str | None = None) -> list[Cell]:
        """Return the cells of one table."""
        raise NotImplementedError

    def photo_costs(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``estimate_photos``: every step behind a table, once."""
        steps = {(step.step, step.what): step for step in self._steps(run, table)}
        return {"table": table, "run": run, "steps": [msgspec.to_builtins(step) for step in steps.values()]}

    def project_cls(self, run: str, photos: str, backbone: str) -> dict[str, Any]:
        """Settings of ``project_costs`` for the vectors of a set."""
        usd = self._usd(run, self.backbone(run, backbone).needs)
        return self._projected(run, photos, "vectors", f"{photos} by {backbone}", usd)

    def project_locals(self, run: str, photos: str, local: str) -> dict[str, Any]:
        """Settings of ``project_costs`` for the local descriptors of a set."""
        usd = self._usd(run, self.local_features(run, local).needs)
        return self._projected(run, photos, "local descriptors", f"{photos} by {local}", usd)

    def _projected(self, run: str, photos: str, step: str, what: str, usd: float) -> dict[str, Any]:
        known = self.run(run).studies
        ranked = [cell for cell in self.cells if cell.study in known and known[cell.study].gallery_of_bench]
        tables = dict.fromkeys(cell.table for cell in ranked)
        steps = {(one.step, one.what): one for table in tables for one in self._steps(run, table)}
        return {
            "step": step,
            "what": what,
            "n_parts": self.photo_set(run, photos).parts,
            "steps": [msgspec.to_builtins(one) for one in steps.values() if one.way != "published"],
            "usd_per_hour": usd,
            "pause_if_usd": self.run(run).projection.pause_if_usd,
        }

    def _steps(self, run: str, table: str) -> Iterator[Step]:
        galleries: dict[str, list[str]] = {}
        for cell in self.cells_of(table, run):
            name = self.gallery_of(run, cell.study, cell.bench)
            assert name is not None, cell  # a bench without one has no cell
            for reader in self.readers(run, cell.study, cell.bench, cell.arm):
                found = galleries.setdefault(name, [])
                if repeats.model_of(reader) not in found:
                    found.append(repeats.model_of(reader))
        sets = dict.fromkeys(self.gallery(run, name).distractors for name in galleries)
        for distractors in filter(None, sets):
            yield from self._brought(run, distractors)
        for head in self._heads(run, galleries):
            yield from self._brought(run, self.head(run, head).training)
        for name, readers in galleries.items():
            for reader in readers:
                yield from self._described(run, name, reader)
        yield from self._localised(run, galleries)
        yield from self._paired(run, galleries)

    def _heads(self, run: str, galleries: dict[str, list[str]]) -> list[str]:
        rankers = [self.ranker(run, reader) for readers in galleries.values() for reader in readers]
        named = dict.fromkeys(ranker.head for ranker in rankers if ranker is not None and ranker.head)
        return [name for name in named if not self.head(run, name).files]

    def _usd(self, run: str, needs: Needs) -> float:
        return self.run(run).projection.usd_per_hour if needs.gpu else 0.0

    def _n(self, run: str, photos: str) -> int:
        """Return how many photographs a set has, as far as the run says it; of a benchmark its gallery's."""
        expected = self.photo_set(run, photos).expected
        return expected.get("photos", expected.get("gallery", 0))

    def _brought(self, run: str, photos: str) -> Iterator[Step]:
        found, rates = self.photo_set(run, photos), self.run(run).projection
        if found.bytes is not None:
            rate = rates.download_mb_per_s
            yield Step(
                step="download",
                what=photos,
                unit="bytes",
                n=found.bytes,
                per_s=rate * 1e6 if rate else None,
                usd_per_hour=rates.cpu_usd_per_hour,
                stored_bytes=found.bytes,
                way="both" if found.role == "distractors" else "ours",
                large=found.role == "distractors",
            )

    def _described(self, run: str, gallery: str, reader: str) -> Iterator[Step]:
        """Yield what is described for a reader: gallery and queries, distractors, what trained the head."""
        ranker, found = self.ranker(run, reader), self.gallery(run, gallery)
        assert ranker is not None, reader
        backbone = ranker.backbone or (self.head(run, ranker.head).backbone if ranker.head else None)
        if backbone is None:
            return
        n_queries = self.photo_set(run, found.photos).expected.get("queries", 0)
        forms = PIECES if ranker.head is None else ("queries", "whole")
        yield self._cls(run, found.photos, backbone, self._n(run, found.photos) + len(forms) * n_queries)
        if found.distractors:
            yield self._cls(run, found.distractors, backbone, self._n(run, found.distractors))
        if ranker.head and not self.head(run, ranker.head).files:
            training = self.head(run, ranker.head).training
            yield self._cls(run, training, self.head(run, ranker.head).backbone, self._n(run, training))

    def _cls(self, run: str, photos: str, name: str, n: int) -> Step:
        spec = self.backbone(run, name)
        return Step(
            step="vectors",
            what=f"{photos} by {name}",
            unit="photographs",
            n=n,
            per_s=spec.img_per_s,
            usd_per_hour=self._usd(run, spec.needs),
            stored_bytes=n * len(spec.scales) * spec.dim * costs.HALF,
            way="both" if self.photo_set(run, photos).role == "distractors" else "ours",
            large=self.photo_set(run, photos).role == "distractors",
        )

    def _localised(self, run: str, galleries: dict[str, list[str]]) -> Iterator[Step]:
        """Yield local descriptors: of distractors those that our plan wants at most, and all as published."""
        wanted: dict[tuple[str, str], int] = {}
        for gallery, reranker, heads in self._reranked(run, galleries):
            found, name = self.gallery(run, gallery), self.reranker(run, reranker).local_features
            spec = self.local_features(run, name)
            n_queries = self.photo_set(run, found.photos).expected.get("queries", 0)
            if f"{found.photos}/1of1" not in spec.given:
                yield self._locals(
                    run, found.photos, name, self._n(run, found.photos) + n_queries, "ours", ""
                )
            if found.distractors:
                few = heads * costs.shortlisted(n_queries, self.reranker(run, reranker).shortlist)
                key = found.distractors, name
                wanted[key] = wanted.get(key, 0) + few
        for (photos, name), few in wanted.items():
            n = self._n(run, photos)
            full = any(
                found.locals == "full"
                for found in self.run(run).galleries.values()
                if found.distractors == photos
            )
            yield self._locals(run, photos, name, n, "both" if full else "published", "all of them")
            if not full:
                note = "those that are shortlisted, at most: shortlists of several queries overlap"
                yield self._locals(run, photos, name, min(n, few), "ours", note)

    def _locals(self, run: str, photos: str, name: str, n: int, way: Any, note: str) -> Step:
        spec = self.local_features(run, name)
        return Step(
            step="local descriptors" + (", published plan" if way == "published" else ""),
            what=f"{photos} by {name}",
            unit="photographs",
            n=n,
            per_s=spec.img_per_s,
            usd_per_hour=self._usd(run, spec.needs),
            stored_bytes=costs.flat_bytes(n, spec.n, spec.dim),
            way=way,
            note=note,
            large=self.photo_set(run, photos).role == "distractors",
        )

    def _reranked(self, run: str, galleries: dict[str, list[str]]) -> Iterator[tuple[str, str, int]]:
        """Yield gallery, reranker and number of first stages that it works on."""
        for gallery in galleries:
            for reranker in self.run(run).rerankers:
                heads = len(self.reranked(run, gallery, reranker))
                if heads:
                    yield gallery, reranker, heads

    def _paired(self, run: str, galleries: dict[str, list[str]]) -> Iterator[Step]:
        """Yield the pairs: Medium and Hard in one pass in our plan, two passes as published."""
        for gallery, reranker, heads in self._reranked(run, galleries):
            spec = self.reranker(run, reranker)
            photos = self.photo_set(run, self.gallery(run, gallery).photos)
            n_queries = photos.expected.get("queries", 0)
            usd, what = self._usd(run, spec.needs), f"{gallery} by {reranker}"
            ours = heads * costs.shortlisted(n_queries, spec.shortlist)
            large = self.gallery(run, gallery).distractors is not None
            rate = {"large": large, "unit": "pairs", "per_s": spec.pairs_per_s, "usd_per_hour": usd}
            yield Step(step="pairs", what=what, n=ours, note="Medium and Hard in one pass, at most", **rate)
            passes = 2 * heads
            note = f"{passes} passes"
            yield Step(
                step="pairs, published plan",
                what=what,
                n=passes * n_queries * spec.shortlist,
                way="published",
                note=note,
                **rate,
            )
