"""The queue's answer becomes typed records, whatever stands in comments and paths."""

import time

import pytest

from clusterkit import DATA, RUN, job_line, on_path, program, squeue
from remeasure.cluster import queue
from remeasure.cluster.standins import bounded
from remeasure.errors import RemeasureError


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Put a squeue on the PATH that says what a real one said."""
    squeue(tmp_path / "bin", DATA / "squeue_22.05.txt")
    on_path(monkeypatch, tmp_path / "bin")


def test_the_recorded_answer_is_read_in_the_order_of_the_jobs(recorded):
    ask, render, read, train, other = queue.jobs()
    assert [job.job_id for job in (ask, render, read, train, other)] == ["12", "13", "14", "15", "16"]
    assert (ask.rule, ask.wildcards) == ("ask_shard", 'a|b, "c" <x>\n%i é $(echo no)')
    assert (ask.state, ask.node, ask.partition, ask.elapsed_s) == ("RUNNING", "h100-01", "h100", 3)
    assert (ask.n_gpus, ask.gpu_model, ask.log) == (1, "h100", "/tmp/drvrec/a b|12.log")
    assert (ask.run_name, ask.work_dir, ask.reason) == (RUN, "/tmp/drvrec", "")
    assert (render.state, render.reason, render.is_alive) == ("FAILED", "NonZeroExitCode", False)
    assert (read.rule, read.wildcards, read.n_gpus, read.gpu_model) == ("read", "a10g_7", 2, "a10g")
    assert (train.rule, train.wildcards, train.n_gpus, train.gpu_model) == ("train", "", 2, "")
    assert (train.node, train.reason, train.is_waiting, train.is_alive) == ("", "BeginTime", True, True)
    assert (other.rule, other.n_gpus) == ("", 0)


def test_an_answer_that_is_something_else_is_one_line(tmp_path, monkeypatch):
    program(tmp_path, "squeue", "echo 'JOBID PARTITION'; echo '1 cpu'")
    on_path(monkeypatch, tmp_path)
    with pytest.raises(
        RemeasureError, match="not what --Format asks for .*'1 cpu'.*first on the PATH"
    ) as caught:
        queue.jobs()
    assert "\n" not in str(caught.value)


def test_a_record_with_a_field_too_many_is_refused(tmp_path, monkeypatch):
    (tmp_path / "jobs").write_text(job_line(7, comment="rule_a<MARK>x"))
    squeue(tmp_path / "bin", tmp_path / "jobs")
    on_path(monkeypatch, tmp_path / "bin")
    with pytest.raises(RemeasureError, match="not what --Format asks for"):
        queue.jobs()


def test_a_controller_that_is_away_is_one_line(tmp_path, monkeypatch):
    said = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    program(tmp_path, "squeue", f"echo '{said}' >&2; exit 1")
    on_path(monkeypatch, tmp_path)
    with pytest.raises(RemeasureError, match=r"Unable to contact slurm controller.*scontrol ping"):
        queue.jobs()


def test_a_program_that_hangs_is_killed_with_what_it_started(tmp_path, monkeypatch):
    program(tmp_path, "squeue", "sleep 77 & sleep 77")
    on_path(monkeypatch, tmp_path)
    began = time.monotonic()
    with pytest.raises(RemeasureError, match="no answer within 0.3 s"):
        queue.jobs(timeout_s=0.3)
    assert time.monotonic() - began < 5


def test_a_program_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemeasureError, match="squeue cannot be started .*login node"):
        queue.jobs()


def test_a_program_that_never_stops_talking_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "LIMIT_BYTES", 1_000_000)
    program(tmp_path, "squeue", "yes")
    on_path(monkeypatch, tmp_path)
    with pytest.raises(RemeasureError, match="says more than 1,000,000 bytes"):
        queue.jobs()


def test_settings_of_the_users_shell_do_not_reach_squeue(tmp_path, monkeypatch):
    program(tmp_path, "squeue", 'test -z "$SQUEUE_STATES$SQUEUE_FORMAT" || echo reshaped')
    on_path(monkeypatch, tmp_path)
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    assert queue.jobs() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1-02:03:04", 93784), ("2:03:04", 7384), ("3:04", 184), ("INVALID", 0), ("", 0), ("9" * 40 + ":00", 0)],
)
def test_times_are_read_as_slurm_writes_them(text, expected):
    assert queue.seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gres:gpu:h100:1", (1, "h100")),  # 22.05
        ("gres/gpu:h100=4", (4, "h100")),  # 24.05
        ("cpu=4,gres/gpu=2", (2, "")),
        ("gpu:a10g:2(IDX:0-1)", (2, "a10g")),
        ("gpu", (1, "")),
        ("N/A", (0, "")),
        ("gres:gpu:" + "9" * 50, (999999, "")),
    ],
)
def test_gpus_are_read_in_the_spellings_of_several_versions(text, expected):
    assert queue.gpus(text) == expected


def test_a_rules_name_ends_before_its_wildcards(tmp_path, monkeypatch):
    (tmp_path / "jobs").write_text(
        job_line(1, comment="rule_ask_wildcards_a_wildcards_b")
        + job_line(2, comment="group_chain")
        + job_line(3, comment="(null)")
        + job_line(4, state="NODE_FAIL", comment="rule_x")
    )
    squeue(tmp_path / "bin", tmp_path / "jobs")
    on_path(monkeypatch, tmp_path / "bin")
    found = [(job.rule, job.wildcards) for job in queue.jobs()]
    assert found == [("ask", "a_wildcards_b"), ("chain", ""), ("", ""), ("x", "")]


def test_a_child_that_left_the_session_and_holds_the_pipe_is_not_waited_for(tmp_path, monkeypatch):
    program(tmp_path, "squeue", "setsid sleep 20 & sleep 20")
    on_path(monkeypatch, tmp_path)
    began = time.monotonic()
    with pytest.raises(RemeasureError, match="no answer within 0.3 s"):
        queue.jobs(timeout_s=0.3)
    assert time.monotonic() - began < 3


def test_a_long_complaint_keeps_no_answer_back(tmp_path, monkeypatch):
    program(tmp_path, "squeue", "yes | head -c 1000000 >&2")
    on_path(monkeypatch, tmp_path)
    assert queue.jobs() == []


def test_an_id_of_thousands_of_digits_is_no_job(tmp_path, monkeypatch):
    (tmp_path / "jobs").write_text(job_line("9" * 5000))
    squeue(tmp_path / "bin", tmp_path / "jobs")
    on_path(monkeypatch, tmp_path / "bin")
    with pytest.raises(RemeasureError, match="not what --Format asks for"):
        queue.jobs()


def test_tasks_of_an_array_are_in_order(tmp_path, monkeypatch):
    (tmp_path / "jobs").write_text("".join(map(job_line, ("10", "9_10", "9_2", "9_[11-13%2]"))))
    squeue(tmp_path / "bin", tmp_path / "jobs")
    on_path(monkeypatch, tmp_path / "bin")
    assert [job.job_id for job in queue.jobs()] == ["9_2", "9_10", "9_[11-13%2]", "10"]
