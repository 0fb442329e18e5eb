"""Memory as facts: buffers (allocations) and regions (what an argument covers of one).

Every View, subview and NumPy array that is passed to a kernel becomes a `Region`. Whether two
arguments overlap is decided on regions only, never on Python names or `id()`.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from pyfuser.ir.dtypes import DType
from pyfuser.support.extension import HOT
from pyfuser.support.passes import left_out
from pyfuser.trace import images, pool
from pyfuser.trace.exports import FOR_GOOD, LOCK, Export
from pyfuser.trace.images import USE, Image

Array = np.ndarray[Any, Any]


class Handle:
    """What the Python objects that can reach a buffer share; it dies with the last of them."""

    __slots__ = ("__weakref__",)


class Buffer:
    """One allocation, on the host or on a device or on both (see `images`).

    A buffer of a View is allocated (zero-filled) when its memory is first needed. One that wraps a
    NumPy array's memory is `external`: it exists from the start and anybody may reach it. Memory
    that is `lent` exists from the start, too, but only those who share its handle reach it. A
    View's is external while an array over it that was handed out lives (`export`).
    """

    __slots__ = (
        "__weakref__", "_exports", "_handle", "address", "external", "image", "lent", "nbytes",
        "pending", "root", "seen",
    )  # fmt: skip
    _lock: ClassVar[Any] = LOCK  # there to the end: exports die while the interpreter exits, too

    def __init__(self, nbytes: int, handle: Handle) -> None:
        self.nbytes = nbytes
        self.root: Array | None = None  # the host's memory, if it has the newest values
        self.image: Image | None = None  # the device's
        self.address = 0
        self.external = False
        self.lent = False
        self.pending = 0  # how many recorded calls touch it
        self.seen = False  # there was an array over its memory, which the host may keep
        self._exports: set[int] | None = None  # by id(): the Exports that live
        self._handle = weakref.ref(handle)

    @classmethod
    def lend(cls, memory: Array, handle: Handle) -> Buffer:
        """Somebody else's allocation, as bytes (which keep it alive).

        Until `expose` is called nobody may reach it but through objects that share the handle.
        """
        buffer = cls(memory.nbytes, handle)
        buffer.root = memory
        buffer.address = memory.__array_interface__["data"][0]
        buffer.lent = True
        return buffer

    @classmethod
    def wrap(cls, array: Array) -> Buffer:
        """The memory that a NumPy array points at; `address` is that of its first element."""
        return cls._of_others(array.nbytes, array.__array_interface__["data"][0], root=array)

    @classmethod
    def on_device(cls, image: Image, nbytes: int) -> Buffer:
        """Somebody's memory on a device; the host never reads or writes it."""
        return cls._of_others(nbytes, image.address, image=image)

    @classmethod
    def _of_others(
        cls, nbytes: int, address: int, root: Array | None = None, image: Image | None = None
    ) -> Buffer:
        buffer = cls.__new__(cls)
        buffer.nbytes = nbytes
        buffer.root = root
        buffer.address = address
        buffer.image = image
        buffer.external = buffer.lent = True
        buffer.pending = 0
        buffer.seen = True
        buffer._exports = None
        buffer._handle = None  # type: ignore[assignment]
        return buffer

    @property
    def allocated(self) -> bool:
        return self.root is not None or self.image is not None

    @property
    def away(self) -> bool:
        """Whether a device alone has the values."""
        return self.root is None and self.image is not None

    @property
    def wraps_array(self) -> bool:
        """Whether it is the memory of somebody's NumPy array, and was never ours."""
        return self.root is not None and self._handle is None

    @property
    def reachable(self) -> bool:
        """Whether any Python object can still read what the buffer holds."""
        return self.external or self._handle() is not None

    # law: True
    def ends_after(self, uses: int) -> bool:
        """Whether its memory, on the host alone, is needed by so many pending uses only."""
        if type(self) is not Allocation or self.external or self.lent or self.image is not None:
            return False
        return self.root is not None and self.pending == uses and self._handle() is None

    def allocate(
        self, prepare: Callable[[Array], None] | None = None, inherited: Array | None = None
    ) -> None:
        """Make memory on the host, if there is none yet, with the values that the device has.

        Without any it is zero-filled, unless `prepare` does what is to be done with fresh memory.
        inherited: that of a buffer which `ends_after` this use, to take in place of fresh memory.
        Raises MemoryError, as NumPy does.
        """
        if self.root is not None:
            return
        if self.image is not None:
            memory = self.image.fetch(self.nbytes)
        elif inherited is not None:
            memory = inherited
        else:
            memory = pool.allocate(self.nbytes, prepare is None)
            if prepare is not None:
                prepare(memory)
        address = memory.__array_interface__["data"][0]
        if self.root is None:  # a signal handler may have needed it: none can come in from here on
            self.address = address
            self.root = memory

    def expose(self) -> None:
        """Memory that anybody may reach from now on, for good."""
        self.allocate()
        self._reached_by(FOR_GOOD)

    def export(self) -> Export:
        """The memory as bytes, which anybody may reach for as long as this object lives."""
        self.allocate()
        assert self.root is not None
        export = Export.of(self.root, weakref.ref(self))
        self._reached_by(id(export))
        return export

    def _reached_by(self, key: int) -> None:
        self.seen = True
        with self._lock:
            first = self._exports is None
            if self._exports is None:
                self._exports = set()
            self._exports.add(key)
            self.external = True
        if first or USE.devices:
            assert self.root is not None
            images.note_owner(self.root, self)
            images.changed_on_host(self)

    def withdraw(self, key: int = -1) -> None:
        """An export has ended, if one is named. After the last one only Views reach the memory.

        While calls on it are pending nothing changes: the tracer comes here after them.
        """
        with self._lock:
            if self._exports is not None:
                self._exports.discard(key)
            if not (self._exports or self.pending or self.lent):
                self.external = False


class Allocation(Buffer):
    """The memory of a View: when it dies, the next View may have it.

    Only these have a finaliser: Python drops what a signal handler raises while one runs.
    """

    __slots__ = ()

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        if at_exit():  # modules have lost their names, and memory need not be kept
            return
        made = getattr(self, "root", None) is not None  # a signal may have ended `__init__`
        if made and not (self.external or self.lent):
            pool.release(self.root)  # type: ignore[arg-type]  # it counts references: not ours


class Unmade(Buffer):
    """An `Allocation` as long as it has no memory: most temporaries never get any, and to call a
    finaliser for each takes as long as to record a call.
    """

    __slots__ = ()

    def allocate(
        self, prepare: Callable[[Array], None] | None = None, inherited: Array | None = None
    ) -> None:
        self.__class__ = Allocation  # type: ignore[assignment]
        self.allocate(prepare, inherited)


Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # begin <= index < end


class Region(NamedTuple):
    """A strided box of elements inside a buffer. Offset and strides are in bytes."""

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType

    @property
    def address(self) -> int:
        """Of the first element; the buffer must be allocated."""
        return self.buffer.address + self.offset

    def allocate(self, overwritten: Box | None = None) -> None:
        """Make the buffer's memory, if there is none yet.

        overwritten: a box of elements that are written before any element is read.

        Raises MemoryError, which tells the region's shape and how many bytes were wanted.
        """
        if self.buffer.root is not None:
            return
        if self.buffer.image is not None:
            overwritten = None  # it has values
        try:
            whole = prod(self.shape) * self.dtype.size == self.buffer.nbytes
            if overwritten is None or not whole:
                self.buffer.allocate()
            elif overwritten[1] == self.shape and not any(overwritten[0]):
                self.buffer.allocate(leave)
            else:
                self.buffer.allocate(partial(self._zero_around, overwritten))
        except (MemoryError, ValueError, OverflowError):  # the latter two: beyond all addresses
            raise no_memory(self.shape, self.dtype, self.buffer.nbytes) from None

    def _zero_around(self, box: Box, memory: Array) -> None:
        """Zero the elements outside of a box, in memory that the buffer is about to have."""
        if HOT is not None and HOT.zero_around(memory, self, box):
            return
        rest = self._within(memory)
        if any(map(operator.lt, box[1], box[0])):  # a range that ends before it begins
            rest[...] = 0
            return
        for axis, (begin, end) in enumerate(zip(*box, strict=True)):
            part = np.moveaxis(rest, axis, 0)
            part[:begin] = 0
            part[end:] = 0
            rest = np.moveaxis(part[begin:end], 0, axis)

    def bounds(self) -> tuple[int, int]:
        """First and one past the last byte it covers, relative to the buffer's address."""
        low = high = self.offset
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 0:
                return self.offset, self.offset
            if stride < 0:
                low += (extent - 1) * stride
            else:
                high += (extent - 1) * stride
        return low, high + self.dtype.size

    def array(self) -> Array:
        """The region as a NumPy array over the buffer's memory (which is allocated if needed).

        It is for our own use: nobody else is to see it or anything that shares its memory.
        """
        self.allocate()
        buffer = self.buffer
        buffer.seen = True
        root = buffer.root
        assert root is not None
        return np.asarray(_Memory(root, self)) if buffer.lent else self._within(root)

    def _within(self, root: Array) -> Array:
        array: Array
        array = np.ndarray(self.shape, self.dtype.numpy, root.data, self.offset, self.strides)
        return array

    def export(self) -> Array:
        """The region as an array for others, who may reach the memory for as long as they have it.

        Nothing may be pending on the buffer.
        """
        if self.buffer.lent:  # they do anyway
            self.buffer.expose()
            return self.array()
        self.allocate()
        memory, dtype = self.buffer.export(), self.dtype.numpy
        array: Array = np.ndarray(self.shape, dtype, memory, self.offset, self.strides)
        return array

    def interface(self) -> dict[str, Any]:
        """NumPy's array interface of the region, for others; as `export`."""
        self.allocate()
        buffer = self.buffer
        memory = buffer.export()
        return {
            "data": memory.as_data(self.address, buffer.expose),
            "offset": self.offset,
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.numpy.str,
            "version": 3,
        }


def leave(memory: Array) -> None:
    """For memory all of which is about to be overwritten."""


def no_memory(shape: tuple[int, ...], dtype: DType, size: int) -> MemoryError:
    """The error for a View of `size` bytes; an integer beyond all addresses is shown rounded."""
    shown = [str(n) if n <= sys.maxsize else f"2**{n.bit_length() - 1}" for n in (*shape, size)]
    gib = f" ({size / 2**30:.3g} GiB)" if size <= sys.maxsize else " or more, beyond all addresses"
    extents = ", ".join(shown[:-1]) + "," * (len(shape) == 1)
    return MemoryError(
        f"no memory for a View of shape ({extents}) and type {dtype.value}: it needs "
        f"{shown[-1]} bytes{gib}"
    )


class _Memory:
    """Memory at an address, as NumPy's array interface describes it; keeps its owner alive."""

    def __init__(self, owner: Array, region: Region) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (region.address, False),
            "shape": region.shape,
            "strides": region.strides,
            "typestr": region.dtype.numpy.str,
            "version": 3,
        }


def region_of(array: Array, dtype: DType) -> Region:
    """The region that a NumPy array covers.

    Once a device is in use, arrays that share memory share a buffer, too.
    """
    if USE.devices:
        owner = images.owner_of(array)
        if owner is not None:
            buffer = images.shared_buffer(owner, Buffer.wrap)
            address: int = array.__array_interface__["data"][0]
            offset = address - buffer.address
            return Region(buffer, offset, array.strides, array.shape, dtype)
    return Region(Buffer.wrap(array), 0, array.strides, array.shape, dtype)


LINE = 64
"""Bytes that processors fetch at once."""


def are_strided(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether several elements are a cache line or more apart, as those of a matrix' column."""
    steps = [abs(step) for step, extent in zip(strides, shape, strict=True) if extent > 1]
    return bool(steps) and min(steps) >= LINE and not left_out("strided")


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a row-major (LayoutRight) array."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
