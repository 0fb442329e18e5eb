"""Making our arrays: of NumPy's results, of regions, of views, of other people's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import READ_ONLY, ViewMemory
from pyfuser.frontends.numpy.memory import (
    FRESH,
    ArrayMemory,
    Owner,
    address_of,
    exporter,
    expose,
    is_ours_alone,
    kernel_dtype,
    layout_of,
    region_of,
    share,
)
from pyfuser.ir.dtypes import from_numpy
from pyfuser.trace.memory import Array, Handle, Region


class _ArrayClass:
    """The class of our arrays, once it is made."""

    array: Any = ArrayMemory


KIND = _ArrayClass()

_WRITEABLE = 0x400
"""Of NumPy's flags; to ask for it by name warns of what `broadcast_arrays` gives."""


_make: Any = object.__new__


def adopt(array: Array) -> Any:
    """Our array of a NumPy array that nobody else has, nor anything that shares its memory."""
    x = _make(KIND.array)
    x._array = array
    return x


def of_region(region: Region, handle: Handle | None, writeable: bool = True) -> Any:
    """Our array over a part of a buffer."""
    x = object.__new__(KIND.array)
    x._array = x._base = None
    x._owner = handle
    x._region = region
    x._writeable = writeable
    return x


def foreign(array: Array) -> Any:
    """Our array over somebody else's."""
    x = object.__new__(KIND.array)
    x._array = array
    x._base = x._region = x._owner = None
    x._writeable = bool(array.flags.writeable)
    return x


def view(x: ArrayMemory, part: Array) -> Any:
    """Our array of a view that NumPy made of `layout_of(x)`."""
    found = _view(x, part)
    found._base = x if x._base is None else x._base
    found._writeable = x._writeable and bool(part.flags.num & _WRITEABLE)
    if not found._writeable and found._array is not None:
        found._array.flags.writeable = False
    return found


def sliced(x: ArrayMemory, part: Array) -> Any:
    """`view` of what a slice of `x._array` is, whose elements are of the same type."""
    owner = x._owner
    if type(owner) is not Owner and owner is not FRESH:
        return view(x, part)
    if owner is FRESH:
        owner = x._owner = Owner()
    found = object.__new__(KIND.array)
    found._array = part
    found._base = x if x._base is None else x._base
    found._owner = owner
    found._region = None
    found._writeable = x._writeable
    return found


def _view(x: ArrayMemory, part: Array) -> Any:
    if x._owner is None:
        return foreign(part)
    if not part.size:
        return adopt(part)  # without memory
    dtype = from_numpy(part.dtype)
    if kernel_dtype(x) is None:  # nothing is ever recorded on it
        return foreign(part)
    region = x._region
    if region is None:
        if dtype is not None and _is_regular(part, address_of(part)):
            found = adopt(part)
            found._owner = share(x)
            return found
        region = region_of(x)
        assert region is not None
    offset = region.offset + address_of(part) - address_of(layout_of(x))
    if dtype is None or not _is_regular(part, offset):
        expose(x)
        kind, shape, strides = part.dtype, part.shape, part.strides
        root = region.buffer.root
        assert root is not None
        return foreign(np.ndarray(shape, kind, root.data, offset, strides))
    found = of_region(Region(region.buffer, offset, part.strides, part.shape, dtype), x._owner)
    if x._array is not None:
        found._array = part
    return found


def _is_regular(part: Array, offset: int) -> bool:
    """Whether kernels can load all elements at multiples of their size."""
    size = part.dtype.itemsize
    return offset % size == 0 and all(stride % size == 0 for stride in part.strides)


def of_view(x: ViewMemory) -> Any:
    """Our array over a View's memory."""
    if x._handle is None:
        return foreign(x.data)
    region = x._region
    if x.shape == ():
        region = Region(region.buffer, region.offset, (), (), region.dtype)
    return of_region(region, x._handle, not x._code & READ_ONLY)


def result(value: Any, given: tuple[tuple[Any, Array], ...] = ()) -> Any:
    """What one of NumPy's functions returned, with our arrays for its own.

    given: the arrays that it was given, ours and what was exported of them. Refers to nothing of
    `value` afterwards but what is returned.
    """
    if type(value) is tuple or type(value) is list:
        return type(value)([result(entry, given) for entry in value])
    if type(value) is not np.ndarray:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[result(entry, given) for entry in value])
        return value
    for ours, array in given:
        if array is value:
            return ours
    export = exporter(value)
    if export is not None:
        for ours, array in given:
            if ours._owner is not None and exporter(array) is export:
                return _of_export(ours, array, value)
        return foreign(value)
    return adopt(value) if is_ours_alone(value, 2) else foreign(value)


def _of_export(x: Any, array: Array, value: Array) -> Any:
    """A view of an exported array as one of ours."""
    if not value.size:
        return adopt(value)
    region = region_of(x)
    dtype = from_numpy(value.dtype)
    assert region is not None
    offset = region.offset + address_of(value) - address_of(array)
    if dtype is None or not _is_regular(value, offset):
        expose(x)  # and `value` goes on being a view of the export
        return foreign(value)
    found = of_region(
        Region(region.buffer, offset, value.strides, value.shape, dtype),
        x._owner,
        x._writeable and bool(value.flags.num & _WRITEABLE),
    )
    found._base = x if x._base is None else x._base
    return found
