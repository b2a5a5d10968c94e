"""What the rules call themselves, their outputs and their logs, read from the text of ``rules/*.smk``.

Loading the workflow would say the same, in seconds. Names of files stand in the rules alone; these are
formatted by ``snakefmt``, so that a line tells what it is. ``tests/workflow`` compares with Snakemake's plan.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from remeasure.built import Making
from remeasure.errors import RemeasureError
from remeasure.wiring import Wiring

_BEGIN = re.compile(r"(?:use )?rule (?P<one>\w+)(?: as (?P<other>\w+) with)?:\Z")
_LOCAL = "    localrule: True"
_SECTION = re.compile(r" {4}(\w+):")
# What the wildcard `run` must match, as a function of the wiring: run=FILES.parted("tiles")
_CONSTRAINT = re.compile(r'run=FILES\.(\w+)\("(\w+)"\)')
_TEXT = re.compile(r'"([^"]*)"')
_WILDCARD = re.compile(r"\{(\w+)\}")


class Made(NamedTuple):
    """A job of a rule: what it is called and which files are its own."""

    rule: str
    wildcards: dict[str, str]
    """In the order in which Snakemake has them."""
    outputs: tuple[str, ...]
    log: str

    @property
    def key(self) -> tuple[str, str]:
        """Rule and wildcards as the SLURM executor writes them into a job's comment and its log's folder."""
        return self.rule, "_".join(self.wildcards.values()).replace("/", "_")


class Rule(NamedTuple):
    """A rule that names its outputs and its log as text."""

    name: str
    outputs: tuple[str, ...]
    """Patterns with wildcards in braces."""
    log: str
    sources: tuple[str, ...]
    """Verified sources that it names as inputs."""
    constraint: tuple[str, str] | None = None
    """Method of the wiring, and its argument, that say for which runs the rule is."""

    def made(self, **wildcards: str) -> Made:
        """Return the job for wildcards; those that the rule does not know are left out."""
        order = dict.fromkeys(_WILDCARD.findall(self.outputs[0]))
        own = {name: wildcards[name] for name in order}
        return Made(self.name, own, tuple(out.format(**own) for out in self.outputs), self.log.format(**own))


class Copy(NamedTuple):
    """A rule that makes the files of another for some runs, as a job of its own name."""

    name: str
    of: str
    constraint: tuple[str, str]


class RuleFiles:
    """The rules of the project.

    Args:
        folder: the folder ``rules``.
        files: what constraints of wildcards ask; null: rules that have one make nothing.
        indexes: by stage the files of every study that lists images or tables, made in a loop.
        makings: rules of other loops, which make sources from others.

    Raises:
        RemeasureError: it holds no rule.
    """

    def __init__(
        self,
        folder: Path,
        files: Wiring | None = None,
        indexes: Mapping[str, Mapping[str, list[str]]] | None = None,
        makings: Iterable[Making] = (),
    ) -> None:
        self._rules: dict[str, Rule] = {}
        copies: list[Copy] = []
        for path in sorted(folder.glob("*.smk")):
            for rule in _read(path.read_text(encoding="utf-8").splitlines()):
                if isinstance(rule, Copy):
                    copies.append(rule)
                else:
                    self._rules[rule.name] = rule
        for copy in copies:
            original = self._rules[copy.of]
            self._rules[copy.name] = original._replace(name=copy.name, constraint=copy.constraint)
        for stage, studies in (indexes or {}).items():
            for study, names in studies.items():
                self._rules[f"index_{study}"] = _index(stage, study, names)
        for making in makings:
            outputs = (*making.outputs.values(), making.record)
            self._rules[making.rule] = Rule(making.rule, outputs, making.log, (making.source,))
        if not self._rules:
            raise RemeasureError(f"{folder}: holds no rule; restore it")
        pairs = [(output, rule) for rule in self._rules.values() for output in rule.outputs]
        # The pattern that leaves least open goes first: judges.csv is no table of that name, and a
        # ranking that is given (given-{reader}.h5) none of a projection ({projection}.h5).
        pairs.sort(
            key=lambda pair: (
                len(_WILDCARD.findall(pair[0])),
                pair[1].constraint is None,
                -len(_WILDCARD.sub("", pair[0])),
            )
        )
        self._patterns = [(_pattern(output, rule, files), rule) for output, rule in pairs]

    def __getitem__(self, name: str) -> Rule:
        return self._rules[name]

    def maker(self, path: str) -> tuple[Rule, Made]:
        """Return the rule that makes a file, and its job.

        Raises:
            RemeasureError: no rule makes it.
        """
        for pattern, rule in self._patterns:
            if found := pattern.fullmatch(path):
                return rule, rule.made(**found.groupdict())
        raise RemeasureError(f"{path}: no rule in rules/*.smk makes it; a name there and here differ")


def _index(stage: str, study: str, names: list[str]) -> Rule:
    """Return the rule that lists a study's images or tables; rules/collections.smk makes one of each."""
    here = f"results/{{run}}/{study}/index"
    outputs = tuple(f"{here}/{name}" for name in (f"{stage}.json", *names))
    return Rule(f"index_{study}", outputs, f"{here}/logs/{stage}.log", ())


def _pattern(output: str, rule: Rule, files: Wiring | None) -> re.Pattern[str]:
    runs = "[^/]+"
    if rule.constraint is not None:
        method, argument = rule.constraint
        runs = "(?!)" if files is None else getattr(files, method)(argument)
    text = output.replace(".", r"\.").replace("{run}", f"(?P<run>{runs})", 1)
    return re.compile(_WILDCARD.sub(r"(?P<\1>[^/.]+)", text))


def _read(lines: list[str]) -> Iterator[Rule | Copy]:
    """Yield the rules of one file that have outputs of their own, and copies that are submitted.

    A copy that stays beside the planning Snakemake is never in a queue, where its name would be looked for.
    """
    name, original, section, constraint, local = None, None, "", None, False
    found: dict[str, list[str]] = {}
    for line in [*lines, "end"]:
        if line[:1].strip() and not line.startswith("#"):
            if name and found.get("output") and found.get("log"):
                sources = tuple(p for p in found.get("input", ()) if p.startswith("results/sources/"))
                yield Rule(name, tuple(found["output"]), found["log"][0], sources, constraint)
            elif name and original and constraint and not local:
                yield Copy(name, original, constraint)
            begin = _BEGIN.match(line)
            name = (begin["other"] or begin["one"]) if begin else None
            original = begin["one"] if begin and begin["other"] else None
            section, constraint, local, found = "", None, False, {}
        elif head := _SECTION.match(line):
            section = head[1]
            local = local or line == _LOCAL
        elif section == "wildcard_constraints" and (said := _CONSTRAINT.search(line)):
            constraint = (said[1], said[2])
        elif name:
            found.setdefault(section, []).extend(_TEXT.findall(line))
