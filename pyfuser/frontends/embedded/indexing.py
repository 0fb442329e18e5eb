"""NumPy's basic indexing on regions: no memory is touched, so nothing needs to run first."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from pyfuser.support.errors import ArgumentError, whole
from pyfuser.support.units import count
from pyfuser.trace.memory import Region

FullKey = tuple[int | slice, ...]

_ALL = slice(None)

MAX_RANK = 8


def extents_of(shape: Any) -> tuple[int, ...]:
    """The shape of a View that somebody gives. Raises ArgumentError for what is none."""
    try:
        extents = tuple(map(operator.index, shape))
    except TypeError:
        given = shape if isinstance(shape, (list, tuple)) else [shape]
        hint = next(filter(None, map(whole, given)), "")
        if isinstance(shape, np.ndarray):
            hint = "; a View of an array's memory is pk.array(a)"
        raise ArgumentError(
            f"the shape of a View is a list of integers, as in pk.View([n, m]), not {shape!r}{hint}"
        ) from None
    if len(extents) > MAX_RANK or any(extent < 0 for extent in extents):
        raise ArgumentError(f"a View has 0 to {MAX_RANK} dimensions, none negative: {extents}")
    return extents


def is_everything(key: Any, rank: int) -> bool:
    """Whether a key selects all elements of a View."""
    if key is Ellipsis:
        return True
    if type(key) is slice:
        return rank > 0 and key == _ALL
    entries = key if type(key) is tuple else (key,)
    return len(entries) <= rank and all(type(e) is slice and e == _ALL for e in entries)


def full_key(key: Any, shape: tuple[int, ...]) -> FullKey:
    """A key as one non-negative integer or one slice with explicit bounds for each axis.

    Axes without an entry are taken whole. Raises IndexError for an index out of bounds or too many
    entries, TypeError for what is neither an integer nor a slice.
    """
    entries = key if isinstance(key, tuple) else (key,)
    if len(entries) > len(shape):
        raise IndexError(f"{len(entries)} indices for a View of {count(len(shape), 'dimension')}")
    full: list[int | slice] = []
    for axis, extent in enumerate(shape):
        entry = entries[axis] if axis < len(entries) else slice(None)
        if isinstance(entry, slice):
            full.append(slice(*_plain(entry).indices(extent)))
            continue
        index = _integer(entry)
        if not -extent <= index < extent:
            raise IndexError(
                f"index {index} is out of bounds for axis {axis} of a View with extent {extent}"
            )
        full.append(index % extent)
    return tuple(full)


def _plain(entry: slice) -> slice:
    """A slice whose bounds are plain integers (Futures are forced here)."""
    parts = (entry.start, entry.stop, entry.step)
    return slice(*(None if part is None else _integer(part) for part in parts))


def _integer(entry: Any) -> int:
    """An index or a bound of a slice. Raises TypeError for what is none."""
    try:
        return operator.index(entry)
    except TypeError:
        raise TypeError(
            f"an index of a View is an integer, a slice of integers or an array, not {entry!r}"
            f"{_instead(entry)}"
        ) from None


def _instead(entry: Any) -> str:
    if entry is None or entry is Ellipsis:
        return f"; `{'None' if entry is None else '...'}` is not supported: index view.data"
    return whole(entry)


def refuse_key(key: Any, rank: int) -> NoReturn:
    """Raise ValueError for a key without an entry for each dimension, as PyKokkos does.

    TypeError for one that is neither an integer, a slice nor an array.
    """
    entries = key if isinstance(key, tuple) else (key,)
    if hasattr(key, "__len__") and not isinstance(key, (tuple, str)):
        raise ValueError(
            "not supported: a list, mask or array as the only index of a View; view.data[...] "
            "takes it, and makes a copy"
        )
    for entry in entries:
        if not isinstance(entry, slice):
            _integer(entry)
    if len(entries) > rank:
        raise ValueError(f"{len(entries)} indices for a View of {count(rank, 'dimension')}")
    raise ValueError(
        f"Please include slices for all dimensions: {len(entries)} of {rank} are given"
    )


def basic_index(region: Region, key: FullKey) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset and strides in bytes, and shape, of what a key from `full_key` selects."""
    offset = region.offset
    strides: list[int] = []
    shape: list[int] = []
    for entry, stride in zip(key, region.strides, strict=True):
        if isinstance(entry, slice):
            length = len(range(entry.start, entry.stop, entry.step))
            offset += entry.start * stride if length else 0
            strides.append(stride * entry.step)
            shape.append(length)
        else:
            offset += entry * stride
    if 0 in shape:  # of an empty buffer there is no place but the first
        offset = region.offset
    return offset, tuple(strides), tuple(shape)
