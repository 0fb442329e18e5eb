"""Atomic operations as Python functions, for workunits that are called as plain Python.

In a kernel the translator makes atomics of these calls. They return the old value, as Kokkos'
`atomic_fetch_*` do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any


def _cell(view: Any, indices: Sequence[int]) -> tuple[Any, Any]:
    """The row that holds a cell, and the cell's last index."""
    *outer, last = indices
    for index in outer:
        view = view[index]
    return view, last


def _fetch(name: str, operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def atomic(view: Any, indices: Sequence[int], value: Any) -> Any:
        row, last = _cell(view, indices)
        old = row[last]
        row[last] = operation(old, value)
        return old

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = (
        f"`{name}(view, [i, j, ...], value)`: update one element, return the old value."
    )
    return atomic


atomic_fetch_add = _fetch("atomic_fetch_add", operator.add)
atomic_fetch_and = _fetch("atomic_fetch_and", operator.and_)
atomic_fetch_div = _fetch("atomic_fetch_div", operator.truediv)
atomic_fetch_lshift = _fetch("atomic_fetch_lshift", operator.lshift)
atomic_fetch_max = _fetch("atomic_fetch_max", max)
atomic_fetch_min = _fetch("atomic_fetch_min", min)
atomic_fetch_mod = _fetch("atomic_fetch_mod", operator.mod)
atomic_fetch_mul = _fetch("atomic_fetch_mul", operator.mul)
atomic_fetch_or = _fetch("atomic_fetch_or", operator.or_)
atomic_fetch_rshift = _fetch("atomic_fetch_rshift", operator.rshift)
atomic_fetch_sub = _fetch("atomic_fetch_sub", operator.sub)
atomic_fetch_xor = _fetch("atomic_fetch_xor", operator.xor)


def atomic_add(view: Any, indices: Sequence[int], value: Any) -> None:
    """Add to one element."""
    atomic_fetch_add(view, indices, value)


def atomic_increment(view: Any, indices: Sequence[int]) -> None:
    """Add 1 to one element."""
    atomic_fetch_add(view, indices, 1)


def atomic_compare_exchange(
    view: Any, indices: Sequence[int], comparison_value: Any, new_value: Any
) -> Any:
    """Set one element to `new_value` if it equals `comparison_value`; return the old value."""
    row, last = _cell(view, indices)
    old = row[last]
    if old == comparison_value:
        row[last] = new_value
    return old
