"""Which calls of a module may launch kernels, as far as names tell.

To let a call leave what it launches pending costs more than a plain call, so it is done for calls
that may launch. Where a name misleads, what is launched runs at once, which is never wrong.
"""

from __future__ import annotations

import ast
import builtins
import sys

import numpy as np

from pyfuser.run.scopes import Function, nodes_below, own_nodes

_PATTERN = "parallel_for"
#: Modules whose functions launch nothing.
_NOT_LAUNCHING = frozenset(sys.stdlib_module_names) | {"numpy", "scipy", "matplotlib", "math"}
_PYKOKKOS = frozenset({"pykokkos", "pyfuser"})
_BUILTIN_METHODS = frozenset(
    name for kind in (list, dict, set, str, tuple, np.ndarray) for name in dir(kind)
)


class Launchers:
    """What the names of one module stand for."""

    def __init__(self, parts: list[ast.AST]) -> None:
        self._functions: dict[str, list[Function]] = {}
        self._quiet = set(dir(builtins))  # names and modules that launch nothing
        self._patterns = {_PATTERN}  # other names of `parallel_for`
        for part in parts:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._functions.setdefault(part.name, []).append(part)
            elif isinstance(part, ast.ClassDef):
                self._quiet.add(part.name)
            elif isinstance(part, (ast.Import, ast.ImportFrom)):
                self._imports(part)
        self._launching: set[str] = set()
        self._find()

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            source = node.module if isinstance(node, ast.ImportFrom) else alias.name
            root = (source or "").split(".")[0]
            name = alias.asname or alias.name.split(".")[0]
            if alias.name == _PATTERN:
                self._patterns.add(name)
            elif root in _NOT_LAUNCHING or root in _PYKOKKOS:
                self._quiet.add(name)

    def _find(self) -> None:
        """The module's own functions that launch, by way of each other."""
        calls = {
            name: [n for f in functions for n in own_nodes(f) if isinstance(n, ast.Call)]
            for name, functions in self._functions.items()
        }
        grows = True
        while grows:
            found = {name for name, made in calls.items() if any(map(self.may_launch, made))}
            grows = found != self._launching
            self._launching = found

    def may_launch(self, call: ast.Call) -> bool:
        """Whether a call may launch something."""
        function = call.func
        if isinstance(function, ast.Name):
            name = function.id
            if name in self._patterns or name in self._launching:
                return True
            return name not in self._functions and name not in self._quiet
        if not isinstance(function, ast.Attribute):
            return False
        name = function.attr
        if name == _PATTERN or name in self._launching:
            return True
        root = _root(function)
        known = root in self._quiet and root not in self._functions
        return not (known or name in self._functions or name in _BUILTIN_METHODS)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_accessor(function: Function) -> bool:
    """Whether a function does nothing but return names, attributes and constants."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    plain = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.expr_context)
    return (
        len(body) == 1
        and isinstance(body[0], ast.Return)
        and (body[0].value is None or all(isinstance(n, plain) for n in nodes_below(body[0].value)))
    )
