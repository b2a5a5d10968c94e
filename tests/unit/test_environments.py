"""The pins of conda environments, pip requirements and the installed packages are one set of pins."""

import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml

from remeasure import catalogue
from remeasure.errors import RemeasureError

ROOT = Path(__file__).resolve().parents[2]


def pins(lines) -> dict[str, str]:
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)", line) for line in lines)
    return {m[1].lower().replace("_", "-"): m[2] for m in found if m}


LOCKED = pins((ROOT / "requirements.txt").read_text().splitlines())
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))


def listed(path) -> list[str]:
    return yaml.safe_load(path.read_text())["dependencies"][-1]["pip"]


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_pins_every_package(path):
    assert len(pins(listed(path))) == len(listed(path))


# vLLM needs another numpy than the rest: its environment stands for itself.
@pytest.mark.parametrize(
    "path", [path for path in ENVIRONMENTS if path.stem != "gpu"], ids=lambda path: path.stem
)
def test_an_environment_pins_what_the_lock_file_pins(path):
    found = pins(listed(path))
    assert {name: LOCKED.get(name) for name in found} == found


def test_what_asks_on_a_gpu_node_is_what_asks_elsewhere():
    found = pins(listed(ROOT / "envs" / "gpu.yaml"))
    asked = pins((ROOT / "requirements.in").read_text().splitlines())
    ours = ("aiohttp", "msgspec", "pillow", "pybase64")
    assert {name: found[name] for name in ours} == {name: asked[name] for name in ours}


@pytest.mark.parametrize(
    ("package", "version"), [("msgspec", LOCKED["msgspec"]), ("numpy", LOCKED["numpy"]), ("vllm", "0.19.0")]
)
def test_the_version_that_belongs_to_an_identity_is_found_in_either_place(package, version):
    assert catalogue.pinned(ROOT, package) == version


def test_a_package_that_nobody_pins_is_one_line():
    with pytest.raises(RemeasureError, match="'tensorflow' is pinned in none of requirements.txt, envs/gpu"):
        catalogue.pinned(ROOT, "tensorflow")


def test_what_the_user_asked_for_is_locked():
    asked = pins((ROOT / "requirements.in").read_text().splitlines())
    assert asked and asked.items() <= LOCKED.items()


def test_what_is_installed_is_what_is_locked():
    wanted = pins((ROOT / "requirements.in").read_text().splitlines())
    assert {name: importlib.metadata.version(name) for name in wanted} == wanted


def test_no_lock_file_names_a_host():
    for name in ("requirements.txt", "requirements-dev.txt"):
        assert "://" not in (ROOT / name).read_text()
