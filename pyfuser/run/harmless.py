"""Whether an expression leaves arrays alone, decided from its syntax and the values it has now.

`value_of` walks an expression without running anything of the program's: it computes what can be
computed by looking (names, attributes in plain dictionaries, shapes), says SCALAR or OPAQUE where
the value is not needed, and raises Touches where an array's elements may be read or written, or
code may run that is not known to leave them alone. Everything it does not know, touches.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import time
from collections.abc import Callable
from types import (
    MemberDescriptorType,
    MethodType,
)
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import dispatch
from pyfuser.frontends.embedded.misc import Timer
from pyfuser.frontends.embedded.policies import MDRangePolicy, RangePolicy
from pyfuser.frontends.embedded.views import Subview, View, ViewType
from pyfuser.run.attributes import (
    MISSING,
    SCALARS,
    attribute,
    has_plain_dict,
    in_type,
    is_data_descriptor,
)
from pyfuser.run.watched import is_watched


class Touches(Exception):
    """An expression may touch arrays; the text says what in it."""


class _Token:
    """Stands for a value that was not computed."""


class _Row(_Token):
    """A row of a View, of so many dimensions."""

    def __init__(self, ndim: int, kind: str) -> None:
        self.ndim = ndim
        self.kind = kind


SCALAR = _Token()  # a number, string or None: operators on it touch nothing
OPAQUE = _Token()  # anything

_LAUNCHES = (dispatch.parallel_for, dispatch.parallel_reduce, dispatch.parallel_scan)
_GIVE_NUMBERS: frozenset[Any] = frozenset({
    int, float, bool, complex, abs, round, min, max, pow,
    np.float64, np.float32, np.int32, np.int64,
    *(f for f in vars(math).values() if callable(f)),
})  # fmt: skip
_NUMBERS_ONLY: frozenset[Any] = _GIVE_NUMBERS | {range, slice, divmod, RangePolicy, MDRangePolicy}
_FRESH_ARRAYS: frozenset[Any] = frozenset(
    {np.empty, np.zeros, np.ones, np.arange, np.linspace, View}
)
_CLOCKS: frozenset[Any] = frozenset({
    Timer, time.time, time.perf_counter, time.monotonic, time.process_time,
    time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns,
})  # fmt: skip
_SEQUENCES: frozenset[type] = frozenset({list, tuple, range, dict, str})
_PLAIN_CONTAINERS: frozenset[type] = _SEQUENCES | {np.ndarray, View, Subview}
_OF_VIEWS: frozenset[Any] = frozenset({ViewType.extent, ViewType.rank, ViewType.fill, View.resize})

Names = Callable[[str], Any]


def value_of(node: ast.expr, names: Names) -> Any:
    """What an expression is, or a token; raises Touches."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise Touches(_text(node))
    return handler(node, names)


def scalar(node: ast.expr, names: Names) -> Any:
    """`value_of` for an operand; raises Touches unless it is a number or string."""
    value = value_of(node, names)
    if value is SCALAR or type(value) in SCALARS:
        return value
    raise Touches(f"{_text(node)} may be an array")


def truth(node: ast.expr, names: Names) -> None:
    """Raises Touches if the expression, or asking whether it is true, may touch arrays."""
    value = value_of(node, names)
    if value is not SCALAR and type(value) not in SCALARS and type(value) not in _SEQUENCES:
        raise Touches(f"{_text(node)} may be an array")


def is_sequence(value: Any) -> bool:
    """Whether iterating over it and asking whether it is empty run no code and read no array."""
    return type(value) in _SEQUENCES


def outermost_call(node: ast.Call, names: Names) -> None:
    """Raises Touches unless the call is a launch, of a watched function, or harmless.

    What a watched function touches, its own statements watch over.
    """
    _call(node, names)


def _call(node: ast.Call, names: Names) -> Any:
    """Launches and watched functions may be entered; when they return, nothing is pending.

    Unless the call is the last thing that a statement does, which then watches on.
    """
    function = value_of(node.func, names)
    launches = any(function is launch for launch in _LAUNCHES)
    if launches or is_watched(function):
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                _exactly(argument.value, names, (tuple, list))
            else:
                _passed(argument, names)
        for keyword in node.keywords:
            if keyword.arg is None:
                _exactly(keyword.value, names, (dict,))
            else:
                _passed(keyword.value, names)
        return SCALAR if launches else OPAQUE
    return _call_of(function, node, names)


def _passed(node: ast.expr, names: Names) -> None:
    if not isinstance(node, (ast.Name, ast.Constant)):
        value_of(node, names)


def plain_attribute_store(target: ast.Attribute, names: Names) -> Any:
    """The object whose attribute is set; raises Touches if that may run code."""
    owner = value_of(target.value, names)
    kind: Any = type(owner)
    found = in_type(kind, target.attr)
    plain = has_plain_dict(kind) and not is_data_descriptor(found)
    if (
        kind.__setattr__ is not object.__setattr__
        or isinstance(owner, (_Token, np.ndarray))
        or not (plain or type(found) is MemberDescriptorType)
    ):
        raise Touches(f"setting {_text(target)}")
    return owner


def plain_item_store(target: ast.Subscript, value: Any, names: Names) -> None:
    """Raises Touches unless an element of a list or dict is set, or a View's to a number."""
    owner = value_of(target.value, names)
    if _watches(owner) and (value is SCALAR or type(value) in SCALARS):
        _item(owner, target.slice, names)
        return
    if type(owner) not in (list, dict):
        raise Touches(_text(target.value))
    key = value_of(target.slice, names)
    if type(key) not in (int, str):
        raise Touches(f"setting {_text(target)}")


def _exactly(node: ast.expr, names: Names, kinds: tuple[type, ...]) -> Any:
    value = value_of(node, names)
    if type(value) not in kinds:
        raise Touches(_text(node))
    return value


# ------------------------------------------------------------------- each kind of expression


def _attribute(node: ast.Attribute, names: Names) -> Any:
    owner = value_of(node.value, names)
    name = node.attr
    value = MISSING if isinstance(owner, _Token) else attribute(owner, name)
    if value is MISSING:
        raise Touches(_text(node))
    return value


def _display(node: ast.Tuple | ast.List, names: Names) -> Any:
    values = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            _exactly(element.value, names, (tuple, list))
        values.append(value_of(element, names) if not isinstance(element, ast.Starred) else OPAQUE)
    if any(isinstance(element, ast.Starred) for element in node.elts):
        return OPAQUE
    return tuple(values) if isinstance(node, ast.Tuple) else values


def _watches(owner: Any) -> bool:
    """Whether subscripts of an object are those of a View; programs derive classes from it."""
    if type(owner) is _Row:
        return True
    methods = ("__getitem__", "__setitem__")
    return isinstance(owner, ViewType) and all(
        in_type(type(owner), name) is vars(ViewType)[name] for name in methods
    )


def _item(owner: Any, key: ast.expr, names: Names) -> Any:
    """An item of a View, which runs itself what is pending on its memory."""
    entries = key.elts if isinstance(key, ast.Tuple) else [key]
    slices = [entry for entry in entries if isinstance(entry, ast.Slice)]
    for entry in entries:
        if isinstance(entry, ast.Slice):
            value_of(entry, names)
        else:
            scalar(entry, names)
    kind = owner.kind if type(owner) is _Row else owner._region.dtype.numpy.kind
    rest = owner.ndim - len(entries) + len(slices)
    if rest > 0:
        return _Row(rest, kind) if not slices else OPAQUE
    return OPAQUE if kind == "c" else SCALAR


def _subscript(node: ast.Subscript, names: Names) -> Any:
    owner = value_of(node.value, names)
    if _watches(owner):
        return _item(owner, node.slice, names)
    key = value_of(node.slice, names)
    if type(owner) not in (tuple, list, dict, str) or type(key) not in (int, str):
        raise Touches(_text(node))
    try:
        return owner[key]
    except (LookupError, TypeError):
        raise Touches(_text(node)) from None


def _binary(node: ast.BinOp, names: Names) -> Any:
    scalar(node.left, names)
    scalar(node.right, names)
    return SCALAR


_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


def _unary(node: ast.UnaryOp, names: Names) -> Any:
    if isinstance(node.op, ast.Not):
        truth(node.operand, names)
        return SCALAR
    value = scalar(node.operand, names)
    return _SIGNS[type(node.op)](value) if type(value) is int else SCALAR


def _compare(node: ast.Compare, names: Names) -> Any:
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        value_of(node.left, names)
        for operand in node.comparators:
            value_of(operand, names)
        return SCALAR
    scalar(node.left, names)
    for operand in node.comparators:
        scalar(operand, names)
    return SCALAR


def _bool(node: ast.BoolOp, names: Names) -> Any:
    for operand in node.values:
        scalar(operand, names)
    return SCALAR


def _choice(node: ast.IfExp, names: Names) -> Any:
    truth(node.test, names)
    chosen = [value_of(node.body, names), value_of(node.orelse, names)]
    scalars = all(value is SCALAR or type(value) in SCALARS for value in chosen)
    return SCALAR if scalars else OPAQUE


def _formatted(node: ast.JoinedStr, names: Names) -> Any:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            scalar(part.value, names)
            if part.format_spec is not None:
                value_of(part.format_spec, names)
    return SCALAR


def _slice(node: ast.Slice, names: Names) -> Any:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            scalar(part, names)
    return OPAQUE


def _call_of(function: Any, node: ast.Call, names: Names) -> Any:
    """What a call of a function that is not the program's own gives."""
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(isinstance(a, ast.Starred) for a in node.args) or None in [k.arg for k in node.keywords]:
        raise Touches(_text(node))
    if _known(function, _NUMBERS_ONLY) or _known(function, _FRESH_ARRAYS):
        for argument in arguments:
            _numbers(argument, names)
        return SCALAR if _known(function, _GIVE_NUMBERS) else OPAQUE
    if function is builtins.len and len(arguments) == 1:
        kinds, given = _PLAIN_CONTAINERS, SCALAR
    elif function is builtins.enumerate or function is builtins.zip:
        kinds, given = _SEQUENCES, OPAQUE
    elif _known(function, _CLOCKS) or _is_of_a_timer(function):
        kinds, given = frozenset(), SCALAR
    elif type(function) is MethodType and _known(function.__func__, _OF_VIEWS):
        kinds, given = SCALARS, SCALAR
    else:
        raise Touches(f"{_text(node.func)}() may touch arrays")
    for argument in arguments:
        value = value_of(argument, names)
        if type(value) not in kinds and not (value is SCALAR and kinds is SCALARS):
            raise Touches(_text(node))
    return given


def _is_of_a_timer(function: Any) -> bool:
    return type(function) is MethodType and function.__func__ in (Timer.seconds, Timer.reset)


def _known(function: Any, known: frozenset[Any]) -> bool:
    try:
        return function in known
    except TypeError:  # not hashable
        return False


def _numbers(node: ast.expr, names: Names) -> None:
    """A number, a tuple or list of them, or a type."""
    value = value_of(node, names)
    parts = value if type(value) in (tuple, list) else (value,)
    for part in parts:
        if part is SCALAR or type(part) in SCALARS or isinstance(part, (type, np.dtype)):
            continue
        if type(part).__module__ == "pyfuser.frontends.embedded.spaces":
            continue
        raise Touches(f"{_text(node)} may be an array")


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


_HANDLERS: dict[type[ast.expr], Callable[[Any, Names], Any]] = {
    ast.Constant: lambda node, names: node.value,
    ast.Name: lambda node, names: names(node.id),
    ast.Attribute: _attribute,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.IfExp: _choice,
    ast.JoinedStr: _formatted,
    ast.Slice: _slice,
    ast.Call: _call,
}
SUPPORTED = frozenset(_HANDLERS)
