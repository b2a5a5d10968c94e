"""What a step starts or reads where no endpoint is hosted: programs, replayed and imported answers."""

import concurrent.futures
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from remeasure import catalogue, executors, journal
from remeasure.errors import RemeasureError
from remeasure.executors.replies import one_line
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan
from remeasure.preflight.askings import Target
from remeasure.preflight.report import Group, plural
from remeasure.systems import adapter

_IMPORT_LIMIT_S = 60.0
# Its packages live on GPU nodes, in an environment of their own (envs/vllm.yaml); the step checks them there.
_ON_THE_NODE = "vllm"


def check_servers(plan: Plan, targets: list[Target], root: Path) -> Group:
    """Look at what the steps start: programs, their files, their packages in the pinned versions."""
    ours = [t for t in targets if isinstance(t.way, executors.ServerSettings | executors.VllmBatchSettings)]
    here = [target for target in ours if _ON_THE_NODE not in target.spec.packages]
    packages = sorted({name for target in here for name in target.spec.packages})
    on_node = sorted({name for target in ours for name in target.spec.packages} - set(packages))
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        found = pool.map(lambda name: _package_problem(plan, name), packages)
        packages_wrong = [problem for problem in found if problem]
    files = {path: target.name for target in ours for path in target.spec.files.values()}
    files_wrong = [problem for path, name in files.items() if (problem := _file_problem(root, path, name))]
    programs = {target.spec.server for target in ours}
    programs_wrong = [
        f"models.{target.name}.server: scripts/{target.spec.server} is not a file; correct the name"
        for target in ours
        if not (SCRIPTS / str(target.spec.server)).is_file()
    ]
    programs_wrong += _adapter_problems(targets)
    said = [plural(len(programs), "program"), plural(len(files), "file"), plural(len(packages), "package")]
    said += [f"{', '.join(on_node)} not checked, that is done on the node"] if on_node else []
    return Group(
        title="servers",
        said=tuple(said) if ours else ("none is started",),
        problems=(*programs_wrong, *files_wrong, *packages_wrong),
    )


def _adapter_problems(targets: list[Target]) -> list[str]:
    """Return which systems have no adapter; whether their Python is there decides what a run has."""
    found = []
    for target in targets:
        if isinstance(target.way, executors.SystemSettings):
            try:
                adapter.program(target.way.adapter)
            except RemeasureError as error:
                found.append(f"models.{target.name}: {error}")
    return found


def _file_problem(root: Path, path: str, model: str) -> str | None:
    """Return what is wrong with a server's file; what a rule brings or makes need not be there."""
    name = Path(path).name
    by_rule = Path(path).parent == catalogue.FOLDER or path.startswith("results/")
    if by_rule or (root / path).exists():
        return None
    return f"models.{model}.files: {path} is not there ({name} is made by no rule); correct the path"


def _package_problem(plan: Plan, name: str) -> str | None:
    """Return why a package cannot be used in this environment."""
    try:
        pinned = catalogue.pinned(plan.folder.parent, name)
        found = importlib.metadata.version(name)
    except RemeasureError as error:
        return str(error)
    except importlib.metadata.PackageNotFoundError:
        return f"package {name} is not installed for {sys.executable}; run `make setup`"
    if found != pinned:
        return f"package {name}: version {found} installed, {pinned} pinned; run `make setup`"
    return _import_problem(name)


def _import_problem(name: str) -> str | None:
    """Import a package in a process of its own: it may lack a library, or end with a signal on this CPU."""
    modules = sorted(_modules(name))
    command = [sys.executable, "-c", "".join(f"import {module}\n" for module in modules)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_IMPORT_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return (
            f"package {name}: its import takes more than {_IMPORT_LIMIT_S:g} s; look at this machine's load"
        )
    if done.returncode == 0:
        return None
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    last = one_line((done.stderr.strip().splitlines() or ["nothing said"])[-1])
    return f"package {name}: cannot be imported ({ended}: {last}); run `make setup`, or mend what it names"


def _modules(package: str) -> Iterator[str]:
    """Yield the top-level modules of an installed package; its own name where its files do not tell."""
    files = importlib.metadata.distribution(package).files or ()
    found = {file.parts[0] for file in files if len(file.parts) == 2 and file.name == "__init__.py"}
    yield from found or {package.replace("-", "_")}


def check_stored(plan: Plan, run: str, targets: list[Target], root: Path) -> Group:
    """Look whether answers that are to be replayed or imported are there."""
    problems, n_journals, n_files = [], 0, 0
    for target in targets:
        match target.way:
            case executors.ReplaySettings(folder=folder):
                n_journals += 1
                problems += _replay_problem(folder, root, target.name)
            case executors.ImportSettings():
                for one in target.files:
                    path = plan.imported(run, one.study, one.bench, one.arm, one.model)
                    n_files += 1
                    if not (root / path).is_file():
                        what = f"{path} is not a file; put the answers there, or correct the path"
                        problems.append(f"models.{target.name}.imported.path: {what}")
    counts = (f"{plural(n_journals, 'folder')} to replay", f"{plural(n_files, 'file')} to import")
    said = counts if n_journals or n_files else ("none is used",)
    return Group(title="stored", said=said, problems=tuple(problems))


def _replay_problem(folder: str, root: Path, model: str) -> list[str]:
    if not (root / folder).is_dir():
        return [f"models.{model}.replay: {folder} is not a folder; name that of an older run"]
    if not journal.journals_below(root / folder):
        return [f"models.{model}.replay: {folder} holds no journal/*.jsonl; name the folder of an older run"]
    return []
