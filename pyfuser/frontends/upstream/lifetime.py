"""Memory of Kokkos that Python still holds when Kokkos ends.

Kokkos aborts the process if one of its allocations is freed after it has ended, and Python frees
the Views of a program's modules only then; so a program with one at module level ends by an abort,
with us and without. What is still alive at the end of Kokkos is therefore never freed: the process
is about to end, which gives the memory back, and until then the Views can be read.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

_ALIVE: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Kokkos' allocations by their id, whoever holds them: a View, or an array made of its data."""


def note(allocation: Any) -> None:
    """Note what became the `array` of a View: other arrays may keep it longer than the View."""
    if allocation is not None and type(allocation) is not np.ndarray:
        with contextlib.suppress(TypeError):  # of an object without weak references
            _ALIVE[id(allocation)] = allocation


def note_all(view_type: type) -> None:
    """Note the allocations of all Views that exist."""
    for found in gc.get_objects():
        if view_type in type(found).__mro__:
            note(vars(found).get("array"))


def keep_what_is_alive() -> None:
    """Keep the allocations that are in use now from ever being freed; Kokkos is about to end."""
    for allocation in list(_ALIVE.values()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(allocation))
    _ALIVE.clear()
