"""The memory of our arrays: who owns it, what is pending on it, who else may reach it.

An array is in one of three states:

- owned, at once: `_array` is a NumPy array that nobody else has (nor its memory). `_owner` is FRESH
  until a view or a recorded call needs the `Owner` that all arrays over the memory share.
- owned, in a buffer: `_region` says where it lies, or `_array` while nobody asks; the buffer may
  have no memory yet. `_owner` is the buffer's handle, so the buffer is a temporary of the trace
  when the last such array dies.
- foreign: `_array` is somebody else's NumPy array, `_owner` and `_region` are None.

What a mask selects is in none while `_selection` stands for its elements (see `selected.py`): it
becomes an owned array as soon as somebody asks for one of these attributes.

The law: NumPy, and code that is not ours, gets a NumPy array over owned memory from `export` only,
and while what it got lives the buffer is external: nothing is recorded on such a buffer, nor on
foreign memory. `host` is for functions of NumPy that keep no reference to what they are given.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.runtime.session import TRACER
from pyfuser.trace.exports import Export
from pyfuser.trace.images import USE, changed_on_host
from pyfuser.trace.memory import Allocation, Array, Buffer, Handle, Region
from pyfuser.trace.reason import Reason

READ = Reason("an array is read or written")


class Owner(Handle):
    """What arrays over one piece of owned memory share; the buffer is made when it is needed."""

    __slots__ = ("buffer",)

    def __init__(self) -> None:
        self.buffer: Buffer | None = None


class _Fresh(Handle):
    """Nobody shares the memory yet."""

    __slots__ = ()


FRESH = _Fresh()


class ArrayMemory:
    """See the module. When it dies, `_array` goes first (slots are sorted): pools count references.

    _base: the array that this one is a view of.
    """

    __slots__ = ("__weakref__", "_array", "_base", "_owner", "_region", "_selection", "_writeable")

    _array: Array | None
    _base: Any
    _owner: Handle | None
    _region: Region | None
    _selection: Any
    _writeable: bool

    def __getattr__(self, name: str) -> Any:
        """The state of an array of NumPy's that was adopted, of which nothing is set but that."""
        if name == "_selection":
            return None
        if name in _GATHERED and is_selected(self):
            with TRACER.lock:
                if self._selection is not None:
                    self._array = self._selection.gather()
                    self._selection = None
            return getattr(self, name)
        if name in _ADOPTED:
            value = _ADOPTED[name]
            setattr(self, name, value)
            return value
        raise AttributeError(name)


_ADOPTED: dict[str, Any] = {"_base": None, "_region": None, "_owner": FRESH, "_writeable": True}
_GATHERED = frozenset({"_array", "_owner", "_region"})


class _Selected:
    """How many arrays are what a mask selects."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


SELECTED = _Selected()


def is_selected(x: ArrayMemory) -> bool:
    """Whether an array is what a mask selects, whose elements nobody has asked for."""
    return SELECTED.count > 0 and x._selection is not None


class _Memory:
    """Bytes at an address, or a layout that nobody reads, for NumPy; keeps the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, address: int, shape: Any, strides: Any, typestr: str) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }


def address_of(array: Array) -> int:
    """Of its first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def share(x: ArrayMemory) -> Handle | None:
    """The owner that views of an array share with it; None: its memory is foreign."""
    owner = x._owner
    if owner is FRESH:
        owner = x._owner = Owner()
    return owner


def unmade(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> tuple[Region, Owner]:
    """Where a new array will lie, and who owns that; memory comes with the first store."""
    owner = Owner()
    owner.buffer = buffer = Allocation(prod(shape) * dtype.size, owner)
    return Region(buffer, 0, strides, shape, dtype), owner


def share_memory(x: ArrayMemory, y: ArrayMemory) -> bool:
    """Whether two arrays are parts of one piece of owned memory."""
    owner = x._owner
    return owner is y._owner and owner is not None and owner is not FRESH


def buffer_of(x: ArrayMemory) -> Buffer | None:
    """The buffer that an array's memory already has."""
    region = x._region
    if region is not None:
        return region.buffer
    owner = x._owner
    return owner.buffer if type(owner) is Owner else None


def region_of(x: ArrayMemory) -> Region | None:
    """Where an array lies in its buffer; None: foreign, or nothing that kernels could use."""
    region = x._region
    if region is None and x._owner is not None:
        array = x._array
        assert array is not None
        dtype = from_numpy(array.dtype)
        if dtype is None or not array.size:
            return None
        buffer = _buffer(x, array)
        offset = address_of(array) - buffer.address
        region = x._region = Region(buffer, offset, array.strides, array.shape, dtype)
    return region


def usable(x: ArrayMemory) -> Region | None:
    """Where an array lies, if what is done with it may be recorded.

    That is, if kernels know its elements, and can load them, and nobody else reaches the memory.
    """
    region = region_of(x)
    if region is None or region.buffer.external:
        return None
    if SPACE.device:
        size = region.dtype.size
        if region.offset % size or any(stride % size for stride in region.strides):
            return None
    return region


def _buffer(x: ArrayMemory, array: Array) -> Buffer:
    """The buffer over the memory that owned NumPy arrays share."""
    owner = share(x)
    assert type(owner) is Owner
    buffer = owner.buffer
    if buffer is None:
        root = array if array.base is None else array.base
        assert isinstance(root, np.ndarray)
        buffer = Buffer(root.nbytes, owner)
        buffer.address = address_of(root)
        memory = _Memory(root, buffer.address, (root.nbytes,), None, "|u1")
        buffer.root = np.asarray(memory)
        buffer.seen = True
        owner.buffer = buffer
    return buffer


def is_pending(x: ArrayMemory) -> bool:
    """Whether a recorded call may touch an array's memory."""
    region = x._region
    if region is not None:
        return region.buffer.pending > 0 or (region.buffer.external and TRACER.raw > 0)
    owner = x._owner
    if type(owner) is Owner:
        buffer = owner.buffer
        return buffer is not None and (buffer.pending > 0 or (buffer.external and TRACER.raw > 0))
    return owner is None and TRACER.raw > 0


def is_away(buffer: Buffer) -> bool:
    """Whether the host lacks a buffer's values: calls on it are pending, or a device has them."""
    return buffer.pending > 0 or buffer.away


def are_away(x: ArrayMemory) -> bool:
    """Whether the host lacks an array's values."""
    if not USE.devices:
        return is_pending(x)
    buffer = buffer_of(x)
    return is_pending(x) or (buffer is not None and is_away(buffer))


def is_computed(x: ArrayMemory) -> bool:
    """Whether an array in a buffer has its values on the host."""
    region = x._region
    if region is None or region.buffer.root is None or USE.devices:
        return False
    return not TRACER.calls or not is_pending(x)


def settle(x: ArrayMemory) -> None:
    """Run what is pending on an array's memory."""
    if TRACER.calls and is_pending(x):
        TRACER.flush(READ)


def host(x: ArrayMemory, writes: bool = False) -> Array:
    """The elements, for a use that keeps no reference to them; what is pending on them has run."""
    if TRACER.calls and is_pending(x):
        TRACER.flush(READ)
    if USE.devices:
        return _copied(x, writes)
    array = x._array
    if array is None:
        region = x._region
        assert region is not None
        array = x._array = region.array()
        if not x._writeable:
            array.flags.writeable = False
    return array


def _copied(x: ArrayMemory, writes: bool) -> Array:
    """`host` where a device may have the newest values."""
    buffer, array = buffer_of(x), x._array
    if buffer is not None:
        buffer.allocate()
        if writes:
            changed_on_host(buffer)
    if array is None:
        assert x._region is not None
        array = x._array = x._region.array()
        if not x._writeable:
            array.flags.writeable = False
    return array


def element(x: ArrayMemory, part: Array) -> Any:
    """A copy of one element, which is `part` of `layout_of(x)`."""
    region = x._region
    if USE.devices and region is not None and not (TRACER.calls and is_pending(x)):
        image = region.buffer.image
        if image is not None and region.buffer.away:
            offset = region.offset + address_of(part) - address_of(layout_of(x))
            found = image.part(Region(region.buffer, offset, (), (), region.dtype))
            if found is not None:
                return found[()]
    return None


def layout_of(x: ArrayMemory) -> Array:
    """A NumPy array laid out as this one, whose elements nobody may read or write."""
    array = x._array
    if array is not None:
        return array
    region = x._region
    assert region is not None
    memory = _Memory(_PLACE, _PLACE_ADDRESS, region.shape, region.strides, region.dtype.numpy.str)
    return np.asarray(memory)


_PLACE = np.zeros(2)
_PLACE_ADDRESS = address_of(_PLACE)


def export(x: ArrayMemory) -> Array:
    """An array over the memory for others. Nothing is recorded on the memory while it lives."""
    region = region_of(x)
    if region is None:
        settle(x)
        assert x._array is not None
        return x._array  # foreign, or of elements that kernels do not know
    with TRACER.lock:
        TRACER.flush_for(region.buffer, READ)
        array = region.export()
    if not x._writeable:
        array.flags.writeable = False
    return array


def expose(x: ArrayMemory) -> None:
    """Others may reach the memory from now on, for good."""
    if x._owner is None:
        return
    array = x._array if x._array is not None else host(x)
    buffer = buffer_of(x) or _buffer(x, array)
    TRACER.flush_for(buffer, READ)
    buffer.expose()


def is_external(x: ArrayMemory) -> bool:
    """Whether others may reach the memory now."""
    if x._owner is None:
        return True
    buffer = buffer_of(x)
    return buffer is not None and buffer.external


def exporter(array: Array) -> Export | None:
    """The export of a buffer that an array's memory is of."""
    base: Any = array
    while base is not None:
        if type(base) is Export:
            return base
        base = getattr(base, "base", None) if isinstance(base, np.ndarray) else None
    return None


USE.views = True


def is_ours_alone(array: Array, references: int) -> bool:
    """Whether nobody else has an array, just made, or anything that shares its memory.

    references: how many the caller has to it, its local variables and the argument included.
    """
    if type(array) is not np.ndarray or sys.getrefcount(array) > references + 2:
        return False
    base = array.base
    if base is None:
        return array.flags.owndata
    if type(base) is not np.ndarray or base.base is not None:
        return False
    return base.flags.owndata and sys.getrefcount(base) <= _ONE_BASE


def _one_base() -> int:
    array = np.zeros((2, 2)).T
    base = array.base
    return sys.getrefcount(base)


_ONE_BASE = _one_base()


def kernel_dtype(x: ArrayMemory) -> DType | None:
    """The type that kernels know an array's elements by, if they do."""
    region = x._region
    if region is not None:
        return region.dtype
    assert x._array is not None
    return from_numpy(x._array.dtype)
