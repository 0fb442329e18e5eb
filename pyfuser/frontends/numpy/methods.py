"""Methods of arrays that NumPy computes at once, or that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply, short_rows
from pyfuser.frontends.numpy.along import REDUCTIONS, along_axis
from pyfuser.frontends.numpy.array import Array
from pyfuser.frontends.numpy.as_program import as_program
from pyfuser.frontends.numpy.at_once import (
    ANY,
    MOST,
    RESHAPES,
    SEARCHES,
    STORES,
    VIEWS,
    at_once,
    kind_of,
)
from pyfuser.frontends.numpy.fallbacks import in_place, method_of
from pyfuser.frontends.numpy.lookup import searched
from pyfuser.frontends.numpy.memory import host
from pyfuser.frontends.numpy.operations import CONVERSIONS, NAMED, SAME
from pyfuser.frontends.numpy.reductions import full_reduction
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import adopt

_RECORDED = frozenset({"mean", "var", "std", *REDUCTIONS})
_SHORT = short_rows.SPREADS | short_rows.UFUNCS.keys()
_REDUCTIONS = (
    "sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax",
    "cumsum", "cumprod", "ptp", "round", "dot", "trace", "argsort", "nonzero", "conj",
    "conjugate", "clip", "take", "repeat", "compress",
)  # fmt: skip

_ARRAYS = {"dot": 2, "take": 2, "repeat": 2, "compress": 2, "clip": 3}


def _computed(name: str) -> Callable[..., Any]:
    """A method that NumPy computes on what has run, and that keeps no reference to it."""
    numpys = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        array = apply.small(self, LIMITS.most if name in _RECORDED else LIMITS.first(False))
        if array is None and name in _RECORDED:
            for way in (full_reduction, short_rows.recorded, along_axis):
                found = way(self, name, args, kwargs)
                if found is not None:
                    return found
        if (args or kwargs) and (
            "out" in kwargs or not all(map(apply.is_plain, (*args, *kwargs.values())))
        ):
            return method_of(self, name)(*args, **kwargs)
        array = host(self) if array is None else array
        found = short_rows.at_once(array, name, args, kwargs) if name in _SHORT else None
        if found is not None:
            return found
        value = as_program(numpys, (array, *args), kwargs)
        if type(value) is np.ndarray:
            if value.base is None and value is not self._array:
                return adopt(value)
            return method_of(self, name)(*args, **kwargs)
        if type(value) is tuple:
            return tuple(map(adopt, value))
        return value

    method.__name__ = name
    return method


_OPERATIONS = {"clip": NAMED["clip"], "copy": SAME, "astype": CONVERSIONS}

for _name in _REDUCTIONS:
    if hasattr(np.ndarray, _name):
        _numpys, _arrays = getattr(np.ndarray, _name), _ARRAYS.get(_name, 1)
        _method = at_once(
            _numpys, _computed(_name), kind_of(_name), _arrays, method=True,
            operation=_OPERATIONS.get(_name),
        )  # fmt: skip
        setattr(Array, _name, _method)

for _names, _kind in (
    (("astype", "copy", "flatten"), MOST),
    (("transpose", "swapaxes", "squeeze", "ravel", "item"), ANY),
    (("reshape",), RESHAPES),
    (("view",), VIEWS),
):
    for _name in _names:
        _method = at_once(
            getattr(np.ndarray, _name), getattr(Array, _name), _kind, method=True,
            operation=_OPERATIONS.get(_name),
        )  # fmt: skip
        setattr(Array, _name, _method)
for _name in ("sort", "partition"):
    _method = at_once(getattr(np.ndarray, _name), in_place(_name), STORES, method=True)
    setattr(Array, _name, _method)


_SIDE = {"side"}


def _searchsorted(self: Any, *args: Any, **kwargs: Any) -> Any:
    found = None
    if len(args) in (1, 2) and kwargs.keys() <= _SIDE and len(args) + len(kwargs) < 3:
        found = searched(self, *args, **kwargs)
    return method_of(self, "searchsorted")(*args, **kwargs) if found is None else found


_method = at_once(np.ndarray.searchsorted, _searchsorted, SEARCHES, 2, method=True)
Array.searchsorted = _method  # type: ignore[attr-defined]
