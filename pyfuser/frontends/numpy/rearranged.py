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
from pyfuser.frontends.numpy.functions import empty, full
from pyfuser.frontends.numpy.layout import is_c_order
from pyfuser.frontends.numpy.maps import BACK, PADDINGS, REPEAT, ROLL, TILE, mapped, may_pad
from pyfuser.frontends.numpy.memory import are_away, is_external, kernel_dtype
from pyfuser.frontends.numpy.record import is_due
from pyfuser.frontends.numpy.switches import recording


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
    return is_due(sum(x.size for x in arrays), any(map(are_away, arrays)))


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


def _joined(arrays: Any, more: dict[str, Any], rank: int, axis: int, wide: Any) -> Any:
    """`concatenate`, of arrays of fewer axes as `wide` has them; None: NumPy is to do it."""
    if more or type(arrays) not in (list, tuple) or not _is_lazy(arrays):
        return None
    return _concatenated([x.reshape(wide) if len(x.shape) < rank else x for x in arrays], axis)


def vstack(tup: Any, **more: Any) -> Any:
    found = _joined(tup, more, 2, 0, (1, -1))
    return _else("vstack", tup, **more) if found is None else found


def column_stack(tup: Any) -> Any:
    found = _joined(tup, {}, 2, 1, (-1, 1))
    return _else("column_stack", tup) if found is None else found


def hstack(tup: Any, **more: Any) -> Any:
    flat = type(tup) in (list, tuple) and tup and getattr(tup[0], "ndim", 0) == 1
    found = _joined(tup, more, 1, 0 if flat else 1, None)
    return _else("hstack", tup, **more) if found is None else found


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    found = None
    if _is_lazy((arr, values)):
        both = (arr, values) if axis is not None else (arr.reshape(-1), values.reshape(-1))
        found = _concatenated(both, 0 if axis is None else axis)
    return _else("append", arr, values, axis) if found is None else found


def pad(array: Any, pad_width: Any, mode: Any = "constant", **more: Any) -> Any:
    found = None
    if _is_lazy((array,)):
        widths = _widths(pad_width, array.ndim)
        if widths is not None and mode == "constant":
            if not more or more.keys() == {"constant_values"}:
                found = _surrounded(array, widths, **more)
        elif widths is not None and not more and type(mode) is str and mode in PADDINGS:
            found = _padded(array, widths, mode)
    return _else("pad", array, pad_width, mode, **more) if found is None else found


def _widths(given: Any, rank: int) -> list[tuple[int, int]] | None:
    """Elements before and after each axis; None: NumPy sees to it."""
    try:
        widths = np.broadcast_to(np.asarray(given), (rank, 2))
    except (ValueError, TypeError):
        return None
    if widths.dtype.kind != "i" or widths.min() < 0 or not widths.any():
        return None
    return [(int(before), int(after)) for before, after in widths]


def _surrounded(x: Any, widths: list[tuple[int, int]], constant_values: Any = 0) -> Any:
    """An array in the middle of equal elements."""
    kind, value = x.dtype.kind, constant_values
    low, high = (0, 1) if kind == "b" else (-(2**53), 2**53)
    if kind in "iu":
        low, high = int(np.iinfo(x.dtype).min), int(np.iinfo(x.dtype).max)
    if type(value) is int:
        if not low <= value <= high:
            return None
    elif type(value) is not float or kind != "f":
        return None
    pairs = list(zip(x.shape, widths, strict=True))
    found = full(tuple(n + before + after for n, (before, after) in pairs), value, x.dtype)
    found[tuple(slice(before, before + n) for n, (before, _) in pairs)] = x
    return found


def _padded(x: Any, widths: list[tuple[int, int]], mode: str) -> Any:
    """Along one axis at a time."""
    if not all(may_pad(mode, n, max(both)) for n, both in zip(x.shape, widths, strict=True)):
        return None
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = mapped(x, PADDINGS[mode], axis, before, x.shape[axis] + before + after)
            if x is None:
                return None
    return x


def _moves(shift: Any) -> bool:
    return not isinstance(shift, (int, np.integer)) or shift != 0


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if not _is_lazy((a,)):
        return _else("roll", a, shift, axis)
    if type(shift) is tuple and type(axis) is tuple and len(shift) == len(axis):
        moves = [(one, along) for one, along in zip(shift, axis, strict=True) if _moves(one)]
        for one, along in moves or zip(shift[:1], axis, strict=False):
            a = roll(a, one, along)
        return a
    if isinstance(shift, np.integer):
        shift = int(shift)
    if type(shift) is not int:
        return _else("roll", a, shift, axis)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    place = _axis(axis, len(a.shape))
    found = None
    if place is not None and a.shape[place]:
        # The shorter way round: most elements come from where no index wraps.
        length = a.shape[place]
        back = shift % length
        how, by = (ROLL, -shift % length) if 2 * back > length or not back else (BACK, back)
        found = mapped(a, how, place, by, length)
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
