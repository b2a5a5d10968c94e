"""What the virtual cluster is made of: its nodes, and the configuration files that SLURM reads."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Node:
    """A virtual node; processors, memory and GPUs are what SLURM is told, not what the machine has."""

    name: str
    partition: str
    cpus: int
    memory_mb: int
    gpu_model: str = ""
    n_gpus: int = 0


@dataclass(frozen=True)
class Partition:
    """A partition and its limits."""

    name: str
    max_hours: int
    default_mb_per_cpu: int


NODES = (
    Node("cpu01", "cpu", 8, 32_000),
    Node("cpu02", "cpu", 8, 32_000),
    Node("h100-01", "h100", 16, 128_000, "h100", 1),
    Node("h100-02", "h100", 16, 128_000, "h100", 1),
    Node("a10g-01", "a10g", 16, 64_000, "a10g", 2),
)
PARTITIONS = (Partition("cpu", 24, 1000), Partition("h100", 12, 4000), Partition("a10g", 12, 2000))


@dataclass(frozen=True)
class Options:
    """What may differ from one virtual cluster to the next."""

    typed_gpus: bool = True
    """False: GPUs have no model, nodes carry it as a feature, and a partition ``gpu`` holds all of them."""
    accounting: bool = False
    """True: slurmdbd and MariaDB, so that the real sacct works."""
    min_job_age_s: int = 300
    """How long the queue remembers a job that ended, seconds."""


@dataclass(frozen=True)
class Layout:
    """Where a virtual cluster keeps its files and on which ports it listens."""

    folder: Path
    first_port: int

    @property
    def config(self) -> Path:
        """The configuration that every SLURM program reads."""
        return self.folder / "etc/slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return self.folder / "munge/munge.socket"

    @property
    def state(self) -> Path:
        """Where the controller keeps what it knows; it waits for the disk at each change."""
        memory = Path("/dev/shm")
        return memory / self.name if memory.is_dir() else self.folder / "state"

    @property
    def job_record(self) -> Path:
        """The scheduler's own record of ended jobs, a line each."""
        return self.folder / "log/jobs.txt"

    @property
    def name(self) -> str:
        """Name of the cluster; jobs carry it in their environment, which tells them from other clusters'."""
        return f"remeasure{self.first_port}"

    @property
    def database_port(self) -> int:
        """Port of MariaDB."""
        return self.first_port + 2

    @property
    def accounting_port(self) -> int:
        """Port of slurmdbd."""
        return self.first_port + 1

    def devices(self, model: str, n: int) -> list[Path]:
        """Return the character devices that stand for a node's GPUs."""
        return [self.folder / "dev" / f"{model}-{number}" for number in range(n)]


def slurm_conf(layout: Layout, options: Options, host: str) -> str:
    """Return slurm.conf.

    Args:
        layout: files and ports.
        options: typed or untyped GPUs, with or without accounting.
        host: name of this machine, which all nodes share.
    """
    folder = layout.folder
    lines = [
        f"ClusterName={layout.name}",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={layout.first_port}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        # The second value is also how long a job waits that was put back after its node went down.
        f"AuthInfo=socket={layout.munge_socket},cred_expire=30",
        f"StateSaveLocation={layout.state}",
        f"SlurmdSpoolDir={folder}/spool/%n",
        f"SlurmctldPidFile={folder}/run/slurmctld.own",
        f"SlurmdPidFile={folder}/run/slurmd-%n.own",
        f"SlurmctldLogFile={folder}/log/slurmctld.log",
        f"SlurmdLogFile={folder}/log/slurmd-%n.log",
        # Neither cgroups nor systemd are asked for. Processes are found by parents, so orphans escape; by
        # process groups, the memory of a model server, which has its own, would not be counted.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        # Memory is looked at every second, and what holds more than it asked for is killed.
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=1",
        "JobAcctGatherParams=OverMemoryKill",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0",
        # The nodes' sizes are fictitious: this file is believed, not the machine.
        "SlurmdParameters=config_overrides",
        "GresTypes=gpu",
        "ReturnToService=1",
        # A busy machine answers late; no node is taken for dead and no start for lost because of that.
        "SlurmdTimeout=60",
        "BatchStartTimeout=60",
        "MessageTimeout=20",
        # Half of SLURM's own: time to end between SIGTERM and SIGKILL.
        "KillWait=15",
        f"MinJobAge={options.min_job_age_s}",
        # What no node could ever run is refused at once instead of waiting for ever.
        "EnforcePartLimits=ALL",
        "JobCompType=jobcomp/filetxt",
        f"JobCompLoc={layout.job_record}",
        *_accounting(layout, options),
        *_nodes(options, host, layout.first_port),
        *_partitions(options),
    ]
    return "\n".join(lines) + "\n"


def _accounting(layout: Layout, options: Options) -> Iterator[str]:
    if not options.accounting:
        yield "AccountingStorageType=accounting_storage/none"
        return
    yield "AccountingStorageType=accounting_storage/slurmdbd"
    yield "AccountingStorageHost=localhost"
    yield f"AccountingStoragePort={layout.accounting_port}"
    # The only way to tell clients of slurmdbd where munged listens.
    yield f"AccountingStoragePass={layout.munge_socket}"
    yield "AccountingStorageTRES=gres/gpu"
    yield "AccountingStoreFlags=job_comment"


def _nodes(options: Options, host: str, first_port: int) -> Iterator[str]:
    for number, node in enumerate(NODES):
        words = [
            f"NodeName={node.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={first_port + 10 + number}",
            f"CPUs={node.cpus} RealMemory={node.memory_mb} State=UNKNOWN",
        ]
        if node.n_gpus:
            model = f"{node.gpu_model}:" if options.typed_gpus else ""
            words.append(f"Gres=gpu:{model}{node.n_gpus} Feature={node.gpu_model}")
        yield " ".join(words)


def _partitions(options: Options) -> Iterator[str]:
    for part in PARTITIONS:
        nodes = ",".join(node.name for node in NODES if node.partition == part.name)
        yield (
            f"PartitionName={part.name} Nodes={nodes} Default={'YES' if part.name == 'cpu' else 'NO'}"
            f" MaxTime={part.max_hours}:00:00 DefaultTime=10 DefMemPerCPU={part.default_mb_per_cpu} State=UP"
        )
    if not options.typed_gpus:
        nodes = ",".join(node.name for node in NODES if node.n_gpus)
        yield f"PartitionName=gpu Nodes={nodes} MaxTime=12:00:00 DefaultTime=10 DefMemPerCPU=2000 State=UP"


def gres_conf(layout: Layout, options: Options) -> str:
    """Return gres.conf: which devices are the GPUs of which node."""
    lines = ["AutoDetect=off"]
    for node in NODES:
        kind = f"Type={node.gpu_model} " if options.typed_gpus else ""
        for device in layout.devices(node.gpu_model, node.n_gpus):
            lines.append(f"NodeName={node.name} Name=gpu {kind}File={device}")
    return "\n".join(lines) + "\n"


def slurmdbd_conf(layout: Layout, password: str) -> str:
    """Return slurmdbd.conf: where the accounting daemon listens and where its database is."""
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        "DbdHost=localhost",
        f"DbdPort={layout.accounting_port}",
        "SlurmUser=root",
        f"PidFile={layout.folder}/run/slurmdbd.own",
        f"LogFile={layout.folder}/log/slurmdbd.log",
        "StorageType=accounting_storage/mysql",
        "StorageHost=127.0.0.1",
        f"StoragePort={layout.database_port}",
        "StorageUser=slurm",
        f"StoragePass={password}",
        "StorageLoc=slurm",
    ]
    return "\n".join(lines) + "\n"
