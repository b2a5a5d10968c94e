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


# A minute and more of one worker: begun last, they would leave the other with nothing to do.
LONG = ("test_haiku_answers", "test_render", "test_serve_vllm", "test_preflight", "test_server_in_a_job")
# Of the workflow, where each test takes long: files whose tests share a fixture or go on from each other.
TOGETHER = ("test_adapters", "test_conda", "test_mistakes", "test_paper_plan")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one worker, and begin with the longest files."""
    items.sort(key=lambda item: item.path.stem not in LONG and item.get_closest_marker("haiku") is None)
    for item in items:
        if item.get_closest_marker("xdist_group") is not None:
            continue
        if "workflow" not in item.path.parts or item.path.stem in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


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
