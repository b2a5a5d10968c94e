"""What each stage is told: resolved settings per wildcard, and nothing that the stage does not read.

These dictionaries become ``params:`` of the rules, so a changed setting reruns the stages that read it.
Prices, concurrency, time limits and addresses are kept apart (``executor``): they ask nothing again.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from remeasure import catalogue, graders, layout, prompts, reach, repeats, settings, table_facts, taken
from remeasure.encoders import BACKENDS
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_file
from remeasure.plan_calibration import CalibrationPlan
from remeasure.plan_costs import CostsPlan
from remeasure.settings import Cell, Corpus, Encoder, Run, Study, StudyRun

# The seed of every bootstrap in every table.
BOOTSTRAP_SEED = 1
# Units of a bench that the page of a table shows.
PAGE_UNITS = 60


class Plan(CalibrationPlan, CostsPlan):
    """All settings of the project, resolved on demand.

    Args:
        folder: the ``config`` folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cells: list[Cell] = settings.load_cells(folder)
        self.catalogue = catalogue.Catalogue(folder / "sources.tsv")

    # -- what there is -------------------------------------------------------------------------------------

    def run(self, name: str) -> Run:
        """Return one run's settings."""
        return settings.load_run(self.folder, name)

    def runs(self) -> list[str]:
        """Return the names of all runs that have a file."""
        return sorted(path.stem for path in (self.folder / "runs").glob("*.yaml"))

    def study(self, name: str) -> Study:
        """Return one study's protocol."""
        return settings.load_study(self.folder, name)

    def studies(self) -> list[str]:
        """Return the studies that have cells, in the order of ``cells.tsv``."""
        return list(dict.fromkeys(cell.study for cell in self.cells))

    def tables(self) -> list[str]:
        """Return the tables that have cells."""
        return list(dict.fromkeys(cell.table for cell in self.cells))

    def cells_of(self, table: str, run: str | None = None) -> list[Cell]:
        """Return the cells of one table, in table order; with a run those that it has readers for."""
        found = [cell for cell in self.cells if cell.table == table]
        return found if run is None else [c for c in found if self.readers(run, c.study, c.bench, c.arm)]

    def cells_in(self, run: str) -> list[Cell]:
        """Return the cells that a run has readers for, of the studies that it has, in table order."""
        known = self.run(run).studies
        return [c for c in self.cells if c.study in known and self.readers(run, c.study, c.bench, c.arm)]

    def study_run(self, run: str, study: str) -> StudyRun:
        """Return what a run says about a study.

        Raises:
            RemeasureError: the run does not define the study.
        """
        known = self.run(run).studies
        if study not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: study {study!r} has no section under studies"
                f"{did_you_mean(study, known)}; add one or choose another run"
            )
        return known[study]

    def bench(self, run: str, study: str, bench: str) -> settings.Bench:
        """Return a bench's protocol with this run's changes laid on top."""
        plain = msgspec.to_builtins(self.study(study).benches[bench])
        over = self.study_run(run, study).benches
        for name in over:
            if name not in self.study(study).benches:
                known = self.study(study).benches
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: studies.{study}.benches: bench {name!r} is not defined"
                    f"{did_you_mean(name, known)}; known: {', '.join(known)}"
                )
        place = self.folder / "runs" / f"{run}.yaml"
        found = settings.convert(settings.merge(plain, over.get(bench, {})), settings.Bench, place)
        settings.check_bench(found, self.study(study), f"{place}: studies.{study}.benches.{bench}")
        if found.index != self.study(study).benches[bench].index:
            raise RemeasureError(
                f"{place}: studies.{study}.benches.{bench}.index: {found.index!r}, the study says "
                f"{self.study(study).benches[bench].index!r}; a run cannot change it: take it out"
            )
        return found

    # -- corpus --------------------------------------------------------------------------------------------

    def corpus(self, run: str, corpus: str) -> Corpus:
        """Return one corpus of a run."""
        return self.run(run).corpora[corpus]

    def encoder(self, run: str, encoder: str) -> Encoder:
        """Return one encoder of a run."""
        return self.run(run).encoders[encoder]

    def pages(self, run: str, corpus: str) -> dict[str, Any]:
        """Settings of ``select_pages``; an archive with facts is parted by its corpus file."""
        here = self.corpus(run, corpus)
        return {
            "pages": here.pages,
            "selection": self.corpus_file(corpus)["selection"] if here.facts else None,
        }

    @functools.cache  # noqa: B019 - one plan per process
    def corpus_file(self, corpus: str) -> dict[str, Any]:
        """Return ``corpora/<corpus>.yaml``: how an embedded archive is written and parted."""
        return settings.read_yaml(self.folder / "corpora" / f"{corpus}.yaml")

    @functools.cache  # noqa: B019 - one plan per process
    def scenes(self, name: str) -> dict[str, Any]:
        """Return a section of ``scenes.yaml``: how pictures are composed."""
        return settings.read_yaml(self.folder / "scenes.yaml")[name]

    @functools.cache  # noqa: B019 - one plan per process
    def composed_cases(self, name: str) -> dict[str, Any]:
        """Return a section of ``cases.yaml``: how cases are composed, for whichever study."""
        section = settings.read_yaml(self.folder / "cases.yaml")[name]
        return {key: value for key, value in section.items() if key != "study"}

    @functools.cache  # noqa: B019 - one plan per process
    def questions(self, study: str) -> dict[str, Any]:
        """Return ``studies/<study>_questions.yaml``: how questions are made from facts."""
        return settings.read_yaml(self.folder / "studies" / f"{study}_questions.yaml")

    def render(self, run: str, corpus: str) -> dict[str, Any]:
        """Settings of ``render_tiles``."""
        return msgspec.to_builtins(self.corpus(run, corpus).render)

    def ocr(self, run: str, corpus: str) -> dict[str, Any]:
        """Settings of ``read_tiles``."""
        return msgspec.to_builtins(self.corpus(run, corpus).ocr)

    def text(self, run: str, corpus: str) -> dict[str, Any]:
        """Settings of ``extract_text``."""
        return msgspec.to_builtins(self.corpus(run, corpus).text)

    def embed(self, run: str, encoder: str) -> dict[str, Any]:
        """Settings of ``embed``: the encoder by name, without how its adapter was trained."""
        plain = msgspec.to_builtins(self.encoder(run, encoder))
        del plain["needs"], plain["files"]
        plain["trained"] = plain.pop("training") is not None
        return {"name": encoder} | plain

    def weights(self, run: str, encoder: str) -> dict[str, str]:
        """Return the files of an encoder by option of the scripts."""
        spec = self.encoder(run, encoder)
        if spec.files:
            return dict(spec.files)
        files = {"model": f"results/sources/{spec.model}.onnx"}
        if spec.max_tokens is not None:
            files["tokenizer"] = f"results/sources/{spec.model}.tokenizer.json"
        return files

    def train(self, run: str, encoder: str) -> dict[str, Any]:
        """Settings of ``train_adapter``."""
        training = self.encoder(run, encoder).training
        assert training is not None, encoder
        return msgspec.to_builtins(training) | {"base_encoder": self.embed(run, training.base)}

    def sources(self, run: str) -> list[str]:
        """Return the paths below ``results/sources`` that a run reaches, each once: what a prefetch has."""
        reached = dict.fromkeys(reach.paths(self, run))
        return [path for path in reached if path.startswith("results/sources/")]

    # -- questions and evidence ----------------------------------------------------------------------------

    def items(self, run: str, study: str, bench: str) -> dict[str, Any]:
        """Settings of ``build_items``."""
        here = self.study_run(run, study)
        if here.items:
            training = bench in self.study(study).training_sets
            compares = training or graders.by_name(self.bench(run, study, bench).grader).compares
            return {
                "own": here.items,
                "n_items": None if training else self.n_items(run, study, bench),
                "with_answers": compares,
            } | ({"task": self.task_of_items(study, bench)} if self.study(study).datasets else {})
        if self.study(study).galleries:
            return {"n_items": self.n_items(run, study, bench)}
        if self.study(study).datasets:
            return {"n_items": self.n_items(run, study, bench), "task": self.task_of_items(study, bench)}
        index = self.study(study).index
        if index:
            return {"n_units": self.n_items(run, study, bench), "source": self.images(run, study)}
        templates = self.questions(study)
        missing = [name for name in self.study(study).benches if name not in templates.get("benches", {})]
        if missing:
            raise RemeasureError(
                f"{self.folder}/studies/{study}_questions.yaml: benches lacks {missing[0]}; add it"
            )
        if bench in self.study(study).training_sets:
            chosen = {"question_set": bench, "items_per_page": here.training_items_per_page}
            return chosen | {"questions": templates | {"benches": {}}}
        chosen = {"question_set": here.question_set, "n_items": self.n_items(run, study, bench)}
        only = {"benches": {bench: templates["benches"][bench]}, "training": {}}
        return chosen | {"questions": templates | only}

    def indexes(self) -> dict[str, list[str]]:
        """Return the index files of every study that lists a collection of images."""
        return {name: index.files for name, index in self._indexes().items() if not index.tables}

    def table_indexes(self) -> dict[str, list[str]]:
        """Return what is made from the tables of every study that has such: index files and image store."""
        return {
            name: [*index.files, index.tables.images]
            for name, index in self._indexes().items()
            if index.tables
        }

    def index_stages(self) -> dict[str, dict[str, list[str]]]:
        """Return by stage what it makes for which study."""
        return {"index_images": self.indexes(), "index_tables": self.table_indexes()}

    def _indexes(self) -> dict[str, settings.Index]:
        found = {name: self.study(name).index for name in self.studies()}
        return {name: index for name, index in found.items() if index}

    def index_file(self, study: str, bench: str) -> str:
        """Return the index file that the items of a bench are made from."""
        index = self.study(study).index
        assert index is not None, study
        return self.study(study).benches[bench].index or index.files[0]

    def tables_of(self, run: str, study: str) -> dict[str, str]:
        """Return the tables that a study's index is made from, by index file; none where it lists images."""
        index = self.study(study).index
        if index is None or index.tables is None:
            return {}
        folder = self.source(run, study)
        return {name: f"{folder}/{path}" for name, path in index.tables.files.items()}

    def images(self, run: str, study: str) -> str:
        """Return where the images of a study's index lie: its source, or the store filled from tables."""
        index = self.study(study).index
        if index is not None and index.tables is not None:
            return f"results/{run}/{study}/index/{index.tables.images}"
        return self.source(run, study)

    def reads_index(self, run: str, study: str) -> bool:
        """Return whether a study's items are made from an index of images in a run."""
        return self.study(study).index is not None and self.study_run(run, study).items is None

    def source(self, run: str, study: str) -> str:
        """Return the images that a study's index lists.

        Raises:
            RemeasureError: the run names none.
        """
        found = self.study_run(run, study).source
        if found is not None:
            return found
        index = self.study(study).index
        if index is not None and index.tables is not None:
            return _found_locally(index.tables) or index.tables.fetched
        raise RemeasureError(
            f"{self.folder}/runs/{run}.yaml: studies.{study}.source: is missing; name the folder or zip "
            "store of the images"
        )

    def index(self, run: str, study: str) -> dict[str, Any]:
        """Settings of ``index_images``."""
        found = self.study(study).index
        assert found is not None, study
        told = settings.merge(found.options, self.study_run(run, study).index)
        return {"files": found.files, "options": self._options(run, study, told)} | (
            {"tables": list(found.tables.files)} if found.tables else {}
        )

    def _options(self, run: str, study: str, own: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a study with those of one of its stages on top.

        A lexicon that they name comes with its hash, so that a changed one is noticed.

        Raises:
            RemeasureError: there is no lexicon of that name.
        """
        shared = settings.merge(self.study(study).options, self.study_run(run, study).options)
        options = settings.merge(shared, own)
        if "lexicon" not in options:
            return options
        path = self.folder / "lexicons" / f"{options['lexicon']}.tsv"
        if not path.is_file():
            raise RemeasureError(f"{path}: is missing; correct `lexicon` in the options of the study")
        named = {"path": str(path.relative_to(self.folder.parent)), "sha256": sha256_file(path)}
        return options | {"lexicon": {"name": options["lexicon"], **named}}

    def n_items(self, run: str, study: str, bench: str) -> int:
        """Return how many questions a bench has, or units where several items are graded together."""
        here = self.study_run(run, study)
        return here.items_of_bench.get(bench, here.items_per_bench)

    def corpus_name(self, run: str, study: str, bench: str) -> str | None:
        """Return the corpus of a bench's questions and evidence; null where there are no pages."""
        here = self.study_run(run, study)
        return here.corpus_of_bench.get(bench, here.corpus)

    def photo_encoder(self, run: str, study: str, arm: str) -> str | None:
        """Return the encoder of query images; null where an arm has none or its own encoder sees them."""
        column = self.study(study).arms[arm]
        if not column.photo:
            return None
        own = self.encoder(run, self.encoder_of(run, study, column.retriever))
        return None if BACKENDS[own.backend].sees_pixels else self.encoder_of(run, study, "photo")

    def retrieval(self, run: str, study: str, arm: str) -> dict[str, Any]:
        """Settings of ``search``."""
        here = self.study_run(run, study)
        column = self.study(study).arms[arm]
        photo = self.photo_encoder(run, study, arm)
        return {
            "n_docs": self._retrieve(study).n_docs,
            "text": self.embed(run, self.encoder_of(run, study, column.retriever)),
            "photo": self.embed(run, photo) if photo else None,
            "fusion": here.fusion if photo else None,
        }

    def _retrieve(self, study: str) -> settings.Retrieve:
        found = self.study(study).retrieve
        assert found is not None, study  # checked where an arm retrieves
        return found

    def encoder_of(self, run: str, study: str, role: str | None) -> str:
        """Return the encoder that plays ``role`` in a study of a run."""
        roles = self.study_run(run, study).encoders
        if role not in roles:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: studies.{study}.encoders lacks the role {role!r}; add it"
            )
        return roles[role]

    # -- asking --------------------------------------------------------------------------------------------

    def request(self, run: str, study: str, bench: str, arm: str, model: str) -> dict[str, Any]:
        """Settings of ``build_requests``."""
        here, protocol = self.bench(run, study, bench), self.study(study)
        column = protocol.arms[arm]
        profile = prompts.profile(self.folder, study, self.study_run(run, study).prompts)
        profile = prompts.only(profile, [n for n in profile["files"] if not n.startswith("judge_")])
        if here.instruction and f"instruction_{here.instruction}" not in profile["files"]:
            raise RemeasureError(
                f"{self.folder}/studies/{study}.yaml: benches.{bench}.instruction: no prompt "
                f"instruction_{here.instruction}.txt in profile {profile['profile']!r}; write it"
            )
        return {
            "model": repeats.model_of(self.reader(run, study, model)),
            "evidence": column.evidence,
            "item_images": column.images,
            "options": column.options,
            "task": self.task(run, study, bench, arm),
            "n_shown": protocol.retrieve.n_shown if protocol.retrieve else 0,
            "grader": here.grader,
            "thinking": self.thinking(run, study, bench, arm),
            "max_tokens": here.max_tokens,
            "sampling": _without_nulls(here.sampling or protocol.sampling),
            "instruction": here.instruction,
            "layout": here.layout,
            "prompts": profile,
        } | self.image_detail(run, model)

    def taken(self, study: str, profile: str, part: str = "") -> dict[str, Any]:
        """Settings of ``take_prompts``."""
        sha256 = self.catalogue.module_sha256(study, profile, part)
        return taken.settings(self.folder, study, profile, sha256, part)

    def prompts_elsewhere(self, run: str, study: str) -> list[str]:
        """Return the files of a study's prompts that are no part of the repository."""
        if self.study(study).galleries:
            return []
        profile = prompts.profile(self.folder, study, self.study_run(run, study).prompts)
        return [path for path in profile["files"].values() if prompts.is_elsewhere(path)]

    def reader(self, run: str, study: str, model: str) -> str:
        """Return the model if it is a reader of the study in the run.

        Raises:
            RemeasureError: it is none; names those that there are.
        """
        known = self.study_run(run, study).readers
        if model not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: studies.{study}.reader: {model!r} is none"
                f"{did_you_mean(model, known)}; readers are {', '.join(known)}"
            )
        return model

    def thinking(self, run: str, study: str, bench: str, arm: str) -> bool:
        """Return whether the reader thinks in a cell."""
        switch = self.bench(run, study, bench).thinking
        return switch if isinstance(switch, bool) else switch[arm]

    def judge_request(self, run: str, study: str, bench: str, judge: str | None = None) -> dict[str, Any]:
        """Settings of ``build_judge_requests``."""
        here, grader = self.study_run(run, study), self.bench(run, study, bench).grader
        judging = self.study(study).judging
        profile = prompts.profile(self.folder, study, here.prompts)
        if grader not in profile["files"]:
            raise RemeasureError(
                f"{self.folder}/prompts/{study}/{here.prompts}/{grader}.txt is missing; write it"
            )
        return {
            "model": judge or self.judge(run, study),
            "grader": grader,
            "gold": self.bench(run, study, bench).gold,
            "sampling": {"temperature": judging.temperature} if judging.temperature is not None else {},
            "max_tokens": judging.max_tokens,
            "thinking": judging.thinking,
            "response_format": judging.response_format,
            "with_answers": graders.by_name(grader).compares,
            "prompts": prompts.only(profile, [n for n in profile["files"] if n.startswith("judge_")])
            if judging.further
            else prompts.only(profile, [grader, "judge_system"]),
        }

    def estimate_reader(self, run: str, study: str, bench: str, model: str) -> dict[str, Any]:
        """Settings of ``estimate_cost`` for a reader."""
        here, names = self.bench(run, study, bench), ("answer_tokens", "requests_per_case", "input_tokens")
        told = {name: getattr(here, name) for name in names}
        return self.estimate(run, model) | {name: n for name, n in told.items() if n is not None}

    def estimate_judge(self, run: str, study: str, bench: str) -> dict[str, Any]:
        """Settings of ``estimate_cost`` for the study's judge."""
        return self._estimate_judge(run, study, bench, self.judge(run, study))

    def _estimate_judge(self, run: str, study: str, bench: str, judge: str) -> dict[str, Any]:
        here = self.bench(run, study, bench)
        told = {"answer_tokens": here.judge_tokens, "judged_tokens": here.answer_tokens}
        return (
            self.estimate(run, judge)
            | {"judge": self.judge_request(run, study, bench, judge)}
            | {name: n for name, n in told.items() if n is not None}
        )

    def estimate_agreement(self, run: str, judge: str) -> dict[str, Any]:
        """Settings of ``estimate_cost`` for one of the judges that are compared."""
        audit = self.audit(run)
        return self._estimate_judge(run, audit.study, audit.bench, judge) | {"n_answers": audit.n_answers}

    def estimate_calibration(self, run: str, table: str, judge: str) -> dict[str, Any]:
        """Settings of ``estimate_cost`` for a judge that a table's judge is compared with."""
        study, bench = self.calibrated_study(run, table), self.calibrated_benches(run, table)[0]
        n = self.calibration(run, table).n
        return self._estimate_judge(run, study, bench, judge) | {"n_answers": n}

    # -- grading and tables --------------------------------------------------------------------------------

    def has_judge(self, run: str, study: str, bench: str) -> bool:
        """Return whether a bench's answers are shown to a judge."""
        return self.bench(run, study, bench).grader.startswith("judge_")

    def judge(self, run: str, study: str) -> str:
        """Return the judge of a study in a run.

        Raises:
            RemeasureError: the run names none, and a bench of the study has a grader that needs one.
        """
        found = self.study_run(run, study).judge
        if found is None:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: studies.{study}.judge: is missing; name one"
            )
        return found

    def grade(self, run: str, study: str, bench: str, arm: str, model: str) -> dict[str, Any]:
        """Settings of ``grade``."""
        models = self.run(run).models
        protocol, here = self.study(study), self.bench(run, study, bench)
        return {
            "study": study,
            "bench": bench,
            "arm": arm,
            "model": self.reader(run, study, model),
            "grader": here.grader,
            "options": self._grader_options(run, study, here),
            "k": protocol.retrieve.n_shown if protocol.retrieve else None,
            "thinking": self.thinking(run, study, bench, arm),
            "reader": self.model(run, model).title,
            "judge": models[self.judge(run, study)].title if self.has_judge(run, study, bench) else None,
            "corpus": self.corpus_name(run, study, bench),
            "bootstrap": self._bootstrap(study),
            "max_judge_failed_share": self._max_judge_failed_share(run, study),
        }

    def grader_files(self, run: str, study: str, bench: str) -> dict[str, str]:
        """Return the files that the grader of a bench reads, by name."""
        return self.bench(run, study, bench).files

    def _grader_options(self, run: str, study: str, bench: settings.Bench) -> dict[str, Any]:
        """Return the options of a bench's grader; files come with their hashes, where these are known."""
        options = self._options(run, study, bench.options)
        if not bench.files:
            return options
        hashes = self.catalogue.hashes()
        files = {
            name: {"path": path, "sha256": hashes.get(Path(path).name)} for name, path in bench.files.items()
        }
        return options | {"files": files}

    def table(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``make_table``."""
        cells = self.cells_of(table, run)
        name = self._study_of(run, table)
        study, here = self.study(name), self.study_run(run, name)
        self.check_contrasts(name)
        benches = {cell.bench: self.bench(run, name, cell.bench) for cell in cells}
        found = layout.of_table(cells, study, benches, here, self._readers_of(run))
        return {
            "table": table,
            "run": run,
            "study": name,
            "title": study.title,
            "run_title": self.run(run).title,
            "unit": study.unit,
            "decimals": study.decimals,
            "notes": study.notes + here.notes,
            **found,
            "spread_of": [[name, list(readers)] for name, readers in here.spread_of.items()],
            "stands_for": {reader: list(others) for reader, others in here.stands_for.items()},
            "blocks": table_facts.with_anchors(self, table, name, found["blocks"]),
            "facts": table_facts.of_table(self, run, name, cells),
            "left_out": self.left_out(run, name),
            "not_comparable": self._not_comparable(run, name),
            "bootstrap": self._bootstrap(name),
            "max_failed_share": self._max_failed_share(run, name),
            "allow_failures": here.allow_failures,
        }

    def _max_judge_failed_share(self, run: str, study: str) -> float:
        own = self.study_run(run, study).max_judge_failed_share
        return self.study(study).max_judge_failed_share if own is None else own

    def _max_failed_share(self, run: str, study: str) -> float | None:
        own = self.study_run(run, study).max_failed_share
        return self.study(study).max_failed_share if own is None else own

    def check_contrasts(self, study: str) -> None:
        """Stop at arms that are to be compared and cannot be: one has no cell, or they share no bench.

        Raises:
            RemeasureError: names the pair, and the arm where one has no cell.
        """
        cells = [cell for cell in self.cells if cell.study == study]
        asked = {"arm": {cell.arm for cell in cells}, "bench": {cell.bench for cell in cells}}
        for pair in self.study(study).compared:
            for name in (pair.first, pair.second):
                if name not in asked[pair.axis]:
                    raise RemeasureError(
                        f"{self.folder}/studies/{study}.yaml: contrasts: [{pair.first}, {pair.second}]: "
                        f"{pair.axis} {name!r} has no cell in {self.folder}/cells.tsv; take the pair "
                        "out or add the cells"
                    )
            other = {"arm": "bench", "bench": "arm"}[pair.axis]
            first, second = (
                {(cell.table, getattr(cell, other)) for cell in cells if getattr(cell, pair.axis) == name}
                for name in (pair.first, pair.second)
            )
            if first.isdisjoint(second):
                raise RemeasureError(
                    f"{self.folder}/studies/{study}.yaml: contrasts: [{pair.first}, {pair.second}]: stand "
                    f"together in no {other} of a table in {self.folder}/cells.tsv, so there is nothing to "
                    "subtract; take the pair out or correct it"
                )

    def _bootstrap(self, study: str) -> dict[str, int]:
        return {"n": self.study(study).bootstrap_samples, "seed": BOOTSTRAP_SEED}

    def _not_comparable(self, run: str, study: str) -> list[str]:
        """Return in what a study of a run differs from the paper: not in a part that it does not have."""
        here = self.study_run(run, study)
        without = {
            "judge": here.judge is None,
            "encoder": not here.encoders,
            "text": here.corpus is None,
            "prompts": here.prompts == "published",
        }
        return [field for field in self.run(run).not_comparable if not without.get(field, False)]

    def _study_of(self, run: str, table: str) -> str:
        """Return the study of a table.

        Raises:
            RemeasureError: the run has a reader for none of its cells.
        """
        if not self.cells_of(table, run):
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: table {table!r}: no reader of the run has a cell of it; "
                "name datasets (dataset_of_bench) and readers"
            )
        return self.cells_of(table)[0].study

    def _readers_of(self, run: str) -> Callable[[Cell], tuple[str, ...]]:
        return lambda cell: self.readers(run, cell.study, cell.bench, cell.arm)

    def page(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``make_page``."""
        cells = self.cells_of(table, run)
        name = self._study_of(run, table)
        study = self.study(name)
        benches = list(dict.fromkeys(cell.bench for cell in cells))
        several = len({cell.arm for cell in cells}) > 1
        n_readers = len(self.study_run(run, name).readers)

        def title(arm: str, reader: str) -> str:
            words = [study.arms[arm].title] if several else []
            return ": ".join(words + ([reader] if n_readers > 1 or not several else []))

        return {
            "run": run,
            "title": study.title,
            "lines": [self.run(run).title, *study.notes, *self.study_run(run, name).notes],
            "benches": [
                {"name": bench, "title": study.benches[bench].title, "photos": study.galleries}
                for bench in benches
            ],
            "graders": {bench: self.bench(run, name, bench).grader for bench in benches},
            "cells": [
                {
                    "bench": cell.bench,
                    "title": title(cell.arm, reader),
                    "asked": self.ranker(run, reader) is None,
                }
                for cell in cells
                for reader in self.readers(run, cell.study, cell.bench, cell.arm)
            ],
            "n_units": PAGE_UNITS,
        }

    def published_path(self, table: str) -> str:
        """Return the file of a table's published values, relative to the repository."""
        return self.study(self.cells_of(table)[0].study).published

    def published_sha256(self, table: str) -> str:
        """Return the hash of a table's published values."""
        path = self.folder.parent / self.published_path(table)
        if not path.is_file():
            raise RemeasureError(f"{path}: published values are missing; correct `published` of the study")
        return sha256_file(path)

    def question_sets(self) -> list[str]:
        """Return all benches and training sets of all studies."""
        names: dict[str, None] = dict.fromkeys(cell.bench for cell in self.cells)
        for study in self.studies():
            names.update(dict.fromkeys(self.study(study).training_sets))
        return list(names)

    def search_index(self, run: str, encoder: str) -> dict[str, Any]:
        """Settings of ``build_index``."""
        return {"kind": "flat", "encoder": self.embed(run, encoder)}

    def agreement(self, run: str, judge: str) -> dict[str, Any]:
        """Settings of ``build_agreement_requests``."""
        audit = self.audit(run)
        here = self.judge_request(run, audit.study, audit.bench, judge)
        return here | {"study": audit.study, "n_answers": audit.n_answers}

    def agreement_table(self, run: str) -> dict[str, Any]:
        """Settings of ``make_agreement``."""
        audit = self.audit(run)
        titles = {judge: self.model(run, judge).title for judge in audit.judges}
        return {"judges": titles, "grader": self.bench(run, audit.study, audit.bench).grader}

    def audit(self, run: str) -> settings.Agreement:
        """Return which judges a run compares.

        Raises:
            RemeasureError: the run compares none.
        """
        audit = self.run(run).judge_agreement
        if audit is None:
            raise RemeasureError(f"{self.folder}/runs/{run}.yaml: judge_agreement is missing; add it")
        return audit


def _found_locally(tables: settings.Tables) -> str | None:
    """Return the folder that an environment variable leads to; null where the variable is not set.

    Raises:
        RemeasureError: it is set, and the folder is not there; another place is never taken instead.
    """
    root = os.environ.get(tables.environment)
    if not root:
        return None
    folder = f"{root.rstrip('/')}/{tables.folder}"
    if not Path(folder).is_dir():
        raise RemeasureError(
            f"{tables.environment}={root}: {folder} is not a folder; put the tables there, correct the "
            "variable, or unset it so that they are fetched"
        )
    return folder


def _without_nulls(section: settings.Settings) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(section).items() if value is not None}
