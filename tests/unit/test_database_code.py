"""What ingests a database again: the modules that decide what is in it, not how a system answers."""

import shutil

import pytest

from remeasure import fingerprint, plan_systems
from remeasure.fingerprint import SCRIPTS


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A copy of the scripts that may be changed."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "SCRIPTS", tmp_path / "scripts")

    def of(adapter: str) -> str:
        plan_systems.database_code.cache_clear()
        fingerprint._closure.cache_clear()
        fingerprint.of_script.cache_clear()
        monkeypatch.setattr(
            plan_systems.fingerprint,
            "of_script",
            lambda name, also=(): _of(tmp_path / "scripts", name, also),
        )
        return plan_systems.database_code(adapter)

    return tmp_path / "scripts" / "remeasure" / "systems", of


_REAL = fingerprint.of_script


def _of(root, name, also):
    _REAL.cache_clear()
    return _REAL(name, root=root, also=tuple(also))


@pytest.mark.parametrize(
    ("adapter", "answers", "fills"),
    [
        ("builtin", "builtin/answering.py", "builtin/chunking.py"),
        ("haiku_rag", "haiku/answering.py", "haiku/chunking.py"),
    ],
)
def test_a_change_of_how_it_answers_ingests_nothing_again(scripts, adapter, answers, fills):
    folder, of = scripts
    before = of(adapter)
    with (folder / answers).open("a") as file:
        file.write("\nMORE = 1\n")
    assert of(adapter) == before
    with (folder / fills).open("a") as file:
        file.write("\nMORE = 1\n")
    assert of(adapter) != before
