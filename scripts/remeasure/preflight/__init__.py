"""Everything that can be known before the first call is made, for every cell of a run at once.

Nothing has to be built for it and nothing is left behind. What it looks at: raw inputs and disk (``data``),
keys and hosted endpoints (``endpoints``), requests that are built (``surveys``, ``contexts``), programs that
steps start and answers that they read (``programs``), the cluster that jobs are sent to (``cluster``).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from remeasure.plan import Plan
from remeasure.preflight import askings, cluster, contexts, data, endpoints, programs, report
from remeasure.preflight.askings import Target
from remeasure.preflight.report import Group, plural
from remeasure.preflight.surveys import Survey, survey


def check(plan: Plan, run: str, root: Path, profile: cluster.Profile | None = None) -> list[Group]:
    """Check every cell of a run; what is slow goes on side by side.

    Args:
        plan: all settings; ``preamble.check_run`` has passed them.
        run: the run.
        root: the working directory, where ``results/`` is.
        profile: how jobs are sent to a cluster; null where they are not.
    """
    groups = asyncio.run(_check(plan, run, root))
    return groups if profile is None else [*groups, cluster.check(profile, cluster.needs_of(plan, run))]


async def _check(plan: Plan, run: str, root: Path) -> list[Group]:
    files = askings.askings(plan, run)
    targets = askings.targets(plan, run, files)
    disk = asyncio.create_task(asyncio.to_thread(data.check, plan, run, root))
    servers = asyncio.create_task(asyncio.to_thread(programs.check_servers, plan, targets, root))
    surveys = [asyncio.create_task(asyncio.to_thread(survey, target, root)) for target in targets]
    of_target = {id(target): task for target, task in zip(targets, surveys, strict=True)}
    visits = await asyncio.gather(
        *(endpoints.visit(one, of_target[id(one.target)], root) for one in endpoints.addresses(targets))
    )
    surveyed = list(zip(targets, await asyncio.gather(*surveys), strict=True))
    groups = [
        await disk,
        endpoints.check_keys(targets),
        endpoints.check(visits),
        _requests(surveyed),
        await servers,
        programs.check_stored(plan, run, targets, root),
    ]
    return [report.cleaned(group, endpoints.keys(targets)) for group in groups]


def _requests(surveyed: list[tuple[Target, Survey]]) -> Group:
    """Return what the requests of all models come to."""
    all_of = [found for _, found in surveyed]
    n_files, n_requests = sum(s.n_files for s in all_of), sum(s.n_requests for s in all_of)
    said = [f"{plural(n_requests, 'request')} of {plural(n_files, 'file')} read"]
    longest = max(
        (s.longest for s in all_of if s.longest), key=lambda asked: asked.total_tokens, default=None
    )
    if longest is not None:
        without = "" if longest.counts_images else " without images"
        said.append(f"longest about {longest.prompt_tokens:,}{without} + {longest.max_tokens:,} tokens")
    unbuilt = [cell for found in all_of for cell in found.unbuilt]
    if unbuilt:
        said.append(f"not checked, not built yet: {plural(len(unbuilt), 'file')} ({_short(unbuilt)})")
    problems = [problem for found in all_of for problem in found.problems]
    for target, found in surveyed:
        if not isinstance(target.way, endpoints.Hosted):  # those of endpoints come with what they say
            problems += contexts.problems(f"models.{target.name}", target, found, None, None)
    return Group(title="requests", said=tuple(said), problems=tuple(problems))


def _short(cells: list[str]) -> str:
    """Return names of cells with what they share said once: ``a/{nq sqa}/{naive traf}``."""
    names = [cell.rsplit("/", 2 if cell.endswith("/judge") else 1) for cell in cells]
    arms = _grouped([((head, *end), arm) for head, arm, *end in names])
    rows = [(head.rpartition("/"), tails, end) for (head, *end), tails in arms]
    benches = _grouped([((study, tuple(tails), *end), bench) for (study, _, bench), tails, end in rows])
    return ", ".join(
        "/".join(word for word in (study, _one_of(found), _one_of(tails), *end) if word)
        for (study, tails, *end), found in benches
    )


def _grouped(pairs: list[tuple[tuple, str]]) -> list[tuple[tuple, list[str]]]:
    groups: dict[tuple, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return list(groups.items())


def _one_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + " ".join(names) + "}"
