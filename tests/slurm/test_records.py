"""What is read from the scheduler's record and its memory, and where no virtual cluster is tried."""

import os

import pytest
import virtual_cluster
from cluster_files import Layout, Options, gres_conf, slurm_conf
from slurmkit import megabytes, read_known, seconds
from virtual_cluster import Ended, parse_ended

# As SLURM 22.05 wrote them, shortened where nothing is read.
RECORD = (
    "JobId=7 UserId=root(0) Name=remeasure_08e01187 JobState=NODE_FAIL Partition=a10g TimeLimit=5 "
    "StartTime=2026-11-30T04:43:42 EndTime=2026-11-30T04:43:42 NodeList=a10g-01 NodeCnt=1 "
    "WorkDir=/tmp/a folder/project ReservationName= Tres=cpu=1,mem=50M,node=1 ExitCode=0:0 "
)
MEMORY = (
    "JobId=2 JobName=remeasure_08e01187 UserId=root(0) JobState=CANCELLED Reason=None Requeue=1 "
    "Restarts=1 RunTime=00:01:23 TimeLimit=00:05:00 Partition=h100 NodeList=h100-01 MinMemoryNode=1500M "
    "Command=(null) WorkDir=/tmp/project Comment=rule_ask_wildcards_ci_pixelrag_nq_naive_stand-in  StdErr=/x "
    "TresPerJob=gres:gpu:h100:1 "
)


def test_a_line_of_the_record_of_ended_jobs_is_read():
    assert parse_ended(RECORD) == Ended(
        7, "remeasure_08e01187", "NODE_FAIL", "a10g", "a10g-01", "/tmp/a folder/project"
    )


def test_what_the_controller_remembers_of_a_job_is_read():
    job = read_known(MEMORY)
    assert (job.job_id, job.state, job.rule, job.wildcards) == (
        2,
        "CANCELLED",
        "ask",
        "ci_pixelrag_nq_naive_stand-in",
    )
    assert (job.partition, job.node, job.gpus, job.mem_mb) == ("h100", "h100-01", "h100:1", 1500)
    assert (job.time_limit, job.elapsed_s, job.restarts, job.folder) == ("00:05:00", 83, 1, "/tmp/project")


def test_amounts_are_read():
    assert [megabytes(text) for text in ("1500M", "3G", "2.50G")] == [1500, 3072, 2560]
    assert seconds("01:02:03") == 3723


def test_a_typed_site_and_an_untyped_one_differ_in_their_gpus_only(tmp_path):
    layout = Layout(tmp_path, 4000)
    typed, untyped = slurm_conf(layout, Options(), "here"), slurm_conf(layout, Options(False), "here")
    more = [line for line in untyped.splitlines() if line not in typed.splitlines()]
    assert [line.partition(" ")[0] for line in more] == [
        "NodeName=h100-01",
        "NodeName=h100-02",
        "NodeName=a10g-01",
        "PartitionName=gpu",
    ]
    assert "Gres=gpu:a10g:2 Feature=a10g" in typed and "Gres=gpu:2 Feature=a10g" in untyped
    assert "Name=gpu Type=h100 File=" in gres_conf(layout, Options())
    assert "Type=" not in gres_conf(layout, Options(False))


def test_without_root_nothing_is_tried(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert virtual_cluster.main(["up", "--folder", str(tmp_path / "cluster")]) == 2
    said = capsys.readouterr().err
    assert said == "error: a virtual SLURM cluster needs root: its nodes share one machine\n"
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_sites_configuration_is_never_replaced(monkeypatch, tmp_path, is_link):
    written, config = tmp_path / "shared.conf", tmp_path / "slurm.conf"
    written.write_text("ClusterName=real\n")
    config.symlink_to(written) if is_link else written.rename(config)
    monkeypatch.setattr(virtual_cluster, "SYSTEM_CONFIG", config)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "is not ours: this machine belongs to a cluster" in virtual_cluster.obstacle()
    assert virtual_cluster.main(["up", "--folder", str(tmp_path / "cluster")]) == 2
    assert config.read_text() == "ClusterName=real\n" and config.is_symlink() == is_link


def test_the_link_of_another_virtual_cluster_is_taken_over(monkeypatch, tmp_path):
    written, config = tmp_path / "other.conf", tmp_path / "slurm.conf"
    written.write_text("ClusterName=remeasure27110\n")
    config.symlink_to(written)
    monkeypatch.setattr(virtual_cluster, "SYSTEM_CONFIG", config)
    monkeypatch.setattr(virtual_cluster, "missing", lambda options: [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert virtual_cluster.obstacle() is None
