"""Reductions of a few elements each, as operations on whole arrays.

Sums of vectors of three, blocks of a picture, sliding windows: NumPy takes 15 to 35 ns for each
short row along the innermost axis. `x[..., 0] + x[..., 1] + x[..., 2]` takes a tenth of that; and
recorded, it fuses with what is around it as other operations do.

The law: NumPy's bits. Its iterator takes axes in the order of their strides (of equal ones the
later axis is the inner one), and axes that lie together as one. A sum of floats adds up each row by
itself, one element after the other if they are fewer than eight, and adds that to the total, which
begins with 0.0. All other reductions go on from row to row. Of 0.0 and -0.0 the later one is the
greatest in rows that are too short for NumPy's vectors; how short these are is tried out.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise, product, takewhile
from math import prod
from typing import Any, TypeAlias

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.memory import is_away, usable
from pyfuser.frontends.numpy.operations import NAMED
from pyfuser.frontends.numpy.record import end_trip, is_due, program_frame, record
from pyfuser.frontends.numpy.switches import errors, is_loud, recording
from pyfuser.frontends.numpy.wrap import adopt
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out

LONGEST = 7
"""Elements of a row: of eight and more NumPy adds up in another order."""

MOST = 64
"""Elements of a result; each is an operation."""

ROW = 15
"""Nanoseconds that NumPy takes for a row at least, ..."""

OPERATION = 1_000
"""... for an operation on a part of an array that is in cache, ..."""

CALL = 5_000
"""... and that it takes to find out what is added. Measured on an AMD EPYC (Zen 4)."""

UFUNCS = {
    "sum": "add", "mean": "add", "prod": "multiply", "max": "maximum", "min": "minimum",
    "any": "logical_or", "all": "logical_and",
}  # fmt: skip
SPREADS = frozenset(["var", "std"])
_OPERATIONS = {name: replace(NAMED[of], called="reduce") for name, of in UFUNCS.items()}


Rows: TypeAlias = tuple[tuple[Any, ...], ...]
"""What is reduced: for each row the indices of its elements, each of a part of the array."""


def at_once(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.name(axis=...)` of an array of NumPy's; None: NumPy computes it in one call."""
    reduce = partial(_spread, _at_once) if name in SPREADS else _at_once
    found = reduce(x, name, args, kwargs)
    return None if found is None else adopt(found)


def _at_once(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = rows_along(x, name, args, kwargs)
    if rows is None or errors() is not None or not x.flags.aligned:
        return None
    elements = len(rows) * len(rows[0])
    if x.size // len(rows[0]) * ROW < CALL + OPERATION * elements:
        return None
    ufunc, kind = _OPERATIONS[name].ufunc, _widened(name, x.dtype)

    def two(a: Any, b: Any) -> Any:
        return ufunc(a, b) if kind is None else ufunc(a, b, dtype=kind)

    def more(total: Any, part: Any) -> Any:
        return ufunc(total, part, out=total)

    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            found = _reduced(x, name, rows, two, more)
    except FloatingPointError:  # NumPy is to warn
        return None
    if name == "mean":
        found = np.true_divide(found, elements, out=found)
    return found


def recorded(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.name(axis=...)` of an array of ours, recorded; None: it is not."""
    if name in SPREADS:
        return _spread(recorded, x, name, args, kwargs)
    rows = rows_along(x, name, args, kwargs) if name in UFUNCS else None
    if rows is None or not recording() or is_loud(errors()):
        return None
    operation, kind = _OPERATIONS[name], _widened(name, x.dtype)
    signature = None if kind is None else (None, None, kind)
    with TRACER.lock:
        region = usable(x)
        if region is None or not is_due(x.size, is_away(region.buffer)):
            return None
        end_trip(program_frame(sys._getframe(2)))
        begun = False

        def two(a: Any, b: Any) -> Any:
            nonlocal begun
            found = record(operation, (a, b), signature=signature, due=True)
            if found is None and not begun:
                raise _NotRecorded
            begun = True
            more_of = {} if kind is None else {"dtype": kind}
            return apply.compute(operation.ufunc, (a, b), more_of) if found is None else found

        def more(a: Any, b: Any) -> Any:
            found = record(operation, (a, b), due=True)
            return apply.compute(operation.ufunc, (a, b)) if found is None else found

        try:
            found = _reduced(x, name, rows, two, more)
        except _NotRecorded:
            return None
        if name == "mean":
            found /= len(rows) * len(rows[0])
    return found


def _spread(
    reduce: Callable[..., Any], x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`x.var(axis=...)` or `std`, by the operations that NumPy takes for them.

    reduce: `recorded`, or `_at_once`.
    """
    given = dict(kwargs)
    ddof = given.pop("ddof", 0)
    rows = rows_along(x, "mean", args, given)
    if rows is None or type(ddof) is not int or not 0 <= ddof < len(rows) * len(rows[0]):
        return None
    axis = args or (given["axis"],)
    mean = reduce(x, "mean", axis, {"keepdims": True})
    if mean is None:
        return None
    try:
        with np.errstate(over="raise", invalid="raise") if reduce is _at_once else nullcontext():
            apart = x - mean
            apart = np.square(apart, out=apart)
    except FloatingPointError:
        return None
    found = reduce(apart, "sum", axis, {"keepdims": given.get("keepdims", False)})
    if found is None:
        return None
    found /= len(rows) * len(rows[0]) - ddof
    return found if name == "var" else np.sqrt(found, out=found)


class _NotRecorded(Exception):
    """The first of the operations is NumPy's to compute."""


def _reduced(
    x: Any,
    name: str,
    rows: Rows,
    two: Callable[[Any, Any], Any],
    more: Callable[[Any, Any], Any],
) -> Any:
    """The result. two: of two elements. more: of what there is and another one."""
    if name not in ("sum", "mean") or x.dtype.kind != "f":
        first, second, *others = (x[index] for row in rows for index in row)
        found = two(first, second)
        for part in others:
            found = more(found, part)
        return found
    total = None
    for row in rows:
        first, second, *others = (x[index] for index in row)
        found = two(first, second)
        for part in others:
            found = more(found, part)
        total = found if total is None else more(total, found)
    return more(total, 0.0)  # as it begins with that: a sum of -0.0 is 0.0


def rows_along(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rows | None:
    """What is reduced; None: not by this."""
    shape = x.shape
    if len(shape) < 2 or len(args) > 1 or kwargs.keys() - _NAMES or (args and "axis" in kwargs):
        return None
    axis = args[0] if args else kwargs.get("axis")
    if type(axis) is int and -len(shape) <= axis and shape[axis % len(shape)] > LONGEST:
        return None
    keepdims, dtype = kwargs.get("keepdims", False), x.dtype
    if axis is None or type(keepdims) is not bool or left_out("short-rows"):
        return None
    if dtype.char not in _KINDS or not dtype.isnative or (name == "mean" and dtype.kind != "f"):
        return None
    if dtype.kind == "f" and name in ("any", "all"):
        return None  # NumPy warns of signalling NaNs
    axes = axes_of(axis, len(shape))
    if axes is None or len(axes) == len(shape):
        return None
    longest = LONGEST
    if dtype.kind == "f" and name in ("max", "min"):
        longest = _later_of_equal(_OPERATIONS[name].ufunc, dtype)
    return _rows_of(shape, x.strides, axes, keepdims, longest)


_NAMES = {"axis", "keepdims"}
_KINDS = "fd?bBhHiIlLqQ"


def axes_of(axis: Any, rank: int) -> tuple[int, ...] | None:
    """The axes that a reduction is told, in order; None: NumPy sees to it."""
    if type(axis) is int:
        return (axis % rank,) if -rank <= axis < rank else None
    given = axis if type(axis) is tuple else (axis,)
    if any(type(one) is bool for one in given):
        return None
    try:
        places = [operator.index(one) for one in given]
    except TypeError:
        return None
    if not all(-rank <= one < rank for one in places):
        return None
    found = sorted({one % rank for one in places})
    return tuple(found) if len(found) == len(places) else None


@cached(1024)
# law: not None
def _rows_of(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
    longest: int,
) -> Rows | None:
    """The rows along `axes`, as NumPy's iterator takes them; None: they are long, or many."""
    order = [axis for axis, extent in enumerate(shape) if extent != 1]
    if 0 in shape or any(strides[axis] <= 0 for axis in order):
        return None
    order.sort(key=lambda axis: (strides[axis], -axis))  # the innermost first
    if not order or order[0] not in axes:
        return None
    row = list(takewhile(axes.__contains__, order))
    if any(strides[b] != strides[a] * shape[a] for a, b in pairwise(row)):
        return None  # NumPy copies them so that they lie together, or does not
    between = [axis for axis in order if axis in axes and axis not in row]
    count = prod(shape[axis] for axis in row)
    if count > longest or count * prod(shape[axis] for axis in between) > MOST:
        return None
    selects = [
        [
            _index(len(shape), axes, {**dict(outer), **dict(inner)}, keepdims)
            for inner in _places(row, shape)
        ]
        for outer in _places(between, shape)
    ]
    return tuple(tuple(row) for row in selects)


def _places(axes: list[int], shape: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """Each place along some axes, the innermost of which come first: pairs of axis and index."""
    outer = axes[::-1]
    return [
        tuple(zip(outer, place, strict=True))
        for place in product(*(range(shape[axis]) for axis in outer))
    ]


def _index(rank: int, axes: tuple[int, ...], at: dict[int, int], keeps: bool) -> tuple[Any, ...]:
    """What selects one element of each result."""
    one = {n: at.get(n, 0) for n in axes}
    ones = {n: slice(place, place + 1) for n, place in one.items()} if keeps else one
    return tuple(ones.get(n, slice(None)) for n in range(rank))


def _widened(name: str, dtype: Any) -> Any:
    """The type that integers are added up in; None: their own."""
    if name not in ("sum", "prod") or dtype.kind == "f":
        return None
    wide = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return None if dtype == wide else wide


@cached(16)
def _later_of_equal(ufunc: Any, dtype: Any) -> int:
    """The longest row up to which NumPy takes the later one of 0.0 and -0.0.

    Behind elements that do not count, too: these may fill up a vector.
    """
    values = np.array([0.0, -0.0, 1.0 if ufunc is np.minimum else -1.0], dtype)
    for count in range(2, LONGEST + 1):
        rows = values[np.array(list(product(range(3), repeat=count)))]
        later = rows[:, 0]
        for column in rows.T[1:]:
            later = np.where(ufunc(column, later) == column, column, later)
        if ufunc.reduce(rows, axis=1).tobytes() != later.tobytes():
            return count - 1
    return LONGEST
