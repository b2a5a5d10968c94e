"""A hash of what code does: tokens of a script and of the library modules that it imports.

Comments, blank lines and docstrings are not part of it, so that they rerun nothing; a change of behaviour
in a module reruns exactly the rules whose scripts import it, directly or through others.
"""

import ast
import contextlib
import functools
import hashlib
import io
import json
import os
import sys
import tokenize
from pathlib import Path

from remeasure.files import atomic_open

SCRIPTS = Path(__file__).resolve().parent.parent
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def _docstring_lines(nodes: list[ast.AST]) -> set[int]:
    lines: set[int] = set()
    for node in nodes:
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            # Every bare string statement: module, class and function docstrings, and texts after a field.
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                lines.update(range(statement.lineno, statement.end_lineno + 1))
    return lines


def tokens(source: str) -> list[str]:
    """Return the tokens of Python source that carry behaviour, with the depth of each logical line.

    Python 3.12 began to cut f-strings into several tokens; they are joined here: the same source gives
    the same tokens on all versions.
    """
    return _tokens(source, list(ast.walk(ast.parse(source))))


def _tokens(source: str, nodes: list[ast.AST]) -> list[str]:
    silent = _docstring_lines(nodes)
    lines = source.splitlines(keepends=True)
    found: list[str] = []
    depth = 0
    string_depth, string_start = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        depth += (kind == "INDENT") - (kind == "DEDENT")
        if kind in ("FSTRING_START", "TSTRING_START"):
            string_start = string_start if string_depth else token.start
            string_depth += 1
        elif kind in ("FSTRING_END", "TSTRING_END"):
            string_depth -= 1
            if not string_depth:
                found.append(_between(lines, string_start, token.end))
        elif string_depth or token.start[0] in silent:
            continue
        elif kind == "NEWLINE":
            found.append(f"\n{depth}")
        elif token.type not in _SILENT:
            found.append(token.string)
    return found


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the source text between two (row from 1, column) positions."""
    rows = lines[start[0] - 1 : end[0]]
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    return "".join(rows)


def _imports(nodes: list[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "remeasure"}


def _module_path(name: str, root: Path) -> Path | None:
    stem = os.path.join(root, *name.split("."))
    for path in (f"{stem}.py", f"{stem}/__init__.py"):
        if os.path.isfile(path):
            return Path(path)
    return None


class _Known:
    """What was found in source files before, by their content: cutting them into tokens takes 10 ms a file.

    Kept beside Python's own compiled files and like them made again when it is not there; where it cannot be
    written nothing is lost but time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Another way to cut, or another Python, may find other tokens.
        self._version = f"{sys.version_info[:2]} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
        self._is_new = False

    @functools.cached_property
    def _found(self) -> dict[str, tuple[str, list[str]]]:
        try:
            version, found = json.loads(self._path.read_bytes())
            return found if version == self._version else {}
        except (OSError, ValueError, TypeError):
            return {}

    def read(self, path: Path) -> tuple[str, list[str]]:
        """Return the digest of a file's tokens, and its imports."""
        source = path.read_bytes()
        key = hashlib.sha256(source).hexdigest()
        if key not in self._found:
            text = source.decode("utf-8")
            nodes = list(ast.walk(ast.parse(text)))
            digest = hashlib.sha256("\0".join(_tokens(text, nodes)).encode()).hexdigest()
            self._found[key] = (digest, sorted(_imports(nodes)))
            self._is_new = True
        return self._found[key]

    def save(self) -> None:
        """Keep what was found for the next process."""
        if self._is_new:
            self._is_new = False
            with contextlib.suppress(OSError), atomic_open(self._path) as stream:
                json.dump([self._version, self._found], stream)


_KNOWN = _Known(SCRIPTS / "remeasure" / "__pycache__" / "fingerprints.json")


@functools.cache
def _read_once(path: Path, _changed: int) -> tuple[str, list[str]]:
    return _KNOWN.read(path)


def _read(path: Path) -> tuple[str, list[str]]:
    """Return tokens (their digest) and imports; most modules belong to many scripts and are read once."""
    return _read_once(path, path.stat().st_mtime_ns)


@functools.cache
def _imported_once(path: Path, _changed: int, root: Path) -> tuple[Path, ...]:
    found = (_module_path(name, root) for name in _read(path)[1])
    return tuple(module for module in found if module is not None)


@functools.cache
def _closure(script: Path, root: Path) -> tuple[Path, ...]:
    seen: dict[Path, None] = {}
    todo = [script]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path] = None
        todo.extend(_imported_once(path, path.stat().st_mtime_ns, root))
    return tuple(sorted(seen))


@functools.cache
def of_script(name: str, root: Path = SCRIPTS, also: tuple[str, ...] = ()) -> str:
    """Return the fingerprint of ``scripts/<name>`` with everything of ``remeasure`` that it imports.

    Args:
        name: file name below ``root``.
        root: the scripts folder.
        also: further modules to include that are loaded by name (study modules, model servers).

    Returns:
        First 16 hexadecimal digits of a SHA-256 over file names and tokens.
    """
    digest = hashlib.sha256()
    paths = set(_closure(root / name, root))
    for module in also:
        path = root / module if module.endswith(".py") else _module_path(module, root)
        if path is None:
            raise FileNotFoundError(f"module {module} not found under {root}")
        paths.update(_closure(path, root))
    for path in sorted(paths):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        digest.update(_read(path)[0].encode() + b"\1")
    _KNOWN.save()
    return digest.hexdigest()[:16]


def code_of(script: str, *modules: str) -> str:
    """Return the fingerprint of a script, of what it imports, and of modules that it loads by name."""
    return of_script(script, also=modules)


def study_code(script: str, part: str):
    """Return a function of wildcards: the fingerprint of a script with one part of its study."""

    def resolved(wildcards) -> str:
        return code_of(script, f"remeasure.studies.{wildcards.study}_{part}")

    return resolved
