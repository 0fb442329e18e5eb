"""What a captured function reads from outside by name, and what it changes there.

Python's names are looked up when a function runs. So a step is what its function would do again if
each name that it may look up still means the same: its globals and closure, attributes of objects
with a `__dict__` that it may reach by them or by its arguments, and the same of functions of the
program that it names. More names are looked at than are read: an attribute counts as read if its
name occurs in the code.

Not seen: what is inside of lists and other containers, properties, and what a library reads.
"""

from __future__ import annotations

import ast
import dis
import os
import re
from collections.abc import Iterator, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from pyfuser.frontends.embedded.views import ViewType
from pyfuser.lower.source import source_of
from pyfuser.support.errors import WorkunitError
from pyfuser.trace.reason import PACKAGE

Name: TypeAlias = tuple[dict[str, Any] | CellType, str, Any]
"""Where a name is looked up, the name, and what it meant."""

MOST = 64
"""Names that are looked at: each takes 13 ns a step."""

_LIBRARIES = (os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__)), PACKAGE)
_LEAVES = (ViewType, np.ndarray, np.generic, type, str, bytes, int, float, complex, type(None))
_STORES = {
    "STORE_GLOBAL": "global",
    "DELETE_GLOBAL": "global",
    "STORE_DEREF": "variable of the function around it",
    "STORE_ATTR": "attribute",
    "DELETE_ATTR": "attribute",
}


def names_of(function: Any, arguments: Sequence[Any]) -> tuple[Name, ...]:
    """The names that a function may look up, and what they mean now; those after `MOST` are not."""
    first = [getattr(function, "__self__", None), *arguments]
    function = getattr(function, "__func__", function)
    if type(function) is not FunctionType:
        return ()
    first += (function, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    names: set[str] = set()
    _looked_up(first, names)  # finds the names
    return tuple(_looked_up(first, names))[:MOST]


def _looked_up(first: Sequence[Any], names: set[str]) -> list[Name]:
    """What is reached from objects by names; those in functions that are reached are added."""
    found: dict[tuple[int, str], Name] = {}
    waiting, seen = list(first), set[int]()
    while waiting and len(found) < MOST:
        owner = waiting.pop(0)
        if id(owner) in seen or isinstance(owner, _LEAVES):
            continue
        seen.add(id(owner))
        for place, name in _places(owner, names):
            value = _meaning(place, name)
            if type(value) is not ModuleType or not _is_of_library(value.__dict__.get("__file__")):
                found.setdefault((id(place), name), (place, name, value))
                waiting.append(value)
    return list(found.values())


def are_unchanged(names: Sequence[Name]) -> bool:
    """Whether all names mean what they meant; numbers by value."""
    return all(_is_same(_meaning(place, name), value) for place, name, value in names)


def change_outside(function: Any) -> str | None:
    """What a function does besides calls that would be done once only, in words."""
    function = getattr(function, "__func__", function)
    if type(function) is not FunctionType:
        return None
    code, loops = function.__code__, False
    last_read: dict[str, int] = {}
    last_set: dict[str, int] = {}
    for n, step in enumerate(dis.get_instructions(code)):
        loops = loops or step.opname == "FOR_ITER" or "BACKWARD" in step.opname
        what = _STORES.get(step.opname)
        if what and (step.opname != "STORE_DEREF" or step.argval in code.co_freevars):
            return f"it sets the {what} {step.argval!r}"
        values = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        kinds = re.findall(r"(LOAD|STORE)_FAST", step.opname)
        for kind, name in zip(kinds, values, strict=False):
            (last_read if kind == "LOAD" else last_set)[name] = n
    for name in code.co_varnames[: code.co_argcount]:
        if not loops and last_set.get(name, -1) > last_read.get(name, -1):
            return (
                f"it sets its argument {name!r} in the end, which nothing sees (`repeat` exchanges "
                "Views with swap=[(a, b)])"
            )
    return _changed_inside(function)


def _changed_inside(function: FunctionType) -> str | None:
    """What a function changes inside of objects from outside: their items, or which is next."""
    try:
        tree = source_of(function).node
    except WorkunitError:
        return None  # a lambda, or text that is not there
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            owner, what = node.value, "sets items of"
        elif _calls_next(node):
            owner, what = node.args[0], "takes the next item of"  # type: ignore[attr-defined]
        else:
            continue
        if _is_outside(owner, function):
            return f"it {what} {ast.unparse(owner)!r}"
    return None


def _calls_next(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
        return False
    return node.func.id == "next"


def _is_outside(owner: ast.expr, function: FunctionType) -> bool:
    """Whether an expression names an object that lives on, and that nobody else looks after: Views
    and arrays are watched while the function runs.
    """
    parts = [owner]
    while isinstance(parts[-1], (ast.Attribute, ast.Subscript)):
        parts.append(parts[-1].value)
    root, code = parts[-1], function.__code__
    if not isinstance(root, ast.Name):
        return False
    if root.id in (*code.co_varnames, *code.co_cellvars):
        return any(isinstance(part, ast.Attribute) for part in parts)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    value = _meaning(cells.get(root.id, function.__globals__), root.id)
    return not isinstance(value, (ViewType, np.ndarray))


def _names(code: CodeType) -> frozenset[str]:
    """The names in a code object and in those inside of it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _places(owner: Any, names: set[str]) -> Iterator[tuple[Any, str]]:
    """Where names may be looked up in an object; the names of a function, which are added."""
    if type(owner) is FunctionType:
        if _is_of_library(owner.__code__.co_filename):
            return
        mine = _names(owner.__code__)
        names |= mine
        for name, cell in zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True):
            if cell != CellType():
                yield cell, name
        own: Any = owner.__globals__
    else:
        mine = frozenset(names)
        try:
            own = object.__getattribute__(owner, "__dict__")
        except AttributeError:
            return
    if type(own) is dict:
        yield from ((own, name) for name in sorted(mine & own.keys()))


def _is_of_library(file: str | None) -> bool:
    return file is None or file.startswith(_LIBRARIES)


def _meaning(place: dict[str, Any] | CellType, name: str) -> Any:
    if isinstance(place, CellType):
        return place.cell_contents if place != CellType() else None
    return place.get(name)


def _is_same(now: Any, before: Any) -> bool:
    if now is before:
        return True
    return type(now) is type(before) and type(now) in (int, float) and repr(now) == repr(before)
