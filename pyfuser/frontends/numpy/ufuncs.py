"""NumPy's ufuncs as objects of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.operations import OPERATIONS
from pyfuser.frontends.numpy.wrap import KIND
from pyfuser.support.caches import cached

_METHODS = frozenset({"reduce", "accumulate", "reduceat", "outer", "at"})


class ufunc:
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
        if count > self.numpy.nin:
            if "out" in kwargs:
                return self.numpy(*args, **kwargs)  # raises
            kwargs["out"] = args[self.numpy.nin :]
            args = args[: self.numpy.nin]
        return apply.apply(self.numpy, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.numpy, name)
        if name not in _METHODS:
            return value

        def method(*args: Any, **kwargs: Any) -> Any:
            return apply.call(value, args, kwargs)

        return method

    def __repr__(self) -> str:
        return repr(self.numpy)

    def __reduce__(self) -> Any:
        return of, (self.numpy,)


def _is_operand(value: Any) -> bool:
    kind = type(value)
    return kind is KIND.array or (kind in apply.SCALARS and value is not None)


@cached(256)
def of(function: np.ufunc) -> ufunc:
    """Our object for one of NumPy's ufuncs."""
    return ufunc(function)
