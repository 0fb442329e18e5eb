"""`linalg.norm` of vectors along an axis, by the operations that NumPy takes for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.at_once import RIPENS, at_once
from pyfuser.frontends.numpy.fallbacks import OWN, function_of
from pyfuser.frontends.numpy.ufuncs import of
from pyfuser.frontends.numpy.wrap import KIND

_numpys = function_of(np.linalg.norm, "linalg.norm", apply.call_safely)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    usual = ord is None or (type(ord) is int and ord == 2)
    if type(x) is not KIND.array or not usual or type(axis) is not int or x.dtype.char not in "fd":
        return _numpys(x, ord, axis, keepdims)
    return of(np.sqrt)((x * x).sum(axis=axis, keepdims=keepdims))


OWN |= {"linalg.norm": at_once(np.linalg.norm, norm, RIPENS, 1)}
