"""How long does a table take whose metrics are many and whose scores lie between 0 and 1?

Two models, six conditions on two benches of 300 and 608 units, 20 and 130 metrics, four differences each in
two readings, a division in five parts, 10,000 resamples:

    .venv/bin/python benchmarks/contrasts.py
    .venv/bin/python benchmarks/contrasts.py --scripts OTHER/CHECKOUT/scripts   # the same, other code
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import conditionkit as kit  # noqa: E402
from remeasure.graders import MetricName  # noqa: E402

UNITS = {"diagnosis": 300, "evidence": 608}
N_METRICS = {"diagnosis": 20, "evidence": 130}
N_LEVELS = 5
MODELS = ("model-a", "model-b")
kit.METRICS = {
    bench: tuple(MetricName(f"{bench}-{number}", f"{bench} {number}") for number in range(n))
    for bench, n in N_METRICS.items()
}


def unit(rng: random.Random, bench: str, number: int, shift: float):
    """Return a graded unit; a tenth of its scores are missing, every fiftieth answer failed."""
    names = [metric.name for metric in kit.METRICS[bench]]
    scores = {name: min(1.0, rng.random() + shift) for name in names}
    scores |= {name: None for name in names[1:] if rng.random() < 0.1 and names.index(name) % 10 == 0}
    strict = None if number % 50 == 49 else "same"
    return kit.unit(number, bench, scores, strict, group=f"g{number // 2}", part=f"part {number % N_LEVELS}")


def inputs(root: Path) -> list[str]:
    """Write all cells; return the command line of ``make_table.py``."""
    rng = random.Random(1)
    cells = {
        (bench, arm, model): [unit(rng, bench, number, 0.1 * place) for number in range(n)]
        for bench, n in UNITS.items()
        for place, arm in enumerate(kit.ARMS_OF[bench])
        for model in MODELS
    }
    files = kit.write(root, cells)
    return kit.argv(root, files, kit.settings(MODELS, bootstrap={"n": 10_000, "seed": 1}))


def for_other_code(argv: list[str]) -> list[str]:
    """Leave out what older code does not know."""
    settings = json.loads(argv[1])
    old = {name: value for name, value in settings.items() if name not in ("shown_metrics", "figure")}
    for option in ("--out-drift", "--out-spread"):
        place = argv.index(option)
        argv = argv[:place] + argv[place + 2 :]
    return ["--settings", json.dumps(old), *argv[2:]]


def main() -> None:
    """Write, run, print seconds and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scripts", type=Path, help="scripts/ of another checkout")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        argv = inputs(Path("."))
        if args.scripts:
            argv = for_other_code(argv)
        scripts = args.scripts or ROOT / "scripts"
        started = time.monotonic()
        process = subprocess.Popen([sys.executable, str(scripts / "make_table.py"), *argv])
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        os.chdir(ROOT)
    if status:
        sys.exit(f"make_table.py failed: {status}")
    print(f"{seconds:.1f} s, CPU {used.ru_utime + used.ru_stime:.1f} s, peak {used.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
