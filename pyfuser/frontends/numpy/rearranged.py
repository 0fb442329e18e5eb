"""Functions that copy parts of arrays to other places: recorded, part by part.

Of arrays in row-major order, with plain arguments; all else is NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.compiled import ndarray
from pyfuser.frontends.numpy.fallbacks import count
from pyfuser.frontends.numpy.functions import empty
from pyfuser.frontends.numpy.layout import is_c_order
from pyfuser.frontends.numpy.maps import REPEAT, ROLL, TILE, mapped
from pyfuser.frontends.numpy.memory import is_external, is_pending, kernel_dtype
from pyfuser.frontends.numpy.switches import LIMITS, recording


def _is_lazy(arrays: Sequence[Any]) -> bool:
    """Whether parts of these arrays are to be copied by recorded calls."""
    for x in arrays:
        if type(x) is not ndarray or is_external(x) or not is_c_order(x.shape, x.strides):
            return False
        kind = kernel_dtype(x)
        if kind is None or kind.is_complex or not x.shape:
            return False
    if not arrays or not recording():
        return False
    return sum(x.size for x in arrays) >= LIMITS.most or any(map(is_pending, arrays))


def _axis(axis: Any, rank: int) -> int | None:
    if type(axis) is not int or not -rank <= axis < rank:
        return None
    return axis % rank


def _part(axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def _else(name: str, *args: Any, **kwargs: Any) -> Any:
    count(name)
    return apply.call(getattr(np, name), args, kwargs)


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    if out is None and not more and type(arrays) in (list, tuple) and _is_lazy(arrays):
        found = _concatenated(arrays, axis)
        if found is not None:
            return found
    return _else("concatenate", arrays, axis, out, **more)


def _concatenated(arrays: Sequence[Any], axis: Any) -> Any:
    shape = arrays[0].shape
    place = _axis(axis, len(shape))
    if place is None:
        return None
    rest = [(x.shape[:place], x.shape[place + 1 :]) for x in arrays]
    if any(len(x.shape) != len(shape) for x in arrays) or len(set(rest)) > 1:
        return None
    length = sum(x.shape[place] for x in arrays)
    whole = (*shape[:place], length, *shape[place + 1 :])
    found = empty(whole, np.result_type(*[x.dtype for x in arrays]))
    at = 0
    for x in arrays:
        found[_part(place, at, at + x.shape[place])] = x
        at += x.shape[place]
    return found


def stack(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    if out is None and not more and type(arrays) in (list, tuple) and _is_lazy(arrays):
        shape = arrays[0].shape
        place = _axis(axis, len(shape) + 1)
        if place is not None and all(x.shape == shape for x in arrays):
            wide = (*shape[:place], 1, *shape[place:])
            return _concatenated([x.reshape(wide) for x in arrays], place)
    return _else("stack", arrays, axis, out, **more)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if not _is_lazy((a,)):
        return _else("roll", a, shift, axis)
    if type(shift) is tuple and type(axis) is tuple and len(shift) == len(axis):
        for one, along in zip(shift, axis, strict=True):
            a = roll(a, one, along)
        return a
    if type(shift) is not int:
        return _else("roll", a, shift, axis)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    place = _axis(axis, len(a.shape))
    found = None
    if place is not None and a.shape[place]:
        length = a.shape[place]
        found = mapped(a, ROLL, place, -shift % length, length)
    return _else("roll", a, shift, axis) if found is None else found


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    found = None
    if type(repeats) is int and repeats > 0 and _is_lazy((a,)):
        x, place = (a.reshape(-1), 0) if axis is None else (a, _axis(axis, len(a.shape)))
        if place is not None:
            found = mapped(x, REPEAT, place, repeats, x.shape[place] * repeats)
    return _else("repeat", a, repeats, axis) if found is None else found


def tile(A: Any, reps: Any) -> Any:
    """Along one axis at a time."""
    counts = (reps,) if type(reps) is int else reps
    if type(counts) is not tuple or not all(type(n) is int and n > 0 for n in counts):
        return _else("tile", A, reps)
    if not _is_lazy((A,)) or all(n == 1 for n in counts):
        return _else("tile", A, reps)
    rank = max(len(counts), A.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    found = A.reshape((1,) * (rank - A.ndim) + A.shape)
    for axis in range(rank - 1, -1, -1):
        if counts[axis] > 1:
            found = mapped(found, TILE, axis, counts[axis], found.shape[axis] * counts[axis])
            if found is None:
                return _else("tile", A, reps)
    return found


def diff(a: Any, n: Any = 1, axis: Any = -1, **more: Any) -> Any:
    if not more and n == 1 and type(a) is ndarray and a.shape and a.dtype.kind in "iuf":
        place = _axis(axis, len(a.shape))
        if place is not None:
            return a[_part(place, 1, None)] - a[_part(place, None, -1)]
    return _else("diff", a, n, axis, **more)
