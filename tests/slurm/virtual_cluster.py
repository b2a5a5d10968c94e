"""A real SLURM on one machine, for tests: five virtual nodes in the partitions cpu, h100 and a10g.

``virtual_cluster.py up`` installs what is missing, starts everything and waits until a job ran; ``down``
stops all of it, jobs included; ``status`` ends with 0 only when the cluster answers. Needs root, and apt-get
where SLURM is not installed yet. Nothing but the standard library is used.
"""

import argparse
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cluster_files as files
from cluster_processes import Daemons, answers, asked, kill, of_jobs, of_steps, wait_for

FOLDER, FIRST_PORT = Path("/tmp/remeasure-cluster"), 27110
# Inside a job Snakemake's plugin drops SLURM_CONF, so that programs there look at this place only.
SYSTEM_CONFIG = Path("/etc/slurm/slurm.conf")
PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "squeue": "slurm-client", "munged": "munge"}
ACCOUNTING_PROGRAMS = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}


class ClusterError(Exception):
    """The cluster cannot be had; the text says why."""


@dataclass(frozen=True)
class Ended:
    """A job as the scheduler recorded it when it ended."""

    job_id: int
    name: str
    state: str
    partition: str
    node: str
    folder: str


class VirtualCluster:
    """Everything that one state folder stands for."""

    def __init__(
        self,
        folder: Path = FOLDER,
        first_port: int = FIRST_PORT,
        options: files.Options | None = None,
    ) -> None:
        self.layout = files.Layout(folder, first_port)
        self.options = options or files.Options()
        self.environment = {**os.environ, "SLURM_CONF": str(self.layout.config)}
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self._daemons = Daemons(folder)

    # Up and down

    def up(self) -> None:
        """Bring up a clean cluster; one that runs under this folder is taken down before.

        Raises:
            ClusterError: something is missing or did not start in time.
        """
        if reason := obstacle(self.options):
            raise ClusterError(reason)
        with self._locked():
            self._down()
            install(self.options)
            self._write()
            _link(self.layout.config)
            try:
                self._start()
            except BaseException:
                self._down()
                raise

    def down(self) -> list[int]:
        """Stop all of it and return the left-over job processes that had to be killed."""
        if not self.layout.folder.is_dir():
            return []
        with self._locked():
            return self._down()

    def is_up(self) -> bool:
        """Return whether every daemon runs and the controller answers."""
        names = ("munged", "slurmctld", *(f"slurmd-{node.name}" for node in files.NODES))
        return all(self._daemons.pid(name) for name in names) and self._said("scontrol", "ping", "UP")

    def report(self) -> str:
        """Return a line per daemon and the list of nodes."""
        lines = [f"{name}: {self._daemons.pid(name) or 'ended'}" for name in self._daemons.names()]
        if done := asked("sinfo", "-N", "-o", "%8N %6P %9T %4c %7m %G", env=self.environment):
            lines += done.stdout.splitlines()
        return "\n".join(lines)

    # What tests do to it

    def stop_controller(self) -> None:
        """Stop slurmctld; jobs go on."""
        self._daemons.stop(["slurmctld"], 10)

    def start_controller(self) -> None:
        """Start slurmctld again with what it knew."""
        self._daemons.start("slurmctld", "slurmctld", "-D", env=self.environment)
        if not wait_for(lambda: self._said("scontrol", "ping", "UP"), 30):
            raise ClusterError(
                f"the controller did not come back; see {self.layout.folder}/log/slurmctld.log"
            )

    def set_node(self, name: str, state: str) -> None:
        """Take a node down (``down``) or back (``resume``)."""
        self.control("update", f"nodename={name}", f"state={state}", "reason=test")

    def control(self, *words: str) -> str:
        """Run scontrol and return what it says."""
        return self._told("scontrol", *words)

    def queue(self, *options: str, form: str = "%i %T %P %N") -> list[list[str]]:
        """Return jobs of the queue as rows of words; without options those that wait or run."""
        return [line.split() for line in self._told("squeue", "-h", *options, "-o", form).splitlines()]

    def ended(self) -> list[Ended]:
        """Return every job that ended since the cluster came up, in the order of their ends."""
        record = self.layout.job_record
        return [parse_ended(line) for line in record.read_text().splitlines()] if record.exists() else []

    def accounted(self, job_id: int) -> str:
        """Return the state of a job as the accounting has it."""
        return self._told("sacct", "-X", "-n", "-P", "-o", "State", "-j", str(job_id)).strip()

    def job_processes(self, jobs: set[int] | None = None) -> list[int]:
        """Return the processes that belong to jobs of this cluster, or to those with some numbers."""
        return sorted(of_jobs(self.layout.name, jobs))

    # Parts

    def _told(self, *words: str) -> str:
        done = asked(*words, limit_s=30, env=self.environment)
        if done is None or done.returncode:
            raise ClusterError(f"{' '.join(words)}: {done.stderr.strip() if done else 'no answer in 30 s'}")
        return done.stdout

    def _said(self, *words: str) -> bool:
        done = asked(*words[:-1], env=self.environment)
        return done is not None and words[-1] in done.stdout

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one call at a time change the folder."""
        self.layout.folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.layout.folder}.lock", "w") as lock:

            def taken() -> bool:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                return False

            if not wait_for(taken, 120):
                raise ClusterError(f"another call holds {lock.name}")
            yield

    def _write(self) -> None:
        """Write a new folder with configuration, key and devices."""
        folder = self.layout.folder
        for path in (folder, self.layout.state):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        for name in ("etc", "run", "log", "dev", "spool"):
            (folder / name).mkdir()
        (folder / "munge").mkdir(mode=0o700)
        key = folder / "munge/munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        for node in files.NODES:
            (folder / "spool" / node.name).mkdir()
            for device in self.layout.devices(node.gpu_model, node.n_gpus):
                if not device.exists():
                    # A plain file is refused and jobs then see no CUDA_VISIBLE_DEVICES: twins of /dev/null.
                    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        host = socket.gethostname().partition(".")[0]
        self.layout.config.write_text(files.slurm_conf(self.layout, self.options, host))
        (folder / "etc/gres.conf").write_text(files.gres_conf(self.layout, self.options))

    def _start(self) -> None:
        self._start_munge()
        if self.options.accounting:
            self._start_accounting()
        self._daemons.start("slurmctld", "slurmctld", "-D", "-c", env=self.environment)
        for node in files.NODES:
            self._daemons.start(f"slurmd-{node.name}", "slurmd", "-D", "-N", node.name, env=self.environment)
        if not wait_for(self._idle, 60):
            raise ClusterError(
                f"nodes are not idle after 60 s; see {self.layout.folder}/log\n{self.report()}"
            )
        probe = ("srun", "-Q", "-p", "h100", "--gpus=1", "-t", "1", "--mem=50", "true")
        if not answers(*probe, limit_s=60, env=self.environment):
            raise ClusterError(f"a first job did not run; see {self.layout.folder}/log")

    def _start_munge(self) -> None:
        munge, words = self.layout.folder / "munge", ["--foreground", "--force", "--num-threads=2"]
        words += [f"--key-file={munge}/munge.key", f"--socket={self.layout.munge_socket}"]
        words += [f"--{name}-file={munge}/munged.{name}" for name in ("pid", "log", "seed")]
        self._daemons.start("munged", "munged", *words, env=self.environment)
        self._expect("munged", "munge", "-n", f"--socket={self.layout.munge_socket}")

    def _start_accounting(self) -> None:
        data, password = self.layout.folder / "database", secrets.token_hex(8)
        data.mkdir()
        shutil.chown(data, "mysql", "mysql")
        common = ["--no-defaults", "--user=mysql", f"--datadir={data}"]
        install_db = ["mariadb-install-db", *common, "--auth-root-authentication-method=socket"]
        if not answers(*install_db, limit_s=60):
            raise ClusterError(f"mariadb-install-db failed in {data}")
        words = [*common, f"--socket={data}/socket", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        words += [f"--port={self.layout.database_port}", "--innodb-buffer-pool-size=64M"]
        self._daemons.start("mariadbd", "mariadbd", *words)
        client = ["mariadb", "--no-defaults", f"--socket={data}/socket", "--user=root", "-e"]
        self._expect("mariadbd", *client, "SELECT 1")
        user = "'slurm'@'127.0.0.1'"
        grant = f"CREATE USER {user} IDENTIFIED BY '{password}'; GRANT ALL ON slurm.* TO {user}"
        self._expect("mariadbd", *client, f"CREATE DATABASE slurm; {grant}")
        path = self.layout.folder / "etc/slurmdbd.conf"
        path.touch(mode=0o600)
        path.write_text(files.slurmdbd_conf(self.layout, password))
        self._daemons.start("slurmdbd", "slurmdbd", "-D", "-s", str(path), env=self.environment)
        self._expect("slurmdbd", "sacctmgr", "-n", "show", "cluster")
        self._expect("slurmdbd", "sacctmgr", "-i", "add", "cluster", self.layout.name)

    def _expect(self, daemon: str, *words: str) -> None:
        if not wait_for(lambda: answers(*words, limit_s=10, env=self.environment), 30):
            raise ClusterError(f"{daemon} does not answer; see {self.layout.folder}/log/{daemon}.out")

    def _idle(self) -> bool:
        done = asked("sinfo", "-h", "-N", "-o", "%T", env=self.environment)
        return done is not None and set(done.stdout.split()) == {"idle"}

    def _down(self) -> list[int]:
        if self._daemons.pid("slurmctld"):
            # While the nodes' daemons live, they end what belongs to a job better than any search does.
            asked("scancel", "--user=root", env=self.environment)
            wait_for(lambda: not any(of_steps(self.layout.folder)), 8)
        names = self._daemons.names()
        self._daemons.stop([name for name in names if name.startswith("slurmd-")] + ["slurmctld"], 10)
        for name in ("slurmdbd", "mariadbd", "munged"):
            self._daemons.stop([name] if name in names else [], 20)
        left = kill([*of_steps(self.layout.folder), *of_jobs(self.layout.name)])
        if SYSTEM_CONFIG.is_symlink() and SYSTEM_CONFIG.readlink() == self.layout.config:
            SYSTEM_CONFIG.unlink()
        shutil.rmtree(self.layout.state, ignore_errors=True)
        return left


def parse_ended(line: str) -> Ended:
    """Return a line of the scheduler's record of ended jobs (jobcomp/filetxt)."""
    # The folder may hold blanks, so a value ends where the next name begins.
    found = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|\s*$)", line))
    return Ended(
        int(found["JobId"]),
        found["Name"],
        found["JobState"],
        found["Partition"],
        found["NodeList"],
        found["WorkDir"],
    )


def obstacle(options: files.Options | None = None) -> str | None:
    """Return why no virtual cluster can be had on this machine; null where it can."""
    if os.geteuid() != 0:
        return "a virtual SLURM cluster needs root: its nodes share one machine"
    if SYSTEM_CONFIG.exists() and not _is_ours(SYSTEM_CONFIG):
        return f"{SYSTEM_CONFIG} is not ours: this machine belongs to a cluster, which is left alone"
    packages = missing(options or files.Options())
    if packages and not shutil.which("apt-get"):
        return f"missing and no apt-get to install it: {', '.join(packages)}"
    return None


def _is_ours(config: Path) -> bool:
    """Return whether a configuration is a link to one that a virtual cluster wrote."""
    return config.is_symlink() and config.read_text(errors="replace").startswith("ClusterName=remeasure")


def missing(options: files.Options) -> list[str]:
    """Return the packages that must be installed first."""
    programs = {**PROGRAMS, **(ACCOUNTING_PROGRAMS if options.accounting else {})}
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return sorted({package for program, package in programs.items() if not shutil.which(program, path=path)})


def install(options: files.Options) -> None:
    """Install what is missing; none of the packages' own daemons is started."""
    packages = missing(options)
    if not packages:
        return
    print(f"installing {', '.join(packages)}", file=sys.stderr, flush=True)
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        asked("apt-get", "update", "-qq", limit_s=300, env=quiet)
        words = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
        done = asked(*words, limit_s=600, env=quiet)
    finally:
        if ours:
            policy.unlink()
    if done is None or done.returncode:
        said = done.stderr.strip().splitlines()[-1:] if done else ["no end after 600 s"]
        raise ClusterError(f"apt-get install {' '.join(packages)}: {' '.join(said)}")


def _link(config: Path) -> None:
    SYSTEM_CONFIG.parent.mkdir(parents=True, exist_ok=True)
    if SYSTEM_CONFIG.is_symlink():
        SYSTEM_CONFIG.unlink()
    SYSTEM_CONFIG.symlink_to(config)


def main(argv: list[str] | None = None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("up", "down", "status"))
    parser.add_argument("--folder", type=Path, default=FOLDER, help="state, logs and configuration")
    parser.add_argument("--port", type=int, default=FIRST_PORT, help="first of 15 TCP ports")
    parser.add_argument("--untyped", action="store_true", help="GPUs without a model, as on some sites")
    parser.add_argument("--accounting", action="store_true", help="slurmdbd and MariaDB, so that sacct works")
    parser.add_argument("--min-job-age", type=int, default=300, help="seconds that ended jobs stay in squeue")
    args = parser.parse_args(argv)
    options = files.Options(not args.untyped, args.accounting, args.min_job_age)
    cluster = VirtualCluster(args.folder.resolve(), args.port, options)
    started = time.monotonic()
    try:
        if args.what == "up":
            cluster.up()
            print(f"up after {time.monotonic() - started:.1f} s", file=sys.stderr)
            print(f"export SLURM_CONF={cluster.layout.config}")
        elif args.what == "down":
            left = cluster.down()
            print(f"down; killed {len(left)} left-over processes of jobs", file=sys.stderr)
        else:
            print(cluster.report())
            return 0 if cluster.is_up() else 1
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
