"""Make the plain gesture work: delete a file, ask for the table, get exactly that file and what follows.

Snakemake alone ignores a deleted intermediate while its products exist. ``watch`` looks at the finished plan
just before Snakemake decides what runs, and adds every gap to the set of forced files, the mechanism behind
``--forcerun``. That is no public interface: Snakemake is pinned and ``tests/workflow`` tests it.
"""

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def journal_of(responses: Path | str) -> Path:
    """Return the folder that keeps the answers behind a ``responses.jsonl``; no rule declares it."""
    return Path(responses).parent / "journal"


def published_run(copy: Path) -> str | None:
    """Return the run that a copy directly under ``results/`` was taken from, as the table beside it says.

    Null for any other path, and where there is no such table.
    """
    # The comparison of a table's judges is a table of its own, which may be of another run.
    own = copy.name.endswith(".judges.csv")
    wide = copy if own else copy.parent / f"{copy.name.partition('.')[0]}.csv"
    if copy.parent.name != "results" or not wide.is_file():
        return None
    return wide.read_text(encoding="utf-8").rstrip().rpartition("\n")[2].rpartition(",")[2]


def _is_of_another_run(product: str, output: str) -> bool:
    """Return whether a product is the published copy of another run than the one that an output is of."""
    run = published_run(Path(product)) if Path(product).parent == Path("results") else None
    return run is not None and Path(output).parts[:2] != ("results", run)


def _is_temporary(path: Any) -> bool:
    return bool(getattr(path, "flags", {}).get("temp"))


def _asks(job: Any) -> bool:
    """Return whether a job keeps answers in a journal; one that computes its responses keeps none."""
    return "--journal" in (job.rule.shellcmd or "")


def find(dag: Any) -> Iterator[tuple[str, str | None]]:
    """Yield (output to force, reason) for every gap of a plan.

    A gap is a declared output that is missing although something made from it, or together with
    it, exists; only the first kind has a reason worth a line. A ``responses.jsonl`` whose journal is gone
    counts too: the user wants to ask again.

    Args:
        dag: Snakemake's plan, with ``jobs`` and ``depending`` filled.
    """
    exists = functools.cache(os.path.exists)
    for job in sorted(dag.jobs, key=lambda job: sorted(map(str, job.output))):
        used_by = dag.depending[job]
        for output in job.output:
            if _is_temporary(output):
                continue
            users = [user for user, files in used_by.items() if output in files]
            made = [
                product
                for user in users
                for product in user.output
                if exists(product) and not _is_of_another_run(product, output)
            ]
            if not exists(output):
                if made:
                    yield str(output), f"{output} is missing, but {made[0]} was made from it"
                elif not users and any(exists(sibling) for sibling in job.output):
                    yield str(output), None
            elif Path(output).name == "responses.jsonl" and _asks(job) and not exists(journal_of(output)):
                yield str(output), f"{journal_of(output)} is missing: its questions are asked again"


def report(gaps: Iterable[tuple[str, str | None]]) -> set[str]:
    """Say each gap that has a reason in one line on standard error and return the files to force."""
    forced = set()
    for path, reason in gaps:
        forced.add(path)
        if reason:
            print(f"gap: {reason}; making it and what follows again", file=sys.stderr)
    return forced


def watch(dag: Any) -> None:
    """Let ``dag`` look for gaps once, when its jobs are known and before it decides what runs."""
    if getattr(dag, "_remeasure_watches_gaps", False):
        return
    dag._remeasure_watches_gaps = True
    plain = dag.update_needrun

    async def update_needrun(*args, **kwargs):
        if not getattr(dag, "_remeasure_found_gaps", False):
            dag._remeasure_found_gaps = True
            dag.forcefiles.update(report(find(dag)))
        await plain(*args, **kwargs)

    dag.update_needrun = update_needrun
