"""NumPy's ufuncs as objects of ours."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.at_once import ANY, COSTLY, MOST, PAIRS, STORES, at_once
from pyfuser.frontends.numpy.memory import are_away, host
from pyfuser.frontends.numpy.operations import OPERATIONS, Operation
from pyfuser.frontends.numpy.record import end_trip, is_due, program_frame, record
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt
from pyfuser.support.caches import cached
from pyfuser.support.extension import NUMPY

_METHODS = frozenset({"reduce", "accumulate", "reduceat", "outer", "at"})


class ByPython:
    """One of NumPy's ufuncs; its attributes are NumPy's."""

    __slots__ = ("_operation", "numpy")

    def __init__(self, function: Any) -> None:
        self.numpy = function
        self._operation = OPERATIONS.get(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operation = self._operation
        count = len(args)
        if operation is not None and not kwargs and type(args[0] if args else None) is KIND.array:
            if count == 2 == operation.ufunc.nin and _is_operand(args[1]):
                return apply.binary(operation, *args)
            if count == 1 == operation.ufunc.nin:
                return apply.unary(operation, *args)
        if count > self.numpy.nin and self.numpy in (np.maximum, np.minimum):
            return apply.call(self.numpy, args, kwargs)  # warns
        if count > self.numpy.nin:
            if "out" in kwargs:
                return self.numpy(*args, **kwargs)  # raises
            given = args[self.numpy.nin :]
            kwargs["out"] = (*given, *[None] * (self.numpy.nout - len(given)))
            args = args[: self.numpy.nin]
        return apply.apply(self.numpy, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.numpy, name)
        if name not in _METHODS:
            return value
        return _method(self.numpy, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.numpy

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __repr__(self) -> str:
        return repr(self.numpy)

    def __reduce__(self) -> Any:
        return of, (self.numpy,)


@cached(512)
def _method(function: np.ufunc, name: str) -> Any:
    """One of the methods of NumPy's ufuncs."""
    numpys = getattr(function, name)
    operation = OPERATIONS.get(function)
    call = apply.call if name == "at" else apply.call_safely  # it is given one to write

    def method(*args: Any, **kwargs: Any) -> Any:
        if name == "outer" and operation is not None and len(args) == 2 and not kwargs:
            one, other = args
            if type(one) is type(other) is KIND.array:
                return _outer(operation, one, other)
        return call(numpys, args, kwargs)

    if name == "outer" and operation is not None:
        return at_once(numpys, method, PAIRS, 2, first=True)
    if name == "at":
        return at_once(numpys, method, STORES, 3, first=True)
    arrays = 2 if name in ("outer", "reduceat") else 1
    return at_once(numpys, method, MOST, arrays, first=True)


def _outer(operation: Operation, one: Any, other: Any) -> Any:
    """An operation on each pair of elements of two arrays."""
    size = one.size * other.size
    if size < LIMITS.most or not is_due(size, are_away(one) or are_away(other)):
        return apply.compute(operation.ufunc.outer, (one, other))
    end_trip(program_frame(sys._getframe(1)))
    one, other = _apart(one, other.size), _apart(other, one.size)
    pair = one.reshape((*one.shape, *(1,) * other.ndim)), other
    found = record(operation, pair, due=True)
    return apply.compute(operation.ufunc, pair) if found is None else found


FEW = 1.0 / 64
"""Of a result's elements: so many of an operand are copied in no time."""


def _apart(x: Any, times: int) -> Any:
    """An operand, or a copy of one that is a part of an array and of few elements.

    As a row of a matrix that moves on in a loop it would make a new trace in each trip; and if the
    result is stored into that matrix, in the same kernel, too.
    """
    return x if x.base is None or 1.0 / times > FEW else adopt(host(x).copy("K"))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """NumPy's: the products of all elements of both."""
    if type(a) is type(b) is KIND.array and out is None:
        return of(np.multiply).outer(a.reshape(-1), b.reshape(-1))
    return apply.call(np.outer, (a, b), {} if out is None else {"out": out})


def _is_operand(value: Any) -> bool:
    kind = type(value)
    return kind is KIND.array or (kind in apply.SCALARS and value is not None)


ufunc: Any = ByPython if NUMPY is None else NUMPY.Function


@cached(256)
def of(function: np.ufunc) -> Any:
    """Our object for one of NumPy's ufuncs."""
    if function.nout > 1:
        return at_once(function, ByPython(function), MOST, function.nin)
    operation = OPERATIONS.get(function)
    lazy = ANY if operation is None else COSTLY if operation.costly else MOST
    return at_once(function, ByPython(function), lazy, function.nin, operation=operation)
