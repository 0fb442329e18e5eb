"""Where a program lets go of the array that a View hands out, by the syntax: see `lent`.

The law: whatever gets the array is an operator, a function of NumPy's, or a method of an array,
whose result shares no memory with it. `view.data is x` is none: each time it is another array.
"""

from __future__ import annotations

import ast
from copy import copy
from operator import is_
from typing import TypeVar

LENT, LENT_TO, PARTS = "__pyfuser_lent__", "__pyfuser_lent_to__", "__pyfuser_parts__"

_FACTS = frozenset({"shape", "dtype", "size", "ndim", "nbytes", "itemsize", "strides"})
"""Attributes of arrays that are no arrays, ..."""

_PARTS = frozenset({"T", "real", "imag", "reshape", "ravel", "transpose", "squeeze", "swapaxes"})
"""... those, and methods, that give another array over the same memory, ..."""

_NEW = """
    sum mean min max std var any all prod ptp copy tolist item tobytes argmin argmax argsort dot
    cumsum cumprod nonzero clip repeat trace searchsorted astype fill sort put
"""
_METHODS = frozenset(_NEW.split())
"""... and methods that give a new one."""

_RETURNED = frozenset({"out", "copy", "subok", "like", None})
"""Arguments of functions that have them give back what they got."""

T = TypeVar("T", bound=ast.AST)


def lending(e: ast.expr, gone: bool = False) -> ast.expr:
    """An expression whose Views lend what nobody keeps.

    gone: who gets its value lets go of it. What changes is a copy.
    """
    if isinstance(e, ast.Attribute):
        if e.attr == "data" and gone:
            return _changed(e, value=_call(e, LENT, lending(e.value)))
        return _changed(e, value=lending(e.value, e.attr in _FACTS or (gone and e.attr in _PARTS)))
    if isinstance(e, ast.Subscript):
        if isinstance(e.ctx, ast.Load) and _hands_out(e.value) and not gone:
            assert isinstance(e.value, ast.Attribute)
            array = _call(e.value, PARTS, lending(e.value.value))
            return _changed(e, value=array, slice=lending(e.slice))
        return _changed(e, value=lending(e.value, gone), slice=lending(e.slice))
    if isinstance(e, ast.BinOp):
        return _changed(e, left=lending(e.left, True), right=lending(e.right, True))
    if isinstance(e, ast.UnaryOp):
        return _changed(e, operand=lending(e.operand, True))
    if isinstance(e, ast.Compare):
        plain = not any(isinstance(op, (ast.Is, ast.IsNot)) for op in e.ops)
        there = [lending(each, plain) for each in e.comparators]
        return _changed(e, left=lending(e.left, plain), comparators=there)
    if isinstance(e, ast.Call):
        return _called(e, gone)
    if isinstance(e, ast.FormattedValue):
        return _changed(e, value=lending(e.value, True))
    parts = {n: lending(v) for n, v in ast.iter_fields(e) if isinstance(v, ast.expr)}
    lists = {
        name: [lending(part) if isinstance(part, ast.expr) else part for part in value]
        for name, value in ast.iter_fields(e)
        if isinstance(value, list)
    }
    return _changed(e, **parts, **lists)


def lending_target(e: ast.expr) -> ast.expr:
    """A target whose Views lend the array that an assignment alone has."""
    if isinstance(e, (ast.Tuple, ast.List)):
        return _changed(e, elts=list(map(lending_target, e.elts)))
    if isinstance(e, ast.Subscript) and _hands_out(e.value):
        return _changed(e, value=lending(e.value, True))
    return e


def lending_statement(node: ast.stmt) -> ast.stmt:
    """A statement whose own expressions lend."""
    for name, value in ast.iter_fields(node):
        if not isinstance(value, ast.expr) or name == "annotation":
            continue
        if name != "target":
            setattr(node, name, lending(value))
        elif isinstance(node, ast.AugAssign):  # `view.data += x` assigns what the operator gave
            lends = value.attr == "data" if isinstance(value, ast.Attribute) else False
            node.target = lending(value, True) if lends else lending_target(value)  # type: ignore[assignment]
    return node


def _hands_out(e: ast.expr) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "data"


def _called(e: ast.Call, gone: bool) -> ast.expr:
    """A call of what is known to let go of the array it is of, or of its arguments."""
    top = e.func if isinstance(e.func, ast.Call) and len(e.func.args) == 1 else None
    function = e.func if top is None else top.args[0]  # of `__pyfuser_top__(function)(...)`
    if isinstance(function, ast.Attribute):
        new = _gives_new(function.attr, e) or (gone and function.attr in _PARTS)
        made: ast.expr = _changed(function, value=lending(function.value, new))
    else:
        made = lending(function)
    to = function if _is_known(function, e) else None
    return _changed(
        e,
        func=made if top is None else _changed(top, args=[made]),
        args=[_argument(each, to, len(e.args)) for each in e.args],
        keywords=[_changed(k, value=lending(k.value)) for k in e.keywords],
    )


# law: True
def _gives_new(method: str, e: ast.Call) -> bool:
    """Whether a method of an array gives none that shares its memory."""
    if method == "astype":
        return len(e.args) == 1 and not e.keywords  # there is a `copy=False`
    return method in _METHODS


# law: True
def _is_known(function: ast.expr, e: ast.Call) -> bool:
    """Whether a function may be one that gives back none of these arguments: `lent_to` looks."""
    if any(isinstance(each, ast.Starred) for each in e.args):
        return False
    if any(keyword.arg in _RETURNED for keyword in e.keywords):
        return False
    place = function
    while isinstance(place, ast.Attribute):
        place = place.value
    return isinstance(place, ast.Name) and (place is function or place.id in ("np", "numpy"))


def _argument(e: ast.expr, to: ast.expr | None, count: int) -> ast.expr:
    """One of so many arguments of a function that may let go of it."""
    if to is None:
        return lending(e)
    if isinstance(e, (ast.Tuple, ast.List)):
        return _changed(e, elts=[_argument(each, to, count) for each in e.elts])
    if isinstance(e, ast.Subscript) and _hands_out(e.value):
        return _changed(e, value=_argument(e.value, to, count), slice=lending(e.slice))
    if _hands_out(e):
        assert isinstance(e, ast.Attribute)
        view = _call(e, LENT_TO, lending(e.value), to, ast.Constant(count))
        return _changed(e, value=view)
    return lending(e)


def _call(place: ast.AST, name: str, *arguments: ast.expr) -> ast.expr:
    made = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    for node in (made, made.func, *arguments):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return made


def _changed(node: T, **parts: object) -> T:
    """A copy with other parts, or the node itself if they are those it has."""
    if all(_is_same(getattr(node, name), new) for name, new in parts.items()):
        return node
    made = copy(node)
    for name, new in parts.items():
        setattr(made, name, new)
    return made


def _is_same(old: object, new: object) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(is_, old, new))
    return old is new
