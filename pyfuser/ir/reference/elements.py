"""Element access of the interpreter: inside of bounds, and noted if somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from pyfuser.ir.arithmetic import UndefinedBehaviour

Array = np.ndarray[Any, Any]
Point = tuple[int, ...]
Note = Callable[..., None]


class Watcher(Protocol):
    """Who is told of all accesses of a kernel run."""

    def watch(self, arrays: Mapping[str, Array]) -> dict[str, Note]:
        """Start on a kernel over these arrays; gives `note(kind, *index)` for each."""

    def iterations(self, points: Iterable[Point]) -> Iterator[Point]:
        """The points again, each made the current iteration before it is handed out."""


def accessors(array: Array, name: str, note: Note | None) -> tuple[Callable[..., Any], ...]:
    """How the interpreter touches an array, bounds checked and noted if somebody watches.

    Gives `load(*index)`, `store(value, *index)` and `atomic(op, change, *index)`, which returns
    the old value.
    """
    shape, item = array.shape, array.item

    def check(index: tuple[int, ...]) -> None:
        for i, extent in zip(index, shape, strict=True):
            if not 0 <= i < extent:
                raise UndefinedBehaviour(f"{name}{list(index)} is outside a view of shape {shape}")

    def load(*index: int) -> Any:
        check(index)
        if note:
            note("read", *index)
        return item(*index)

    def store(value: Any, *index: int) -> None:
        check(index)
        if note:
            note("write", *index)
        array[index] = value

    def atomic(op: str, change: Callable[[Any], Any], *index: int) -> Any:
        check(index)
        if note:
            note(f"atomic {op}", *index)
        old = item(*index)
        array[index] = change(old)
        return old

    if note is None and array.ndim == 1:
        return (*_fast_accessors(array, check), atomic)
    return load, store, atomic


def scratch_accessors(name: str, dtype: str, *extents: int) -> tuple[Any, ...]:
    """The accessors and the shape of an iteration's own memory; no other iteration can touch it."""
    array = np.zeros(tuple(max(extent, 0) for extent in extents), dtype)
    return (*accessors(array, name, None), array.shape)


def _fast_accessors(
    array: Array, check: Callable[[tuple[int, ...]], None]
) -> tuple[Callable[[int], Any], Callable[[Any, int], None]]:
    """The common case, which decides how many programs a minute of fuzzing gets through."""
    (extent,), item = array.shape, array.item

    def load(index: int) -> Any:
        if not 0 <= index < extent:
            check((index,))
        return item(index)

    def store(value: Any, index: int) -> None:
        if not 0 <= index < extent:
            check((index,))
        array[index] = value

    return load, store
