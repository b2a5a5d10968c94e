"""Wording taken out of a Python module: its text is parsed, and nothing of it is ever run.

A file beside the profile (``taken.yaml``) names the module, and says for every prompt where its text stands
and which expressions in it become which placeholders; ``elsewhere.yaml`` says where the text is put and which
hash it must have.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from remeasure import prompts
from remeasure.errors import RemeasureError, did_you_mean
from remeasure.files import sha256_bytes
from remeasure.records import Record
from remeasure.yaml_files import Settings, convert, read_yaml

# More than any module that people write.
MAX_BYTES = 2_000_000
RETURN = "return"
_NAME = re.compile(r"[A-Za-z0-9_]+")
_FOLDER = re.compile(re.escape(prompts.ELSEWHERE) + r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Place(Settings, kw_only=True):
    """Where a prompt stands in a module, and what is to be put for the expressions in it."""

    at: str
    """A class, or a function of a class: ``Class``, ``Class.function``."""
    value: str
    """The name that is assigned there, once; or ``return``, what the function returns, in one place."""
    keys: list[str] = []
    """What leads to the text where the value is a dictionary of dictionaries."""
    places: dict[str, str] = {}
    """Expression in the text to the placeholder that stands for it."""
    constants: list[str] = []
    """Names in the text that the module assigns a number or a text, once; they are filled in."""


class TakeSettings(Record, kw_only=True):
    """Settings of ``take_prompts``."""

    module_sha256: str
    prompts: dict[str, Place]
    sha256: dict[str, str]
    """Of every prompt."""


class TakenFile(Settings, kw_only=True):
    """``taken.yaml``."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """The module, a source."""
    prompts: Annotated[dict[str, Place], Meta(min_length=1)]


class Profile(NamedTuple):
    """A profile that is taken out of a module."""

    module: str
    places: dict[str, Place]
    folder: str
    """Where its texts are put."""
    paths: dict[str, str]
    """Of its texts, in the order of ``elsewhere.yaml``."""
    sha256: dict[str, str]


def read(config: Path, study: str, profile: str) -> Profile:
    """Return what the two files of a profile say together.

    Raises:
        RemeasureError: ``taken.yaml`` is not as described, or names other prompts than ``elsewhere.yaml``;
            these do not lie in one folder, each under its name.
    """
    path = config / "prompts" / study / profile / "taken.yaml"
    found = convert(read_yaml(path), TakenFile, path)
    told = prompts.profile(config, study, profile)
    if odd := sorted(found.prompts.keys() ^ told["sha256"].keys()):
        raise RemeasureError(
            f"{path}: {', '.join(odd)} stand only there or only in elsewhere.yaml; correct one"
        )
    folder = str(Path(next(iter(told["files"].values()))).parent)
    for name, place in told["files"].items():
        if not _FOLDER.fullmatch(folder) or place != f"{folder}/{name}.txt":
            raise RemeasureError(
                f"{path.with_name('elsewhere.yaml')}: {name}: path {place!r}; what is taken out of a module "
                f"lies in one folder below {prompts.ELSEWHERE}, as <folder>/{name}.txt; correct the file"
            )
    return Profile(found.module, found.prompts, folder, told["files"], told["sha256"])


def settings(config: Path, study: str, profile: str, module_sha256: str) -> dict[str, Any]:
    """Return the settings of ``take_prompts`` for a profile of a study.

    Raises:
        RemeasureError: as ``read``.
    """
    found = read(config, study, profile)
    places = msgspec.to_builtins(found.places)
    return {"module_sha256": module_sha256, "prompts": places, "sha256": found.sha256}


def take(data: bytes, wanted: TakeSettings, module: str) -> dict[str, str]:
    """Return the texts of all prompts.

    Args:
        data: the module.
        wanted: where they stand and what they must be.
        module: what the module is called in errors.

    Raises:
        RemeasureError: another module than the settings name, no Python, a place that is not there or not
            clear, an expression that nothing is said about, a text with another hash.
    """
    found = sha256_bytes(data)
    if found != wanted.module_sha256:
        raise RemeasureError(
            f"{module}: has SHA-256 {found[:12]}…, the settings say {wanted.module_sha256[:12]}…; delete it, "
            "it is fetched again"
        )
    tree = parse(data, module)
    texts = {}
    for name, place in wanted.prompts.items():
        where = f"{module}: prompt {name!r}"
        texts[name] = _checked(_text_at(tree, place, where), wanted.sha256[name], where)
    return texts


def parse(data: bytes, module: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        RemeasureError: too large, no UTF-8, no Python, or nested too deeply.
    """
    if len(data) > MAX_BYTES:
        raise RemeasureError(f"{module}: {len(data)} bytes, at most {MAX_BYTES} are read; it is another file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise RemeasureError(
            f"{module}{line}: cannot be read as Python ({type(error).__name__}); it is another file"
        ) from None


def _checked(text: str, expected: str, where: str) -> str:
    try:
        found = sha256_bytes(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise RemeasureError(f"{where}: holds characters that no file can hold; correct taken.yaml") from None
    if text.endswith("\n"):
        raise RemeasureError(f"{where}: ends with a line end, which prompt files lose; correct taken.yaml")
    if found != expected:
        raise RemeasureError(
            f"{where}: comes to SHA-256 {found}, expected {expected}; taken.yaml and elsewhere.yaml of the "
            "profile belong to another version of the module: correct them"
        )
    return text


def _text_at(tree: ast.Module, place: Place, where: str) -> str:
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
    for word in at.split("."):
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
    """Return what stands at keys of a dictionary, written as ``{…}`` or ``dict(…)``."""
    for key in keys:
        pairs: list[tuple[Any, ast.expr]] = []
        if isinstance(value, ast.Dict):
            named = zip(value.keys, value.values, strict=True)
            pairs = [(k.value, v) for k, v in named if isinstance(k, ast.Constant)]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
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
        self._known = {}
        for expression, name in place.places.items():
            if not _NAME.fullmatch(name):
                raise RemeasureError(f"{where}: {name!r} is no name of a placeholder; correct taken.yaml")
            self._known[_spelled(_expression(expression, where))] = f"{{{{{name}}}}}"
        for name in place.constants:
            value = _value(tree, name, where)
            if not isinstance(value, ast.Constant) or type(value.value) not in (int, str):
                raise RemeasureError(f"{where}: {name} is neither a number nor a text; correct taken.yaml")
            self._known[name] = str(value.value)

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
    else:
        raise RemeasureError(
            f"{known.where}: line {node.lineno} is a {type(node).__name__}, expected texts and f-strings; "
            "correct taken.yaml"
        )
