"""Where steps are done: what each asks of a machine, beside the planning Snakemake or as a job, in parts.

Whether jobs are local is a property of their rule, so a rule that may be either stands twice. What tells the
two apart is the wildcard ``run``: a look-ahead over the rest of the path ties it to what decides, a model or
a corpus.
"""

import re
from collections.abc import Callable, Iterable

from remeasure import repeats
from remeasure.errors import RemeasureError
from remeasure.needs import CorpusNeeds, EncoderNeeds, Needs
from remeasure.plan import Plan
from remeasure.settings import Run


def _any(names: Iterable[str]) -> str:
    """Return a pattern of any of the names; empty for none."""
    return "|".join(map(re.escape, names))


def _in_parts(run: Run) -> list[str]:
    return [name for name, corpus in run.corpora.items() if corpus.parts > 1]


class Places:
    """Functions of ``resources:`` and patterns of wildcards, over one plan; part of ``wiring.Wiring``."""

    plan: Plan

    def judge(self, wildcards) -> str:
        """Return the judge of a study in a run."""
        raise NotImplementedError

    # -- what is asked of a machine ------------------------------------------------------------------------

    def corpus_needs(self, wildcards) -> CorpusNeeds:
        """What the stages of a corpus ask of a machine."""
        return self.plan.corpus(wildcards.run, wildcards.corpus).needs

    def database_needs(self, wildcards) -> Needs:
        """What filling a database asks of a machine."""
        return self.plan.database(wildcards.run, wildcards.database).needs

    def encoder_needs(self, wildcards) -> EncoderNeeds:
        """What the stages of an encoder ask of a machine."""
        return self.plan.encoder(wildcards.run, wildcards.encoder).needs

    def search_needs(self, wildcards) -> Needs:
        """What a search asks of a machine: as much as the encoder that reads its questions."""
        arm = self.plan.study(wildcards.study).arms[wildcards.arm]
        encoder = self.plan.encoder_of(wildcards.run, wildcards.study, arm.retriever)
        return self.plan.encoder(wildcards.run, encoder).needs.search

    def ask_needs(self, wildcards) -> Needs:
        """What asking a cell asks of a machine; where parts of it were asked, little is left to do."""
        n = self.plan.shards(wildcards.run, wildcards.study, wildcards.bench, wildcards.arm, wildcards.model)
        return Needs() if n > 1 else self.plan.model(wildcards.run, wildcards.model).needs

    def shard_needs(self, wildcards) -> Needs:
        """What asking a part of a cell asks of a machine."""
        return self.plan.model(wildcards.run, wildcards.model).needs

    def judge_needs(self, wildcards) -> Needs:
        """What judging a cell asks of a machine."""
        return self.plan.model(wildcards.run, self.judge(wildcards)).needs

    def agreement_needs(self, wildcards) -> Needs:
        """What one of the compared judges asks of a machine."""
        return self.plan.model(wildcards.run, wildcards.judge).needs

    def merge_needs(self, wildcards) -> Needs:
        """What merging an adapted model asks of a machine."""
        return self.plan.adapted(wildcards.run, wildcards.adapted).needs

    # -- where it is done ----------------------------------------------------------------------------------

    def _runs(self, rest: Callable[[str, Run], str]) -> str:
        """Return what the wildcard ``run`` must match: a run before what ``rest`` says of it.

        Args:
            rest: by a run and its settings, the pattern of the path behind its folder; empty where the run
                has no such step.
        """
        found = []
        for name in self.plan.runs():
            try:
                behind = rest(name, self.plan.run(name))
            except RemeasureError:  # said when that run is asked for
                continue
            if behind:
                found.append(f"{re.escape(name)}(?=/{behind})")
        return "|".join(found) or "(?!)"

    def on_login(self, role: str) -> str:
        """Return what ``run`` must match where a model is asked beside the planning Snakemake.

        A model of the same name may be reached in another way in another run.

        Args:
            role: reader, judge, agreement or calibration.
        """

        def rest(_: str, run: Run) -> str:
            here = _any(name for name, model in run.models.items() if model.on_login())
            judged = _any(
                name
                for name, study in run.studies.items()
                if study.judge is not None and run.models[study.judge].on_login()
            )
            return {
                "reader": here and f"[^/]+/[^/]+/[^/]+/(?:{here}){repeats.PATTERN}/(?!judge/)",
                "judge": judged and f"(?:{judged})/[^/]+/[^/]+/[^/]+/judge/",
                "agreement": here and f"judges/(?:{here})/",
                "calibration": here and f"calibration/[^/]+/(?:{here})/",
            }[role]

        return self._runs(rest)

    def ranking(self, step: str) -> str:
        """Return what ``run`` must match where a step is one of readers that rank.

        Args:
            step: answers, which are rankings then; estimates of their tables; trained or imported, which
                says what rerankers come from.
        """

        def rest(_: str, run: Run) -> str:
            here = _any(name for name, model in run.models.items() if model.ranker)
            tables = _any(
                {
                    c.table
                    for c in self.plan.cells
                    if run.studies.get(c.study) and run.studies[c.study].gallery_of_bench
                }
            )
            trained = _any(name for name, found in run.rerankers.items() if found.training)
            imported = _any(name for name, found in run.rerankers.items() if not found.training)
            return {
                "answers": here and f"[^/]+/[^/]+/[^/]+/(?:{here}){repeats.PATTERN}/",
                "estimates": tables and f"tables/(?:logs/)?(?:{tables})[.]estimate[.]",
                "trained": trained and f"rerankers/(?:{trained})[.]",
                "imported": imported and f"rerankers/(?:{imported})[.]",
            }[step]

        return self._runs(rest)

    def parted(self, stage: str) -> str:
        """Return what ``run`` must match where a stage of a corpus is done in parts.

        Args:
            stage: tiles, passages, or vectors. Candidate lines are embedded in one job whatever the parts
                are: a line that stands on pages of several parts has one vector.
        """

        def rest(_: str, run: Run) -> str:
            corpora = _any(_in_parts(run))
            encoders = _any(name for name, encoder in run.encoders.items() if encoder.unit != "lines")
            made = encoders if stage == "vectors" else stage
            return f"corpora/(?:{corpora})/(?:{made})/" if corpora and made else ""

        return self._runs(rest)

    def large(self, step: str) -> str:
        """Return what ``run`` must match where a small step reads a corpus that is in parts.

        A corpus that is worth parts is too large to be read on the login node: whole archives are hashed,
        and lists of millions of pages held.

        Args:
            step: pages, items, or requests; an arm without evidence reads no corpus.
        """

        def rest(name: str, run: Run) -> str:
            if step == "pages":
                corpora = _any(_in_parts(run))
                return f"corpora/(?:{corpora})/" if corpora else ""
            found = []
            for study in run.studies:
                protocol = self.plan.study(study)
                arms = _any(arm for arm, spec in protocol.arms.items() if spec.evidence != "none")
                behind = f"(?:{arms})/" if step == "requests" else ""
                for bench in (*protocol.benches, *protocol.training_sets):
                    if self.plan.corpus_name(name, study, bench) in _in_parts(run):
                        found.append(f"{re.escape(study)}/{re.escape(bench)}/{behind}")
            return f"(?:{'|'.join(found)})" if found else ""

        return self._runs(rest)
