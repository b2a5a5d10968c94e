"""The servers that keep the contract, each started once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import real_vllm
from contractkit import LLM, Server, page_reader_files
from remeasure import model_server


def _running(folder: Path, program: str, dialect: str, files: dict, options: dict) -> Iterator[Server]:
    words = model_server.command(program, "slug", files, options)
    with model_server.running(words, "slug", folder / "server.log", 300) as server:
        yield Server(server.base_url, dialect, folder, server.description)


@pytest.fixture(scope="session")
def page_reader(tmp_path_factory, sources) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page_reader")
    files = page_reader_files(sources, folder)
    yield from _running(folder, "serve_page_reader.py", "embedded", files, {"threads": 1})


@pytest.fixture(scope="session")
def plain_llm(tmp_path_factory, sources) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("plain_llm")
    yield from _running(folder, "serve_llm.py", "llamacpp", {"llm": str(sources / LLM)}, {"threads": 1})


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, request) -> Iterator[Path]:
    """A tiny vision-language model; while it is used, the program ``vllm`` is on the search path."""
    python = request.config.getoption("--vllm-python")
    if python is None:
        pytest.skip("no vLLM: give --vllm-python PATH")
    folder = tmp_path_factory.mktemp("vllm")
    bin_folder, _ = real_vllm.install(folder, python)
    model = real_vllm.build_model(folder / "model", bin_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
        yield model


@pytest.fixture(scope="session")
def vllm(tmp_path_factory, tiny_model) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("vllm_server")
    files = {"model": str(tiny_model)}
    yield from _running(folder, "serve_vllm.py", "vllm", files, real_vllm.OPTIONS)


@pytest.fixture
def server(request) -> Server:
    """The server that a test is parametrised with, by name."""
    return request.getfixturevalue(request.param)
