"""Arrays of Views that a program lets go of at once, as in `np.array(view.data)`.

An array that a View hands out may be read at any time from then on, and as the program may keep its
bare address, launches on the View count as launches on an array for good. Where an array goes to
nobody but NumPy, which keeps no addresses, they do for as long as it lives. Which arrays these are
is decided from the syntax (`lending`), and what takes them from the values.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from types import FunctionType
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.views import Subview, View, ViewType

_FRESH = {
    1: """copy ndim shape size trace unique vstack hstack column_stack nan_to_num array_str
        array_repr linalg.det linalg.inv""",
    2: """array sum mean prod min max amin amax std var any all ptp median argmin argmax cumsum
        cumprod count_nonzero dot vdot inner outer sort argsort concatenate stack copyto zeros_like
        ones_like empty_like full_like array_equal array_equiv cov corrcoef linalg.solve""",
    3: """percentile quantile average bincount histogram searchsorted where interp clip
        linalg.norm""",
    4: "isclose allclose",
}
"""Functions of NumPy whose results share no memory with their arguments, by how many these are."""

_TESTING = {
    **dict.fromkeys(("assert_equal", "assert_array_equal"), 2),
    **dict.fromkeys(("assert_almost_equal", "assert_array_almost_equal"), 3),
    "assert_allclose": 4,
}
"""Those of `numpy.testing`, which takes long to import."""

_PLAIN = (float, int, bool, complex, len, str, repr, abs, print)

_MOST = {
    **{id(attrgetter(name)(np)): most for most, names in _FRESH.items() for name in names.split()},
    **{id(function): sys.maxsize for function in _PLAIN},
}


class _Lent:
    """A View whose `data` is for one use."""

    __slots__ = ("_view",)

    def __init__(self, view: ViewType) -> None:
        self._view = view

    @property
    def data(self) -> Any:
        return self._view._lent()

    @data.setter
    def data(self, values: Any) -> None:
        self._view.data = values


def lent(value: Any) -> Any:
    """What stands before `.data` where nobody keeps that: if it is a View one that lends it."""
    return _Lent(value) if type(value) is View or type(value) is Subview else value


def lent_to(value: Any, function: Any, count: int) -> Any:
    """What stands before `.data` in one of so many arguments of a function."""
    return lent(value) if count <= _most(function) else value


# law: 99
def _most(function: Any) -> int:
    """Up to how many arguments a function keeps none of its arguments, and gives none back."""
    if type(function) is np.ufunc:
        return function.nin  # another one is where the result goes
    testing = sys.modules.get("numpy.testing")
    if testing is not None and type(function) is FunctionType:
        name = function.__name__
        return _TESTING.get(name, -1) if vars(testing).get(name) is function else -1
    return _MOST.get(id(function), -1)


class _Parts:
    """The `data` of a View of which somebody takes a part."""

    __slots__ = ("_view",)

    def __init__(self, view: ViewType) -> None:
        self._view = view

    def __getitem__(self, key: Any) -> Any:
        found = self._view._lent()[key]
        shares = isinstance(found, np.ndarray) and found.base is not None
        return self._view.data[key] if shares else found


def parts(value: Any) -> Any:
    """What stands in place of `value.data` in `value.data[key]`: elements are nobody's array."""
    return _Parts(value) if type(value) is View or type(value) is Subview else value.data
