"""Programs that answer as SLURM's do, on a PATH of their own; what they say was recorded on SLURM 22.05.8."""

import os
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data" / "cluster"
RUN = "rec_0a1b2c3d-1111-4222-8333-0123456789ab"
# squeue in the two forms that are used, --format=%i... and --Format=field:mark,...; a line per job, fields in
# the order of --Format, separated by <MARK> and ended by <END>.
_SQUEUE = """
import re, sys
words = dict(word.partition("=")[::2] for word in sys.argv[1:])
text = open(FILE, encoding="utf-8", newline="").read()
if "--Format" in words:
    marks = [part.split(":")[1] for part in words["--Format"].split(",")]
    sys.stdout.write(text.replace("<MARK>", marks[0]).replace("<END>", marks[-1]))
    sys.exit()
for record in text.split("<END>\\n")[:-1]:
    field = record.split("<MARK>")
    values = {"%i": field[0], "%T": field[3], "%k": field[6], "%N": field[4], "%r": field[10]}
    if words.get("--name", field[1]) == field[1] and words.get("--jobs", field[0]) == field[0]:
        form = re.sub("%[iTkNr]", lambda found: values[found[0]], words["--format"])
        sys.stdout.write(form + "\\n")
"""


def program(folder: Path, name: str, body: str, python: bool = False) -> Path:
    """Write an executable program; ``body`` is shell, or Python."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\n{body}" if python else f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def on_path(monkeypatch, folder: Path) -> None:
    """Let programs of ``folder`` come first."""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def squeue(folder: Path, jobs: Path) -> Path:
    """Write a squeue that answers from a file of jobs."""
    return program(folder, "squeue", _SQUEUE.replace("FILE", repr(str(jobs))), python=True)


def job_line(
    job_id, state="RUNNING", name=RUN, comment="rule_ask_wildcards_nq", work_dir="/work", reason="None"
):
    """Return one job as the file of jobs has it."""
    node = "cpu01" if state == "RUNNING" else ""
    fields = [
        str(job_id),
        name,
        "me",
        state,
        node,
        "cpu",
        comment,
        work_dir,
        f"{work_dir}/%j.log",
        "1:05",
        reason,
    ]
    return "<MARK>".join([*fields, "N/A", "N/A", "2026-11-30T04:48:58"]) + "<END>\n"
