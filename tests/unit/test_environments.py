"""The pins of conda environments, pip requirements and the installed packages are one set of pins."""

import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def pins(lines) -> dict[str, str]:
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)", line) for line in lines)
    return {m[1].lower().replace("_", "-"): m[2] for m in found if m}


LOCKED = pins((ROOT / "requirements.txt").read_text().splitlines())


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_environment_pins_what_the_lock_file_pins(path):
    listed = yaml.safe_load(path.read_text())["dependencies"][-1]["pip"]
    found = pins(listed)
    assert len(found) == len(listed), "every package is pinned"
    assert {name: LOCKED.get(name) for name in found} == found


def test_what_the_user_asked_for_is_locked():
    asked = pins((ROOT / "requirements.in").read_text().splitlines())
    assert asked and asked.items() <= LOCKED.items()


def test_what_is_installed_is_what_is_locked():
    wanted = pins((ROOT / "requirements.in").read_text().splitlines())
    assert {name: importlib.metadata.version(name) for name in wanted} == wanted


def test_no_lock_file_names_a_host():
    for name in ("requirements.txt", "requirements-dev.txt"):
        assert "://" not in (ROOT / name).read_text()
