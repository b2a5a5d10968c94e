"""The pins of conda environments, pip requirements and the installed packages are one set of pins.

The environments of GPU nodes cannot be installed here; that their packages exist and fit together is asked of
the package index.
"""

import ast
import functools
import importlib.metadata
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker

from remeasure import catalogue
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
UV = Path(sys.executable).with_name("uv")


def pins(lines) -> dict[str, str]:
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)", line) for line in lines)
    return {re.sub("[-_.]+", "-", m[1]).lower(): m[2] for m in found if m}


def locked(name: str = "requirements.txt") -> dict[str, str]:
    """What a lock file pins for Python 3.11 on Linux; a package may have other versions for others."""
    lines = re.findall(r"^(\S+==\S+)(?: ; (.+?))? \\$", (ROOT / name).read_text(), re.MULTILINE)
    machine = {"python_version": "3.11", "python_full_version": "3.11.0"}
    machine |= {"sys_platform": "linux", "platform_machine": "x86_64"}
    return pins(pin for pin, marker in lines if not marker or Marker(marker).evaluate(machine))


LOCKED = locked()
ASKED = pins((ROOT / "requirements.in").read_text().splitlines())
ASKED_WITH_TORCH = pins((ROOT / "requirements-torch.in").read_text().splitlines())


def conda_part(name: str) -> list:
    return yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text())["dependencies"]


def listed(name: str) -> list[str]:
    return conda_part(name)[-1]["pip"]


def test_there_is_an_environment_for_every_kind_of_machine():
    assert ENVIRONMENTS == ["core", "faiss-gpu", "haiku", "photos", "render", "torch", "vllm"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_pins_every_package_once(name):
    assert len(pins(listed(name))) == len(listed(name))
    # Systems with packages of their own bring these from a lock file, for a Python that they say.
    python = {"haiku": "python =3.12"}.get(name, "python =3.11")
    assert conda_part(name)[:2] == [python, "pip"]


# vLLM needs another numpy than the rest, published encoders another tokenizers: they stand for themselves.
@pytest.mark.parametrize("name", ["core", "faiss-gpu", "render"])
def test_an_environment_pins_what_the_lock_file_pins(name):
    found = pins(listed(name))
    assert {package: LOCKED.get(package, version) for package, version in found.items()} == found
    unknown = {package for package in found if package not in LOCKED}
    assert all(package.startswith("nvidia-") for package in unknown - {"faiss-gpu"})
    assert name == "faiss-gpu" or not unknown


def test_the_core_environment_has_all_that_was_asked_for_but_the_browser():
    found = pins(listed("core"))
    assert {package: found.get(package) for package in ASKED if package != "playwright"} == {
        package: version for package, version in ASKED.items() if package != "playwright"
    }


def test_snakemake_and_its_plugins_are_those_that_were_measured_together():
    assert {name: version for name, version in ASKED.items() if name.startswith("snakemake")} == {
        "snakemake": "9.27.1",
        "snakemake-executor-plugin-slurm": "2.8.0",
        "snakemake-executor-plugin-slurm-jobstep": "0.6.1",
        "snakemake-interface-common": "1.23.0",
        "snakemake-interface-executor-plugins": "9.4.0",
        "snakemake-interface-logger-plugins": "2.1.0",
        "snakemake-interface-report-plugins": "1.3.0",
        "snakemake-interface-scheduler-plugins": "2.0.2",
        "snakemake-interface-storage-plugins": "4.4.1",
    }


def test_faiss_on_a_gpu_is_the_faiss_of_everywhere_and_alone():
    found = pins(listed("faiss-gpu"))
    assert found["faiss-gpu"] == ASKED["faiss-cpu"] and "faiss-cpu" not in found


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("vllm", ("aiohttp", "msgspec", "pillow", "pybase64")),
        ("torch", ("h5py", "msgspec", "numpy", "opencv-python-headless", "pillow")),
        (
            "photos",
            ("h5py", "msgspec", "numpy", "onnxruntime", "opencv-python-headless", "pillow", "tokenizers"),
        ),
    ],
)
def test_what_is_ours_on_a_gpu_node_is_what_it_is_elsewhere(name, ours):
    found = pins(listed(name))
    assert {package: found[package] for package in ours} == {package: ASKED[package] for package in ours}


def test_torch_is_the_same_on_a_gpu_node_and_elsewhere():
    found = pins(listed("photos"))
    assert ASKED_WITH_TORCH == {"safetensors": "0.8.0", "torch": "2.13.0", "transformers": "5.24.0"}
    assert ASKED_WITH_TORCH.items() <= found.items()
    assert pins(listed("torch"))["torch"] == "2.13.0"


def test_the_lock_beside_torch_has_hashes_and_neither_torch_nor_cuda():
    text = (ROOT / "requirements-torch.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^([a-z0-9.-]+)(?:\[.*\])?==", text, re.MULTILINE)
    assert not [name for name in packages if re.match(r"torch|nvidia-|cuda|triton", name)]
    assert len(re.findall(r"==\S+.*\\\n +--hash=sha256:[0-9a-f]{64}", text)) == len(packages)
    # What both files pin is one version.
    both = locked("requirements-torch.txt")
    assert both["transformers"] == "5.24.0" and {n: LOCKED.get(n, v) for n, v in both.items()} == both


def test_published_encoders_run_with_what_they_were_published_with():
    found = pins(listed("torch"))
    # What torch's older packages lack: below 9.15 a convolution in bf16 takes thousands of times longer.
    names = ("transformers", "peft", "nvidia-cudnn-cu13")
    assert [found[name] for name in names] == ["4.57.1", "0.17.1", "9.20.0.48"]


# -- what the steps need -----------------------------------------------------------------------------------


def rules() -> dict[str, str]:
    """The text of every rule that runs something, by name; below it that of the rule that it uses."""
    found: dict[str, str] = {}
    # In the order in which they are included: a rule that uses another one stands behind it.
    for name in re.findall(r'(?m)^include: "(.+)"$', (ROOT / "Snakefile").read_text()):
        for text in re.split(r"(?m)^ *(?=(?:use )?rule\b)", (ROOT / name).read_text())[1:]:
            head = re.match(r"(?:use rule (\w+) as (\w+)|rule(?: (\w+))?):?", text)
            name = head[2] or head[3] or f"rule {len(found) + 1}, named by code"
            found[name] = text + (found[head[1]] if head[1] else "")
    return {name: text for name, text in found.items() if "shell:" in text}


def environments_of(text: str) -> set[str]:
    """The environments that a rule may run in."""
    given = re.search(r"^ +conda:\n +(.+)$", text, re.MULTILINE)[1]
    if given.startswith('"'):
        return {Path(given.strip('"')).stem}
    assert "FILES.environment(" in given, given
    return {"core", "vllm"}


@functools.cache
def imported(path: Path) -> list[str]:
    """The names that a file imports somewhere."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def modules(script: Path) -> set[str]:
    """Modules of others that a script imports somewhere, itself or through ours."""
    scripts, found, waiting, seen = ROOT / "scripts", set(), [script], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "remeasure":
                stems = [scripts.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
                files = [one for stem in stems for one in (stem.with_suffix(".py"), stem / "__init__.py")]
                waiting += [file for file in files if file.is_file()]
            elif (path.parent / f"{parts[0]}.py").is_file():
                waiting.append(path.parent / f"{parts[0]}.py")  # a program finds what lies beside it
            elif parts[0] not in sys.stdlib_module_names:
                found.add(parts[0])
    return found


PACKAGE_OF = {
    "cv2": "opencv-python-headless",
    "faiss": "faiss-cpu",
    "ml_dtypes": "ml-dtypes",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "snakemake_interface_executor_plugins": "snakemake-interface-executor-plugins",
    "yaml": "pyyaml",
}
# Imported where answers of other systems are read and where a batch service is asked: never on a GPU node.
# Nor is an index built where photographs are described.
ELSEWHERE = {"vllm": {"openpyxl", "httpx2"}, "photos": {"faiss"}}


def missing(script: str, environment: str) -> set[str]:
    """Packages that a script may import and an environment lacks."""
    needed = modules(ROOT / "scripts" / script) - ELSEWHERE.get(environment, set())
    return {PACKAGE_OF.get(name, name) for name in needed} - pins(listed(environment)).keys()


@pytest.mark.parametrize("version", ["0.77.0", "0.101.1"])
def test_a_lock_of_a_system_has_hashes_and_no_torch(version):
    lock = (ROOT / "envs" / f"haiku-{version}.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^([a-z0-9.-]+)(?:\[.*\])?==", lock, re.MULTILINE)
    assert len(packages) == len(set(packages)) > 100
    assert not [name for name in packages if re.match(r"torch|nvidia-|cuda|triton", name)]
    # Every package is followed by a hash.
    assert len(re.findall(r"== ?\S+.*\\\n +--hash=sha256:[0-9a-f]{64}", lock)) == len(packages)
    assert f"haiku-rag-slim=={version} " in lock and "docling-slim" in packages and "==2.142.0 " in lock


def test_every_rule_names_an_environment_that_there_is():
    found = {name: environments_of(text) for name, text in rules().items()}
    assert set().union(*found.values()) == {"core", "haiku", "photos", "render", "vllm"} <= set(ENVIRONMENTS)
    assert (found["render_tiles"], found["ask"], found["ask_judge"]) == (
        {"render"},
        {"core", "vllm"},
        {"core", "vllm"},
    )


def test_a_model_is_asked_where_its_server_can_start():
    plan = Plan(ROOT / "config")
    asked = {(run, model) for run in plan.runs() for model in plan.run(run).models}
    found = {Wiring(plan).environment(run, model) for run, model in asked}
    assert found and found <= {"../envs/core.yaml", "../envs/vllm.yaml"}


PAIRS = sorted(
    {
        (script, environment)
        for text in rules().values()
        for script in re.findall(r"/(\w+\.py)\b", text)
        for environment in environments_of(text)
    }
    # Servers that a step starts beside it, and steps that may be given a GPU.
    | {(f"serve_{name}.py", "core") for name in ("judge", "llm", "page_reader")}
    | {("serve_vllm.py", "vllm")}
    | {(script, "faiss-gpu") for script in ("embed.py", "build_index.py", "search.py", "train_adapter.py")}
)


@pytest.mark.parametrize(("script", "environment"), PAIRS)
def test_what_a_step_imports_is_in_its_environment(script, environment):
    expected = {"faiss-cpu"} if environment == "faiss-gpu" else set()
    assert missing(script, environment) == expected


# -- what the package index says ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def index() -> None:
    """Skip where the package index cannot be asked; only metadata is read from it, nothing is installed."""
    words = [UV, "pip", "compile", "--quiet", "--no-header", "-"]
    done = subprocess.run(words, input=f"msgspec=={ASKED['msgspec']}", capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(
            f"the package index cannot be asked whether pins fit together: {done.stderr.strip()[-300:]}"
        )


LOCK = runpy.run_path(str(ROOT / "envs" / "lock.py"))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_packages_of_an_environment_exist_fit_together_and_none_is_missing(index, name, tmp_path):
    """On Python 3.11 and the oldest Linux that they are meant for, without compiling anything."""
    words = [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", *LOCK["WHEELS"], "-"]
    words += ["--python-version", "3.11", "--python-platform", LOCK["OLDEST"].get(name, LOCK["OLDEST_ELSE"])]
    done = subprocess.run(words, input="\n".join(listed(name)), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pins(done.stdout.splitlines()) == pins(listed(name)), "run: make lock"


def locked_again(folder: Path, name: str, old: str, new: str) -> str:
    """Return an environment file after an edit and ``make lock``."""
    (folder / "envs").mkdir()
    shutil.copy(ROOT / "requirements.txt", folder)
    program, file = folder / "envs" / "lock.py", folder / "envs" / f"{name}.yaml"
    shutil.copy(ROOT / "envs" / "lock.py", program)
    text = (ROOT / "envs" / file.name).read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    runpy.run_path(str(program))["lock"](UV, file)
    return file.read_text()


def test_locking_adds_what_is_needed_and_takes_away_what_is_not(index, tmp_path):
    found = locked_again(tmp_path, "render", "- greenlet==3.5.6", "- six==1.17.0")
    assert found == (ROOT / "envs" / "render.yaml").read_text()


def test_pins_that_do_not_fit_are_noticed(index, tmp_path):
    # transformers 4.57.1 takes tokenizers up to 0.23.0.
    with pytest.raises(subprocess.CalledProcessError):
        locked_again(tmp_path, "torch", "- peft==0.17.1", "- tokenizers==0.23.3")


# -- pins and what is installed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "version"), [("msgspec", LOCKED["msgspec"]), ("numpy", LOCKED["numpy"]), ("vllm", "0.19.0")]
)
def test_the_version_that_belongs_to_an_identity_is_found_in_either_place(package, version):
    assert catalogue.pinned(ROOT, package) == version


def test_a_package_that_nobody_pins_is_one_line():
    with pytest.raises(RemeasureError, match="'tensorflow' is pinned in none of requirements.txt, envs/vllm"):
        catalogue.pinned(ROOT, "tensorflow")


def test_what_the_user_asked_for_is_locked():
    assert ASKED and ASKED.items() <= LOCKED.items()


def test_what_torch_needs_is_left_to_no_one_and_torch_to_pip():
    bootstrap = runpy.run_path(str(ROOT / "scripts" / "bootstrap.py"))
    files = ("requirements.txt", "requirements-dev.txt", "requirements-torch.txt")
    assert [bootstrap["left_out"](ROOT / name) for name in files] == [[], [], ["torch==2.13.0"]]


def test_what_is_installed_beside_torch_is_what_is_locked():
    found = {name: importlib.metadata.version(name) for name in ASKED_WITH_TORCH}
    # A build without CUDA says so behind a plus.
    assert {name: version.partition("+")[0] for name, version in found.items()} == ASKED_WITH_TORCH


def test_what_is_installed_is_what_is_locked():
    assert {name: importlib.metadata.version(name) for name in ASKED} == ASKED


def test_no_lock_file_names_a_host():
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-torch.txt"):
        assert "://" not in (ROOT / name).read_text()
