"""haiku.rag for all tests of it: a process needs five seconds of a processor before it can do anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import haikukit
from haikukit import DOCUMENTS, Adapter, Haiku, Scripted


@pytest.fixture(scope="session", params=["0.77.0", pytest.param("0.101.1", marks=pytest.mark.slow)])
def haiku(request) -> Haiku:
    return haikukit.haiku_of(request, request.param)


@pytest.fixture(scope="session")
def adapter(haiku, tmp_path_factory) -> Iterator[Adapter]:
    """The adapter in a process that all tests ask; in the end it ends by itself, without a complaint."""
    with Adapter(haiku.python, tmp_path_factory.mktemp("adapter")) as running:
        yield running
    assert running.code == 0


@pytest.fixture(scope="session")
def keyed(haiku, tmp_path_factory) -> Iterator[Adapter]:
    """Another process: it knows keys, and its folder holds settings that somebody wrote for haiku.rag."""
    folder = tmp_path_factory.mktemp("keyed")
    (folder / "haiku.rag.yaml").write_text("embeddings: {model: {name: someone-elses}}")
    with Adapter(haiku.python, folder, TOLD="sk-told", OPENAI_API_KEY="the-users-own") as running:
        yield running
    assert running.code == 0


@pytest.fixture(scope="session")
def filled(adapter, tmp_path_factory) -> Path:
    """A database of the four documents, to be read."""
    folder = tmp_path_factory.mktemp("database") / "db"
    with Scripted() as server:
        assert adapter.open(server, folder, create=True)["ok"]
        assert adapter("ingest", documents=DOCUMENTS)["ok"]
        assert adapter("finish")["n_indexed"] == 7
        adapter("forget")
    return folder
