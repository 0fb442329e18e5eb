"""Functions of the namespace that make or look at arrays without NumPy's fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import ViewMemory
from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.compiled import ndarray
from pyfuser.frontends.numpy.layout import c_strides
from pyfuser.frontends.numpy.memory import is_ours_alone, layout_of, unmade
from pyfuser.frontends.numpy.operations import COPY, NAMED, WHERE
from pyfuser.frontends.numpy.record import record
from pyfuser.frontends.numpy.switches import LIMITS, recording
from pyfuser.frontends.numpy.wrap import adopt, foreign, of_region, of_view, view
from pyfuser.ir.dtypes import from_numpy
from pyfuser.trace.pool import most_memory


def asarray(a: Any, dtype: Any = None, order: Any = None, **more: Any) -> Any:
    """An array of ours over the memory of any array; else a new one."""
    if isinstance(a, ViewMemory):
        a = of_view(a)
    if type(a) is ndarray and not more and order in (None, "K", "A"):
        if dtype is None or np.dtype(dtype) == a.dtype:
            return a
        return a.astype(dtype)
    if type(a) is np.ndarray and not more and order is None:
        value = np.asarray(a, dtype)
        return foreign(value) if value is a else adopt(value)
    return _made(np.asarray, (a, dtype, order), more)


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", **more: Any
) -> Any:
    """A new array of ours, if `copy` is not False or None."""
    if isinstance(object, ViewMemory):
        object = of_view(object)
    if copy is not True and not more:
        if copy is None:
            return asarray(object, dtype, order)
        return _made(np.array, (object, dtype), {"copy": copy, "order": order})
    if type(object) is ndarray and not more:
        if dtype is None or np.dtype(dtype) == object.dtype:
            return object.copy(order)
        return object.astype(dtype, order)
    return _made(np.array, (object, dtype), {"order": order, **more})


def asanyarray(a: Any, dtype: Any = None, order: Any = None, **more: Any) -> Any:
    ours = type(a) is ndarray and not more
    return asarray(a, dtype, order) if ours else _made(np.asanyarray, (a, dtype, order), more)


def ascontiguousarray(a: Any, dtype: Any = None, **more: Any) -> Any:
    return a if _is_laid_out(a, dtype, "C") else _made(np.ascontiguousarray, (a, dtype), more)


def asfortranarray(a: Any, dtype: Any = None, **more: Any) -> Any:
    return a if _is_laid_out(a, dtype, "F") else _made(np.asfortranarray, (a, dtype), more)


def _is_laid_out(a: Any, dtype: Any, order: str) -> bool:
    """Whether it is an array of ours, with axes, of that type and order."""
    if type(a) is not ndarray or not a.ndim or not (dtype is None or np.dtype(dtype) == a.dtype):
        return False
    flags = layout_of(a).flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def _made(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return apply.call(function, args, kwargs)


def creator(name: str) -> Callable[..., Any]:
    """A function of NumPy's that makes new arrays of what is no array."""
    function = getattr(np, name)

    def create(*args: Any, **kwargs: Any) -> Any:
        if all(map(apply.is_plain, args)) and all(map(_is_simple, kwargs.values())):
            value = function(*args, **kwargs)
            return adopt(value) if is_ours_alone(value, 1) else foreign(value)
        return apply.call(function, args, kwargs)

    create.__name__ = create.__qualname__ = name
    return create


def _is_simple(value: Any) -> bool:
    return apply.is_plain(value) or isinstance(value, (type, np.dtype))


def _large(shape: Any, dtype: Any, order: Any, more: dict[str, Any]) -> Any:
    """A region for a new array that is large, its memory not made yet; else None."""
    if more or order not in (None, "C", "K") or not recording():
        return None
    try:
        element = from_numpy(np.dtype(dtype))
        extents = (shape,) if type(shape) is int else tuple(int(extent) for extent in shape)
    except (TypeError, ValueError):
        return None
    if element is None or not extents or min(extents) < 0:
        return None
    size = 1
    for extent in extents:
        size *= extent
    if size < LIMITS.first(False) or size * element.size > most_memory():
        return None  # which is NumPy's to make, or to refuse, at the call
    return of_region(*unmade(extents, c_strides(extents, element.size), element))


def zeros(shape: Any, dtype: Any = float, order: Any = "C", **more: Any) -> Any:
    found = _large(shape, dtype, order, more)
    return _made(np.zeros, (shape, dtype, order), more) if found is None else found


def empty(shape: Any, dtype: Any = float, order: Any = "C", **more: Any) -> Any:
    found = _large(shape, dtype, order, more)
    return _made(np.empty, (shape, dtype, order), more) if found is None else found


def ones(shape: Any, dtype: Any = None, order: Any = "C", **more: Any) -> Any:
    return full(shape, 1, float if dtype is None else dtype, order, **more)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **more: Any) -> Any:
    if type(fill_value) in apply.SCALARS:
        kind = np.asarray(fill_value).dtype if dtype is None else dtype
        found = _large(shape, kind, order, more)
        if found is not None and record(COPY, (fill_value,), found, casting="unsafe") is not None:
            return found
    return _made(np.full, (shape, fill_value, dtype, order), more)


def _like(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`zeros_like` and the like, of arrays in row-major order."""
    numpys = getattr(np, name)

    def like(a: Any, *args: Any, **kwargs: Any) -> Any:
        simple = type(a) is ndarray and len(args) <= (name == "full_like")
        if simple and kwargs.keys() <= {"dtype"} and layout_of(a).flags.c_contiguous:
            dtype = kwargs.get("dtype")
            return function(a.shape, *args, dtype=a.dtype if dtype is None else dtype)
        return apply.call(numpys, (a, *args), kwargs)

    like.__name__ = like.__qualname__ = name
    return like


zeros_like = _like(zeros, "zeros_like")
ones_like = _like(ones, "ones_like")
empty_like = _like(empty, "empty_like")
full_like = _like(full, "full_like")


def where(condition: Any, *values: Any) -> Any:
    if len(values) == 2:
        operands = tuple(
            of_view(v) if isinstance(v, ViewMemory) else v for v in (condition, *values)
        )
        found = record(WHERE, operands)
        if found is not None:
            return found
    return apply.call_safely(np.where, (condition, *values), {})


def clip(a: Any, *bounds: Any, **kwargs: Any) -> Any:
    names = ("min", "max") if {"min", "max"} & kwargs.keys() else ("a_min", "a_max")
    if len(bounds) + len(names & kwargs.keys()) < 2:
        return apply.call(np.clip, (a, *bounds), kwargs)  # where NumPy says what is missing
    return _clip(a, *bounds, **kwargs)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    low, high = kwargs.get("min", a_min), kwargs.get("max", a_max)
    others = kwargs.keys() - {"min", "max"}
    if type(a) is ndarray and out is None and not others and _is_bound(low) and _is_bound(high):
        found = record(NAMED["clip"], (a, low, high))
        if found is not None:
            return found
    if out is not None:
        kwargs["out"] = out
    return apply.call(np.clip, (a, a_min, a_max), kwargs)


def _is_bound(value: Any) -> bool:
    """Whether it is a number, and no NaN."""
    return isinstance(value, (int, float, np.integer, np.floating)) and bool(value == value)


def copy(a: Any, order: Any = "K", subok: Any = False) -> Any:
    return array(a, order=order)


def viewer(name: str) -> Callable[..., Any]:
    """A function of NumPy's whose result is a view of its first argument, whatever is in it."""
    function = getattr(np, name)

    def make(a: Any, *args: Any, **kwargs: Any) -> Any:
        if type(a) is not ndarray:
            return apply.call(function, (a, *args), kwargs)
        layout = layout_of(a)
        if args or kwargs:
            args, kwargs = apply.without(args), apply.without(kwargs)
        found = function(layout, *args, **kwargs) if a.ndim else None
        if found is layout:
            return a
        if type(found) is np.ndarray:
            return view(a, found)
        if type(found) is list:
            return [view(a, part) for part in found]
        return apply.call(function, (a, *args), kwargs)

    make.__name__ = make.__qualname__ = name
    return make


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    count = indices_or_sections
    if type(ary) is ndarray and type(count) is int and type(axis) is int:
        shape = ary.shape
        if (
            count > 0
            and -len(shape) <= axis < len(shape)
            and shape[axis]
            and not shape[axis] % count
        ):
            each, before = shape[axis] // count, (slice(None),) * (axis % len(shape))
            keys = [(*before, slice(n * each, n * each + each)) for n in range(count)]
            return [ary[key] for key in keys]
    return _split(ary, indices_or_sections, axis)


_split = viewer("split")


def diag(v: Any, k: Any = 0) -> Any:
    if type(v) is ndarray and v.ndim == 2:
        return _diagonal(v, k)
    return apply.call_safely(np.diag, (v, k), {})


_diagonal = viewer("diagonal")


def attribute(name: str) -> Callable[..., Any]:
    """`np.shape(a)` and the like."""
    function = getattr(np, name)

    def ask(a: Any, *args: Any, **kwargs: Any) -> Any:
        return function(layout_of(a) if type(a) is ndarray else a, *args, **kwargs)

    ask.__name__ = ask.__qualname__ = name
    return ask


def part(name: str) -> Callable[..., Any]:
    """`np.real(val)` and the like, as `val.real`."""
    function = getattr(np, name)

    def take(val: Any) -> Any:
        return getattr(val, name) if type(val) is ndarray else apply.call(function, (val,), {})

    take.__name__ = take.__qualname__ = name
    return take


def method(name: str) -> Callable[..., Any]:
    """`np.sum(a, ...)` as `a.sum(...)`."""
    function = getattr(np, name)

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        if type(a) is ndarray:
            if name == "reshape" and "shape" in kwargs and not args:
                args = (kwargs.pop("shape"),)
            return getattr(a, name)(*args, **kwargs)
        return apply.call(function, (a, *args), kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if type(dst) is ndarray and where is True and np.can_cast(_dtype(src), dst.dtype, casting):
        source = of_view(src) if isinstance(src, ViewMemory) else src
        if record(COPY, (source,), dst, casting="unsafe") is not None:
            return
    apply.call(np.copyto, (dst, src), {"casting": casting, "where": where})


def _dtype(value: Any) -> Any:
    return value.dtype if type(value) is ndarray else np.asarray(value).dtype


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return bool(apply.call(np.shares_memory, (a, b), {"max_work": max_work}))


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return bool(apply.call(np.may_share_memory, (a, b), {"max_work": max_work}))
