"""How each model of a run is told apart and reached; part of ``plan.Plan``.

What decides an answer goes into its identity (``ask``); how the model is reached, what it costs and how the
work is split does not (``executor``, ``shards``): a change of these asks nothing again.
"""

from pathlib import Path
from typing import Any

import msgspec

from remeasure import adapters, catalogue, fingerprint, prices, repeats, requests
from remeasure.adapters import Adapted
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.models import Model
from remeasure.settings import Limits, Run, Study, StudyRun

VLLM = "serve_vllm.py"


class AskingPlan:
    """Settings of asking, resolved on demand."""

    folder: Path
    catalogue: catalogue.Catalogue

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
        """Return one model of a run, whichever time it is asked.

        Raises:
            RemeasureError: the run has none of that name.
        """
        known, plain = self.run(run).models, repeats.model_of(model)
        if plain not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: no model {plain!r}{did_you_mean(plain, known)}; known: "
                f"{', '.join(known)}"
            )
        return known[plain]

    def identity(self, run: str, model: str) -> dict[str, Any]:
        """Return everything that can change a model's answers: weights, code, versions, options.

        Addresses, concurrency and time limits are left out: a change of them asks nothing again.
        """
        plain, number = repeats.parse(model)
        again = {"repeat": number} if number > 1 else {}
        return self._identity(run, plain) | again

    def _identity(self, run: str, model: str) -> dict[str, Any]:
        spec = self.model(run, model)
        if spec.server is None:
            return {"served_name": spec.served_name or model, "revision": spec.revision}
        hashes = self.catalogue.hashes()
        if not (self.folder.parent / "scripts" / spec.server).is_file():
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models.{model}.server: scripts/{spec.server} is not a file"
            )
        adapted = {path: self.adapted_at(path) for path in spec.files.values()}
        # What was merged is known by the bytes of the folder, which are looked at when the model is asked.
        unknown = [
            path
            for path in spec.files.values()
            if Path(path).name not in hashes and not adapted[path] and not self._built(path)
        ]
        if unknown and not spec.revision:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models.{model}.revision: is missing; {unknown[0]} is no "
                "verified source, so say what tells its version apart: a change of it asks again"
            )
        if spec.server == VLLM and "vllm" not in spec.packages:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models.{model}.packages: needs vllm, whose version is part "
                "of what answers; add it"
            )
        return {
            # What starts vLLM does not answer: its version below does.
            "code": None if spec.server == VLLM else fingerprint.of_script(spec.server),
            "weights": {
                option: self.merge(*adapted[path]) | {"path": path}
                if adapted[path]
                else self._built(path) or hashes.get(Path(path).name, path)
                for option, path in spec.files.items()
            },
            "packages": {name: catalogue.pinned(self.folder.parent, name) for name in spec.packages},
            "options": spec.options,
        } | ({"revision": spec.revision} if spec.revision else {})

    def _built(self, path: str) -> dict[str, Any] | None:
        """Return what tells a built source apart: raw inputs and code, where it is made of nothing else."""
        built = self.catalogue.built().get(path.removeprefix(f"{catalogue.FOLDER}/"))
        if built is None or not built.script:
            return None
        hashes = self.catalogue.hashes()
        made_from = {name: hashes[name] for name in built.made_from}
        return {"code": fingerprint.of_script(built.script), "made_from": made_from}

    def adapted(self, run: str, name: str) -> Adapted:
        """Return one adapted model of a run.

        Raises:
            RemeasureError: the run has none of that name.
        """
        known = self.run(run).adapted
        if name not in known:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: no adapted model {name!r}{did_you_mean(name, known)}; "
                f"known: {', '.join(known) or 'none'}"
            )
        return known[name]

    def adapted_at(self, path: str) -> tuple[str, str] | None:
        """Return run and name of the adapted model whose folder a path is; null where it is none."""
        found = adapters.FOLDER.match(path)
        return (found[1], found[2]) if found else None

    def adapted_files(self, run: str, name: str) -> dict[str, str]:
        """Return the folders that an adapted model is made from, by option of ``merge_adapter``."""
        spec = self.adapted(run, name)
        return {option: path for option in ("base", "adapter", "vision") if (path := getattr(spec, option))}

    def merge_settings(self, run: str, name: str) -> dict[str, Any]:
        """Settings of ``merge_adapter``."""
        spec = self.adapted(run, name)
        return {option: getattr(spec, option) for option in ("family", "system", "trained_projector")}

    def merge(self, run: str, name: str) -> dict[str, Any]:
        """Return what an adapted model is made from and how: part of the identity of its answers."""
        return self.merge_settings(run, name) | self.adapted_files(run, name)

    def needs_vllm(self, run: str, model: str) -> bool:
        """Return whether asking a model means to start vLLM."""
        return self.model(run, model).server == VLLM

    def ask(self, run: str, model: str) -> dict[str, Any]:
        """Settings of ``collect_responses`` that belong to the identity of an answer."""
        spec, plain = self.model(run, model), repeats.model_of(model)
        return {
            "model": plain,
            "served_name": spec.served_name or plain,
            "identity": self.identity(run, model),
            "max_failed_share": spec.max_failed_share,
        }

    def ask_reader(self, run: str, study: str, model: str) -> dict[str, Any]:
        """Settings of ``collect_responses`` for a study's reader.

        Where the study limits how many answers of a table may have failed, no cell stops before it is graded:
        the table says what failed, and is not published above the limit.
        """
        here, told = self.study_run(run, study), self.ask(run, model)
        limited = here.max_failed_share is not None or self.study(study).max_failed_share is not None
        return told | {"max_failed_share": 1.0} if limited else told

    def judge(self, run: str, study: str) -> str:
        """Return the judge of a study in a run."""
        raise NotImplementedError

    def ask_judge(self, run: str, study: str) -> dict[str, Any]:
        """Settings of ``collect_responses`` for the study's judge; there may be no answer to judge."""
        return self.ask(run, self.judge(run, study)) | {"may_be_empty": True}

    def image_detail(self, run: str, model: str) -> dict[str, str]:
        """Return what a model is asked for with every image; nothing where the run says nothing.

        Raises:
            RemeasureError: its endpoint has no word for it.
        """
        spec = self.model(run, model)
        if spec.image_detail is None:
            return {}
        if not requests.dialect_of(spec.dialect).image_detail:
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: models.{repeats.model_of(model)}.image_detail: dialect "
                f"{spec.dialect!r} cannot express it; take it out, or say which dialect the endpoint speaks"
            )
        return {"image_detail": spec.image_detail}

    def price_row(self, run: str, model: str) -> prices.PriceRow | None:
        """Return the price row of a model; null where it names none or its answers are there already."""
        spec = self.model(run, model)
        if spec.price is None:
            return None
        place = f"{self.folder}/runs/{run}.yaml: models.{model}.price"
        row = prices.row_of(spec.price, place, self.folder / "prices.yaml")
        return row if spec.replay is None and spec.imported is None else None

    def money(self, run: str, model: str) -> dict[str, Any] | None:
        """Return what a model's answers cost and when to stop (``executors.Money``); null where it is free.

        Raises:
            RemeasureError: an unknown price row, one without batch prices for a batch service, or limits and
                an endpoint that names no price.
        """
        spec, limits, row = self.model(run, model), self.run(run).limits, self.price_row(run, model)
        place = f"{self.folder}/runs/{run}.yaml: models.{model}"
        if row is None:
            if limits != Limits() and spec.base_url is not None and spec.replay is None:
                raise RemeasureError(
                    f"{place}: limits are set but the model names no price, so nothing could keep them; name "
                    "a row of config/prices.yaml (`free` for an endpoint of your own)"
                )
            return None
        price = prices.price_of(row, spec.executor == "batch", f"{place}.price: {spec.price}")
        kept = {"price": msgspec.to_builtins(price), "ledger": f"results/{run}/spend"}
        return kept | msgspec.to_builtins(limits)

    def estimate(self, run: str, model: str) -> dict[str, Any]:
        """Settings of ``estimate_cost`` that belong to the model."""
        row = self.price_row(run, model)
        return {
            "model": repeats.model_of(model),
            "identity": self.identity(run, model),
            "price": {"name": self.model(run, model).price} | msgspec.to_builtins(row) if row else None,
        }

    def executor(self, run: str, model: str, corpus: str | None) -> dict[str, Any]:
        """Return how a model is reached (``executors.Settings``); not part of any identity.

        Args:
            run: the run.
            model: the model's slug.
            corpus: whose files the server reads, or null for a judge.
        """
        spec = self.model(run, model)
        way = {"image_tokens": spec.image_tokens, "money": self.money(run, model)}
        files = dict(spec.files)
        for option, name in spec.corpus_files.items() if corpus else ():
            files[option] = f"results/{run}/corpora/{corpus}/{name}"
        if spec.replay is not None:
            return way | {"kind": "replay", "folder": spec.replay, "files": files}
        if spec.imported is not None:
            return way | {"kind": "import"} | msgspec.to_builtins(spec.imported)
        way |= {name: getattr(spec, name) for name in ("dialect", "thinking_default", "also_named")}
        if spec.executor == "batch":
            limits = msgspec.to_builtins(spec.batch)
            place = {"base_url": spec.base_url, "api_key_env": spec.api_key_env}
            return way | {"kind": "batch", "timeout_s": spec.timeout_s} | place | limits
        if spec.executor == "vllm-batch":
            return way | {"kind": "vllm-batch"} | spec.vllm_batch()
        way |= {name: getattr(spec, name) for name in ("concurrency", "timeout_s", "patience_s")}
        if spec.server is None:
            names = ("base_url", "api_key_env", "requests_per_minute", "tokens_per_minute")
            return way | {"kind": "http"} | {name: getattr(spec, name) for name in names}
        started = {"program": spec.server, "files": files, "options": spec.options}
        return way | {"kind": "server", "ready_timeout_s": spec.ready_timeout_s} | started

    def imported(self, run: str, study: str, bench: str, arm: str, model: str) -> str | None:
        """Return the file that a cell's answers are imported from; null where its model is asked."""
        spec = self.model(run, model)
        if spec.imported is None:
            return None
        path = spec.imported.path
        number = str(repeats.parse(model)[1])
        for name, value in {"study": study, "bench": bench, "arm": arm, "repeat": number}.items():
            path = path.replace(f"{{{name}}}", value)
        return path

    def executor_corpus(self, run: str, study: str, model: str) -> str | None:
        """Return the corpus whose files a model's server reads, null for a judge."""
        here = self.study_run(run, study)
        return here.corpus if model in here.readers else None

    def study_executor(self, run: str, study: str, model: str) -> dict[str, Any]:
        """Return how a study reaches a model; what ``describe_executor`` writes."""
        return self.executor(run, model, self.executor_corpus(run, study, model))

    def shards(self, run: str, study: str, bench: str, arm: str, model: str) -> int:
        """Return into how many jobs the reader's requests of a cell are split; an import is read in one."""
        here = self.study_run(run, study)
        spec = self.model(run, model)
        given = here.shards if spec.imported is None else {}
        if given and spec.executor == "batch":
            raise RemeasureError(
                f"{self.folder}/runs/{run}.yaml: studies.{study}.shards: a batch service splits the work "
                "itself (`batch: {max_requests: …}` of the model); remove the shards"
            )
        for name in given:
            head, _, tail = name.partition("/")
            known = self.study(study)
            if head not in known.benches or (tail and tail not in known.arms):
                raise RemeasureError(
                    f"{self.folder}/runs/{run}.yaml: studies.{study}.shards: {name!r} is no bench or "
                    f"bench/arm{did_you_mean(head, known.benches)}; correct it"
                )
        return given.get(f"{bench}/{arm}", given.get(bench, 1))
