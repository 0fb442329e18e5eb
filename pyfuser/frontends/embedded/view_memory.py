"""The memory of a View, and everything that looks at it as a whole.

Every read or write by the host first runs the pending calls that touch the memory
(`Tracer.flush_for`); asking for `shape` or `dtype` does not.

The law: code that is not ours gets an array over the memory from `data`, or from one of the
protocols that are built on it, and from nowhere else. The buffer counts as external for as long as
anything that shares the array's memory lives (`trace.exports`); in a program that knows nothing of
us for good, as it may keep the bare address. `_host` is for our own code, and for functions of
NumPy that are given nothing but arrays and numbers (`is_plain`).
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import data_types
from pyfuser.frontends.embedded.indexing import basic_index, full_key
from pyfuser.frontends.embedded.spaces import Layout, MemorySpace, Trait
from pyfuser.frontends.modes import SWITCHES
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.errors import ArgumentError
from pyfuser.support.extension import HOT, numpys_api, with_buffer
from pyfuser.trace.future import Future
from pyfuser.trace.images import USE, changed_on_host
from pyfuser.trace.memory import Array, Handle, Region, contiguous, no_memory
from pyfuser.trace.reason import VIEW

DTYPES = tuple(DType)
_INDEX = {dtype: n for n, dtype in enumerate(DTYPES)}

NO_ROW: tuple[None, None] = None, None

READ_ONLY = 1 << 16  # set in the code of a view that must not be written
ATOMIC = 1 << 17  # in that of a view whose updates are atomic
FLAGS = READ_ONLY | ATOMIC


CPU = 1, 0  # DLPack's number of the host's memory


def view_code(dtype: DType, rank: int) -> int:
    """A small integer for a View's type; scalars have `scalar_code`, below all of these."""
    return rank << 5 | _INDEX[dtype]


def scalar_code(dtype: DType) -> int:
    """A small integer for a scalar's type."""
    return _INDEX[dtype]


def refuse_misaligned(what: str, array: Array) -> None:
    """Raise ArgumentError if a processor may be unable to load the elements of an array.

    Where they lie at odd distances, as the fields of packed records do, kernels know it and load
    them in pieces; an odd address alone they do not expect.
    """
    size = array.dtype.itemsize
    if not array.flags.aligned and all(stride % size == 0 for stride in array.strides):
        raise ArgumentError(
            f"{what} does not start at a multiple of {array.dtype.alignment} bytes, as "
            f"{array.dtype} must; pass a copy of it"
        )


@with_buffer
class ViewMemory:
    """A region of memory, and what a View is as a whole: an array, a string, a number.

    A 0-D View has one element of memory and is passed to kernels as a 1-D View, as in PyKokkos.
    """

    shape: tuple[int, ...]
    size: int
    ndim: int
    dtype: Any
    space: MemorySpace
    layout: Layout
    trait: Trait
    _memory: Array | None  # what `_host` returns, once it was asked for
    _last_row: tuple[int | None, Any]  # the latest index that selected a row, and the row
    _region: Region
    _handle: Handle | None  # shared by all that reach an internal buffer; None: external memory
    _array: Array | None  # what `data` returns, if the memory is somebody else's
    _given: weakref.ref[Array] | None = None  # what `data` returned, if others still have it
    _untold: Exception | None = None  # why there is no buffer
    _code: int
    _plain: bool  # its elements need no `element`

    def _attach(
        self, region: Region, shape: tuple[int, ...], handle: Handle | None, array: Array | None
    ) -> None:
        # Before the region: when the View dies, these let go of the memory first, so that the
        # buffer's last reference finds it unshared and the pool can have it.
        self._memory = array
        self._last_row = NO_ROW
        self._region = region
        self._handle = handle
        self._array = array
        self._given = None
        self._code = view_code(region.dtype, len(region.shape))
        self._plain = region.dtype.numpy.type not in _CONVERSIONS
        if array is not None and not array.flags.writeable:
            self._code |= READ_ONLY
        if self.trait is Trait.Atomic:
            self._code |= ATOMIC
        self.shape = shape
        self.ndim = len(shape)
        self.size = math.prod(shape)

    def _host(self, writes: bool = False) -> Array:
        """The memory for a use that keeps no reference to it; what is pending on it has run.

        writes: whether elements are set. Memory that a device has, too, cannot be written without.
        """
        if TRACER.calls:
            buffer = self._region.buffer
            if buffer.pending or buffer.external or TRACER.watch is not None:
                TRACER.flush_for(buffer, VIEW, writes)
        if USE.devices:
            return self._copied(writes)
        memory = self._memory
        if memory is None:
            memory = self._memory = self._region.array()
        return memory

    def _copied(self, writes: bool) -> Array:
        """`_host` where a device may have the newest values; nothing is kept."""
        buffer = self._region.buffer
        image = buffer.image
        if image is not None and image.foreign:
            found: Array = image.elements(self._region) if writes else image.values(self._region)
            return found
        if image is not None and buffer.away and not writes:
            part = image.part(self._region)
            if part is not None:
                part.flags.writeable = False
                return part
        array = self._region.array()
        if image is not None:
            if writes:
                changed_on_host(buffer)
            else:
                array.flags.writeable = False
        return array

    def _at(self, key: int | tuple[int, ...]) -> Any:
        """The element that indices select, as NumPy has it."""
        if USE.devices:
            if TRACER.calls:
                TRACER.flush_for(self._region.buffer, VIEW)
            region = self._region
            image = region.buffer.image
            if image is not None and region.buffer.away and not image.foreign:
                offset, _, _ = basic_index(region, full_key(key, region.shape))
                part = image.part(Region(region.buffer, offset, (), (), region.dtype))
                if part is not None:
                    return part[()]
        return self._host()[key]

    def _lent(self) -> Array:
        """`data` for who lets go of it at once, and gives it to nobody."""
        given = None if self._given is None else self._given()
        if USE.devices or self._array is not None or given is not None:
            return self.data  # what the program has, and may have made read-only
        TRACER.flush_for(self._region.buffer, VIEW)
        return self._region.export()

    def _exported(self) -> Array:
        array = self._region.export()
        if SWITCHES.careful:  # the program's rules are NumPy's, where an address is enough
            self._region.buffer.expose()
        return array

    @property
    def data(self) -> Array:
        """The memory as a NumPy array; reading it later does not run what is then pending."""
        buffer = self._region.buffer
        TRACER.flush_for(buffer, VIEW)
        if USE.devices:  # an array that is alive has its copies made in each flush: keep none
            if buffer.image is not None and buffer.image.foreign:
                array: Array = buffer.image.array(self._region)
                return array
            return self._exported()
        if self._array is not None:
            return self._array
        given = None if self._given is None else self._given()
        if given is None:
            given = self._exported()
            self._given = weakref.ref(given)
        return given

    @data.setter
    def data(self, values: Array) -> None:
        self._host(True)[...] = values

    array = data

    @property
    def xp_array(self) -> Any:
        """The array that the View was made of: on a device, if it was made of one there."""
        image = self._region.buffer.image
        return self.data if image is None or not image.foreign else image.array(self._region)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy:
            return np.array(self._host(), dtype=dtype)
        array = self.data
        if dtype is None or array.dtype == dtype:
            return array
        if copy is False:
            raise ValueError(f"a View of {array.dtype} cannot become {dtype} without a copy")
        return array.astype(dtype)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface. Not there once a GPU is in use: `__array__` copies less then."""
        untold, self._untold = self._untold, None
        if untold is not None:
            raise untold
        if USE.devices:
            raise AttributeError("__array_interface__")
        if self._array is not None:
            interface: dict[str, Any] = self.data.__array_interface__
            return interface
        TRACER.flush_for(self._region.buffer, VIEW)
        if SWITCHES.careful:
            self._region.buffer.expose()
        return self._region.interface()

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """What NumPy takes for `dtype`, which is a class of PyKokkos; before NumPy 2.4, that."""
        return self._region.dtype.numpy

    def to_numpy(self) -> Array:
        """`data`, under the name that matplotlib and pandas look for."""
        return self.data

    @property
    def __arrow_c_stream__(self) -> Any:
        """What polars makes a Series of. Not there where polars is not, which copies the memory."""
        polars = sys.modules.get("polars")
        if polars is None:
            raise AttributeError("__arrow_c_stream__")
        return lambda schema=None: polars.Series(self.data).__arrow_c_stream__(schema)

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol; before Python 3.12 only with the extension."""
        self._untold = None
        try:
            return memoryview(self.data)  # type: ignore[arg-type]
        except Exception as error:
            self._untold = error  # NumPy drops it and looks at the array interface next
            raise

    def __release_buffer__(self, buffer: memoryview) -> None:
        """Nothing; it is there so that `numpy.frombuffer` keeps the export, not this View."""

    def __bytes__(self) -> bytes:
        return self._host().tobytes()

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule; options as those of NumPy's arrays (`stream`, `copy`, ...)."""
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        image = self._region.buffer.image
        if image is None or not image.foreign:
            return CPU
        device: tuple[int, int] = self.data.__dlpack_device__()
        return device

    def __str__(self) -> str:
        return str(self._host())

    def __repr__(self) -> str:
        ours = np.get_printoptions().get("override_repr") is None
        return f"{type(self).__name__}({self._host() if ours else self.data!r})"

    def _scalar(self) -> Any:
        if self.size != 1:
            raise TypeError("only single element arrays can be converted to Python scalars.")
        return self._host().reshape(-1)[0].item()

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self._region.dtype.is_integer:
            return int(self._scalar())
        raise TypeError("only Views of one integer can be used as an index")

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self._scalar())
        raise TypeError(
            "the truth value of a View of more than one element is ambiguous: use pk.any(v), "
            "pk.all(v) or v.size"
        )

    def _values(self) -> Array:
        """The elements, of the View's shape (a 0-D View's memory has shape (1,))."""
        return self._host().reshape(self.shape) if self.shape == () else self._host()

    def _beside(self, other: Any) -> Array:
        """The elements for an operation of NumPy's with another object, which may be anybody's."""
        return self._values() if is_plain(other) else handed_out(self)


def element(value: Any) -> Any:
    """An element as PyKokkos gives it: a NumPy scalar, but its own class for complex numbers."""
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


_CONVERSIONS: dict[type, Any] = {
    np.int64: np.longlong,  # as PyKokkos' bindings have them
    np.uint64: np.ulonglong,
    np.complex64: lambda value: data_types.complex64(complex(value)),
    np.complex128: lambda value: data_types.complex128(complex(value)),
}


def number(value: Any) -> Any:
    """A value for NumPy to store."""
    if isinstance(value, (data_types.complex64, data_types.complex128)):
        return complex(value)
    return values(value)


def values(value: Any) -> Any:
    """A View's elements or a Future's number; anything else as it is. Keeps no reference."""
    if isinstance(value, ViewMemory):
        return value._values()
    return value.result() if isinstance(value, Future) else value


def written(value: Any) -> Any:
    """The memory of a View, for NumPy to write; anything else as it is."""
    return value._host(True) if isinstance(value, ViewMemory) else value


def operand(value: Any, other: Any = None) -> Any:
    """What stands for a View in arithmetic with another object: its one element, or all of them."""
    if isinstance(value, ViewMemory):
        return value._scalar() if value.size == 1 else value._beside(other)
    return values(value)


_PLAIN = frozenset(np.sctypeDict.values()) | {
    np.ndarray, bool, int, float, complex, str, type(None), Future
}  # fmt: skip


def is_plain(value: Any) -> bool:
    """Whether NumPy, given a View's elements and this value, shows them to nobody else."""
    return type(value) in _PLAIN or isinstance(value, ViewMemory)


def handed_out(value: Any) -> Any:
    """`values` for code that is not ours, which may keep what it gets."""
    if isinstance(value, ViewMemory):
        return value.data.reshape(()) if value.shape == () else value.data
    return values(value)


@cached(4096)
def laid_out(
    shape: tuple[int, ...], element: DType, left: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and bytes of a View's memory. Raises MemoryError beyond all addresses."""
    held = shape or (1,)
    span = math.prod(max(extent, 1) for extent in held) * element.size
    if span > sys.maxsize:
        raise no_memory(shape, element, span)
    strides = contiguous(held, element.size)
    if left:
        strides = contiguous(held[::-1], element.size)[::-1]
    return held, strides, math.prod(held) * element.size


def _in_extension(python: property) -> property:
    """`data` where the extension does what is usual."""
    dtypes = tuple([dtype.numpy for dtype in DType])
    HOT.bind_exports(python.fget, VIEW, dtypes, numpys_api())
    return property(HOT.data_of, python.fset, doc=python.__doc__)


if HOT is not None:
    compiled = _in_extension(vars(ViewMemory)["data"])
    for name in ("data", "array"):
        setattr(ViewMemory, name, compiled)
