"""PyKokkos' functions of whole Views: sums, means, products, and Views made of other Views.

What computes on every element is a workunit, recorded and fused as the user's are. What depends on
the values (`unique`, `argmax`, `searchsorted`, `all`, `any`, ...) is computed by NumPy, so it
first runs what is pending. Parameters are called as PyKokkos calls them.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import array_workunits as workunits
from pyfuser.frontends.embedded.creation import array
from pyfuser.frontends.embedded.data_types import double, int8, int32
from pyfuser.frontends.embedded.elementwise import dtype_of, incompatible, launch, reduction
from pyfuser.frontends.embedded.ufuncs import power
from pyfuser.frontends.embedded.views import View, holding
from pyfuser.ir.dtypes import DType


def _is_double(view: Any) -> bool:
    return view._region.dtype is DType.FLOAT64


def _doubles(*views: Any) -> None:
    if not builtins.all(map(_is_double, views)):
        raise incompatible(*views)


# --------------------------------------------------------------------------- sums


def sum(viewA: Any, axis: int | None = None, profiler_name: str | None = None) -> Any:
    """The sum of all elements of a View of rank 1 or 2, a number; along an axis, a View."""
    if axis is not None:
        return _along(viewA, axis, (workunits.sum_of_column, workunits.sum_of_row), profiler_name)
    function = workunits.sum_1d if viewA.ndim == 1 else workunits.sum_2d
    return reduction(profiler_name, viewA.shape, function, view=viewA)


def _along(view: Any, axis: int, functions: Any, label: str | None, **arguments: Any) -> View:
    """A View with one element for each column (axis 0) or row of a View of rank 2."""
    length = view.shape[1 if axis == 0 else 0]
    out = View([length], double)
    launch(label, [length], functions[0 if axis == 0 else 1], view=view, out=out, **arguments)
    return out


def mean(view: Any, axis: Any = None, profiler_name: str | None = None) -> Any:
    """The mean of a View of rank 1, a number; of the columns (axis 0) or rows of one of rank 2."""
    _rank_1_or_2(view, axis)
    if view.ndim == 1:
        return reduction(profiler_name, view.shape, workunits.mean_1d, view=view)
    _doubles(view)
    return _along(
        view,
        1 if axis is None else axis,
        (workunits.mean_of_column, workunits.mean_of_row),
        profiler_name,
    )


def var(view: Any, axis: Any = None, profiler_name: str | None = None) -> Any:
    """The variance of a population; rank and axis as for `mean`."""
    _rank_1_or_2(view, axis)
    average = mean(view, axis, profiler_name)
    if view.ndim == 1:
        return reduction(profiler_name, view.shape, workunits.variance_1d, view=view, mean=average)
    functions = workunits.variance_of_column, workunits.variance_of_row
    return _along(view, 1 if axis is None else axis, functions, profiler_name, mean=average)


def _rank_1_or_2(view: Any, axis: Any) -> None:
    if not 1 <= view.ndim <= 2 or not isinstance(axis, (int, type(None))):
        raise NotImplementedError("only Views of rank 1 and 2, and one axis, are supported")


# --------------------------------------------------------------------------- products


def dot(viewA: Any, viewB: Any) -> Any:
    """The inner product of Views of rank 1, one length and one floating-point type."""
    if viewA.ndim == viewB.ndim == 0:
        return 0
    if viewA.ndim > 1 or viewB.ndim > 1:
        raise NotImplementedError("only 1D views supported for dot() ufunc.")
    return _inner(viewA, viewB, workunits.dot_double, workunits.dot_float, None)


def _inner(a: Any, b: Any, of_double: Any, of_float: Any, label: str | None) -> Any:
    if dtype_of(a) is not dtype_of(b) or not a._region.dtype.is_float:
        raise incompatible(a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"Views of one length are needed, not of {a.shape[0]} and {b.shape[0]}")
    return reduction(label, a.shape, of_double if _is_double(a) else of_float, a=a, b=b)


def matmul(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
    """The product of a View of n numbers with one of n, or of n rows and one column: a number.

    Raises RuntimeError for sizes that do not fit.
    """
    if viewA.ndim != 1 or viewA.shape[0] != viewB.shape[0]:
        raise RuntimeError(
            "Input operand 1 has a mismatch in its core dimension "
            f"(Size {viewA.shape[0]} is different from {viewB.shape[0]})"
        )
    if viewB.ndim == 1:
        return _inner(viewA, viewB, workunits.dot_double, workunits.dot_float, profiler_name)
    return _inner(viewA, viewB, workunits.matmul_double, workunits.matmul_float, profiler_name)


def np_matmul(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
    """The matrix product of Views of rank 1 or 2 and one data type, as `numpy.matmul`.

    Raises RuntimeError for sizes or data types that do not fit.
    """
    if viewA.ndim > 2 or viewB.ndim > 2:
        raise NotImplementedError("Matmul only supports upto 2D views")
    if dtype_of(viewA) is not dtype_of(viewB):
        names = viewA.dtype.__name__, viewB.dtype.__name__
        raise RuntimeError(f"Cannot multiply {names[0]} with {names[1]} dtype. Types must be same.")
    if viewA.ndim == viewB.ndim == 0:
        return 0.0
    length = viewA.shape[-1]
    if length != viewB.shape[0]:
        raise RuntimeError(
            "Matrix dimensions are not compatible for multiplication: "
            f"{viewA.shape} and {viewB.shape}"
        )
    if viewA.ndim == viewB.ndim == 1:
        return dot(viewA, viewB)
    shape = (*viewA.shape[:-1], *viewB.shape[1:])
    out = View(shape, dtype_of(viewA) if viewA._region.dtype.is_float else double)
    functions = {
        (2, 2): workunits.product_2d_2d,
        (1, 2): workunits.product_1d_2d,
        (2, 1): workunits.product_2d_1d,
    }
    function = functions[viewA.ndim, viewB.ndim]
    launch(profiler_name, shape, function, n=length, a=viewA, b=viewB, out=out)
    return out


# --------------------------------------------------------------------------- Views of Views


def transpose(view: Any) -> Any:
    """The transpose of a View of doubles of rank 2; a View of rank 1 itself."""
    if view.ndim == 1:
        return view
    if view.ndim != 2 or not _is_double(view):
        raise RuntimeError("Transpose supports 2D views only")
    out = View(view.shape[::-1], double)
    launch(None, out.shape, workunits.transpose, view=view, out=out)
    return out


def hstack(viewA: Any, viewB: Any) -> View:
    """Two Views of doubles of one shape (rank 1 or 2) beside each other."""
    if viewA.shape != viewB.shape:
        raise RuntimeError(
            "All the input view dimensions for the concatenation axis must match exactly"
        )
    if not 1 <= viewA.ndim <= 2:
        raise RuntimeError("hstack supports views of same shape (1D and 2D) only")
    if not (_is_double(viewA) and _is_double(viewB)):
        raise RuntimeError(f"hstack supports {viewA.ndim}D views of type double only")
    n = viewA.shape[-1]
    out = View([*viewA.shape[:-1], 2 * n], double)
    function = workunits.hstack_1d if viewA.ndim == 1 else workunits.hstack_2d
    launch(None, out.shape, function, n=n, a=viewA, b=viewB, out=out)
    return out


def index(viewA: Any, viewB: Any) -> View:
    """The elements of viewA at the places that viewB (of `pk.int32`) holds, as doubles."""
    if viewB._region.dtype is not DType.INT32:
        raise RuntimeError(
            "Incompatible Types: the places are to be of pk.int32, as pk.astype(view, pk.int32) is"
        )
    out = View(viewB.shape, double)
    launch(None, viewB.shape, workunits.index, a=viewA, b=viewB, out=out)
    return out


def in1d(viewA: Any, viewB: Any) -> View:
    """Which elements of viewA (doubles) occur in viewB, as a View of `pk.int8`."""
    _doubles(viewA)
    out = View(viewA.shape, int8)
    launch(None, viewA.shape, workunits.in1d, a=viewA, b=viewB, out=out)
    return out


def col(view: Any, col: int) -> View:
    """One column of a View of doubles of rank 2."""
    if view.ndim != 2:
        raise RuntimeError("Only 2d views are supported for col")
    if not _is_double(view):
        raise RuntimeError("col support views with type double only")
    out = View([view.shape[0]], double)
    launch(None, out.shape, workunits.column, view=view, column=int(col), out=out)
    return out


def ravel(view: Any, order: str = "C") -> View:
    """The elements of a View of doubles of rank 2, by rows ("C") or columns ("F")."""
    if view.ndim != 2 or not _is_double(view):
        raise RuntimeError("Ravel supports 2D views only")
    rows, columns = view.shape
    out = View([rows * columns], double)
    steps = (1, rows) if order == "F" else (columns, 1)
    launch(None, view.shape, workunits.ravel, step_i=steps[0], step_j=steps[1], view=view, out=out)
    return out


def reshape(x: Any, /, shape: Any, *, order: str = "C", copy: Any = None) -> View:
    """A copy of a View with another shape."""
    values = np.reshape(np.asarray(x), shape, order=order)  # type: ignore[call-overload]
    return holding(values, x.dtype)


def expand_dims(view: Any, axis: int = 0) -> View:
    """A copy of a View with a further axis of extent 1."""
    return holding(np.expand_dims(np.asarray(view), axis), dtype_of(view))


def linspace(start: Any, stop: Any, num: int = 50) -> View:
    """`num` doubles from `start` to `stop`, evenly spaced."""
    out = View([num], double)
    bounds = {"start": float(start), "stop": float(stop), "num": float(num)}
    launch(None, [num], workunits.linspace, out=out, **bounds)
    return out


def logspace(start: Any, stop: Any, num: int = 50, base: Any = 10) -> View:
    """`base` to the powers of `linspace(start, stop, num)`."""
    made: View = power(base, linspace(start, stop, num))
    return made


# --------------------------------------------------------------------------- by NumPy


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> View:
    """Whether no element is 0, as a View of rank 0."""
    return array(np.all(np.asarray(x)))


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> View:
    """Whether an element is not 0, as a View of rank 0."""
    return array(np.any(np.asarray(x)))


def argmax(view: Any, axis: Any = None) -> View:
    """Where the greatest element is (along an axis), as a View of `pk.int32`."""
    if not isinstance(axis, (int, type(None))):
        raise NotImplementedError("argmax takes one axis")
    return holding(np.asarray(np.argmax(np.asarray(view), axis=axis)), int32)


def unique(view: Any) -> View:
    """The different elements in ascending order, as doubles."""
    return holding(np.unique(np.asarray(view)), double)


def find_max(viewA: Any) -> Any:
    """The greatest element."""
    return max(viewA)


def searchsorted(view: Any, ele: Any) -> Any:
    """Where a sorted View has its first element that is not less than `ele`."""
    return np.searchsorted(np.asarray(view), ele)
