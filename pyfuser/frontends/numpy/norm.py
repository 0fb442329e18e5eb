"""`linalg.norm` of vectors along an axis, by the operations that NumPy takes for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply, short_rows
from pyfuser.frontends.numpy.at_once import RIPENS, at_once
from pyfuser.frontends.numpy.fallbacks import function_of
from pyfuser.frontends.numpy.switches import LIMITS, errors
from pyfuser.frontends.numpy.ufuncs import of
from pyfuser.frontends.numpy.wrap import KIND

_numpys = function_of(np.linalg.norm, "linalg.norm", apply.call_safely)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    usual = ord is None or (type(ord) is int and ord == 2)
    if type(x) is KIND.array and usual and type(axis) is int and x.dtype.char in "fd":
        array = apply.small(x, LIMITS.first(False))
        if array is None:
            return of(np.sqrt)((x * x).sum(axis=axis, keepdims=keepdims))
        found = _at_once(array, axis, keepdims)
        if found is not None:
            return found
    return _numpys(x, ord, axis, keepdims)


def _at_once(array: Any, axis: int, keepdims: Any) -> Any:
    """The lengths of vectors of few elements; None: NumPy computes them, and warns."""
    if errors() is not None or short_rows.rows_along(array, "sum", (axis,), {}) is None:
        return None
    try:
        with np.errstate(over="raise", invalid="raise"):
            squares = array * array
    except FloatingPointError:
        return None
    found = short_rows.at_once(squares, "sum", (axis,), {"keepdims": keepdims})
    return None if found is None else of(np.sqrt)(found)


norm.__doc__, norm.__module__ = np.linalg.norm.__doc__, np.linalg.norm.__module__
norm.__wrapped__ = np.linalg.norm  # type: ignore[attr-defined]  # for those who ask for a signature
OURS = {"norm": at_once(np.linalg.norm, norm, RIPENS, 1)}
