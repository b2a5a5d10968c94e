"""What the preflight found: a line per group of checks, one numbered list of problems, a verdict."""

from collections.abc import Iterable

from remeasure.executors.keys import Key
from remeasure.records import Record


class Group(Record, kw_only=True):
    """One group of checks."""

    title: str
    said: tuple[str, ...]
    """What was found, with counts, and what could not be checked; shown whether or not all is well."""
    problems: tuple[str, ...] = ()
    """One sentence each: what, where, found and expected, what to do."""


def cleaned(group: Group, keys: Iterable[Key]) -> Group:
    """Return a group without keys; replies were cleaned when they came, this is the second net."""
    said, found = group.said, group.problems
    for key in keys:
        said, found = tuple(map(key.out_of, said)), tuple(map(key.out_of, found))
    return Group(title=group.title, said=said, problems=found)


def problems(groups: Iterable[Group]) -> list[str]:
    """Return the problems of all groups in order, each once."""
    return list(dict.fromkeys(problem for group in groups for problem in group.problems))


def lines(groups: Iterable[Group]) -> list[str]:
    """Return the report without its verdict.

    Nothing that a server or a file made up can move the cursor or begin a line of its own.
    """
    groups = list(groups)
    found = problems(groups)
    text = []
    for group in groups:
        n = len(dict.fromkeys(group.problems))
        state = "ok" if not n else "1 problem" if n == 1 else f"{n} problems"
        text.append(f"  {group.title:<10} {state:<12} {'; '.join(group.said)}".rstrip())
    if found:
        text.append("Problems:")
    text += [f"{number:>3}. {problem}" for number, problem in enumerate(found, start=1)]
    return [_printable(line) for line in text]


def verdict(run: str, groups: Iterable[Group]) -> str:
    """Return the last line."""
    n = len(problems(groups))
    if not n:
        return f"preflight of run {run!r}: nothing stands in the way"
    what = "1 problem, named" if n == 1 else f"{n} problems, all named"
    return f"preflight of run {run!r}: {what} above; repair and call it again, nothing was changed"


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 file``, ``3 files``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in line)
