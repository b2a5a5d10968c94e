"""Raw inputs on the disk: are they right, what must still be fetched, is there room, may we write."""

import shutil
import tempfile
from pathlib import Path

from remeasure import jsonl, obstacles, reach
from remeasure.catalogue import FOLDER, Built
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.plan import Plan
from remeasure.preflight.report import Group, plural
from remeasure.records import Stage
from remeasure.sources import NEEDED_BYTES

# Per rendered page (tiles, OCR, vectors; 1.0 MB in the embedded run) and per question of a cell (requests,
# answers, journals; 0.01 MB there, where answers are short).
_BYTES_PER_PAGE = 1_500_000
_BYTES_PER_REQUEST = 50_000
_BYTES_AT_LEAST = 500_000_000


def check(plan: Plan, run: str, root: Path) -> Group:
    """Hash every source that a run needs and that is there, count what is not, look at disk and folders."""
    sizes, hashes = plan.catalogue.sizes(), plan.catalogue.hashes()
    by_hand = {source.name for source in plan.catalogue.by_hand().values()}
    unpinned = {source.name: source for source in plan.catalogue.unpinned().values()}
    needed = [name for name in _needed(plan, run) if name not in by_hand]
    there = [name for name in needed if (root / FOLDER / name).exists()]
    built = plan.catalogue.built()
    checks = (_problem_of(root, name, hashes.get(name), built.get(name)) for name in there)
    wrong = [problem for problem in checks if problem]
    missing_by_hand, n_by_hand = _by_hand(plan, run, root)
    wrong += missing_by_hand
    lacking = [name for name in needed if name not in there and name not in hashes and name not in built]
    wrong += [
        unpinned[name].problem()
        if name in unpinned
        else f"{FOLDER}/{name}: no rule brings or makes it; correct what names it"
        for name in lacking
    ]
    missing = [name for name in needed if name in hashes and name not in there]
    fetch_bytes = sum(sizes.get(name, 0) for name in missing)
    said = [f"{plural(len(there), 'source')} hashed"]
    if missing:
        said.append(f"{plural(len(missing), 'source')} to fetch, {_mb(fetch_bytes)} and what surrounds them")
    if n_by_hand:
        said.append(f"{n_by_hand - len(missing_by_hand)} of {n_by_hand} brought by hand")
    free, no_room = _room(plan, run, root, fetch_bytes)
    locked = _locked(root, run)
    said += [free, *([] if locked else ["folders can be written"])]
    unwritten = obstacles.unwritten(plan, run, reach.of(plan, run).encoders)
    return Group(title="data", said=tuple(said), problems=(*wrong, *unwritten, *no_room, *locked))


def _by_hand(plan: Plan, run: str, root: Path) -> tuple[list[str], int]:
    """Return a sentence for every source that somebody must still bring, and how many there are in all."""
    known = plan.catalogue.by_hand()
    used = [known[path] for path in plan.sources(run) if path in known]
    return [source.problem() for source in used if not (root / source.path).exists()], len(used)


def _needed(plan: Plan, run: str) -> list[str]:
    """Return the names of all sources that a run reads, raw inputs of built ones too, in order."""
    names = {path.removeprefix(f"{FOLDER}/") for path in plan.sources(run)}
    built = plan.catalogue.built()
    while more := {raw for name in names & built.keys() for raw in built[name].made_from} - names:
        names |= more
    return sorted(names)


def _problem_of(root: Path, name: str, expected: str | None, built: Built | None) -> str | None:
    """Return what is wrong with a source that is there; one that we built is compared with its record."""
    path = FOLDER / name
    try:
        if expected is None:
            record = root / FOLDER / built.record if built else None
            is_there = record is not None and record.exists()
            expected = jsonl.read_json(record, Stage).outputs.get(str(path)) if is_there else None
        found = sha256_file(root / path)
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror}); delete it, the next run makes it again"
    except RemeasureError as error:
        return f"{error}; delete it, the next run makes it again"
    if expected in (found, None):
        return None
    found, expected = found[:12], expected[:12]
    return f"{path}: SHA-256 is {found}…, expected {expected}…; delete it, the next run makes it again"


def _room(plan: Plan, run: str, root: Path, fetch_bytes: int) -> tuple[str, list[str]]:
    reached = reach.of(plan, run)
    n_pages = sum(n for name in reached.corpora for n in plan.corpus(run, name).pages.values())
    n_requests = sum(plan.n_items(run, cell.study, cell.bench) for cell in reached.cells)
    writes = max(_BYTES_AT_LEAST, n_pages * _BYTES_PER_PAGE + n_requests * _BYTES_PER_REQUEST)
    needed = writes + (fetch_bytes + NEEDED_BYTES if fetch_bytes else 0)
    free = shutil.disk_usage(_existing(root / "results")).free
    said = f"{_mb(free)} free, {_mb(needed)} needed"
    if free >= needed:
        return said, []
    parts = f"{_mb(writes)} for results" + (
        f", {_mb(needed - writes)} to fetch sources" if fetch_bytes else ""
    )
    return said, [f"{root / 'results'}: {_mb(free)} free, {_mb(needed)} needed ({parts}); make room"]


def _locked(root: Path, run: str) -> list[str]:
    """Return a problem for every folder of results in which no file can be made."""
    folders = [root / "results", root / FOLDER, root / "results" / run]
    found = []
    for folder in dict.fromkeys(_existing(folder) for folder in folders):
        try:
            with tempfile.NamedTemporaryFile(prefix=".preflight-", dir=folder):
                pass
        except OSError as error:
            found.append(f"{folder}: no file can be made there ({error.strerror}); correct its permissions")
    return found


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1_000_000:,.0f} MB"
