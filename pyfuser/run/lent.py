"""Arrays of Views that a program lets go of at once, as in `np.array(view.data)`.

An array that a View hands out may be read at any time from then on, and as the program may keep its
bare address, launches on the View count as launches on an array for good. Where an array goes to
nobody but NumPy, which keeps no addresses, they do for as long as it lives. Which arrays these are
is decided from the syntax (`lending`), and what takes them from the values.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.views import Subview, View, ViewType

_FUNCTIONS = {id(f) for f in (np.array, float, int, bool, complex, len, abs)}
"""Functions in C whose results share no memory with their one argument."""


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


def lent(value: Any, rank: int = 0) -> Any:
    """What stands before `.data` where nobody keeps that: if it is a View one that lends it.

    rank: of the View; its element is asked for.
    """
    if type(value) is not View and type(value) is not Subview:
        return value
    if sys.getprofile() is not None:  # which gets the method of the array that is called
        return value
    return _Lent(value) if not rank or rank == value.rank() else value


def lent_to(value: Any, place: Any, name: str = "") -> Any:
    """What stands before `.data` in the one argument of a function, or of one in a module."""
    function = place
    if name:
        function = vars(np).get(name) if place is np else None
    return lent(value) if keeps_nothing(function) else value


# law: True
def keeps_nothing(function: Any) -> bool:
    """Whether a function keeps nothing of its one argument, and gives nothing of it back."""
    if type(function) is np.ufunc:
        return function.nin == 1
    return id(function) in _FUNCTIONS
