"""Where a program lets go of the array that a View hands out, by the syntax: see `lent`.

    np.array(view.data)  view.data.copy()  view.data[0]  2.0 * view.data  view.data.shape

The law: nothing but NumPy's C code gets the array, and what it gives shares no memory with it. So
besides the array there are only numbers in such an expression, or arguments by a name (`axis=0`)
that are evaluated later: an operand of another type might keep the array's address, and who looks
at a frame of Python code (of `np.sum` in a traceback, say) finds it there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import copy
from operator import is_
from typing import TypeVar

LENT, LENT_TO, TOP = "__pyfuser_lent__", "__pyfuser_lent_to__", "__pyfuser_top__"

_FACTS = frozenset({"shape", "dtype", "size", "ndim", "nbytes", "itemsize"})
"""Attributes of arrays that are no arrays, ..."""

_METHODS = frozenset(
    {"copy", "tolist", "item", "tobytes", "argmin", "argmax", "argsort", "cumsum", "cumprod"}
    | {"nonzero", "flatten", "fill", "sort", "astype"}
)
"""... and methods that give no array over the same memory, and are no Python code."""

_NAMED = frozenset({"axis", "dtype"})
"""Arguments by name that are no place for a result."""

T = TypeVar("T", bound=ast.AST)


class Lending:
    """Rewrites the expressions of one module, all of whose nodes it is given.

    Names that nothing in the module gives another meaning are looked up twice: `np`, and Python's.
    """

    def __init__(self, parts: Iterable[ast.AST]) -> None:
        bound, imported = set[str](), set[str]()
        for node in parts:
            if isinstance(node, ast.alias):
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    numpy = isinstance(node, ast.Import) and alias.name == "numpy"
                    (imported if numpy else bound).add(alias.asname or alias.name.split(".")[0])
            elif isinstance(node, ast.Attribute):  # as `np.array = ...`
                if isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
                    bound.add(node.value.id)
            elif not isinstance(getattr(node, "ctx", None), ast.Load):
                bound.update(_names(node))
        self._numpy = imported - bound if "*" not in bound else set()
        self._bound = bound | imported

    def statement(self, node: ast.stmt) -> ast.stmt:
        """A statement whose own expressions lend; what they stand in is changed."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and name not in ("annotation", "target"):
                setattr(node, name, self.expression(value))
        if isinstance(node, ast.Assign):
            node.targets = list(map(self._target, node.targets))
        elif isinstance(node, ast.AugAssign) and _is_number(node.value):
            target = node.target
            if isinstance(target, ast.Attribute) and _hands_out(target):
                node.target = self._lent(target)
            elif isinstance(target, ast.Subscript):
                changed = self._target(target)
                assert isinstance(changed, ast.Subscript)
                node.target = changed
        return node

    def expression(self, e: ast.expr) -> ast.expr:
        """An expression whose Views lend what nobody keeps. What changes is a copy."""
        match e:
            case ast.Attribute(value=ast.Attribute() as array, attr=attr) if (
                _hands_out(array) and attr in _FACTS
            ):
                return _changed(e, value=self._lent(array))
            case ast.Subscript(value=ast.Attribute() as array, ctx=ast.Load()) if _hands_out(
                array
            ) and (rank := _places(e.slice)):
                return _changed(e, value=self._lent(array, ast.Constant(rank)))
            case ast.Call():
                return self._called(e)
            case ast.BinOp(left=array, right=number) if _hands_out(array) and _is_number(number):
                return _changed(e, left=self._lent(array))
            case ast.BinOp(left=number, right=array) if _hands_out(array) and _is_number(number):
                return _changed(e, right=self._lent(array))
            case ast.Compare(left=array, comparators=[number]) if (
                _is_number(number) and _hands_out(array) and _compares(e.ops[0])
            ):
                return _changed(e, left=self._lent(array))
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=array) if _hands_out(array):
                return _changed(e, operand=self._lent(array))
        return self._below(e)

    def _below(self, e: T) -> T:
        """The same with the expressions in it."""
        parts: dict[str, object] = {}
        for name, value in ast.iter_fields(e):
            if isinstance(value, ast.expr):
                parts[name] = self.expression(value)
            elif isinstance(value, list):
                parts[name] = [
                    self.expression(part)
                    if isinstance(part, ast.expr)
                    else self._below(part)
                    if isinstance(part, ast.keyword)
                    else part
                    for part in value
                ]
        return _changed(e, **parts)

    def _target(self, e: ast.expr) -> ast.expr:
        """A target whose Views lend the array that an assignment alone has."""
        if isinstance(e, (ast.Tuple, ast.List)):
            return _changed(e, elts=list(map(self._target, e.elts)))
        if isinstance(e, ast.Subscript) and _hands_out(e.value):
            return _changed(e, value=self._lent(e.value))
        return e

    def _called(self, e: ast.Call) -> ast.expr:
        """A call of a method of the array, or of a function that gets nothing else."""
        func = e.func
        top = func if isinstance(func, ast.Call) and _is_top(func) else None
        function = func if top is None else top.args[0]
        made: ast.expr | None = None
        if isinstance(function, ast.Attribute) and _hands_out(function.value):
            if _gives_new(function.attr, e):
                made = _changed(function, value=self._lent(function.value))
        elif len(e.args) == 1 and self._is_known(function, e):
            argument = e.args[0]
            array = argument.value if isinstance(argument, ast.Subscript) else argument
            if _hands_out(array):
                lent = self._lent(array, *_looked_up(function), by=LENT_TO)
                same = array is argument
                return _changed(e, args=[lent if same else _changed(argument, value=lent)])
        if made is None:
            return self._below(e)
        return _changed(e, func=made if top is None else _changed(top, args=[made]))

    # law: True
    def _is_known(self, function: ast.expr, e: ast.Call) -> bool:
        """Whether a function may be one of NumPy's or Python's; `lent_to` looks at it once more."""
        if not all(keyword.arg in _NAMED for keyword in e.keywords):
            return False
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return function.value.id in self._numpy
        return isinstance(function, ast.Name) and self._bound.isdisjoint({function.id, "*"})

    def _lent(self, e: ast.expr, *more: ast.expr, by: str = LENT) -> ast.Attribute:
        """`view.data` of a View that lends it, by one of the functions of `lent`."""
        assert isinstance(e, ast.Attribute)
        given = [self.expression(e.value), *more]
        call = ast.Call(ast.Name(by, ast.Load()), given, [])
        for node in (call, call.func, *given):
            if not hasattr(node, "lineno"):
                ast.copy_location(node, e)
        return _changed(e, value=call)


def _looked_up(function: ast.expr) -> tuple[ast.expr, ...]:
    """A function, or the module that has it and its name: no attribute is evaluated twice."""
    if isinstance(function, ast.Attribute):
        return function.value, ast.Constant(function.attr)
    return (function,)


# law: True
def _gives_new(method: str, e: ast.Call) -> bool:
    """Whether a method of an array gets numbers alone, and gives none that shares its memory."""
    if method == "astype":
        return len(e.args) == 1 and not e.keywords and not isinstance(e.args[0], ast.Starred)
    plain = all(map(_is_number, e.args)) and all(keyword.arg in _NAMED for keyword in e.keywords)
    return method in _METHODS and plain


# law: True
def _is_number(e: ast.expr) -> bool:
    """Whether it is a number, written out."""
    while isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        e = e.operand
    return isinstance(e, ast.Constant) and type(e.value) in (int, float)


# law: True
def _compares(op: ast.cmpop) -> bool:
    """Whether an operator asks for values; `is` asks for the array, which is another each time."""
    return isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))


# law: 99
def _places(key: ast.expr) -> int:
    """How many integers a subscript consists of; 0: of other things, too."""
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    return len(parts) if all(map(_is_number, parts)) else 0


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a node gives another meaning, but for imports."""
    for field in ("id", "arg", "name", "rest", "names"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (name for name in value if isinstance(name, str))


def _hands_out(e: ast.expr) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "data"


def _is_top(e: ast.Call) -> bool:
    return isinstance(e.func, ast.Name) and e.func.id == TOP


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
