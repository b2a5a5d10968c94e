"""Shared fixtures: where the embedded weights are, where the repository is, and which vLLM may be used."""

import logging
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Started in the background of a shell, this process and all that it starts would ignore SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that let tests run a real vLLM, or real torch."""
    parser.addoption("--vllm-python", type=Path, help="a Python that has vLLM, for the tests marked vllm")
    parser.addoption(
        "--torch-python",
        type=Path,
        help="a Python that has torch, transformers, peft and sentencepiece, for the tests marked torch",
    )
    parser.addoption(
        "--environments",
        type=Path,
        default=ROOT / "results" / "environments",
        help="where the environments of systems are that have one of their own, for the tests marked haiku",
    )


@pytest.fixture(autouse=True)
def own_log():
    """What a script was told to log to is closed when its test ends; later tests must not write there."""
    yield
    for handler in list(logging.getLogger().handlers):
        if type(handler) is logging.StreamHandler:
            logging.getLogger().removeHandler(handler)


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
