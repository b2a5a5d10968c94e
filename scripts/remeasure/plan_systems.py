"""Which systems answer which cells, from what data, and how they are reached; part of ``plan.Plan``."""

import ast
import functools
import json
from pathlib import Path
from typing import Any

from remeasure import environments, fingerprint, repeats
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_file
from remeasure.plan_asking import AskingPlan
from remeasure.prices import PriceRow
from remeasure.settings import Cell, Limits
from remeasure.systems.settings import HANDLING, Database, Dataset, Environment, System


class SystemsPlan(AskingPlan):
    """Settings of datasets, databases and systems, resolved on demand."""

    cells: list[Cell]

    # -- which readers a cell has --------------------------------------------------------------------------

    def readers(self, run: str, study: str, bench: str, arm: str) -> tuple[str, ...]:
        """Return the readers of a cell, with repetitions, in the order of the table; none: it is left out.

        Raises:
            RemeasureError: the run names readers of a bench or cell that there is not, a system an arm, or a
                system's environment cannot be made where nothing may be left out.
        """
        here, protocol = self.study_run(run, study), self.study(study)
        # Own questions, too, are answered from the documents of a dataset.
        if protocol.datasets and bench not in here.dataset_of_bench:
            return ()
        if protocol.galleries and bench not in here.gallery_of_bench:
            return ()
        for name in (*here.readers_of, *here.dataset_of_bench, *here.gallery_of_bench):
            head, _, tail = name.partition("/")
            if head not in protocol.benches or (tail and tail not in protocol.arms):
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: studies.{study}: {name!r} is no bench or bench/arm"
                    f"{did_you_mean(head, protocol.benches)}; correct it"
                )
        for model in here.models:
            self._check_arms(run, study, model)
        chosen = here.readers_of.get(f"{bench}/{arm}", here.readers_of.get(bench, list(here.models)))
        return tuple(
            name
            for name in here.readers
            if repeats.model_of(name) in chosen and self._has(run, repeats.model_of(name), arm)
        )

    def _check_arms(self, run: str, study: str, model: str) -> None:
        spec, known = self.model(run, model), self.study(study).arms
        kind, found = ("ranker", spec.ranker) if spec.ranker else ("system", spec.system)
        strange = next((name for name in (found.arms if found else ()) if name not in known), None)
        if strange is not None:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models.{model}.{kind}.arms: study {study} has no arm "
                f"{strange!r}{did_you_mean(strange, known)}; correct it"
            )

    def _has(self, run: str, model: str, arm: str) -> bool:
        spec = self.model(run, model)
        if spec.ranker is not None:
            return arm in spec.ranker.arms
        return spec.system is None or (arm in spec.system.arms and self.is_possible(run, model))

    def is_possible(self, run: str, model: str) -> bool:
        """Return whether the environment that a system needs can be made on this computer.

        Raises:
            RemeasureError: it cannot, and the variable ``CI`` is set.
        """
        system = self.model(run, model).system
        if system is None:
            return True
        name = self.run(run).databases[system.database].environment
        if name is None:
            return True
        needed = self.environment(run, name)
        if environments.find_python(needed.python) is not None:
            return True
        said = (
            f"system {model!r} needs Python {needed.python} or later, and none was found; install one or "
            f"name it in {environments.HAND}"
        )
        if environments.is_ci():
            raise RemeasureError(f"{said}: where CI is set nothing is left out")
        return False

    def left_out(self, run: str, study: str) -> list[str]:
        """Return the systems of a study that this computer cannot run; the table says so."""
        models = self.study_run(run, study).models
        return [name for name in models if not self.is_possible(run, name)]

    # -- data ----------------------------------------------------------------------------------------------

    def dataset(self, run: str, name: str) -> Dataset:
        """Return one dataset of a run.

        Raises:
            RemeasureError: the run has none of that name.
        """
        known = self.run(run).datasets
        if name not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: no dataset {name!r}{did_you_mean(name, known)}; known: "
                f"{', '.join(known) or 'none'}"
            )
        return known[name]

    def dataset_files(self, run: str, name: str) -> dict[str, str]:
        """Return the files of a dataset by the loader's names.

        What ships with the workflow is found wherever it is called from; a file of that name in the working
        directory comes first.
        """
        files = self.dataset(run, name).files
        ours = {key: self.folder.parent / path for key, path in files.items()}
        return {
            key: str(ours[key])
            if not path.startswith("results/") and not Path(path).exists() and ours[key].exists()
            else path
            for key, path in files.items()
        }

    def shipped_files(self, run: str, name: str) -> dict[str, str]:
        """Return the files of a dataset that are part of the repository, by their names in it.

        They lie elsewhere for everybody, and are as new as a clone: what they hold is looked at instead.
        """
        found = self.dataset_files(run, name)
        return {
            key: path
            for key, path in self.dataset(run, name).files.items()
            if not path.startswith("results/")
            and not Path(path).is_absolute()
            and Path(found[key]).resolve() == (self.folder.parent / path).resolve()
        }

    def dataset_of(self, run: str, study: str, bench: str) -> str | None:
        """Return the dataset of a bench; null where its questions come from elsewhere."""
        if not self.study(study).datasets:
            return None
        return self.study_run(run, study).dataset_of_bench.get(bench)

    def load_dataset(self, run: str, dataset: str) -> dict[str, Any]:
        """Settings of ``load_dataset``.

        Raises:
            RemeasureError: its loader cannot read what the run gives it.
        """
        from remeasure import datasets

        found = self.dataset(run, dataset)
        try:
            datasets.chosen(found.loader, found.files, found.options)
        except RemeasureError as error:
            raise RemeasureError(f"{self.folder}/runs/{run}.yaml: datasets.{dataset}: {error}") from None
        return {"loader": found.loader, "expected": found.expected, "options": found.options}

    def database(self, run: str, name: str) -> Database:
        """Return one database of a run.

        Raises:
            RemeasureError: the run has none of that name.
        """
        known = self.run(run).databases
        if name not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: no database {name!r}{did_you_mean(name, known)}; known: "
                f"{', '.join(known) or 'none'}"
            )
        return known[name]

    def database_sources(self, run: str, dataset: str, name: str) -> list[str]:
        """Return what a database of a dataset comes from beside documents and embedder.

        The one that is ready-made; else what its options name among the sources, such as a tokenizer.
        """
        found = self.database(run, name)
        if dataset in found.prebuilt:
            return [found.prebuilt[dataset]]
        told = [value for value in found.options.values() if isinstance(value, str)]
        return [value for value in told if value.startswith("results/sources/")]

    def ingest(self, run: str, dataset: str, database: str) -> dict[str, Any]:
        """Settings of ``ingest_documents``: what decides what is in a database."""
        found = self.database(run, database)
        handling = {name: value for name, value in found.options.items() if name in HANDLING}
        return self._database_identity(run, database) | {"prebuilt": found.prebuilt.get(dataset)} | handling

    def _database_identity(self, run: str, name: str) -> dict[str, Any]:
        found = self.database(run, name)
        return {
            "adapter": found.adapter,
            "code": database_code(found.adapter),
            "environment": self.environment_settings(run, found.environment) if found.environment else None,
            "embedder": {"name": found.embedder} | self.identity(run, found.embedder),
            "served_name": self.model(run, found.embedder).served_name or found.embedder,
            "vector_dim": found.vector_dim,
            "options": _of_adapter(found),
        }

    def environment(self, run: str, name: str) -> Environment:
        """Return one environment of a run."""
        return self.run(run).environments[name]

    def environment_json(self, name: str) -> str:
        """Settings of ``install_environment`` of whichever run defines the environment, as JSON.

        Raises:
            RemeasureError: two runs mean different things by the name, or none defines it.
        """
        found = {}
        for run in self.runs():
            try:
                known = self.run(run).environments
            except RemeasureError:  # said when that run is asked for
                continue
            if name in known:
                found[json.dumps(self.environment_settings(run, name), sort_keys=True)] = run
        if len(found) != 1:
            said = f"defined differently by {' and '.join(found.values())}" if found else "in no run"
            raise RemeasureError(f"environment {name!r}: {said}; give each version a name of its own")
        return next(iter(found))

    def runs(self) -> list[str]:
        """Return the names of all runs that have a file."""
        raise NotImplementedError

    def environment_settings(self, run: str, name: str) -> dict[str, Any]:
        """Settings of ``install_environment``.

        Raises:
            RemeasureError: the file of pins is missing.
        """
        found = self.environment(run, name)
        path = self.folder.parent / found.lock
        if not path.is_file():
            raise RemeasureError(f"{path}: is missing; correct environments.{name}.lock of the run")
        return {"lock": found.lock, "sha256": sha256_file(path), "python": found.python}

    # -- systems -------------------------------------------------------------------------------------------

    def system(self, run: str, model: str) -> System | None:
        """Return what a reader is as a system; null where it is a model."""
        return self.model(run, model).system

    def _identity(self, run: str, model: str) -> dict[str, Any]:
        system = self.model(run, model).system
        if system is None:
            return super()._identity(run, model)
        parts = {role: getattr(system, role) for role in ("answerer", "reranker")}
        adapter = self.database(run, system.database).adapter
        return {
            "code": fingerprint.of_script(f"systems/{adapter}.py"),
            "database": self._database_identity(run, system.database),
            **{role: self.identity(run, name) if name else None for role, name in parts.items()},
            "options": system.options,
        }

    def executor(self, run: str, model: str, corpus: str | None) -> dict[str, Any]:
        """As ``AskingPlan.executor``; a system comes with how each of its models is reached."""
        spec = self.model(run, model)
        if spec.system is None:
            return super().executor(run, model, corpus)
        database = self.database(run, spec.system.database)
        parts = {
            "embedder": database.embedder,
            "answerer": spec.system.answerer,
            "reranker": spec.system.reranker,
        }
        ways = {
            role: {
                "served_name": self.model(run, name).served_name or name,
                "way": self.executor(run, name, corpus),
            }
            for role, name in parts.items()
            if name is not None
        }
        for role, way in ways.items():
            if way["way"]["kind"] not in ("http", "server"):
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: models.{parts[role]}: is the {role} of system "
                    f"{repeats.model_of(model)!r} and reached by {way['way']['kind']!r}; a system asks "
                    "while it works: give a model with `server` or `base_url`"
                )
        return {
            "kind": "system",
            "money": self.money(run, model),
            "image_tokens": None,
            "adapter": database.adapter,
            "vector_dim": database.vector_dim,
            "options": _of_adapter(database) | spec.system.options,
            "embedder": None,
            "answerer": None,
            "reranker": None,
            "case_timeout_s": spec.system.case_timeout_s,
            "concurrency": spec.concurrency,
        } | ways

    def price_row(self, run: str, model: str) -> PriceRow | None:
        """As ``AskingPlan.price_row``; of a system that of its answerer, whose tokens it counts."""
        system = self.model(run, model).system
        if system is None:
            return super().price_row(run, model)
        return super().price_row(run, system.answerer) if system.answerer else None

    def money(self, run: str, model: str) -> dict[str, Any] | None:
        """As ``AskingPlan.money``; of a system that of its answerer.

        Raises:
            RemeasureError: a limit that could not be kept: other models of the system cost something that
                nobody counts, or what it reads would have to be known before it is asked.
        """
        system = self.model(run, model).system
        if system is None:
            return super().money(run, model)
        limits = self.run(run).limits
        place = f"{self.folder}/runs/{run}.yaml: models.{repeats.model_of(model)}"
        others = {"embedder": self.database(run, system.database).embedder, "reranker": system.reranker}
        for role, name in others.items() if limits != Limits() else ():
            if name is not None and _charges(super().money(run, name)):
                raise RemeasureError(
                    f"{place}: limits are set, and the {role} {name!r} has a price: only the tokens of the "
                    "answerer are counted, so nothing could keep them; take the limits out, or serve it "
                    "yourself"
                )
        found = super().money(run, system.answerer) if system.answerer else None
        if found and found["estimate_usd"] is not None and _charges(found):
            raise RemeasureError(
                f"{place}: limits.estimate_usd is set, and what a system reads is known only when it is "
                "asked; use limits.spend_usd, which is kept"
            )
        return found

    def ingest_way(self, run: str, database: str) -> dict[str, Any]:
        """Return how the embedder of a database is reached; not part of what is in it."""
        found = self.database(run, database)
        served = self.model(run, found.embedder).served_name or found.embedder
        return {"served_name": served, "way": self.executor(run, found.embedder, None)}

    def system_models(self, run: str, model: str) -> list[str]:
        """Return the models that a reader asks: of a system its parts, else itself."""
        system = self.system(run, model)
        if system is None:
            return [repeats.model_of(model)]
        found = (self.database(run, system.database).embedder, system.answerer, system.reranker)
        return [name for name in found if name is not None]

    def task_of_items(self, study: str, bench: str) -> dict[str, Any]:
        """Return what the items of a bench are for.

        Raises:
            RemeasureError: the study's questions come from datasets, and the bench does not say it.
        """
        told = self.study(study).benches[bench].task
        if told is None:
            raise RemeasureError(
                f"{self.folder}/studies/{study}.yaml: benches.{bench}.task: is missing; say what is to be "
                "done"
            )
        return told

    def task(self, run: str, study: str, bench: str, arm: str) -> dict[str, Any] | None:
        """Return what a system is to do in a cell; null where a model is asked."""
        told = self.study(study).benches[bench].task
        if told is None:
            return None
        here = self.study_run(run, study)
        # Which questions are taken decides what is asked, not how: it is no part of a request.
        told = {name: value for name, value in told.items() if name != "set"}
        return told | self.study(study).arms[arm].options | {"filter": here.filter}


def _of_adapter(database: Database) -> dict[str, Any]:
    """Return the options of a database that its adapter is told."""
    return {name: value for name, value in database.options.items() if name not in HANDLING}


def _charges(money: dict[str, Any] | None) -> bool:
    """Return whether a model charges anything per token."""
    return money is not None and any(money["price"].values())


@functools.cache
def database_code(adapter: str, root: Path = fingerprint.SCRIPTS) -> str:
    """Return the fingerprint of what decides what an adapter's database holds.

    An adapter names these modules in ``DATABASE_CODE``; without it all that it imports counts, and a change
    of how it answers ingests everything again.
    """
    script = f"systems/{adapter}.py"
    for node in ast.parse((root / script).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DATABASE_CODE":
            first, *more = ast.literal_eval(node.value)
            return fingerprint.of_script(f"{first.replace('.', '/')}.py", root, tuple(more))
    return fingerprint.of_script(script, root)


def environment_record(name: str) -> str:
    """Return the record of an environment; it says where its Python is."""
    return f"results/environments/{name}.json"


def database_folder(run: str, dataset: str, database: str) -> str:
    """Return the place of a database; its record has ``.json`` behind it."""
    return f"results/{run}/datasets/{dataset}/{database}"
