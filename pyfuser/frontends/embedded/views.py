"""Views: arrays whose memory comes when first needed, and that know when the host reads them.

Every read or write by the host first runs the pending calls that touch the View's memory
(`Tracer.flush_for`); asking for `shape`, `dtype` or `len` does not. Once a NumPy array over the
memory has been handed out (`data`, `np.asarray`) the buffer counts as external, for good.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyfuser import driver
from pyfuser.errors import ArgumentError
from pyfuser.frontends.embedded import data_types
from pyfuser.frontends.embedded.data_types import real, resolve
from pyfuser.frontends.embedded.indexing import basic_index, full_key
from pyfuser.frontends.embedded.policies import TeamMember
from pyfuser.frontends.embedded.spaces import (
    Defaults,
    Layout,
    MemorySpace,
    Trait,
    get_default_layout,
    get_default_memory_space,
)
from pyfuser.ir.dtypes import DType
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Array, Buffer, Handle, Region, contiguous, region_of

MAX_RANK = 8
TRACER = driver.TRACER
DTYPES = tuple(DType)
_INDEX = {dtype: n for n, dtype in enumerate(DTYPES)}


READ_ONLY = 1 << 16  # set in the code of a view that must not be written


def view_code(dtype: DType, rank: int) -> int:
    """A small integer for a View's type; scalars have `scalar_code`, below all of these."""
    return rank << 5 | _INDEX[dtype]


def scalar_code(dtype: DType) -> int:
    """A small integer for a scalar's type."""
    return _INDEX[dtype]


class ViewType:
    """What Views, Subviews and rows have in common.

    A 0-D View has one element of memory and is passed to kernels as a 1-D View, as in PyKokkos.
    """

    shape: tuple[int, ...]
    size: int
    ndim: int
    dtype: Any
    space: MemorySpace
    layout: Layout
    trait: Trait
    _region: Region
    _handle: Handle | None  # shared by all that reach an internal buffer; None: external memory
    _array: Array | None  # what `data` returns, once it was asked for
    _code: int

    def _attach(
        self, region: Region, shape: tuple[int, ...], handle: Handle | None, array: Array | None
    ) -> None:
        self._region = region
        self._handle = handle
        self._array = array
        self._code = view_code(region.dtype, len(region.shape))
        if array is not None and not array.flags.writeable:
            self._code |= READ_ONLY
        self.shape = shape
        self.ndim = len(shape)
        self.size = math.prod(shape)

    def _host(self) -> Array:
        """The memory for a use that keeps no reference to it; what is pending on it has run."""
        buffer = self._region.buffer
        TRACER.flush_for(buffer)
        return self._region.array() if self._array is None else self._array

    @property
    def data(self) -> Array:
        """The memory as a NumPy array; reading it later does not run what is then pending."""
        buffer = self._region.buffer
        TRACER.flush_for(buffer)
        if self._array is None:
            buffer.expose()
            self._array = self._region.array()
        return self._array

    array = data
    xp_array = data

    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def extent(self, dimension: int) -> int:
        """The length of a dimension (0 for a 0-D View).

        Raises ValueError if there is no such dimension.
        """
        if self.shape == () and dimension == 0:
            return 0
        if dimension >= len(self.shape):
            raise ValueError(f"extent({dimension}) of a View of rank {len(self.shape)}")
        return self.shape[dimension]

    def fill(self, value: Any) -> None:
        """Set all elements to a number."""
        value = _number(value)
        self._host().fill(value)

    # ------------------------------------------------------------------- elements

    def __getitem__(self, key: Any) -> Any:
        """An element, a row (an index short of the rank), or a Subview (slices for all axes)."""
        if self.shape == () and _is_index(key) and operator.index(key) == 0:
            return _element(self._host().reshape(-1)[0])
        if _is_index(key):
            if self.ndim == 1:
                return _element(self._host()[operator.index(key)])
            return self._part(Row, operator.index(key))
        length = 1 if isinstance(key, slice) else len(key)
        if length != self.ndim:
            raise ValueError(
                f"Please include slices for all dimensions: {length} of {self.ndim} are given"
            )
        if isinstance(key, tuple) and all(map(_is_index, key)):
            return _element(self._host()[tuple(map(operator.index, key))])
        return Subview(self, key)

    def _part(self, kind: type[Subview], key: Any) -> Any:
        part = kind.__new__(kind)
        part._init_part(self, key)
        return part

    def __setitem__(self, key: Any, value: Any) -> None:
        value = _number(value)
        self._host()[_plain_key(key)] = value

    def __len__(self) -> int:
        if self.shape == ():
            return int(self._host().reshape(-1)[0] != 0)
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for n in range(self.shape[0] if self.shape else 0):
            yield self[n]  # one by one: the loop's body may launch kernels that write it

    # ------------------------------------------------------------------- conversions

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy:
            return np.array(self._host(), dtype=dtype)
        array = self.data
        if dtype is None or array.dtype == dtype:
            return array
        if copy is False:
            raise ValueError(f"a View of {array.dtype} cannot become {dtype} without a copy")
        return array.astype(dtype)

    def __str__(self) -> str:
        return str(self._host())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._host()!r})"

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
        raise TypeError("the truth value of a View of more than one element is ambiguous")

    def _compare(self, other: Any, operation: Any) -> Any:
        if not isinstance(other, (ViewType, Future, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        result = np.asarray(operation(self._values(), _values(other)))
        answer = View(result.shape, data_types.bool)
        answer[...] = result
        return answer

    def _values(self) -> Array:
        """The elements, of the View's shape (a 0-D View's memory has shape (1,))."""
        return self._host().reshape(self.shape) if self.shape == () else self._host()

    def __eq__(self, other: object) -> Any:
        """Element by element, as a View of `pk.bool`."""
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    __hash__ = object.__hash__

    # ------------------------------------------------------------------- copies

    def __copy__(self) -> Any:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: Any) -> Any:
        """The View itself: PyKokkos does not copy memory here."""
        return self

    def __reduce__(self) -> Any:
        return _unpickle, (self._host().copy(), self.shape, self.dtype, self.layout)


class View(ViewType):
    """An array of numbers, zero when made. With `array=`, somebody else's memory."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any = real,
        space: MemorySpace = MemorySpace.MemorySpaceDefault,
        layout: Layout = Layout.LayoutDefault,
        trait: Trait = Trait.TraitDefault,
        array: Array | None = None,
    ) -> None:
        """Make a View of up to 8 dimensions.

        dtype: a PyKokkos data type, `int` (32 bits) or `float` (64 bits). layout: where the
        elements lie in memory, row-major (LayoutRight) by default. array: a NumPy array of this
        shape and type, whose memory the View then is.

        Raises ArgumentError for an unknown type or an impossible shape.
        """
        self._init_view(shape, dtype, space, layout, trait, array)

    def _init_view(
        self,
        shape: Sequence[int],
        dtype: Any,
        space: MemorySpace,
        layout: Layout,
        trait: Trait,
        array: Array | None = None,
    ) -> None:
        extents = tuple(map(operator.index, shape))
        if len(extents) > MAX_RANK or any(extent < 0 for extent in extents):
            raise ArgumentError(f"a View has 0 to {MAX_RANK} dimensions, none negative: {extents}")
        self.dtype, element = resolve(dtype)
        if space is MemorySpace.MemorySpaceDefault:
            space = get_default_memory_space(Defaults.space)
        self.layout = get_default_layout(space) if layout is Layout.LayoutDefault else layout
        if space in (MemorySpace.CudaSpace, MemorySpace.HIPSpace):
            space = MemorySpace.HostSpace
        self.space = space
        self.trait = trait
        if array is not None:
            self._wrap(extents, element, array)
        elif trait is Trait.Unmanaged:
            raise ArgumentError("an Unmanaged View needs the memory it stands for: array=...")
        else:
            self._allocate(extents, element)

    def _allocate(self, shape: tuple[int, ...], element: DType) -> None:
        held = shape or (1,)
        strides = contiguous(held, element.size)
        if self.layout is Layout.LayoutLeft:
            strides = contiguous(held[::-1], element.size)[::-1]
        handle = Handle()
        buffer = Buffer(math.prod(held) * element.size, handle)
        self._attach(Region(buffer, 0, strides, held, element), shape, handle, None)

    def _wrap(self, shape: tuple[int, ...], element: DType, array: Array) -> None:
        if array.shape != shape or array.dtype != element.numpy:
            raise ArgumentError(
                f"a View of shape {shape} and type {element.value} cannot stand for an array of "
                f"shape {array.shape} and type {array.dtype}"
            )
        memory = array.reshape(1) if array.ndim == 0 else array
        self._attach(region_of(memory, element), shape, None, array)

    def resize(self, dimension: int, size: int) -> None:
        """Change the length of a dimension; elements that remain keep their values, new are 0.

        The View has new memory afterwards; Subviews and arrays made before keep the old.
        Raises ValueError if there is no such dimension.
        """
        if dimension >= self.ndim and not (dimension == 0 and self.shape == ()):
            raise ValueError(f"Cannot resize dimension {dimension} since rank = {self.ndim}")
        if self.shape != () and self.shape[dimension] == size:
            return
        old = self._host()
        shape = list(self.shape) or [1]
        shape[dimension] = operator.index(size)
        self._allocate(tuple(shape), self._region.dtype)
        common = tuple(slice(0, min(pair)) for pair in zip(old.shape, shape, strict=True))
        self._region.array()[common] = old[common]

    def set_precision(self, dtype: Any) -> None:
        """Change the data type, converting every element as C does; the View has new memory."""
        old = self._host()
        self._init_view(self.shape, dtype, self.space, self.layout, Trait.TraitDefault)
        np.copyto(self._region.array(), old, casting="unsafe")

    def __pos__(self) -> View:
        result = View(self.shape, self.dtype)
        result[...] = self
        return result


class Subview(ViewType):
    """A slice of a View's memory. Made by slicing all dimensions of a View or Subview."""

    parent_view: ViewType
    base_view: Any

    def __init__(self, parent_view: ViewType, data_slice: Any) -> None:
        self._init_part(parent_view, data_slice)

    def _init_part(self, parent: ViewType, key: Any) -> None:
        self.parent_view = parent
        self.base_view = parent.base_view if isinstance(parent, Subview) else parent
        self.parent_slice = full_key(key, parent.shape)
        self.space = parent.space
        self.layout = parent.layout
        self.trait = parent.trait
        self.dtype = parent.dtype
        region = parent._region
        if parent._handle is None:  # somebody else's array: NumPy makes the slice
            assert parent._array is not None
            array = parent._array[_plain_key(key)]
            self._attach(region_of(array, region.dtype), array.shape, None, array)
            return
        offset, strides, shape = basic_index(region, self.parent_slice)
        part = Region(region.buffer, offset, strides, shape, region.dtype)
        self._attach(part, shape, parent._handle, None)

    def __add__(self, other: Any) -> Any:
        """Of one element only, as a number."""
        return self._scalar() + _values(other)

    def __mul__(self, other: Any) -> Any:
        """Of one element only, as a number."""
        if isinstance(other, ViewType):
            other = other._scalar()
        return self._scalar() * other


class Row(np.lib.mixins.NDArrayOperatorsMixin, Subview):
    """What `view[i]` is for a View of 2 or more dimensions: in every use, the NumPy array of it.

    It differs from an array in one way only: each use first runs what is pending on its memory.
    """

    def _init_part(self, parent: ViewType, key: Any) -> None:
        super()._init_part(parent, key)
        self.dtype = self._region.dtype.numpy

    def __getitem__(self, key: Any) -> Any:
        if _is_index(key) and self.ndim == 1:
            return self._host()[operator.index(key)]
        if _is_index(key):
            return self._part(Row, operator.index(key))
        return self.data[_plain_key(key)]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_values, kwargs["out"]))
        return getattr(ufunc, method)(*map(_values, inputs), **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.data, name)

    __hash__ = None  # type: ignore[assignment]  # as for any NumPy array


def _is_index(key: Any) -> bool:
    if type(key) is int:
        return True
    return isinstance(key, (int, np.integer, TeamMember, Future)) or (
        isinstance(key, ViewType) and key.size == 1
    )


def _plain_key(key: Any) -> Any:
    """A key that NumPy takes: TeamMembers, Futures and one-element Views as integers."""
    if isinstance(key, tuple):
        return tuple(map(_plain_key, key))
    return operator.index(key) if _is_index(key) else key


def _element(value: Any) -> Any:
    """An element as PyKokkos gives it: a NumPy scalar, but its own class for complex numbers."""
    if value.dtype.kind == "c":
        kind = data_types.complex64 if value.dtype.itemsize == 8 else data_types.complex128
        return kind(complex(value))
    return value


def _number(value: Any) -> Any:
    """A value for NumPy to store."""
    if isinstance(value, (data_types.complex64, data_types.complex128)):
        return complex(value)
    return _values(value)


def _values(value: Any) -> Any:
    """A View's elements or a Future's number; anything else as it is. Keeps no reference."""
    if isinstance(value, ViewType):
        return value._values()
    return value.result() if isinstance(value, Future) else value


def _unpickle(data: Array, shape: tuple[int, ...], dtype: Any, layout: Layout) -> View:
    if isinstance(dtype, np.dtype):
        dtype = data_types.CLASS_OF[DType(dtype.name)]
    view = View(shape, dtype, layout=layout)
    view[...] = data
    return view
