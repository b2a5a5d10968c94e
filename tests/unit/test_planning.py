"""What is remembered while Snakemake plans: signatures of functions, the interpreter of a system."""

import os

import pytest
from snakemake import common, rules

from remeasure import environments, planning


@pytest.fixture
def snakemake(monkeypatch):
    """Snakemake's own function, put back when the test ends."""
    plain = common.get_function_params
    monkeypatch.setattr(common, "get_function_params", plain)
    monkeypatch.setattr(rules, "get_function_params", plain)
    return plain


def test_a_remembered_signature_is_the_one_that_snakemake_finds(snakemake):
    planning.remember_signatures()
    assert rules.get_function_params is common.get_function_params is not snakemake

    def grown(wildcards, attempt, **further):
        return wildcards, attempt, further

    asked = (grown, lambda wildcards: wildcards, {}.get)
    for function in asked * 2:
        assert rules.get_function_params(function) == snakemake(function)


def test_another_snakemake_is_left_as_it_is(snakemake, monkeypatch):
    monkeypatch.delattr(rules, "get_function_params")
    planning.remember_signatures()
    assert common.get_function_params is snakemake


def test_neither_stand_ins_nor_old_versions_of_pyenv_are_started(tmp_path, monkeypatch):
    started = tmp_path / "started"
    said = {"shims/python3.12": "3 12", "versions/3.9.18/bin/python3": "3 9"}
    said |= {"versions/3.12.1/bin/python3": "3 12", "versions/3.13.0/bin/python3": "3 13"}
    for name, version in said.items():
        path = tmp_path / "pyenv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {name} >> {started}\necho {version}\n")
        path.chmod(0o755)
    monkeypatch.delenv(environments.HAND, raising=False)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "pyenv" / "shims"), str(tmp_path)]))
    found = environments.find_python.__wrapped__("3.12")
    assert found == tmp_path / "pyenv/versions/3.12.1/bin/python3"
    assert started.read_text() == "versions/3.12.1/bin/python3\n"
