"""The state of a run as text of at most a hundred columns, and as values for programs."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from remeasure import leases
from remeasure.cluster.queue import Job
from remeasure.status import endings, steps
from remeasure.status.counts import Count
from remeasure.status.endings import Ending
from remeasure.status.processes import Driver
from remeasure.status.states import Seen, State

WIDTH = 100
# Of what a column sums up, the first of these states is shown.
_FIRST: tuple[State, ...] = ("failed", "running", "queued", "waiting", "done")
_MOST = {"running": 30, "queued": 12, "failed": 10}


class Other(NamedTuple):
    """A failed job that belongs to no table: an estimate, a copy."""

    rule: str
    ending: Ending


class Status(NamedTuple):
    """Everything that the report says."""

    run: str
    why_run: str
    """Why this run is shown; empty where it was named."""
    work_dir: str
    seen: list[Seen]
    counts: dict[str, Count]
    """By the first output of the step that asks."""
    others: list[Other]
    queue_says: str
    """Why the queue was not asked; empty where it was."""
    has_cluster: bool
    driver: Driver
    last_lines: dict[str, str]
    """Last line of the log of each running step, by log."""


def text(status: Status) -> str:
    """Return the report."""
    blocks = [_head(status), *_matrices(status), *_lists(status), [*_sums(status), *_next(status)]]
    # Names of hosts, jobs and files come from files that anybody may have written.
    lines = [endings.printable(line[:WIDTH]) for block in blocks if block for line in [*block, ""]]
    return "\n".join(lines[:-1]) + "\n"


def as_values(status: Status) -> dict[str, Any]:
    """Return the same, complete, as values for JSON."""
    return {
        "run": status.run,
        "directory": status.work_dir,
        "queue": {"asked": not status.queue_says and status.has_cluster, "reason": status.queue_says or None},
        "driver": status.driver._asdict(),
        "counts": _by_state(status.seen),
        "steps": [_step_values(status, one) for one in status.seen],
        "other_failures": [{"rule": o.rule} | o.ending._asdict() for o in status.others],
    }


def _step_values(status: Status, one: Seen) -> dict[str, Any]:
    made, job = one.step.made, one.job
    count = status.counts.get(made.outputs[0])
    return {
        "rule": made.rule,
        "wildcards": made.wildcards,
        "rows": list(one.step.rows),
        "column": one.step.column,
        "state": one.state,
        "note": one.note or None,
        "output": made.outputs[0],
        "log": made.log,
        "last_line": status.last_lines.get(made.log),
        "answers": {"n": count.n, "total": count.total} if count else None,
        "job": _job_values(job) if job else None,
        "failure": one.ending._asdict() if one.ending else None,
    }


def _job_values(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "state": job.state,
        "node": job.node or None,
        "partition": job.partition,
        "gpus": job.n_gpus,
        "gpu_model": job.gpu_model or None,
        "elapsed_s": job.elapsed_s,
        "reason": job.reason or None,
    }


# -- parts of the text -------------------------------------------------------------------------------------


def _head(status: Status) -> list[str]:
    why = f" ({status.why_run})" if status.why_run else ""
    lines = [f"run {status.run}{why}, {time.strftime('%Y-%m-%d %H:%M:%S')}, {_tail_of(status.work_dir, 40)}"]
    lines.append(f"driver: {_driver(status.driver)}")
    if status.queue_says:
        lines += _wrapped(f"The queue cannot be asked: {status.queue_says}")
        lines.append("What follows is what the files say: jobs may have begun or ended since.")
    return lines


def _driver(driver: Driver) -> str:
    silent = f", said something {_duration(driver.silent_s)} ago" if driver.silent_s is not None else ""
    if driver.state == "none":
        return "none works here now"
    if driver.state == "gone":
        return f"none; the last one was killed{f' on {driver.host}' if driver.host else ''} and left its lock"
    where = f"process {driver.pid} on this host" if driver.pid else f"on host {driver.host or 'unknown'}"
    return f"{where}{silent}"


def _matrices(status: Status) -> Iterator[list[str]]:
    seen = status.seen
    files = [one for one in seen if one.step.block == steps.SOURCES]
    if files:
        yield _sources(files)
    for block, columns in steps.BLOCKS.items():
        cells: dict[str, dict[str, list[Seen]]] = {}
        for one in seen:
            for row in one.step.rows if one.step.block == block else ():
                cells.setdefault(row, {}).setdefault(one.step.column, []).append(one)
        if cells:
            yield _matrix(status, block, list(columns), cells)


def _sources(files: list[Seen]) -> list[str]:
    missing = [one for one in files if one.state != "done"]
    by_hand = [one.step.rows[0] for one in missing if one.step.column == "by hand"]
    rest = [f"{one.step.rows[0]} {one.state}" for one in missing if one.step.column != "by hand"]
    line = "; ".join([f"sources: {len(files) - len(missing)} of {len(files)} done", ", ".join(rest)])
    if not by_hand:
        return _wrapped(line.removesuffix("; "))
    more = f" and {len(by_hand) - 4} more" if len(by_hand) > 4 else ""
    what = f"to be put in place by hand, see `snakemake preflight`: {', '.join(by_hand[:4])}{more}"
    return [*_wrapped(line.removesuffix("; ")), *_wrapped(what, "  ")]


def _matrix(
    status: Status, block: str, columns: list[str], cells: dict[str, dict[str, list[Seen]]]
) -> list[str]:
    # One study needs no name in each row.
    studies = {row.partition("/")[0] for row in cells if block == steps.CELLS} - {steps.JUDGES}
    short = f"{studies.pop()}/" if len(studies) == 1 else ""
    table = [[block, *columns]]
    for row in sorted(cells, key=_late):
        texts = [_cell(status, cells[row].get(column, [])) for column in columns]
        table.append([row.removeprefix(short), *texts])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(columns))
    return [
        "  ".join(f"{_tail_of(word, w):<{w}}" for word, w in zip(line, widths, strict=True)) for line in table
    ]


def _late(row: str) -> int:
    """Return where a row stands: cells, then training sets, then the judges that are compared."""
    return 2 if row.startswith(f"{steps.JUDGES}/") else 1 if row.count("/") == 1 else 0


def _cell(status: Status, group: list[Seen]) -> str:
    """Return a state, with how many answers there are and how many of several jobs are done."""
    if not group:
        return "-"
    found = {one.state for one in group}
    state = next(state for state in _FIRST if state in found)
    counted = [status.counts[path] for one in group if (path := one.step.made.outputs[0]) in status.counts]
    if counted and (counted[0].total is not None or counted[0].n):
        total = "?" if counted[0].total is None else counted[0].total
        return f"{state} {counted[0].n}/{total}"
    if len(group) > 2 and not any(one.step.made.rule in steps.ASKING for one in group):
        return f"{state} {sum(one.state == 'done' for one in group)}/{len(group)} jobs"
    return state


def _lists(status: Status) -> Iterator[list[str]]:
    for state in ("running", "queued"):
        chosen = [one for one in status.seen if one.state == state]
        if chosen:
            lines = [f"{state} ({len(chosen)})"]
            for one in chosen[: _MOST[state]]:
                lines += _under_way(status, one)
            yield [*lines, *_more(chosen, _MOST[state])]
    failures = [(_name(one), one.ending) for one in status.seen if one.ending]
    failures += [(other.rule, other.ending) for other in status.others]
    if failures:
        lines = [f"failed ({len(failures)})"]
        for name, ending in failures[: _MOST["failed"]]:
            lines += failure(name, ending)
        yield [*lines, *_more(failures, _MOST["failed"])]


def _under_way(status: Status, one: Seen) -> list[str]:
    job = one.job
    if job is None:
        what = f"  {_name(one)}, {one.note}"
    else:
        gpus = f" gpu:{job.gpu_model + ':' if job.gpu_model else ''}{job.n_gpus}" if job.n_gpus else ""
        where = f"{job.node or '-'} {job.partition}{gpus}"
        why = f" ({job.reason})" if job.is_waiting and job.reason else ""
        what = f"  {job.job_id:<8} {where:<26} {_duration(job.elapsed_s):>6}  {_name(one)}{why}"
    line = status.last_lines.get(one.step.made.log)
    return [what, f"           {line}"] if line else [what]


def failure(name: str, ending: Ending) -> list[str]:
    """Return a failed job in a few lines: what it was, where it ran, and the last lines of its log."""
    job = f", job {ending.job_id}" if ending.job_id else ""
    node = f" on {ending.node}" if ending.node else ""
    lines = [f"  {name}{job}{node}: {ending.why}", f"    {ending.log}"]
    for line in ending.lines:
        lines += _wrapped(line, "      ")
    return lines


def _more(found: list, most: int) -> list[str]:
    return [f"  … and {len(found) - most} more; --json lists all"] if len(found) > most else []


def _name(one: Seen) -> str:
    """Return what a person calls a job: its rule and the wildcards but the run's."""
    at = {name: value for name, value in one.step.made.wildcards.items() if name not in ("run", "model")}
    return " ".join([one.step.made.rule, "/".join(at.values())]).strip()


def _by_state(seen: Iterable[Seen]) -> dict[str, int]:
    found = Counter(one.state for one in seen)
    return {state: found[state] for state in ("done", "running", "queued", "failed", "waiting")}


def _sums(status: Status) -> list[str]:
    found = _by_state(status.seen)
    parts = [f"{n} {state}" for state, n in found.items() if n]
    return [f"{sum(found.values())} steps: {', '.join(parts)}"]


def _next(status: Status) -> list[str]:
    """Return what to do next."""
    found = _by_state(status.seen)
    is_driven = status.driver.state in ("here", "elsewhere")
    if status.driver.state == "gone" and found["running"] + found["queued"]:
        return ["next: jobs of a killed driver are under way: let them end, then scripts/submit.py"]
    if status.driver.state == "gone":
        return ["next: start the command again with scripts/submit.py, or after `snakemake --unlock`"]
    if found["failed"] and is_driven:
        return ["next: what is not failed goes on; repair what the logs say, then start the command again"]
    if found["failed"]:
        return ["next: repair what the logs say, then start the command again; finished answers stay"]
    if is_driven:
        return ["next: nothing; it goes on by itself"]
    if found["running"] + found["queued"]:
        return ["next: nobody waits for these jobs on this host; the command goes on from what they leave"]
    if found["waiting"]:
        return ["next: start the command again; it makes what is waiting and nothing else"]
    return ["next: nothing; everything is there"]


def _wrapped(line: str, indent: str = "") -> list[str]:
    """Cut a line into pieces that fit, at spaces where there are any; at most four."""
    lines, width = [], WIDTH - len(indent)
    while len(line) > width and len(lines) < 3:
        at = line.rfind(" ", width // 2, width)
        at = at if at > 0 else width
        lines.append(indent + line[:at])
        line = line[at:].lstrip()
    return [*lines, indent + line[:width]]


def _tail_of(word: str, width: int) -> str:
    """Shorten a name from its beginning: what tells names apart stands at their end."""
    return word if len(word) <= width else "…" + word[len(word) - width + 1 :]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f}:{seconds % 3600 // 60:02.0f} h"


def last_lines(seen: Iterable[Seen], work_dir: Path) -> dict[str, str]:
    """Return the last line of the log of each step that runs, not of an earlier attempt's."""
    found = {}
    for one in seen:
        log = work_dir / one.step.made.log
        age_s = leases.age_s(log)
        if one.state != "running" or age_s is None or (one.job and age_s > one.job.elapsed_s + 5):
            continue
        if lines := endings.tail(log, 1):
            folder = one.step.made.outputs[0].rpartition("/")[0]
            found[one.step.made.log] = lines[0].replace(f"{folder}/", "…/")
    return found
