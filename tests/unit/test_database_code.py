"""What ingests a database again: the modules that decide what is in it, not how a system answers."""

import shutil

import pytest

from remeasure.fingerprint import SCRIPTS
from remeasure.plan_systems import database_code


@pytest.mark.parametrize(
    ("adapter", "answers", "fills"),
    [
        ("builtin", "builtin/answering.py", "builtin/chunking.py"),
        ("haiku_rag", "haiku/answering.py", "haiku/chunking.py"),
    ],
)
def test_a_change_of_how_it_answers_ingests_nothing_again(tmp_path, adapter, answers, fills):
    def changed(name: str, root) -> str:
        shutil.copytree(SCRIPTS, root, ignore=shutil.ignore_patterns("__pycache__"))
        with (root / "remeasure" / "systems" / name).open("a", encoding="utf-8") as file:
            file.write("\nMORE = 1\n")
        return database_code(adapter, root)

    assert changed(answers, tmp_path / "answers") == database_code(adapter)
    assert changed(fills, tmp_path / "fills") != database_code(adapter)
