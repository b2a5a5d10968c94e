"""Which files each rule reads, as functions of wildcards; names are the script's option names.

Verified sources are marked ``ancient``: their content is fixed by hash, so their age never reruns anything.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remeasure import gaps, image_tree, lineage, parts, prompts
from remeasure.calibrated import Calibrated
from remeasure.encoders import BACKENDS
from remeasure.files import sha256_of
from remeasure.places import Places
from remeasure.plan import Plan
from remeasure.plan_systems import database_folder, environment_record
from remeasure.wiring_instances import InstanceFiles

UNIT_FILES = {
    "tiles": {"manifest": "tiles/manifest.jsonl", "ocr": "tiles/ocr.jsonl"},
    "pixels": {"manifest": "tiles/manifest.jsonl", "tiles": "tiles/tiles.zip"},
    "passages": {"passages": "passages/passages.jsonl"},
    "pictures": {"manifest": "tiles/manifest.jsonl", "tiles": "tiles/tiles.zip"},
    "lines": {"ocr": "tiles/ocr.jsonl", "passages": "passages/passages.jsonl"},
}


def as_json(function: Callable[..., Any], *names: str) -> Callable[[Any], str]:
    """Return a function of wildcards that gives a stage's settings as one JSON text."""

    def resolved(wildcards) -> str:
        return json.dumps(function(*(wildcards[name] for name in names)), sort_keys=True, ensure_ascii=False)

    return resolved


def as_options(function: Callable[[Any], dict[str, str]]) -> Callable[[Any], list[str]]:
    """Return a function of wildcards that gives named inputs as command-line options."""

    def resolved(wildcards) -> list[str]:
        named = function(wildcards)
        return [word for name in named for word in (f"--{name.replace('_', '-')}", str(named[name]))]

    return resolved


def without(function: Callable[[Any], dict[str, Any]], *names: str) -> Callable[[Any], dict[str, Any]]:
    """Return a function of wildcards that leaves out inputs that a script is not told of: it only waits."""
    return lambda wildcards: {k: v for k, v in function(wildcards).items() if k not in names}


def as_words(function: Callable[[Any], dict[str, Any]]) -> Callable[[Any], list[str]]:
    """Return a function of wildcards that gives named inputs as options, of one file or of several."""

    def resolved(wildcards) -> list[str]:
        found: list[str] = []
        for name, value in function(wildcards).items():
            found += [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else value)]
        return [str(word) for word in found]

    return resolved


def as_pairs(function: Callable[[Any], dict[str, str]]) -> Callable[[Any], list[str]]:
    """Return a function of wildcards that gives named inputs as words ``name=path``."""

    def resolved(wildcards) -> list[str]:
        return [f"{name}={path}" for name, path in function(wildcards).items()]

    return resolved


def verified(path: str) -> Any:
    """Mark a source as ancient; other paths pass through."""
    from snakemake.io import ancient

    return ancient(path) if path.startswith("results/sources/") else path


def _elsewhere(settings: dict[str, Any]) -> list[Any]:
    files = settings["prompts"]["files"].values()
    return [verified(path) for path in files if prompts.is_elsewhere(path)]


class Wiring(Places, Calibrated, InstanceFiles):
    """Input functions of the rules, over one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    # -- corpus --------------------------------------------------------------------------------------------

    def archive(self, wildcards) -> Any:
        """The archive of a corpus."""
        return verified(self.plan.corpus(wildcards.run, wildcards.corpus).archive)

    def tokenizer(self, wildcards) -> Any:
        """What counts the tokens of a corpus's passages."""
        return verified(self.plan.corpus(wildcards.run, wildcards.corpus).tokenizer)

    def archive_and_facts(self, wildcards) -> dict[str, Any]:
        """The archive of a corpus and, where it has them, its facts."""
        facts = self.plan.corpus(wildcards.run, wildcards.corpus).facts
        return {"archive": self.archive(wildcards)} | ({"facts": verified(facts)} if facts else {})

    def corpus_of(self, wildcards, name: str) -> str:
        """One file of the corpus that a bench uses in a run."""
        corpus = self.plan.corpus_name(wildcards.run, wildcards.study, wildcards.bench)
        return f"results/{wildcards.run}/corpora/{corpus}/{name}"

    # -- encoders ------------------------------------------------------------------------------------------

    def weights(self, run: str, encoder: str) -> dict[str, Any]:
        """Weights of an encoder."""
        return {name: verified(path) for name, path in self.plan.weights(run, encoder).items()}

    def embed(self, wildcards) -> dict[str, Any]:
        """What an encoder reads: its weights, its unit's files and its adapter."""
        return self._embed(wildcards, "")

    def embed_part(self, wildcards) -> dict[str, Any]:
        """As ``embed``, with the unit's files of one part of the corpus."""
        return self._embed(wildcards, f"parts/{wildcards.part}/")

    def _embed(self, wildcards, part: str) -> dict[str, Any]:
        spec = self.plan.encoder(wildcards.run, wildcards.encoder)
        here = f"results/{wildcards.run}/corpora/{wildcards.corpus}"
        unit = "pixels" if spec.unit == "tiles" and BACKENDS[spec.backend].sees_pixels else spec.unit
        files = {name: f"{here}/{part}{path}" for name, path in UNIT_FILES[unit].items()}
        adapter = {"adapter": f"{here}/{wildcards.encoder}/adapter.h5"} if spec.training else {}
        return self.weights(wildcards.run, wildcards.encoder) | files | adapter

    # -- parts ---------------------------------------------------------------------------------------------

    def part_files(self, name: str) -> Callable[[Any], list[str]]:
        """A function of wildcards: one file of every part of a corpus, in order.

        Args:
            name: place of the file in the folder of a part; may hold ``{encoder}``.
        """

        def resolved(wildcards) -> list[str]:
            here = f"results/{wildcards.run}/corpora/{wildcards.corpus}/parts"
            n = self.plan.corpus(wildcards.run, wildcards.corpus).parts
            return [f"{here}/{part}/{name.format(**wildcards)}" for part in parts.names(n)]

        return resolved

    def training(self, wildcards) -> dict[str, Any]:
        """Questions, vectors and weights that training reads."""
        training = self.plan.encoder(wildcards.run, wildcards.encoder).training
        sets = self.plan.study(training.study).training_sets
        base = f"results/{wildcards.run}/corpora/{wildcards.corpus}/{training.base}"
        return (
            {name: f"results/{wildcards.run}/{training.study}/{name}/items.jsonl" for name in sets}
            | {"descriptors": f"{base}/descriptors.h5", "order": f"{base}/order.txt"}
            | self.weights(wildcards.run, training.base)
        )

    # -- adapted models ------------------------------------------------------------------------------------

    def merged(self, wildcards) -> dict[str, Any]:
        """The folders that an adapted model is made from."""
        files = self.plan.adapted_files(wildcards.run, wildcards.adapted)
        return {option: verified(path) for option, path in files.items()}

    # -- datasets and systems ------------------------------------------------------------------------------

    def dataset_files(self, wildcards) -> dict[str, Any]:
        """What a dataset is read from beside files of the repository, by the loader's names."""
        files = self.plan.dataset_files(wildcards.run, wildcards.dataset)
        ours = self.plan.shipped_files(wildcards.run, wildcards.dataset)
        return {name: verified(path) for name, path in files.items() if name not in ours}

    def dataset_words(self, wildcards) -> dict[str, str]:
        """As ``dataset_files`` and those of the repository, as the script is told."""
        return self.dataset_files(wildcards) | self.plan.shipped_files(wildcards.run, wildcards.dataset)

    def dataset_state(self, wildcards) -> str:
        """What shows that a file in a folder of a dataset changed, as ``source_state``; of ours a hash."""
        files = self.plan.dataset_files(wildcards.run, wildcards.dataset)
        ours = self.plan.shipped_files(wildcards.run, wildcards.dataset)
        own = {name: Path(path) for name, path in files.items() if not path.startswith("results/")}
        states = {n: sha256_of(p) if n in ours else image_tree.state_of(p) for n, p in own.items()}
        return " ".join(f"{name}={state}" for name, state in states.items())

    def ingested(self, wildcards) -> dict[str, Any]:
        """What a database is made from: documents, files of its embedder, its environment, its sources."""
        run, found = wildcards.run, self.plan.database(wildcards.run, wildcards.database)
        files = self.plan.model(run, found.embedder).files.values()
        named = {
            "documents": f"results/{run}/datasets/{wildcards.dataset}/documents.jsonl",
            "files": [verified(path) for path in files],
        }
        if found.environment is not None:
            named["environment"] = environment_record(found.environment)
        sources = self.plan.database_sources(run, wildcards.dataset, wildcards.database)
        return named | {"sources": [verified(path) for path in sources]}

    def ingest_options(self, wildcards) -> dict[str, str]:
        """As ``ingested``, what the script is told by options of its own."""
        told = ("documents", "environment")
        return {name: path for name, path in self.ingested(wildcards).items() if name in told}

    # -- questions and ranked lists ------------------------------------------------------------------------

    def items(self, wildcards) -> dict[str, Any]:
        """What the questions of a bench are made from."""
        here = self.plan.study_run(wildcards.run, wildcards.study)
        gallery = self.plan.gallery_of(wildcards.run, wildcards.study, wildcards.bench)
        if gallery:
            photos = self.plan.gallery(wildcards.run, gallery).photos
            pictures = verified(self.plan.photo_set(wildcards.run, photos).photos)
            return {"labels": f"results/{wildcards.run}/photos/{photos}/labels.json", "queries": pictures}
        dataset = self.plan.dataset_of(wildcards.run, wildcards.study, wildcards.bench)
        if dataset:
            made = f"results/{wildcards.run}/datasets/{dataset}"
            if here.items:
                own = {"own": f"{here.items}/{wildcards.bench}.jsonl"}
                return own | {"documents": f"{made}/documents.jsonl"}
            return {"dataset": f"{made}/questions.jsonl"}
        listed = self.plan.study(wildcards.study).index
        if listed and not here.items:
            file = self.plan.index_file(wildcards.study, wildcards.bench)
            named = {"index": f"results/{wildcards.run}/{wildcards.study}/index/{file}"}
            store = {"store": self.plan.images(wildcards.run, wildcards.study)} if listed.tables else {}
            return named | store
        name = self.plan.corpus_name(wildcards.run, wildcards.study, wildcards.bench)
        if name is None:
            return {"own": f"{here.items}/{wildcards.bench}.jsonl"}
        corpus = self.plan.corpus(wildcards.run, name)
        named = {"pages": self.corpus_of(wildcards, "pages.jsonl")}
        if here.items:
            return named | {"own": f"{here.items}/{wildcards.bench}.jsonl"}
        if corpus.pictures:
            named["pictures"] = verified(corpus.pictures)
        return named | {"facts": verified(corpus.facts)}

    def source(self, run: str, study: str) -> Any:
        """The images that a study's index lists.

        Images that a rule of ours makes are not ancient: others may come after a change of its settings, and
        nothing may read the old ones meanwhile.
        """
        path = self.plan.source(run, study)
        return path if lineage.is_made(self.plan, path) else verified(path)

    def tables(self, run: str, study: str) -> list[Any]:
        """The tables that a study's index is made from."""
        tables = self.plan.tables_of(run, study).values()
        return [path if lineage.is_made(self.plan, path) else verified(path) for path in tables]

    def source_state(self, run: str, study: str) -> str | None:
        """What shows that a file in a folder of images has changed: Snakemake looks at the folder alone.

        Null for a store, and for what a rule of ours brings: that changes by its rule.
        """
        path = self.plan.source(run, study)
        return None if path.startswith("results/") else image_tree.state_of(Path(path))

    def search(self, wildcards) -> dict[str, Any]:
        """Indexes and query encoders of an arm."""
        arm = self.plan.study(wildcards.study).arms[wildcards.arm]
        encoder = self.plan.encoder_of(wildcards.run, wildcards.study, arm.retriever)
        named = self._index(wildcards, "text", encoder) | self.weights(wildcards.run, encoder)
        if self.plan.encoder(wildcards.run, encoder).training:
            named["adapter"] = self.corpus_of(wildcards, f"{encoder}/adapter.h5")
        if arm.photo:
            named["images"] = "results/{run}/{study}/{bench}/images.zip".format(**wildcards)
        photo = self.plan.photo_encoder(wildcards.run, wildcards.study, wildcards.arm)
        if photo:
            named |= self._index(wildcards, "photo", photo) | {
                "photo_model": self.weights(wildcards.run, photo)["model"],
                "manifest": self.corpus_of(wildcards, "tiles/manifest.jsonl"),
            }
        return named

    def _index(self, wildcards, role: str, encoder: str) -> dict[str, str]:
        return {
            f"{role}_index": self.corpus_of(wildcards, f"{encoder}/index.faiss"),
            f"{role}_record": self.corpus_of(wildcards, f"{encoder}/index.json"),
            f"{role}_order": self.corpus_of(wildcards, f"{encoder}/order.txt"),
        }

    # -- asking --------------------------------------------------------------------------------------------

    def evidence(self, wildcards) -> dict[str, Any]:
        """What the reader is shown."""
        arm = self.plan.study(wildcards.study).arms[wildcards.arm]
        if arm.evidence == "none":
            return {}
        ranking = {"ranking": "results/{run}/{study}/{bench}/{arm}/ranking.jsonl".format(**wildcards)}
        if arm.evidence == "text":
            return ranking | {"passages": self.corpus_of(wildcards, "passages/passages.jsonl")}
        return ranking | {
            "manifest": self.corpus_of(wildcards, "tiles/manifest.jsonl"),
            "tiles": self.corpus_of(wildcards, "tiles/tiles.zip"),
        }

    def prompts(self, wildcards) -> list[Any]:
        """Prompts of a reader that are no part of the repository: brought like other raw inputs."""
        at = (wildcards[name] for name in ("run", "study", "bench", "arm", "model"))
        return _elsewhere(self.plan.request(*at))

    def judge_prompts(self, wildcards) -> list[Any]:
        """As ``prompts``, of a judge."""
        return _elsewhere(self.plan.judge_request(wildcards.run, wildcards.study, wildcards.bench))

    def agreement_prompts(self, wildcards) -> list[Any]:
        """As ``prompts``, of the judges that are compared."""
        return _elsewhere(self.plan.agreement(wildcards.run, wildcards.judge))

    def judge(self, wildcards) -> str:
        """The judge of a study in a run."""
        return self.plan.judge(wildcards.run, wildcards.study)

    def executor(self, run: str, study: str, model: str) -> str:
        """How a study reaches a model; after a change of it responses are put together again from journals.

        Not ancient: jobs behind a job that runs are not looked at for reasons of their own, so a change of a
        grader that comes together with a change of an address would go unnoticed.
        """
        return f"results/{run}/{study}/executors/{model}.json"

    def environment(self, run: str, model: str) -> str:
        """The environment that a model is asked in: that of the GPU node where the step starts vLLM there."""
        asked = self.plan.system_models(run, model)
        needs_vllm = any(self.plan.needs_vllm(run, name) for name in asked)
        return f"../envs/{'vllm' if needs_vllm else 'core'}.yaml"

    def server_files(self, run: str, study: str, model: str) -> list[Any]:
        """Files that a model's own server needs; a hosted model needs none."""
        if self.plan.system(run, model):
            parts = self.plan.system_models(run, model)
            files = [self.plan.model(run, name).files.values() for name in parts]
            return [verified(path) for paths in files for path in paths]
        way = self.plan.study_executor(run, study, model)
        made = [way["model"]] if way["kind"] == "vllm-batch" and self.plan.adapted_at(way["model"]) else []
        return [verified(path) for path in (*way.get("files", {}).values(), *made)]

    def shards(self, wildcards) -> list[str]:
        """The parts that a cell's requests are split into; none where one job asks them all."""
        n = self.plan.shards(wildcards.run, wildcards.study, wildcards.bench, wildcards.arm, wildcards.model)
        here = "results/{run}/{study}/{bench}/{arm}/{model}/shards".format(**wildcards)
        return [f"{here}/{number}of{n}.json" for number in range(1, n + 1)] if n > 1 else []

    def behind(self, wildcards, model: str) -> dict[str, str]:
        """What a cell's answers come from beside its model: a system's database, or the file of an import."""
        run, study, bench = wildcards.run, wildcards.study, wildcards.bench
        system = self.plan.system(run, model)
        if system is not None:
            dataset = self.plan.dataset_of(run, study, bench)
            assert dataset is not None, bench  # a bench without one has no cell
            found = self.plan.database(run, system.database)
            named = {"database": f"{database_folder(run, dataset, system.database)}.json"}
            if found.environment is not None:
                named["environment"] = environment_record(found.environment)
            return named
        path = self.plan.imported(run, study, bench, wildcards.arm, model)
        return {"imported": path} if path else {}

    def database_option(self, wildcards) -> list[str]:
        """Where the record of a system's database would be: an estimate does not wait for it."""
        if self.plan.system(wildcards.run, wildcards.model) is None:
            return []
        return ["--database", self.behind(wildcards, wildcards.model)["database"]]

    # -- costs ---------------------------------------------------------------------------------------------

    def shown_images(self, wildcards) -> dict[str, Any]:
        """The stores that the images of a reader's requests lie in."""
        named = {"images": "results/{run}/{study}/{bench}/images.zip".format(**wildcards)}
        evidence = self.evidence(wildcards)
        return named | ({"tiles": evidence["tiles"]} if "tiles" in evidence else {})

    def kept(self, folder: str) -> Callable[[Any], int]:
        """A function of wildcards: bytes of the answers in a journal, which no rule declares.

        An estimate that knows fewer answers than there are is made again.
        """

        def resolved(wildcards) -> int:
            return sum(path.stat().st_size for path in Path(folder.format(**wildcards)).glob("*.jsonl"))

        return resolved

    def estimated(self, run: str, tables: list[str]) -> dict[str, dict[str, Any]]:
        """The estimate files behind tables, each once, with the place that each belongs to."""
        found: dict[str, dict[str, Any]] = {}
        for cell in (cell for table in tables for cell in self.plan.cells_of(table, run)):
            place = {"table": cell.table, "study": cell.study, "bench": cell.bench, "arm": cell.arm}
            for reader in self.plan.readers(run, cell.study, cell.bench, cell.arm):
                if self.plan.ranker(run, reader) is not None:
                    continue
                here = f"results/{run}/{cell.study}/{cell.bench}/{cell.arm}/{reader}"
                found.setdefault(f"{here}/estimate.json", place)
                if self.plan.has_judge(run, cell.study, cell.bench):
                    found.setdefault(f"{here}/judge/estimate.json", place)
        return found

    def estimated_judges(self, run: str) -> dict[str, dict[str, Any]]:
        """As ``estimated``, for the judges that are compared."""
        audit = self.plan.run(run).judge_agreement
        if audit is None:
            return {}
        place = {"table": "judges", "study": audit.study, "bench": audit.bench, "arm": None}
        return {f"results/{run}/judges/{judge}/estimate.json": place for judge in audit.judges}

    def estimates(self, run: str, table: str) -> dict[str, Any]:
        """Settings of ``make_estimate`` for one table."""
        return {"run": run, "places": list(self.estimated(run, [table]).values())}

    def all_estimated(self, run: str) -> dict[str, dict[str, Any]]:
        """Every estimate of a run: all tables whose studies it has, and the judges that are compared."""
        known = self.plan.run(run).studies
        cells = {table: self.plan.cells_of(table) for table in self.plan.tables()}
        tables = [table for table in cells if all(cell.study in known for cell in cells[table])]
        checked = self.estimated_calibrations(run, tables)
        return self.estimated(run, tables) | self.estimated_judges(run) | checked

    # -- verdicts and tables -------------------------------------------------------------------------------

    def verdict(self, wildcards) -> dict[str, Any]:
        """What else decides a verdict: the judge's replies and the ranked list."""
        here = "results/{run}/{study}/{bench}/{arm}".format(**wildcards)
        named = {}
        if self.plan.has_judge(wildcards.run, wildcards.study, wildcards.bench):
            named["judge_responses"] = f"{here}/{wildcards.model}/judge/responses.jsonl"
        if self.plan.study(wildcards.study).arms[wildcards.arm].retriever:
            named["ranking"] = f"{here}/ranking.jsonl"
        return named

    def grader_files(self, wildcards) -> list[Any]:
        """Files that a bench's grader reads."""
        files = self.plan.grader_files(wildcards.run, wildcards.study, wildcards.bench)
        return [verified(path) for path in files.values()]

    def cells(self, wildcards, name: str) -> list[str]:
        """One file of every cell of a table."""
        return [
            f"results/{wildcards.run}/{c.study}/{c.bench}/{c.arm}/{reader}/{name}"
            for c in self.plan.cells_of(wildcards.table, wildcards.run)
            for reader in self.plan.readers(wildcards.run, c.study, c.bench, c.arm)
        ]

    def requests_shown(self, wildcards) -> list[str]:
        """The requests of every cell of a table whose reader is asked."""
        return [
            f"results/{wildcards.run}/{c.study}/{c.bench}/{c.arm}/{reader}/requests.jsonl"
            for c in self.plan.cells_of(wildcards.table, wildcards.run)
            for reader in self.plan.readers(wildcards.run, c.study, c.bench, c.arm)
            if self.plan.ranker(wildcards.run, reader) is None
        ]

    def benches(self, wildcards, name: str) -> list[str]:
        """One file of every bench of a table."""
        cells = self.plan.cells_of(wildcards.table, wildcards.run)
        benches = dict.fromkeys((cell.study, cell.bench) for cell in cells)
        return [f"results/{wildcards.run}/{study}/{bench}/{name}" for study, bench in benches]

    def judged(self, wildcards) -> list[str]:
        """The judge's replies of every cell of a table that has such."""
        run = wildcards.run
        return [
            f"results/{run}/{c.study}/{c.bench}/{c.arm}/{reader}/judge/responses.jsonl"
            for c in self.plan.cells_of(wildcards.table, run)
            if self.plan.has_judge(run, c.study, c.bench)
            for reader in self.plan.readers(run, c.study, c.bench, c.arm)
        ]

    def documents(self, wildcards) -> list[str]:
        """The documents of the datasets behind a table, each once."""
        run = wildcards.run
        found = (
            self.plan.dataset_of(run, c.study, c.bench) for c in self.plan.cells_of(wildcards.table, run)
        )
        names = dict.fromkeys(name for name in found if name)
        return [f"results/{run}/datasets/{name}/documents.jsonl" for name in names]

    def pictured(self, wildcards) -> list[Any]:
        """Where the images of a table's questions lie."""
        studies = dict.fromkeys(cell.study for cell in self.plan.cells_of(wildcards.table))
        listed = [name for name in studies if self.plan.reads_index(wildcards.run, name)]
        return self.benches(wildcards, "images.zip") + [
            self.plan.images(wildcards.run, name)
            if self.plan.tables_of(wildcards.run, name)
            else self.source(wildcards.run, name)
            for name in listed
        ]

    def stages(self, wildcards) -> list[str]:
        """The records of every stage behind a table."""
        return lineage.stage_records(self.plan, wildcards.run, wildcards.table)

    def published_parts(self, wildcards, run: str) -> list[str]:
        """Every part of a table of one run, in the order of the published copies."""
        parts = ("csv", "cells.csv", "contrasts.csv", "breakdown.csv", "drift.csv", "spread.csv")
        parts += ("failures.csv", "md", "json", "svg", "html")
        return [f"results/{run}/tables/{wildcards.table}.{part}" for part in parts]

    # -- audit ---------------------------------------------------------------------------------------------

    def audited(self, wildcards, name: str) -> list[str]:
        """One file of every cell whose answers the judges are compared on."""
        audit = self.plan.audit(wildcards.run)
        readers = self.plan.study_run(wildcards.run, audit.study).readers
        arms = dict.fromkeys(
            c.arm for c in self.plan.cells if (c.study, c.bench) == (audit.study, audit.bench)
        )
        here = f"results/{wildcards.run}/{audit.study}/{audit.bench}"
        return [f"{here}/{arm}/{reader}/{name}" for arm in arms for reader in readers]

    def audited_items(self, wildcards) -> str:
        """The questions behind the compared answers."""
        audit = self.plan.audit(wildcards.run)
        return f"results/{wildcards.run}/{audit.study}/{audit.bench}/items.jsonl"

    def audited_study(self, wildcards) -> str:
        """The study behind the compared answers."""
        return self.plan.audit(wildcards.run).study

    def judges(self, wildcards, name: str) -> list[str]:
        """One file of every compared judge."""
        return [
            f"results/{wildcards.run}/judges/{judge}/{name}"
            for judge in self.plan.audit(wildcards.run).judges
        ]


def watching(workflow: Any, function: Callable[[Any], list[str]]) -> Callable[[Any], list[str]]:
    """Return an input function that also lets Snakemake look for deleted files.

    Only the process that plans the run looks; processes that it starts for single jobs do not.
    """

    def resolved(wildcards) -> list[str]:
        if workflow.is_main_process:
            gaps.watch(workflow.dag)
        return function(wildcards)

    return resolved
