"""Shared fixtures: where the embedded weights are, and where the repository is."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def sources() -> Path:
    """The folder of verified weights; a test that needs them fails with the command that brings them."""
    folder = ROOT / "results" / "sources"
    if not (folder / "bge-small-en-v1.5.onnx").exists():
        pytest.fail("results/sources lacks the embedded weights; run: make ci")
    return folder
