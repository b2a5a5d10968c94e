"""A hash of what code does: tokens of a script and of the library modules that it imports.

Comments, blank lines, docstrings and formatting are not part of it, so that they rerun nothing, while a change
of behaviour in a module reruns exactly the rules whose scripts import it, directly or through others.
"""

import ast
import functools
import hashlib
import io
import tokenize
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", None) or []:
            # Every bare string statement: module, class and function docstrings, and texts after a field.
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                lines.update(range(statement.lineno, statement.end_lineno + 1))
    return lines


def tokens(source: str) -> list[str]:
    """Return the tokens of Python source that carry behaviour, with indentation as relative depth.

    f-strings are tokenized differently before and after Python 3.12; their tokens are joined back to text, so
    that the same source gives the same tokens on all versions.
    """
    silent = _docstring_lines(ast.parse(source))
    found: list[str] = []
    depth = 0
    row, column = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        if token.type in _SILENT or token.start[0] in silent:
            if token.type == tokenize.NEWLINE and token.start[0] not in silent:
                found.append(f"\n{depth}")
            continue
        touching = (row, column) == token.start and found and not found[-1].startswith("\n")
        if touching:  # pieces without white space between them are one text, however they were cut
            found[-1] += token.string
        else:
            found.append(token.string)
        row, column = token.end
    return found


def _imports(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "remeasure"}


def _module_path(name: str, root: Path) -> Path | None:
    stem = root.joinpath(*name.split("."))
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


@functools.cache
def _closure(script: Path, root: Path) -> tuple[Path, ...]:
    seen: dict[Path, None] = {}
    todo = [script]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path] = None
        found = (_module_path(name, root) for name in sorted(_imports(path.read_text(encoding="utf-8"))))
        todo.extend(module for module in found if module is not None)
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
        digest.update("\0".join(tokens(path.read_text(encoding="utf-8"))).encode() + b"\1")
    return digest.hexdigest()[:16]
