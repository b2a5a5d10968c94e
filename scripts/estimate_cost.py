"""Write what the missing requests of one cell will cost before any is sent, for a reader or for a judge."""

import argparse
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from remeasure import (
    cli,
    collecting,
    estimates,
    executors,
    items,
    jsonl,
    kept,
    options,
    prompts,
    requests,
    studies,
)
from remeasure.errors import RemeasureError
from remeasure.estimates import Estimate, EstimateSettings
from remeasure.image_check import Inspector
from remeasure.kept import History

log = logging.getLogger("remeasure.estimate_cost")


class _Missing:
    """The requests of a file that have no outcome yet, each question once; counts all while it is read."""

    def __init__(self, path: Path, settings: EstimateSettings, history: History) -> None:
        self._path, self._settings, self._final = path, settings, history.final
        self.n = 0
        self.does = ""
        """What a system is asked to do."""

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        digest = requests.identity_digest(self._settings.identity)
        seen = set(self._final)
        for request in requests.read_requests(self._path, self._settings.model):
            self.n += 1
            self.does = (request.body.get("task") or {}).get("do", "")
            key = requests.answer_key(request.body, self._settings.model, digest, sample=0)
            if key not in seen:
                seen.add(key)
                yield request.custom_id, request.body


def of_requests(
    role: Literal["reader", "judge"],
    path: Path,
    settings: EstimateSettings,
    way: executors.Settings,
    history: History,
    images_root: Path,
) -> Estimate:
    """Return the estimate of a request file."""
    missing = _Missing(path, settings, history)
    with Inspector(images_root) as inspector:
        sums = estimates.of_calls(missing, inspector, way, history, settings.answer_tokens)
    if isinstance(way, executors.SystemSettings):
        sums = estimates.of_system(sums, settings, missing.does, history)
    return estimates.make(role, settings, missing.n, sums, way, history)


def of_judge(
    path: Path, study: str | None, settings: EstimateSettings, way: executors.Settings, history: History
) -> Estimate:
    """Return the estimate of a judge's requests, which cannot exist before the answers.

    Raises:
        RemeasureError: the settings do not say how the judge is asked.
    """
    if settings.judge is None or study is None:
        raise RemeasureError(
            "--items: a judge's estimate needs --study and the key judge in --settings; add both"
        )
    n_items = sum(1 for _ in items.read(path, with_answers=False))
    n = n_items if settings.n_answers is None else settings.n_answers
    # Whatever is kept may belong to other requests: without them nothing counts as known.
    n_known = 0
    # Judges that are compared read answers of several arms to one item.
    shown = itertools.chain.from_iterable(items.read(path, with_answers=False) for _ in itertools.count())
    calls = estimates.judge_calls(
        itertools.islice(shown, n - n_known),
        studies.load(study, "messages").judge_messages,
        settings.judge,
        prompts.load(settings.judge.prompts),
        settings.judged_tokens,
    )
    with Inspector(Path()) as inspector:
        sums = estimates.of_calls(calls, inspector, way, history, settings.answer_tokens)
    return estimates.make("judge", settings, n, sums, way, history)


def work(args: argparse.Namespace) -> None:
    """Read, add up, write."""
    settings = options.decode(args.settings, EstimateSettings)
    way = collecting.read_executor(args.executor)
    if args.database is not None and args.database.is_file():  # before it is there, nothing is kept either
        way = collecting.with_records(way, args.database, None)
    identity = settings.identity | collecting.made_files(way)
    settings = msgspec.structs.replace(settings, identity=identity)
    history = kept.read_history(args.journal)
    if args.items is None and args.requests is None:
        raise RemeasureError("give --requests for a reader, --items for a judge, or both")
    if args.items is None or (args.requests is not None and args.requests.is_file()):
        role = "judge" if args.items else "reader"
        found = of_requests(role, args.requests, settings, way, history, args.images_root)
    else:
        found = of_judge(args.items, args.study, settings, way, history)
    jsonl.write_json(args.out, found)
    cost = "unknown" if found.usd is None else f"{found.usd.expected:.2f} USD"
    log.info("%s: %d of %d to ask, %s", args.out, found.n_requests - found.n_known, found.n_requests, cost)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: model, identity, price, judge")
    parser.add_argument("--requests", type=Path, help="requests.jsonl; a judge's may be missing")
    parser.add_argument("--items", type=Path, help="items.jsonl, for a judge")
    parser.add_argument("--study", help="name of the study's module, for a judge")
    parser.add_argument("--executor", required=True, help="how the model is reached: JSON, or a file with it")
    parser.add_argument(
        "--journal", type=Path, help="folder that keeps the answers; without it none is known"
    )
    parser.add_argument("--database", type=Path, help="record of a system's database; may be missing")
    parser.add_argument("--images-root", type=Path, default=Path("."), help="where image paths start")
    parser.add_argument("--out", type=Path, required=True, help="estimate.json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
