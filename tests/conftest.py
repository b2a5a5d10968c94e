"""Shared fixtures: where the embedded weights are, where the repository is, and which vLLM may be used."""

import logging
import signal
from pathlib import Path, PurePosixPath

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
LONG = ("test_haiku", "test_render", "test_serve_vllm", "test_preflight", "test_server_in_a_job")
# Of the workflow, where each test takes long: files whose tests share a fixture or go on from each other.
TOGETHER = ("test_adapters", "test_conda", "test_mistakes", "test_paper_plan")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files."""
    items.sort(key=lambda item: not item.path.stem.startswith(LONG))


def together(node_id: str) -> str:
    """Return a name that is the same for all tests that one worker runs."""
    path = PurePosixPath(node_id.partition("::")[0])
    if path.stem.startswith("test_haiku"):
        return "test_haiku"
    return node_id if "workflow" in path.parts and path.stem not in TOGETHER else path.stem


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Keep the tests of a file in one worker, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)


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
