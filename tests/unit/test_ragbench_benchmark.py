"""The exit status of benchmarks/ragbench.py: which targets are missed, and under which protocol."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def ragbench(monkeypatch):
    """Load the script as a module."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location("ragbench_benchmark", FOLDER / "ragbench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_ratios_are_held_against_one_protocol(ragbench):
    measured = {
        "documents/s": 1.34,
        "queries/s, one by one": 0.94,
        "queries/s, together": 1.1,
        "nDCG@10": 1.0,
    }
    assert ragbench.missed(measured, "real") == [
        "not met (the embedder as it is, equal pieces): documents/s x 1.34, target x 2",
        "not met (the embedder as it is, equal pieces): queries/s, one by one x 0.94, target x 1.5",
    ]
    met = measured | {"documents/s": 2.0, "queries/s, one by one": 1.5}
    assert ragbench.missed(met, "own") == []
    assert ragbench.missed(met | {"nDCG@10": 0.99}, "own") == [
        "not met (an embedder that answers at once, equal pieces): nDCG@10 x 0.99, target x 1"
    ]
