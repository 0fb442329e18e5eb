"""Views: arrays whose memory comes when first needed, and that know when the host reads them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import data_types
from pyfuser.frontends.embedded.array_like import ArrayLike, complete
from pyfuser.frontends.embedded.data_types import real, resolve
from pyfuser.frontends.embedded.fills import record_assignment, record_fill
from pyfuser.frontends.embedded.foreign import given_array
from pyfuser.frontends.embedded.indexing import basic_index, extents_of, full_key, refuse_key
from pyfuser.frontends.embedded.policies import TeamMember
from pyfuser.frontends.embedded.rows import row_of
from pyfuser.frontends.embedded.spaces import (
    Defaults,
    Layout,
    MemorySpace,
    Trait,
    get_default_layout,
    get_default_memory_space,
    gpu,
)
from pyfuser.frontends.embedded.usual_views import new_memory, part_of, usual
from pyfuser.frontends.embedded.view_memory import (
    FLAGS,
    READ_ONLY,
    ViewMemory,
    element,
    laid_out,
    number,
    operand,
    refuse_misaligned,
    values,
)
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.future import Future
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Array, Region, region_of

_INT = {int}

_NUMBERS = frozenset(
    {int, float, bool, np.bool_, np.int32, np.int64, np.longlong, np.float32, np.float64}
)  # types of values that NumPy stores as they are


class ViewType(ViewMemory):
    """What Views, Subviews and rows have in common.

    _rows: its region, and what its rows have in common: a region, and all else that they have.
    """

    _rows: tuple[Region, Region, dict[str, Any]] | None = None

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
        value = number(value)
        if not record_fill(self, value):
            self._host(True).fill(value)

    # ------------------------------------------------------------------- elements

    def __getitem__(self, key: Any) -> Any:
        """An element, a row (an index short of the rank), or a Subview (slices for all axes)."""
        if type(key) is int:  # loops over elements are what the host's time goes into
            index, row = self._last_row
            if index == key:
                return row
            if self.ndim == 1:
                memory = self._memory
                value = self._at(key) if memory is None or TRACER.calls else memory[key]
                return value if self._plain else element(value)
            if self.ndim:
                return self._row(key)
        elif type(key) is tuple and len(key) == self.ndim and {*map(type, key)} == _INT:
            memory = self._memory
            value = self._at(key) if memory is None or TRACER.calls else memory[key]
            return value if self._plain else element(value)
        part = part_of(self, key)
        return self._item(key) if part is None else part

    def _row(self, index: int) -> Row:
        """The row of an index, kept in case the next one asked for is the same."""
        region, memory, extent = self._region, self._memory, self.shape[0]
        if not -extent <= index < extent:
            full_key(index, self.shape)  # raises what it raises for every key
        kept = self._rows
        if kept is None or kept[0] is not region:
            first = Region(region.buffer, 0, region.strides[1:], region.shape[1:], region.dtype)
            kept = self._rows = region, first, row_of(self, first, None)
        _, (buffer, _, strides, shape, dtype), common = kept
        made = common.copy()
        if self._handle is None and memory is not None:  # somebody else's array
            made["_array"] = made["_memory"] = memory = memory[index]
            made["_region"] = region_of(memory, dtype)
        else:
            offset = region.offset + index % extent * region.strides[0]
            made["_region"] = tuple.__new__(Region, (buffer, offset, strides, shape, dtype))
            if USE.devices:
                memory = None
            elif memory is None and buffer.allocated:
                memory = self._memory = region.array()
            if memory is not None:
                made["_memory"] = memory = memory[index]
                if self._handle is None:
                    made["_array"] = memory
        row = Row.__new__(Row)
        object.__setattr__(row, "__dict__", made)
        self._last_row = index, row
        return row

    def _item(self, key: Any) -> Any:
        """`self[key]` of any key."""
        if self.shape == () and _is_index(key) and operator.index(key) == 0:
            return element(self._host().reshape(-1)[0])
        if _is_index(key) and self.shape == ():
            raise IndexError(
                f"index {key} for a View of 0 dimensions, whose one element is view[0]"
            )
        if _is_index(key):
            if self.ndim == 1:
                return element(self._at(operator.index(key)))
            return self._row(operator.index(key))
        length = len(key) if isinstance(key, tuple) else isinstance(key, slice)
        if length != self.ndim:
            refuse_key(key, self.ndim)
        if isinstance(key, tuple) and all(map(_is_index, key)):
            return element(self._at(tuple(map(operator.index, key))))
        return Subview(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        plain = type(key) is int or (
            type(key) is tuple and len(key) == self.ndim and {*map(type, key)} == _INT
        )
        if plain and type(value) in _NUMBERS:
            memory = self._memory
            if memory is None or TRACER.calls or USE.devices:
                memory = self._host(True)
            memory[key] = value
            return
        if not record_assignment(self, key, value):
            self._host(True)[_plain_key(key)] = number(value)

    def __len__(self) -> int:
        if self.shape == ():
            return int(self._host().reshape(-1)[0] != 0)
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for n in range(self.shape[0] if self.shape else 0):
            yield self[n]  # one by one: the loop's body may launch kernels that write it

    def _compare(self, other: Any, operation: Any) -> Any:
        if not isinstance(other, (ViewType, Future, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        result = np.asarray(operation(self._beside(other), values(other)))
        return holding(result, data_types.bool)

    def __eq__(self, other: object) -> Any:
        """Element by element, as a View of `pk.bool`."""
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    __hash__ = object.__hash__

    # ------------------------------------------------------------------- copies

    def __copy__(self) -> Any:
        """Another object of the same memory, as in PyKokkos."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        """The View itself, as in PyKokkos: programs deep-copy objects that hold Views, and go on
        with the Views' memory.
        """
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

        Raises ArgumentError for an unknown type or an impossible shape, and MemoryError for one
        that no machine has the addresses for. (Memory comes later, when it is first needed.)
        """
        if not usual(self, shape, dtype, space, layout, trait, array):
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
        extents = extents_of(shape)
        for given, kind in (space, MemorySpace), (layout, Layout), (trait, Trait):
            if not isinstance(given, kind):
                known = ", ".join(f"pk.{each.name}" for each in kind)
                raise ArgumentError(f"{given!r} is not a pk.{kind.__name__}; there are {known}")
        self.dtype, element = resolve(dtype)
        if space is MemorySpace.MemorySpaceDefault:
            space = get_default_memory_space(Defaults.space)
        self.layout = get_default_layout(space) if layout is Layout.LayoutDefault else layout
        if array is None and space in (MemorySpace.CudaSpace, MemorySpace.HIPSpace):
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
        held, strides, size = laid_out(shape, element, self.layout is Layout.LayoutLeft)
        self._rows = None  # of the memory it had
        region, handle = new_memory(size, strides, held, element)
        self._attach(region, shape, handle, None)

    def _wrap(self, shape: tuple[int, ...], element: DType, array: Any) -> None:
        memory = array.__pyfuser_memory__() if hasattr(array, "__pyfuser_memory__") else None
        if memory is not None and shape and memory[0].shape == shape and memory[0].dtype is element:
            region, handle, writeable = memory
            self._attach(region, shape, handle, None)
            self._code |= 0 if writeable else READ_ONLY
            return
        on_device = hasattr(array, "__cuda_array_interface__")
        if not on_device:
            array = given_array("array=", array)
        if tuple(array.shape) != shape or array.dtype != element.numpy:
            raise ArgumentError(
                f"a View of shape {shape} and type {element.value} cannot stand for an array of "
                f"shape {array.shape} and type {array.dtype}"
            )
        if on_device:
            region, writeable = gpu().region_of_array("array", array)
            self._attach(region, shape, None, None)
            self._code |= 0 if writeable else READ_ONLY
            return
        refuse_misaligned("the array", array)
        memory = array.reshape(1) if array.ndim == 0 else array
        self._attach(region_of(memory, element), shape, None, array)

    def resize(self, dimension: int, size: int) -> None:
        """Change the length of a dimension; elements that remain keep their values, new are 0.

        The View has new memory afterwards; Subviews and arrays made before keep the old.
        Raises ValueError if there is no such dimension, and what `View` raises for a shape.
        """
        (size,) = extents_of([size])
        if dimension >= self.ndim and not (dimension == 0 and self.shape == ()):
            raise ValueError(f"Cannot resize dimension {dimension} since rank = {self.ndim}")
        if self.shape != () and self.shape[dimension] == size:
            return
        old = self._host()
        shape = list(self.shape) or [1]
        shape[dimension] = size
        self._allocate(tuple(shape), self._region.dtype)
        common = tuple(slice(0, min(pair)) for pair in zip(old.shape, shape, strict=True))
        self._region.array()[common] = old[common]

    def set_precision(self, dtype: Any) -> None:
        """Change the data type, converting every element as C does; the View has new memory."""
        old = self._host()
        self._init_view(self.shape, dtype, self.space, self.layout, Trait.TraitDefault)
        np.copyto(self._region.array(), old, casting="unsafe")

    def __pos__(self) -> View:
        return holding(self, self.dtype)


def holding(values: Any, dtype: Any) -> View:
    """A View of its own memory that holds the elements of an array, or of a View."""
    made = View(values.shape, dtype)
    made[...] = values
    return made


class Subview(ViewType):
    """A slice of a View's memory. Made by slicing all dimensions of a View or Subview.

    Where a dimension has a mask or a list of indices (`view[mask, :]`), a copy, as NumPy makes it.
    """

    parent_view: ViewType
    base_view: Any

    def __init__(self, parent_view: ViewType, data_slice: Any) -> None:
        parent = parent_view
        self.parent_view = parent
        if isinstance(parent, Subview) and not isinstance(parent, Row):
            self.base_view = parent.base_view
        else:
            self.base_view = parent
        self._init_part(parent, data_slice)

    def _init_part(self, parent: ViewType, key: Any) -> None:
        self.space = parent.space
        self.layout = parent.layout
        self.trait = parent.trait
        self.dtype = parent.dtype
        region = parent._region
        if isinstance(key, tuple) and any(map(_selects, key)):
            array = parent._host()[tuple(map(_selection, key))]
            self.parent_slice = key
            self._attach(region_of(array, region.dtype), array.shape, None, array)
            return
        self.parent_slice = full_key(key, parent.shape)
        if parent._array is not None and parent._handle is None:  # NumPy makes the slice
            array = parent._array[_plain_key(key)]
            self._attach(region_of(array, region.dtype), array.shape, None, array)
            return
        offset, strides, shape = basic_index(region, self.parent_slice)
        part = Region(region.buffer, offset, strides, shape, region.dtype)
        self._attach(part, shape, parent._handle, None)
        self._code |= parent._code & FLAGS

    def __add__(self, other: Any) -> Any:
        """A number if both have one element; else element by element, as a NumPy array."""
        return operand(self, other) + operand(other, self)

    def __mul__(self, other: Any) -> Any:
        """As `__add__`."""
        return operand(self, other) * operand(other, self)


@complete
class Row(ArrayLike, Subview):
    """What `view[i]` is for a View of 2 or more dimensions: in every use, the NumPy array of it.

    It differs from an array in one way only: each use first runs what is pending on its memory.
    A View keeps the latest, so a row must neither change nor hold on to its View.
    """

    def __getitem__(self, key: Any) -> Any:
        if type(key) is int:
            index, row = self._last_row
            if index == key:
                return row
            if self.ndim == 1:
                memory = self._memory
                return self._at(key) if memory is None or TRACER.calls else memory[key]
            return self._row(key)
        entries = key if isinstance(key, tuple) else (key,)
        indices = sum(map(_is_index, entries))
        if indices + sum(isinstance(entry, slice) for entry in entries) < len(entries):
            return self.data[_plain_key(key)]  # a mask, an array of indices, `...` or None
        if indices == self.ndim:
            return self._at(_plain_key(key))
        part, row = Subview.__new__(Subview), Row.__new__(Row)
        part._init_part(self, _plain_key(key))
        row.__dict__ = row_of(part, part._region, part._array)
        return row

    __hash__ = None  # type: ignore[assignment]  # as for any NumPy array


def _is_index(key: Any) -> bool:
    if type(key) is int:
        return True
    return isinstance(key, (int, np.integer, TeamMember, Future)) or (
        isinstance(key, ViewType) and key.size == 1
    )


def _selects(entry: Any) -> bool:
    """Whether an entry of a key is a mask, or several indices."""
    return isinstance(entry, (ViewType, np.ndarray, list)) and not _is_index(entry)


def _selection(entry: Any) -> Any:
    return np.asarray(values(entry)) if _selects(entry) else _plain_key(entry)


def _plain_key(key: Any) -> Any:
    """A key that NumPy takes: TeamMembers, Futures and one-element Views as integers."""
    if isinstance(key, tuple):
        return tuple(map(_plain_key, key))
    return operator.index(key) if _is_index(key) else key


def _unpickle(data: Array, shape: tuple[int, ...], dtype: Any, layout: Layout) -> View:
    view = View(shape, _class_of(dtype), layout=layout)
    view[...] = data
    return view


def _class_of(dtype: Any) -> Any:
    """A data type of PyKokkos, for what a row has as its `dtype`."""
    return data_types.CLASS_OF[DType(dtype.name)] if isinstance(dtype, np.dtype) else dtype
