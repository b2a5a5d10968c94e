"""A text at a place of a Python module or of a YAML file; what was parsed is read, and nothing is run."""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.yaml_files import Settings

RETURN = "return"
_NAME = re.compile(r"[A-Za-z0-9_]+")


class Place(Settings, kw_only=True):
    """Where a prompt stands in a module, and what is to be put for the expressions in it."""

    at: str = ""
    """A class, or a function of a class: ``Class``, ``Class.function``; empty: the module itself."""
    value: str
    """The name that is assigned there, once; or ``return``, what the function returns, in one place."""
    keys: list[str] = []
    """What leads to the text where the value is a dictionary of dictionaries, or a call with words."""
    places: dict[str, str] = {}
    """Expression in the text to the placeholder that stands for it."""
    constants: list[str] = []
    """Names in the text that the module assigns a number or a text, once; they are filled in."""


def python_text(tree: ast.Module, place: Place, where: str) -> str:
    """Return the text at a place of a module, with placeholders for its expressions.

    Raises:
        RemeasureError: it is not there or not clear, or an expression that nothing is said about.
    """
    try:
        value = _followed(_value(_scope(tree, place.at, where), place.value, where), place.keys, where)
        return "".join(_pieces(value, _Known(tree, place, where)))
    except RecursionError:
        raise RemeasureError(f"{where}: is nested too deeply; it is another file") from None


def _scope(tree: ast.Module, at: str, where: str) -> ast.ClassDef | ast.FunctionDef:
    """Return a class or a function of it.

    Raises:
        RemeasureError: it is not there, or twice.
    """
    node: ast.AST = tree
    for word in at.split(".") if at else ():
        inside = [n for n in node.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        fitting = [n for n in inside if n.name == word]
        if len(fitting) != 1:
            hint = "" if fitting else did_you_mean(word, [n.name for n in inside])
            raise RemeasureError(
                f"{where}: {at}: {word!r} is defined {len(fitting)} times, expected once{hint}; correct "
                "taken.yaml"
            )
        [node] = fitting
    return node


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a class or function, without what stands in functions and classes inside."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _value(scope: ast.AST, name: str, where: str) -> ast.expr:
    """Return what is assigned to a name, or returned."""
    if name == RETURN:
        found = [node.value for node in _own(scope) if isinstance(node, ast.Return)]
    else:
        found = [value for node in _own(scope) for target, value in _assigned(node) if target == name]
    if len(found) != 1 or found[0] is None:
        raise RemeasureError(
            f"{where}: {name!r} has a value in {len(found)} places, expected one; correct taken.yaml"
        )
    return found[0]


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield every name that a statement gives a value, with the value where it is plain."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.For | ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for inner in (inner for target in targets for inner in ast.walk(target)):
            if isinstance(inner, ast.Name):
                yield inner.id, None


def _followed(value: ast.expr, keys: list[str], where: str) -> ast.expr:
    """Return what stands at keys of a dictionary, written as ``{…}``, or at words of a call."""
    for key in keys:
        pairs: list[tuple[Any, ast.expr]] = []
        if isinstance(value, ast.Dict):
            named = zip(value.keys, value.values, strict=True)
            pairs = [(k.value, v) for k, v in named if isinstance(k, ast.Constant)]
        elif isinstance(value, ast.Call):
            pairs = [(word.arg, word.value) for word in value.keywords]
        fitting = [inner for name, inner in pairs if name == key]
        if len(fitting) != 1:
            raise RemeasureError(
                f"{where}: key {key!r} stands {len(fitting)} times, expected once; correct taken.yaml"
            )
        [value] = fitting
    return value


class _Known:
    """What is known of the expressions in one prompt."""

    def __init__(self, tree: ast.Module, place: Place, where: str) -> None:
        self.where = where
        self._known: dict[str, str] = {}
        self._constants: set[str] = set()
        for expression, name in place.places.items():
            if not _NAME.fullmatch(name):
                raise RemeasureError(f"{where}: {name!r} is no name of a placeholder; correct taken.yaml")
            self._known[_spelled(_expression(expression, where))] = f"{{{{{name}}}}}"
        for name in place.constants:
            value = _value(tree, name, where)
            if not isinstance(value, ast.Constant) or type(value.value) not in (int, str):
                raise RemeasureError(f"{where}: {name} is neither a number nor a text; correct taken.yaml")
            self._known[name] = str(value.value)
            self._constants.add(name)

    def constant(self, node: ast.expr) -> str | None:
        """Return what a name alone stands for; null where it is no constant that is to be filled in."""
        is_known = isinstance(node, ast.Name) and node.id in self._constants
        return self._known[node.id] if is_known else None

    def of(self, node: ast.FormattedValue) -> str:
        """Return what is put for an expression.

        Raises:
            RemeasureError: nothing is said about it, or it has a conversion or a format.
        """
        spelled = _spelled(node.value)
        if node.conversion != -1 or node.format_spec is not None:
            raise RemeasureError(
                f"{self.where}: expression {spelled[:80]!r} has a conversion (!r, !s, !a) or a format (:…), "
                "which are not supported: it is another file, or needs a rule of its own"
            )
        if spelled not in self._known:
            raise RemeasureError(
                f"{self.where}: expression {spelled[:80]!r} is not known"
                f"{did_you_mean(spelled[:80], self._known)}; known: {', '.join(self._known) or 'none'}; "
                "correct taken.yaml"
            )
        return self._known[spelled]


def _expression(text: str, where: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RemeasureError(f"{where}: {text[:80]!r} is no expression; correct taken.yaml") from None


def _spelled(node: ast.expr) -> str:
    """Return an expression in one spelling, whatever its quotes and spaces; printable."""
    try:
        text = ast.unparse(node)
    except ValueError:  # what stands in it cannot be written in one line of this Python
        text = type(node).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _pieces(node: ast.expr, known: _Known) -> Iterator[str]:
    """Yield a text piece by piece: constants, f-strings and sums of these."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if "{{" in node.value:
            raise RemeasureError(
                f"{known.where}: holds {{{{, which would be a placeholder; it is another file"
            )
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from [known.of(part)] if isinstance(part, ast.FormattedValue) else _pieces(part, known)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _pieces(node.left, known)
        yield from _pieces(node.right, known)
    elif (constant := known.constant(node)) is not None:
        yield constant
    elif _is_dedented(node):
        yield textwrap.dedent("".join(_pieces(node.args[0], known)))
    else:
        raise RemeasureError(
            f"{known.where}: line {node.lineno} is a {type(node).__name__}, expected texts and f-strings; "
            "correct taken.yaml"
        )


def _is_dedented(node: ast.expr) -> bool:
    """Whether a text stands in ``dedent("…")``, as written and not with expressions in it."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called == "dedent" and isinstance(node.args[0], ast.Constant)


def yaml_text(tree: Any, place: Place, where: str) -> str:
    """Return the text at a name and what follows it."""
    if place.at or place.places or place.constants:
        raise RemeasureError(f"{where}: a YAML file has neither classes nor expressions; correct taken.yaml")
    value = tree
    for key in (place.value, *place.keys):
        if not isinstance(value, dict) or key not in value:
            raise RemeasureError(f"{where}: key {key!r} stands 0 times, expected once; correct taken.yaml")
        value = value[key]
    if not isinstance(value, str):
        raise RemeasureError(f"{where}: is a {type(value).__name__}, expected a text; correct taken.yaml")
    if "{{" in value:
        raise RemeasureError(f"{where}: holds {{{{, which would be a placeholder; it is another file")
    return value
