"""`view.data[key] = values`: the array of such a statement is gone when it ends.

An array that a View hands out may be read at any time from then on, so launches on the View count
as launches on an array. Nothing but the statement's own assignment has this one: what is assigned,
and the key, are evaluated without it, and NumPy does not pass it on.
"""

from __future__ import annotations

from typing import Any

from pyfuser.frontends.embedded.views import Subview, View, ViewType


class _Lent:
    """A View whose `data` is for one assignment."""

    __slots__ = ("_view",)

    def __init__(self, view: ViewType) -> None:
        self._view = view

    @property
    def data(self) -> Any:
        return self._view._lent()


def lent(value: Any) -> Any:
    """What stands before `.data[key] = ...`, if it is a View one whose `data` nobody keeps."""
    return _Lent(value) if type(value) is View or type(value) is Subview else value
