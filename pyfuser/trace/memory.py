"""Memory as facts: buffers (allocations) and regions (what an argument covers of one).

Every View, subview and NumPy array that is passed to a kernel becomes a `Region`. Whether two
arguments overlap is decided on regions only, never on Python names or `id()`.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyfuser.ir.dtypes import DType
from pyfuser.trace import images, pool
from pyfuser.trace.images import USE, Image

Array = np.ndarray[Any, Any]


class Handle:
    """What the Python objects that can reach a buffer share; it dies with the last of them."""

    __slots__ = ("__weakref__",)


class Buffer:
    """One allocation, on the host or on a device or on both (see `images`).

    A buffer of a View is allocated (zero-filled) when its memory is first needed. One that wraps a
    NumPy array's memory is `external`: it exists from the start and anybody may reach it. Memory
    that is `lent` exists from the start, too, but only those who share its handle reach it.
    """

    __slots__ = (
        "__weakref__", "_handle", "address", "external", "image", "lent", "nbytes", "pending",
        "root",
    )  # fmt: skip

    def __init__(self, nbytes: int, handle: Handle) -> None:
        self.nbytes = nbytes
        self.root: Array | None = None  # the host's memory, if it has the newest values
        self.image: Image | None = None  # the device's
        self.address = 0
        self.external = False
        self.lent = False
        self.pending = 0  # how many recorded calls touch it
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
        buffer._handle = None  # type: ignore[assignment]
        return buffer

    @property
    def allocated(self) -> bool:
        return self.root is not None or self.image is not None

    @property
    def wraps_array(self) -> bool:
        """Whether it is the memory of somebody's NumPy array, and was never ours."""
        return self.root is not None and self._handle is None

    @property
    def reachable(self) -> bool:
        """Whether any Python object can still read what the buffer holds."""
        return self.external or self._handle() is not None

    def allocate(self, zero: bool = True) -> None:
        """Make memory on the host, if there is none yet, with the values that the device has.

        Without any it is zero-filled, unless all of it is written next. Raises MemoryError, as
        NumPy does.
        """
        if self.root is None:
            if self.image is None:
                self.root = pool.allocate(self.nbytes, zero)
            else:
                self.root = self.image.fetch(self.nbytes)
            self.address = self.root.__array_interface__["data"][0]

    def __del__(self) -> None:
        if self.root is not None and not (self.external or self.lent):
            pool.release(self.root)

    def expose(self) -> Array:
        """The memory as bytes for NumPy; from now on any array may reach it."""
        self.allocate()
        self.external = True
        assert self.root is not None
        images.note_owner(self.root, self)
        images.changed_on_host(self)
        return self.root


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
            self.buffer.allocate(zero=overwritten is None or not whole)
        except (MemoryError, ValueError, OverflowError):  # the latter two: beyond all addresses
            size = self.buffer.nbytes
            raise MemoryError(
                f"no memory for a View of shape {self.shape} and type {self.dtype.value}: "
                f"{size} bytes ({size / 2**30:.3g} GiB) are wanted"
            ) from None
        if overwritten is not None and whole:
            self._zero_around(overwritten)

    def _zero_around(self, box: Box) -> None:
        """Zero the elements outside of a box."""
        rest = self.array()
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
        """The region as a NumPy array over the buffer's memory (which is allocated if needed)."""
        self.allocate()
        buffer = self.buffer
        root = buffer.root
        assert root is not None
        array: Array
        if buffer.external:
            array = np.asarray(_Memory(root, self))
        else:
            array = np.ndarray(self.shape, self.dtype.numpy, root.data, self.offset, self.strides)
        return array


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


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a row-major (LayoutRight) array."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
