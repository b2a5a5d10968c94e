"""What follows from a result, as Snakemake's own plan says it, and its removal."""

import csv
import io
import subprocess
import sys
from pathlib import Path

from remeasure import gaps
from remeasure.errors import RemeasureError


def followers(paths: list[Path], root: Path = Path(".")) -> list[Path]:
    """Return the given files and every existing file that was made from them, sorted.

    Args:
        paths: files or folders under ``results/``; a ``journal`` folder stands for the answers that it keeps.
        root: working directory of the workflow.

    Raises:
        RemeasureError: a path that is not there or not under ``results/``, or a plan that fails.
    """
    run = _run_of(paths, root)
    undeclared, forced = _expand(paths, root)
    if run == "sources":
        return sorted(undeclared | forced)
    before = _rows(run, root, [])
    after = _rows(run, root, sorted(map(str, forced))) if forced else before
    # The plans do not tell what follows from what is outdated anyway; Snakemake's memory does.
    later = _pending(after) - _pending(before) | _made_from(set(map(str, forced)), before)
    followed = {Path(path) for path in later if (root / path).exists()}
    gone = undeclared | forced | followed
    return sorted(gone | _published_copies(gone, run, root))


def _published_copies(gone: set[Path], run: str, root: Path) -> set[Path]:
    """Return the copies directly under ``results/`` of tables that go, where they are this run's copies."""
    found: set[Path] = set()
    for path in gone:
        if path.parts[:3] != ("results", run, "tables") or len(path.parts) != 4:
            continue
        copy = Path("results") / path.name
        if (root / copy).is_file() and gaps.published_run(root / copy) == run:
            found.add(copy)
    return found


def remove(paths: list[Path], root: Path = Path(".")) -> None:
    """Remove files, then folders that became empty."""
    for path in paths:
        (root / path).unlink(missing_ok=True)
    for folder in sorted({path.parent for path in paths}, key=lambda p: -len(p.parts)):
        while folder.parts[:1] == ("results",) and len(folder.parts) > 1:
            here = root / folder
            if not here.is_dir() or any(here.iterdir()):
                break
            here.rmdir()
            folder = folder.parent


def _run_of(paths: list[Path], root: Path) -> str:
    runs = set()
    for path in paths:
        if path.is_absolute() or path.parts[:1] != ("results",) or ".." in path.parts or len(path.parts) < 2:
            raise RemeasureError(
                f"{path}: only paths of the form results/<run>/… can be forgotten; correct it"
            )
        if not (root / path).exists():
            raise RemeasureError(f"{path}: is not there; nothing was removed")
        if (root / path).is_file() and len(path.parts) == 2:
            raise RemeasureError(f"{path}: is a copy that nothing is made from; delete it by hand")
        runs.add(path.parts[1])
    if len(runs) > 1:
        raise RemeasureError(f"the paths belong to {', '.join(sorted(runs))}; forget one run at a time")
    return runs.pop()


def _expand(paths: list[Path], root: Path) -> tuple[set[Path], set[Path]]:
    """Split what the user named into files that no rule declares (journals, logs) and declared outputs."""
    undeclared: set[Path] = set()
    forced: set[Path] = set()
    for path in paths:
        here = root / path
        files = [here] if here.is_file() else [p for p in sorted(here.rglob("*")) if p.is_file()]
        for file in (file.relative_to(root) for file in files):
            if "journal" in file.parts or "logs" in file.parts:
                undeclared.add(file)
            else:
                forced.add(file)
        if path.name == "journal":
            answers = path.parent / "responses.jsonl"
            if gaps.journal_of(answers) == path and (root / answers).exists():
                forced.add(answers)
    return undeclared, forced


def _rows(run: str, root: Path, forced: list[str]) -> list[dict[str, str]]:
    """Return what Snakemake says of every output behind the run's tables, were ``forced`` made again."""
    snakefile = Path(__file__).resolve().parents[2] / "Snakefile"
    targets = [f"results/{run}/tables/{name}" for name in _tables(snakefile, run)]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile), "--directory", str(root)]
    command += ["--cores", "1", "--nolock", *targets, "--detailed-summary"]
    if forced:
        command += ["--forcerun", *forced]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise RemeasureError(f"snakemake could not plan run {run!r}: {lines[-1]}; nothing was removed")
    return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t", quoting=csv.QUOTE_NONE))


def _pending(rows: list[dict[str, str]]) -> set[str]:
    """Return the outputs that would be made."""
    return {row["output_file"] for row in rows if row["plan"] == "update pending"}


def _made_from(paths: set[str], rows: list[dict[str, str]]) -> set[str]:
    """Return the outputs of every job that, as Snakemake remembers, wrote or read one of these, and so on."""
    jobs: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for row in rows:
        log, output = row["log-file(s)"], row["output_file"]
        written, read = jobs.setdefault((row["rule"], output if log == "-" else log), (set(), set()))
        written.add(output)
        read.update(row["input-file(s)"].split(","))
    found: set[str] = set()
    while new := {key for key, (written, read) in jobs.items() if (written | read) & (paths | found)}:
        for key in new:
            found |= jobs.pop(key)[0]
    return found


def _tables(snakefile: Path, run: str) -> list[str]:
    from remeasure.plan import Plan

    plan = Plan(snakefile.parent / "config")
    known = plan.run(run).studies
    whole = [
        t for t in plan.tables() if all(c.study in known for c in plan.cells_of(t)) and plan.cells_of(t, run)
    ]
    tables = [f"{table}.{part}" for table in whole for part in ("csv", "html")]
    tables += [f"{table}.judges.csv" for table in whole if plan.is_calibrated(run, table)]
    return [*tables, *(["judges.csv"] if plan.run(run).judge_agreement else [])]
