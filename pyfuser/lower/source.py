"""From a function object to its syntax tree, found in the file (or cell) it was written in.

Trees are kept by the identity of code objects: equal code objects may still differ in the
annotations of their locals, which bytecode does not hold.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from pyfuser.ir.nodes import SourceLocation
from pyfuser.support import syntax
from pyfuser.support.caches import CodeTable, Table
from pyfuser.support.errors import WorkunitError
from pyfuser.support.records import dataclass


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function's syntax tree; the lines and columns of its nodes are those of the file."""

    name: str
    file: str
    node: ast.FunctionDef
    lines: tuple[str, ...]

    @cached_property
    def assigned_names(self) -> frozenset[str]:
        """Names that the function assigns to after their declaration, or without one."""
        names: set[str] = set()
        for node in statements(self.node):
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(target.id for target in targets if isinstance(target, ast.Name))
        return frozenset(names)

    def location(self, node: ast.AST) -> SourceLocation:
        """Where a node of the tree stands."""
        return SourceLocation(
            self.file, getattr(node, "lineno", 1), getattr(node, "col_offset", 0), self.name
        )

    def error(self, node: ast.AST, message: str) -> WorkunitError:
        """An error about a node, with the user's line."""
        location = self.location(node)
        line = self.lines[location.line - 1] if location.line <= len(self.lines) else ""
        return WorkunitError(message, location, line)


def unwrap(function: Callable[..., Any]) -> FunctionType:
    """The plain function under decorators.

    Raises WorkunitError for what is no function.
    """
    plain: Any = function
    while True:
        inner = getattr(plain, "__wrapped__", None)
        if inner is None:
            break
        plain = inner
    if not isinstance(plain, FunctionType):
        raise WorkunitError(
            f"{plain!r} is not a function: a workunit is a Python function with a name",
            SourceLocation("<unknown>", 0),
        )
    return plain


def not_supported(function: FunctionType, message: str) -> WorkunitError:
    """An error about a function whose syntax tree is not known."""
    code = function.__code__
    return WorkunitError(
        message, SourceLocation(code.co_filename, code.co_firstlineno, 0, function.__name__)
    )


MAX_FILES = 64  # whose trees are kept: each cell of a notebook that is run is a new file

#: Code objects that are not what their file says, by id(), and what the file's text compiles to:
#: `pyfuser run` adds to host code. (The first keeps the id from being used again.)
REWRITTEN: dict[int, tuple[CodeType, CodeType]] = {}

_SOURCES: CodeTable[FunctionSource] = CodeTable("sources of functions")
_Definition = tuple[ast.FunctionDef, CodeType]
_FILES: Table[str, tuple[list[str], dict[int, _Definition]]] = Table(
    "definitions by file", MAX_FILES
)


def source_of(function: FunctionType) -> FunctionSource:
    """The syntax tree of a plain function.

    Raises WorkunitError where the source cannot be found, or is not what was compiled: a file
    that was edited after its import must not lend its new text to the old function.
    """
    code = function.__code__
    known = _SOURCES.of(code)
    return known if known is not None else _SOURCES.keep(code, _find(function))


def remember(code: CodeType, source: FunctionSource) -> None:
    """Note what `source_of` finds for functions with this code object."""
    _SOURCES.keep(code, source)


def _find(function: FunctionType) -> FunctionSource:
    code = function.__code__
    code = REWRITTEN.get(id(code), (code, code))[1]
    if code.co_name == "<lambda>":
        raise not_supported(
            function,
            "a lambda cannot be a workunit, as what it computes is kept nowhere: write a function "
            "that stores it, as in `def f(i, y, x): y[i] = x[i] + 1`",
        )
    if code.co_flags & inspect.CO_COROUTINE:
        raise not_supported(function, "an async function cannot be a workunit")
    file = code.co_filename
    for refresh in (False, True):
        if refresh:
            linecache.checkcache(file)
        lines = linecache.getlines(file, function.__globals__)
        found = _definitions(file, lines).get(code.co_firstlineno)
        if found is not None and (_same_code(found[1], code) or _asserts(found[0])):
            return FunctionSource(function.__name__, file, found[0], tuple(lines))
    if not lines:
        raise not_supported(
            function,
            f"the source of workunit {function.__name__!r} cannot be found: define it in a file "
            "or a notebook cell (for exec, put the text into linecache.cache first)",
        )
    raise not_supported(
        function,
        f"what stands here now is not the source that workunit {function.__name__!r} was compiled "
        "from: was the file changed after its import? Restart the program",
    )


def _definitions(file: str, lines: list[str]) -> dict[int, _Definition]:
    """All function definitions of a file by first line (that of the first decorator)."""
    known = _FILES.get(file)
    if known is not None and known[0] == lines:
        return known[1]
    text = "".join(lines)
    try:
        tree = syntax.module(text)
        codes = dict(_codes(compile(text, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, _Definition] = {}
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            code = codes.get((node.name, first))
            if code is not None:
                found[first] = (node, code)
    return _FILES.keep(file, (lines, found))[1]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, at any depth; expressions, which are far more, are left out."""
    pending = [node]
    while pending:
        node = pending.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, name, ())
            if type(below) is list:  # a lambda's or conditional expression's is a node
                pending += below
                yield from below


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_name, constant.co_firstlineno), constant
            yield from _codes(constant)


def _same_code(found: CodeType, code: CodeType) -> bool:
    return (
        found.co_name == code.co_name
        and found.co_code == code.co_code
        and found.co_varnames == code.co_varnames
        and found.co_names == code.co_names
        and repr(_plain_constants(found)) == repr(_plain_constants(code))
    )


def _asserts(node: ast.FunctionDef) -> bool:
    # pytest rewrites assert; lowering refuses it anyway, with a better message than ours.
    return any(isinstance(child, ast.Assert) for child in ast.walk(node))


def _plain_constants(code: CodeType) -> list[object]:
    return [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
