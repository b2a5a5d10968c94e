"""Run all tests of this folder but the slow ones: the table on one virtual cluster, the stories on another.

The stories wait most of the time, so both run side by side. Each has a mount namespace of its own in which
/etc/slurm, the one place that SLURM's programs look at inside a job, belongs to its cluster alone;
the system's is not touched. Where that is not allowed, one after the other.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from cluster_files import Options
from virtual_cluster import FIRST_PORT, FOLDER, SYSTEM_CONFIG, ClusterError, install, obstacle

HERE = Path(__file__).resolve().parent
PARTS = (["test_table.py"], ["test_records.py", "test_stories.py", "test_sites.py"])
OWN_CONFIG = f'mount --make-rprivate / && mount --bind "$0" {SYSTEM_CONFIG.parent} && exec "$@"'
LIMIT_S = 1500


def pytest_words(part: list[str], *more: str) -> list[str]:
    """Return the call of pytest for some of the files."""
    files = [str(HERE / name) for name in part]
    return [sys.executable, "-m", "pytest", *files, "-m", "not slow", "--durations", "5", *more]


def apart(words: list[str], config_folder: Path) -> list[str]:
    """Return a command that runs in a mount namespace where /etc/slurm is a folder of its own."""
    return ["unshare", "--mount", "sh", "-c", OWN_CONFIG, str(config_folder), *words]


def side_by_side(folder: Path) -> int:
    """Run both parts at the same time; return the worst exit status."""
    running = []
    for number, part in enumerate(PARTS):
        config, said = folder / f"etc-{number}", folder / f"{number}.txt"
        config.mkdir()
        place = [
            "--cluster-folder",
            f"{FOLDER}-{number}",
            "--cluster-port",
            str(FIRST_PORT + 20 * (number + 1)),
        ]
        with open(said, "wb") as output:
            words = apart(pytest_words(part, *place), config)
            running.append((subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT), said))
    status = 0
    for process, said in running:
        try:
            status = max(status, abs(process.wait(LIMIT_S)))
        finally:
            # An interruption reaches them too, and each stops its cluster.
            process.wait(60)
        print(said.read_text(errors="replace"), flush=True)
    return status


def main() -> int:
    """Command-line entry."""
    if obstacle():
        return subprocess.call(pytest_words(PARTS[0] + PARTS[1]))
    try:
        install(Options())
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    SYSTEM_CONFIG.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="remeasure-slurm-") as folder:
        probe = apart(["true"], Path(folder))
        if subprocess.run(probe, capture_output=True).returncode:
            return subprocess.call(pytest_words(PARTS[0] + PARTS[1]))
        return side_by_side(Path(folder))


if __name__ == "__main__":
    raise SystemExit(main())
