"""Reductions along axes: recorded, with NumPy's own bits.

The law: only of arrays in row-major order, where NumPy's order of operations is known. That is one
element after the other along any axis but the innermost, and along that one for products; pairwise
for its sums of floats (see `rows`); any order for integers, and for whether elements are 0. The
greatest of floats along the innermost axis is NumPy's: of 0.0 and -0.0 it has one or the other,
as vectors come. All else is NumPy's, on what has run. On a GPU the order is another one (`lanes`).
"""

from __future__ import annotations

import sys
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pyfuser.frontends.numpy import expressions as e
from pyfuser.frontends.numpy import rows
from pyfuser.frontends.numpy.expressions import Build, Code, cast
from pyfuser.frontends.numpy.floating import WARNER
from pyfuser.frontends.numpy.lanes import by_lanes, lanes_of
from pyfuser.frontends.numpy.layout import (
    ROWS,
    Form,
    Layout,
    c_strides,
    is_c_order,
    layout_of_call,
)
from pyfuser.frontends.numpy.memory import is_away, unmade, usable
from pyfuser.frontends.numpy.record import caller_of, end_trip, formed, is_due, program_frame
from pyfuser.frontends.numpy.short_rows import axes_of
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import LIMITS, errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import space_of, spread, spreading, subscripts
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Const, Expr, Extent, Load, Param, Store, Sym, Workunit
from pyfuser.runtime.first_tier import DirectCall, Step
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.memory import Region

_MAX_INDEX = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Reduction:
    """One of NumPy's. numpys: computes it, given an array, `axis` and `out`. ufunc: of two numbers.

    build: of two numbers at a time. logical: of whether they are 0. place: the place of the element
    that no other one is `place` than.
    """

    name: str
    build: Build
    numpys: Any
    ufunc: Any = None
    logical: bool = False
    place: str = ""


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", e.add, np.add.reduce, np.add),
        Reduction("prod", e.multiply, np.multiply.reduce, np.multiply),
        Reduction("max", e.maximum, np.maximum.reduce, np.maximum),
        Reduction("min", e.minimum, np.minimum.reduce, np.minimum),
        Reduction("any", e.wrapping("|"), np.logical_or.reduce, np.logical_or, logical=True),
        Reduction("all", e.wrapping("&"), np.logical_and.reduce, np.logical_and, logical=True),
        Reduction("argmax", e.maximum, np.argmax, place=">"),
        Reduction("argmin", e.minimum, np.argmin, place="<"),
    )
}


class RecordedReduction(DirectCall):
    """A reduction along the last axis of its operand, which NumPy can compute, too."""

    __slots__ = ("caller", "errors", "forms", "reduction")
    named = "reduce"

    reduction: Reduction
    caller: tuple[int, int]
    errors: dict[str, str] | None
    forms: tuple[Form, Form]  # of the result and of a row of the operand

    def compute(self, step: Step) -> None:
        out, x = self.arguments
        assert type(out) is Region and type(x) is Region
        extents = self.space.end
        result, row = self.forms
        key = spreading(row, len(extents)) if row.axes else (None,) * len(extents)
        key = (*key, Ellipsis)
        array = x.array()[key]
        whole = np.broadcast_to(array, (*extents, x.shape[-1]))
        target = spread(out.array(), result, len(extents))
        reduce = partial(self.reduction.numpys, whole, axis=-1, out=target)
        WARNER.run(self, partial(step, reduce), self.errors)


def along_axis(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.name(axis=...)` if it is recorded; else None."""
    axis = args[0] if args else kwargs.get("axis")
    if len(args) > 1 or kwargs.keys() - {"axis", "keepdims", "ddof"} or axis is None:
        return None
    keepdims, ddof = kwargs.get("keepdims", False), kwargs.get("ddof", 0)
    shape = x.shape
    if type(keepdims) is not bool or len(shape) < 2:
        return None
    axes = _axes(axis, len(shape), name)
    if axes is None:
        return None
    first, last = axes
    one = x
    if last > first:
        if 0 in shape or x.strides != c_strides(shape, x.dtype.itemsize):
            return None
        one = x.reshape(*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])
        if one.ndim < 2:
            return None
    if name in REDUCTIONS:
        found = _reduce(one, REDUCTIONS[name], first) if "ddof" not in kwargs else None
    else:
        found = _moment(one, name, first, ddof)
    if found is None or not keepdims:
        return found
    return found.reshape(*shape[:first], *(1,) * (last - first + 1), *shape[last + 1 :])


def _axes(axis: Any, rank: int, name: str) -> tuple[int, int] | None:
    """The first and the last one, of an axis or of neighbours; None: NumPy sees to it."""
    found = None if type(axis) is tuple and name.startswith("arg") else axes_of(axis, rank)
    if not found or found != tuple(range(found[0], found[-1] + 1)):
        return None
    return found[0], found[-1]


def _moment(x: Any, name: str, axis: int, ddof: Any) -> Any:
    """`mean`, `var` and `std` of floats, by the operations that NumPy takes for them."""
    shape = x.shape
    if x.dtype.char not in "fd" or type(ddof) is not int or ddof >= shape[axis]:
        return None
    mean = _reduce(x, REDUCTIONS["sum"], axis)
    if mean is None:
        return None
    mean /= shape[axis]
    if name == "mean":
        return mean if ddof == 0 else None
    apart = x - mean.reshape(*shape[:axis], 1, *shape[axis + 1 :])
    apart = np.square(apart, out=apart)
    found = _reduce(apart, REDUCTIONS["sum"], axis)
    if found is None:
        return None
    found /= shape[axis] - ddof
    return found if name == "var" else np.sqrt(found, out=found)


class _Way(NamedTuple):
    """How a reduction along an axis of an array is recorded."""

    kind: DType  # of the result
    inner: bool  # whether the axis is the last one that counts
    layout: Layout
    unit: Workunit
    space: Space
    strides: tuple[int, ...]  # of the operand, as the workunit has it
    shape: tuple[int, ...]


def _reduce(x: Any, reduction: Reduction, axis: int) -> Any:
    """Record the reduction; None: NumPy is to compute it."""
    if not recording() or is_loud(errors()):
        return None
    with TRACER.lock:
        region = usable(x)
        if region is None:
            return None
        limits = (len(ROWS), LIMITS.exact, LIMITS.rows, LIMITS.columns, SPACE.execution)
        way = _way_of(reduction, region.dtype, region.shape, region.strides, axis, limits)
        if way is None or not is_due(x.size, is_away(region.buffer)):
            return None
        lanes = SPACE.device and _lanes(reduction, region, way.layout.size, axis, way.inner)
        if not lanes and not _few_or_many(way.layout.size, way.inner):
            return None
        if lanes > 1:
            reduce = partial(_reduce, reduction=reduction, axis=axis)
            return by_lanes(x, axis, lanes, reduction.ufunc, reduce)
        return _record(reduction, region, way)


@cached(1024)
def _way_of(
    reduction: Reduction,
    own: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    axis: int,
    limits: tuple[Any, ...],
) -> _Way | None:
    """How it is recorded; None: it is not. limits: what that depends on, besides."""
    inner = prod(shape[axis + 1 :]) == 1
    kind = kind_of(reduction, own, inner)
    if kind is None or not is_c_order(shape, strides) or 0 in shape:
        return None
    rest = shape[:axis] + shape[axis + 1 :], strides[:axis] + strides[axis + 1 :]
    layout = layout_of_call((rest,), None, kind.size)
    if layout is None or len(layout.extents) > _MOST_AXES or max(shape) > _MAX_INDEX:
        return None
    (form,) = layout.forms
    axes, steps = (form.shape, form.strides) if form.axes else ((), ())
    count = shape[axis]
    terms = rows.class_of(count) if inner and kind.is_float and reduction.name == "sum" else 0
    unit = _workunit(
        reduction, own, kind, form.axes, layout.result.axes, len(layout.extents), terms
    )
    space = space_of(layout.extents)
    return _Way(kind, inner, layout, unit, space, (*steps, strides[axis]), (*axes, count))


def _lanes(reduction: Reduction, region: Region, results: int, axis: int, inner: bool) -> int:
    """How many lanes the axis has on a GPU; 0: it has none, as the order of operations counts."""
    if not SPACE.device or reduction.place:
        return 0
    if region.dtype.is_float and reduction.name == "prod":
        return 0  # which of its terms meet decides whether it overflows
    return max(lanes_of(region.shape[axis], results, inner), 1)


def of_all(x: Any, reduction: Reduction) -> Any:
    """Record the reduction of all elements on a GPU: an array of one element; None: it is not."""
    if x.strides != c_strides(x.shape, x.dtype.itemsize):
        return None
    return _reduce(x.reshape(1, x.size), reduction, 1)


_MOST_AXES = 3

_FEW = 32
"""Columns that are added up side by side, by one thread: what NumPy does for each row takes longer
than to add these. Of more than that, kernels take longer, until there are enough for threads."""


def _few_or_many(results: int, inner: bool) -> bool:
    """Whether a reduction with so many results is recorded; each is one iteration."""
    return results >= LIMITS.rows if inner else results <= _FEW or results >= LIMITS.columns


# law: None
def kind_of(reduction: Reduction, own: DType, innermost: bool) -> DType | None:
    """The type of the result, if kernels have NumPy's bits (and are not slower in any case)."""
    if own.is_complex:
        return None
    exact = LIMITS.exact or not SPACE.device
    if own.is_float and innermost and reduction.name in ("max", "min") and exact:
        return None
    if own.is_float and SPACE.device and reduction.name == "sum" and exact:
        return None
    if innermost and reduction.place:
        return None  # NumPy's vectors are quicker
    if reduction.logical:
        return DType.BOOL
    if reduction.place:
        return DType.INT64
    if reduction.name not in ("sum", "prod") or own.is_float:
        return own
    return DType.INT64 if own.is_signed or own is DType.BOOL else DType.UINT64


def term_of(reduction: Reduction, element: Expr, kind: DType) -> Expr:
    """An element as the loop of a reduction has it."""
    if reduction.logical:
        return cast(cast(element, DType.BOOL), DType.INT32)
    return element if reduction.place else cast(element, kind)


def _record(reduction: Reduction, region: Region, way: _Way) -> Any:
    frame = program_frame(sys._getframe(4))
    end_trip(frame)
    layout = way.layout
    target, owner = unmade(layout.shape, layout.strides, way.kind)
    operand = Region(region.buffer, region.offset, way.strides, way.shape, region.dtype)
    call = RecordedReduction(
        "for", way.space, way.unit, (formed(target, layout.result), operand), None,
        None, frame.f_code, ~frame.f_lasti,
    )  # fmt: skip
    call.reduction = reduction
    call.errors = errors()
    call.forms = layout.result, layout.forms[0]
    call.caller = caller_of(frame)
    TRACER.record(call)
    return of_region(target, owner)


@cached(1024)
def _workunit(
    reduction: Reduction,
    own: DType,
    kind: DType,
    axes: tuple[int, ...],
    result: tuple[int, ...],
    rank: int,
    terms: int,
) -> Workunit:
    """terms: of a row that is added up pairwise, a number for its class."""
    indices = tuple(Sym("ijklm"[n], n, DType.INT32) for n in range(rank))
    out, x = Sym("out", rank, kind), Sym("x", rank + 1, own)
    code = Code(rank + 2)
    row = subscripts(indices, axes) if axes else ()
    count = code.let(cast(Extent(x, len(row)), rows.I32), "count")

    def load(place: Expr) -> Expr:
        return term_of(reduction, Load(x, (*row, place)), kind)

    first = load(rows.whole(0))
    nought = Const(0.0, kind) if kind.is_float else first
    if reduction.place:
        body, value = rows.best(code, reduction.place, load, count)
    elif terms:
        body, value = rows.pairwise(code, load, rows.whole(0), count, terms)
        value = Binary("+", nought, value)  # as NumPy, whose sum of -0.0 is 0.0
    else:
        if reduction.name == "sum" and kind.is_float:
            first = Binary("+", nought, first)
        body, value = rows.in_order(code, reduction.build, load, count, first)
    store = Store(out, subscripts(indices, result), cast(value, kind))
    return Workunit(
        name=reduction.name,
        indices=indices,
        params=(Param(out, max(len(result), 1)), Param(x, len(row) + 1)),
        body=(*code.statements, *body, store),
    )
