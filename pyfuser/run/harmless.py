"""Whether an expression leaves arrays alone, decided from its syntax and the values it has now.

`Checks.value` turns an expression into a function that goes through it without running anything of
the program's: it computes what can be computed by looking (names, attributes in plain dictionaries,
shapes), gives a token where the value is not needed, and raises Touches where an array's elements
may be read or written, or code may run that is not known to leave them alone. Everything it does
not know, touches.

A check is made before its statement runs. Code of the program's own that the statement calls may
give names and items other values meanwhile, so what is looked up after such a call is unknown.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any

from pyfuser.run import known
from pyfuser.run.attributes import MISSING, PROPERTY, attribute, in_type, is_view
from pyfuser.run.rules import When, rule_of
from pyfuser.run.scopes import Scope
from pyfuser.run.values import (
    OPAQUE,
    SCALAR,
    SEQUENCES,
    Part,
    Row,
    Touches,
    is_array,
    is_scalar,
    is_token,
    text,
)
from pyfuser.run.watched import is_accessor, is_watched

_NOWHERE = object()
_LARGE = 1 << 62
_MAX_KEYS = 64
_OF_TUPLES = vars(tuple)["__getitem__"]


class Moment:
    """What a check looks names up in, when its statement is about to run.

    values: of the local variables that the check names; NOWHERE: none yet. entered: the checked
    expression has called code of the program's own that may change what is looked up.
    """

    __slots__ = ("entered", "values", "variables")

    NOWHERE = _NOWHERE

    def __init__(self, values: tuple[Any, ...], variables: dict[str, Any]) -> None:
        self.values = values
        self.variables = variables
        self.entered = False


Value = Callable[[Moment], Any]


class Unknown(Exception):
    """An expression has a part that no check can be made of."""


class Checks:
    """Makes the checks of one statement, and notes the local variables that they need."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.names: dict[str, int] = {}  # with their places in `Moment.values`
        self.loaded: set[str] = set()  # those that are not only given another value

    def value(self, node: ast.expr) -> Value:
        """What gives an expression's value or token, or raises Touches.

        Raises Unknown where the expression's rule is to wait always.
        """
        if rule_of(node).before is When.ALWAYS:
            raise Unknown
        make = _MAKERS.get(type(node))
        if make is None:  # what a call or a display unpacks, and nothing else does
            raise Unknown
        return make(self, node)

    def scalar(self, node: ast.expr) -> Value:
        """`value` of an operand, which must be a number, a string or None."""
        given = self.value(node)

        def scalar(now: Moment) -> Any:
            value = given(now)
            if not is_scalar(value):
                raise Touches(f"{text(node)} may be an array")
            return value

        return scalar

    def truth(self, node: ast.expr) -> Value:
        """Raises Touches if the expression, or asking whether it is true, may touch arrays."""
        given = self.value(node)

        def truth(now: Moment) -> Any:
            value = given(now)
            if not is_scalar(value) and type(value) not in SEQUENCES:
                raise Touches(f"{text(node)} may be an array")
            return SCALAR

        return truth

    def exactly(self, node: ast.expr, kinds: tuple[type, ...]) -> Value:
        """`value` of what must be of one of these very types."""
        given = self.value(node)

        def exactly(now: Moment) -> Any:
            value = given(now)
            if type(value) not in kinds:
                raise Touches(text(node))
            return value

        return exactly

    def variable(self, name: str) -> Value:
        """What gives a variable's value; `NOWHERE` if it has none."""
        if name in self.scope.names:
            place = self.names.setdefault(name, len(self.names))
            return lambda now: now.values[place]
        real = self.scope.mangled(name)

        def from_globals(now: Moment) -> Any:
            found = now.variables.get(real, _NOWHERE)
            return vars(builtins).get(real, _NOWHERE) if found is _NOWHERE else found

        return from_globals

    # --------------------------------------------------------------- each kind of expression

    def _constant(self, node: ast.Constant) -> Value:
        value = node.value
        return lambda now: value

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        load = self.variable(name)
        self.loaded.add(name)
        may_change = name not in self.scope.names or name in self.scope.shared

        def value(now: Moment) -> Any:
            found = load(now)
            if found is _NOWHERE:
                raise Touches(f"{name} may have no value")
            return OPAQUE if may_change and now.entered else found

        return value

    def _attribute(self, node: ast.Attribute) -> Value:
        of, name = self.value(node.value), self.scope.mangled(node.attr)

        def value(now: Moment) -> Any:
            owner = of(now)
            found = MISSING
            if not is_token(owner):
                found = attribute(owner, name, is_watched)
            elif type(owner) is Part and name in ("shape", "ndim", "size", "dtype"):
                return OPAQUE if name == "shape" else SCALAR
            if found is MISSING:
                raise Touches(text(node))
            if found is PROPERTY:
                now.entered = True
                return OPAQUE
            return OPAQUE if now.entered else found

        return value

    def _display(self, node: ast.Tuple | ast.List) -> Value:
        parts = [
            self.exactly(part.value, (tuple, list))
            if isinstance(part, ast.Starred)
            else self.value(part)
            for part in node.elts
        ]
        unpacks = any(isinstance(part, ast.Starred) for part in node.elts)
        kind = tuple if isinstance(node, ast.Tuple) else list

        def value(now: Moment) -> Any:
            values = kind([part(now) for part in parts])
            return OPAQUE if unpacks else values

        return value

    def _dict(self, node: ast.Dict) -> Value:
        parts = []
        for key, part in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant):
                raise Unknown
            parts.append(self.value(part))
        names = [key.value for key in node.keys if isinstance(key, ast.Constant)]

        def value(now: Moment) -> Any:
            values = [part(now) for part in parts]
            return dict(zip(names, values, strict=True))

        return value

    def _slice(self, node: ast.Slice) -> Value:
        parts = [self.scalar(p) if p else None for p in (node.lower, node.upper, node.step)]

        def value(now: Moment) -> Any:
            bounds = [part and part(now) for part in parts]
            return OPAQUE if any(is_token(b) for b in bounds) else slice(*bounds)

        return value

    def _subscript(self, node: ast.Subscript) -> Value:
        of = self.value(node.value)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keys = [self.value(entry) for entry in entries]
        slices = [isinstance(entry, ast.Slice) for entry in entries]

        def value(now: Moment) -> Any:
            owner = of(now)
            given = [key(now) for key in keys]
            if is_array(owner):
                found = _part(owner, given, slices)
            elif type(owner) is Row or is_view(owner):
                found = item_of_view(owner, given, slices)
            else:
                found = _item(owner, given, len(entries))
            if found is MISSING:
                raise Touches(text(node))
            return OPAQUE if now.entered and not is_token(found) else found

        return value

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.scalar(node.left), self.scalar(node.right)
        compute = _ARITHMETIC.get(type(node.op))

        def value(now: Moment) -> Any:
            a, b = left(now), right(now)
            if compute is None or type(a) is not int or type(b) is not int:
                return SCALAR
            result = compute(a, b) if b or compute not in _DIVIDING else _LARGE
            return result if -_LARGE < result < _LARGE else SCALAR

        return value

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.truth(node.operand)
        of, sign = self.scalar(node.operand), _SIGNS[type(node.op)]

        def value(now: Moment) -> Any:
            operand = of(now)
            return sign(operand) if type(operand) is int else SCALAR

        return value

    def _compare(self, node: ast.Compare) -> Value:
        identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        make = self.value if identity else self.scalar
        return _each([make(node.left), *map(make, node.comparators)])

    def _bool(self, node: ast.BoolOp) -> Value:
        return _each([self.scalar(operand) for operand in node.values])

    def _choice(self, node: ast.IfExp) -> Value:
        test = self.truth(node.test)
        ways = [self.value(node.body), self.value(node.orelse)]

        def value(now: Moment) -> Any:
            test(now)
            chosen = [way(now) for way in ways]
            return SCALAR if all(map(is_scalar, chosen)) else OPAQUE

        return value

    def _formatted(self, node: ast.JoinedStr) -> Value:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                parts.append(self.scalar(part.value))
                if part.format_spec is not None:
                    parts.append(self.value(part.format_spec))
        return _each(parts)

    # --------------------------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> Value:
        """What a call gives: of a launch, of the program's own code, or of what is known.

        The program's own functions watch for themselves.
        """
        name = node.func
        function = self.value(name)
        passed = [self._argument(argument) for argument in node.args]
        passed += [
            self.exactly(keyword.value, (dict,))
            if keyword.arg is None
            else self._argument(keyword.value)
            for keyword in node.keywords
        ]
        unpacks = any(isinstance(a, ast.Starred) for a in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        )

        def value(now: Moment) -> Any:
            called = function(now)
            given = [argument(now) for argument in passed]
            if known.is_launch(called):
                return SCALAR
            if is_watched(called):
                now.entered = now.entered or not is_accessor(called)
                return OPAQUE
            if unpacks:
                raise Touches(f"{text(name)}() may touch arrays")
            try:
                found = known.call(called, given)
            except Touches:
                raise Touches(f"{text(name)}() may touch arrays") from None
            if known.changes(called):
                now.entered = True
            return SCALAR if now.entered and type(found) is int else found  # a length

        return value

    def _argument(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Starred):
            return self.exactly(node.value, (tuple, list))
        return self.value(node)


def _each(parts: list[Value]) -> Value:
    def value(now: Moment) -> Any:
        for part in parts:
            part(now)
        return SCALAR

    return value


def _part(owner: Any, keys: list[Any], slices: list[bool]) -> Any:
    """A part of an array by basic indexing; `MISSING` if that reads an element, or is another."""
    indices = [key for key, is_slice in zip(keys, slices, strict=True) if not is_slice]
    if any(type(index) is not int for index in indices):
        return MISSING
    if owner.ndim is None:
        return MISSING if indices else owner
    if owner.ndim <= len(indices):
        return MISSING
    if type(owner) is Part or any(key is OPAQUE for key in keys):
        return Part(owner.ndim - len(indices))
    try:
        return owner[tuple(keys)]
    except (IndexError, TypeError):
        return MISSING


def item_of_view(owner: Any, keys: list[Any], slices: list[bool]) -> Any:
    """An item of a View, which runs itself what is pending on its memory."""
    if not all(is_slice or is_scalar(key) for key, is_slice in zip(keys, slices, strict=True)):
        return MISSING
    kind = owner.kind if type(owner) is Row else owner._region.dtype.numpy.kind
    rest = owner.ndim - len(keys) + sum(slices)
    if rest > 0:
        return OPAQUE if any(slices) else Row(rest, kind)
    return OPAQUE if kind == "c" else SCALAR


def _item(owner: Any, keys: list[Any], count: int) -> Any:
    """An item of a list, a dictionary or the like."""
    kind, key = type(owner), keys[0]
    if count != 1 or (kind is dict and not plain_keys(owner)):
        return MISSING
    if key is SCALAR and kind in (list, tuple, dict):
        return OPAQUE  # one of them
    if type(key) not in (int, str):
        return MISSING
    if kind is dict:
        return owner.get(key, MISSING)
    if kind in (list, str) or in_type(kind, "__getitem__") is _OF_TUPLES:
        try:
            return owner[key]
        except (LookupError, TypeError):
            return MISSING
    return MISSING


def plain_keys(owner: dict[Any, Any]) -> bool:
    """Whether finding a key compares nothing but numbers and strings."""
    return len(owner) <= _MAX_KEYS and all(map(is_scalar, owner))


_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_DIVIDING = (operator.floordiv, operator.mod)
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}

#: By kind of expression; those that are missing wait always (see `rules`).
_MAKERS: dict[type[ast.expr], Callable[[Checks, Any], Value]] = {
    ast.Constant: Checks._constant,
    ast.Name: Checks._name,
    ast.Attribute: Checks._attribute,
    ast.Tuple: Checks._display,
    ast.List: Checks._display,
    ast.Dict: Checks._dict,
    ast.Subscript: Checks._subscript,
    ast.BinOp: Checks._binary,
    ast.UnaryOp: Checks._unary,
    ast.Compare: Checks._compare,
    ast.BoolOp: Checks._bool,
    ast.IfExp: Checks._choice,
    ast.JoinedStr: Checks._formatted,
    ast.Slice: Checks._slice,
    ast.Call: Checks.call,
}
