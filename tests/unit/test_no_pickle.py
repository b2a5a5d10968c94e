"""Unpickling runs code: only the two strict readers do it, and nothing asks a library to."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

# Readers that know a few harmless names, and the walk that both take first.
ALLOWED = {
    "scripts/remeasure/pickle_walk.py",
    "scripts/remeasure/torch_pickle.py",
    "scripts/remeasure/instances/label_pickle.py",
}
MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "hickle"}
# What unpickles inside a library.
CALLS = {"torch.load", "pandas.read_pickle", "pd.read_pickle", "faiss.read_pickle"}


def sources(root: Path) -> Iterator[Path]:
    for folder in ("scripts", "benchmarks"):
        yield from sorted((root / folder).rglob("*.py"))


def found_in(source: str) -> list[str]:
    """Return what of a module's text unpickles, or asks for it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            found += ["torch.load" for alias in node.names if alias.name == "load"]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in CALLS:
            found.append(ast.unparse(node))
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                found.append("allow_pickle")
        elif isinstance(node, ast.keyword) and node.arg == "weights_only":
            found.append("weights_only")
    return found


@pytest.mark.parametrize(
    ("source", "finds"),
    [
        ("import pickle", ["pickle"]),
        ("from joblib import load", ["joblib"]),
        ("import numpy as np\nnp.load('x', allow_pickle=True)", ["allow_pickle"]),
        ("np.load('x', allow_pickle=wanted)", ["allow_pickle"]),
        ("np.load('x', allow_pickle=False)", []),
        ("torch.load('x', weights_only=True)", ["torch.load", "weights_only"]),
        ("from torch import load", ["torch.load"]),
        ("import pickletools", []),
    ],
)
def test_the_search_finds_what_it_looks_for(source, finds):
    assert sorted(found_in(source)) == sorted(finds)


def test_nothing_but_the_two_strict_readers_unpickles(root):
    found = {
        str(path.relative_to(root)): found_in(path.read_text(encoding="utf-8")) for path in sources(root)
    }
    assert len(found) > 300
    assert {name: what for name, what in found.items() if what and name not in ALLOWED} == {}
    assert all(set(found[name]) <= {"pickle"} for name in ALLOWED)
