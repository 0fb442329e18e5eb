"""Functions that make Views: from arrays, and filled with one value."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import data_types
from pyfuser.frontends.embedded.data_types import CLASS_OF, resolve
from pyfuser.frontends.embedded.foreign import as_array, has_memory, kind
from pyfuser.frontends.embedded.spaces import Layout, MemorySpace, Trait, gpu, gpu_memory_space
from pyfuser.frontends.embedded.views import View, ViewType, holding
from pyfuser.ir.dtypes import from_numpy as element_of
from pyfuser.support.errors import ArgumentError


def array(array: Any, space: MemorySpace | None = None, layout: Layout | None = None) -> View:
    """A View of the memory of an array of NumPy, of another library, or on a GPU (CuPy's, torch's).

    Of anything else, a View of the array that NumPy makes of it.

    Raises ArgumentError for an element type that PyKokkos does not have.
    """
    if hasattr(array, "__cuda_array_interface__"):
        return _on_device(array, space, layout)
    if has_memory(array):
        return _view(as_array("pk.array: the array", array), space, layout)
    try:
        made = np.asarray(array)
    except ValueError as error:
        raise ArgumentError(f"pk.array: {error}") from None
    return _view(made, space, layout)


def from_numpy(array: Any, space: MemorySpace | None = None, layout: Layout | None = None) -> View:
    """A View of the memory of a NumPy array. Raises ArgumentError for what is not one."""
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"pk.from_numpy takes NumPy arrays, not {kind(array)}; use pk.array")
    return _view(array, space, layout)


def _view(values: Any, space: MemorySpace | None, layout: Layout | None) -> View:
    element = element_of(values.dtype)
    if element is None:
        raise ArgumentError(
            f"pk.array: PyKokkos has no data type for NumPy's {values.dtype!r}; convert it with "
            "astype, for example to np.float64"
        )
    if layout is None:
        left = values.ndim > 1 and values.flags["F_CONTIGUOUS"]
        layout = Layout.LayoutLeft if left else Layout.LayoutRight
    return View(
        values.shape,
        CLASS_OF[element],
        space=MemorySpace.HostSpace if space is None else space,
        layout=layout,
        trait=Trait.Unmanaged,
        array=values,
    )


def _on_device(array: Any, space: MemorySpace | None, layout: Layout | None) -> View:
    """A View of an array in a GPU's memory."""
    region, _ = gpu().region_of_array("array", array)
    if layout is None:
        left = len(region.shape) > 1 and region.strides[0] < region.strides[-1]
        layout = Layout.LayoutLeft if left else Layout.LayoutRight
    return View(
        tuple(array.shape),
        CLASS_OF[region.dtype],
        space=gpu_memory_space() if space is None else space,
        layout=layout,
        trait=Trait.Unmanaged,
        array=array,
    )


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> View:
    """A View of an array-like, converted to `dtype` if that is given."""
    if isinstance(obj, float) and not isinstance(obj, np.generic):
        return full([1], obj, dtype=data_types.float64 if dtype is None else dtype)
    if dtype is None:
        return array(obj)
    return array(np.asarray(obj, dtype=resolve(dtype)[1].numpy))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> View:
    """A View that holds `fill_value` everywhere; its type is that of `fill_value` by default."""
    if dtype is None:
        element = element_of(np.asarray(fill_value).dtype)
        dtype = data_types.float64 if element is None else CLASS_OF[element]
    view = View(_extents(shape), dtype)
    view[...] = fill_value
    return view


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> View:
    """A View of x's shape (and type, by default) that holds `fill_value` everywhere."""
    return full(x.shape, fill_value, dtype=_dtype_of(x) if dtype is None else dtype)


def zeros(shape: Any, *others: Any, dtype: Any = None, device: Any = None) -> View:
    """A View of zeros, of type double by default. Raises ArgumentError for more than a shape."""
    _refuse("zeros", shape, others)
    return View(_extents(shape), data_types.float64 if dtype is None else dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> View:
    """A View of zeros of x's shape (and type, by default)."""
    return zeros(x.shape, dtype=_dtype_of(x) if dtype is None else dtype)


def ones(shape: Any, *others: Any, dtype: Any = None, device: Any = None) -> View:
    """A View of ones, of type double by default. Raises ArgumentError for more than a shape."""
    _refuse("ones", shape, others)
    return full(shape, 1, dtype=data_types.float64 if dtype is None else dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> View:
    """A View of ones of x's shape (and type, by default)."""
    return full_like(x, 1, dtype=dtype)


def astype(view: Any, dtype: Any) -> View:
    """A copy of a View with another data type."""
    return holding(view, dtype)


def _refuse(name: str, shape: Any, others: tuple[Any, ...]) -> None:
    """Refuse arguments behind a shape."""
    if others:
        numbers = [n for n in (shape, *others) if type(n) is int]
        example = numbers if len(numbers) > len(others) else ["n", "m"]
        text = f"[{', '.join(map(str, example))}]"
        raise ArgumentError(
            f"pk.{name} takes one shape, as in pk.{name}({text}), and the type as dtype=..."
        )


def _extents(shape: Any) -> Any:
    """The shape for a View, which refuses what is none; an integer stands for one dimension."""
    try:
        return (operator.index(shape),)
    except TypeError:
        return shape


def _dtype_of(x: Any) -> Any:
    """The PyKokkos data type of a View or NumPy array."""
    if isinstance(x, ViewType) and not isinstance(x.dtype, np.dtype):
        return x.dtype
    element = element_of(np.asarray(x).dtype)
    if element is None:
        raise ArgumentError(f"PyKokkos has no data type for NumPy's {x.dtype!r}")
    return CLASS_OF[element]
