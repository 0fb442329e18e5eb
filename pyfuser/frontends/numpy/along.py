"""Reductions along one axis: recorded, with NumPy's own bits.

The law: only where NumPy takes the elements one after the other. That is along any axis but the
innermost, of arrays in row-major order; along that one for integers, whose sums have no order. All
else is NumPy's, on what has run.
"""

from __future__ import annotations

import operator
import sys
from functools import partial
from math import prod
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import expressions as e
from pyfuser.frontends.numpy.expressions import Build, Code, cast
from pyfuser.frontends.numpy.floating import WARNER
from pyfuser.frontends.numpy.layout import Form, Layout, is_c_order, layout_of_call
from pyfuser.frontends.numpy.memory import Owner, region_of
from pyfuser.frontends.numpy.record import caller_of, end_trip, formed, program_frame
from pyfuser.frontends.numpy.switches import LIMITS, errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import space_of, spread, spreading, subscripts
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Const,
    Declare,
    Extent,
    For,
    Load,
    Param,
    Read,
    Store,
    Sym,
    Workunit,
)
from pyfuser.runtime.first_tier import DirectCall, Step
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.records import dataclass
from pyfuser.trace.memory import Allocation, Region

_MAX_INDEX = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Reduction:
    """One of NumPy's, of two numbers at a time. logical: of whether they are 0."""

    name: str
    build: Build
    ufunc: Any
    logical: bool = False


_REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", e.add, np.add),
        Reduction("max", e.maximum, np.maximum),
        Reduction("min", e.minimum, np.minimum),
        Reduction("any", e.logical("||"), np.logical_or, logical=True),
        Reduction("all", e.logical("&&"), np.logical_and, logical=True),
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
        reduce = partial(self.reduction.ufunc.reduce, whole, axis=-1, out=target)
        WARNER.run(self, partial(step, reduce), self.errors)


def along_axis(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.name(axis=...)` if it is recorded; else None."""
    axis = args[0] if args else kwargs.get("axis")
    if len(args) > 1 or kwargs.keys() - {"axis", "keepdims", "ddof"} or axis is None:
        return None
    keepdims, ddof = kwargs.get("keepdims", False), kwargs.get("ddof", 0)
    try:
        axis = operator.index(axis)
    except TypeError:
        return None
    shape = x.shape
    if not -len(shape) <= axis < len(shape) or type(keepdims) is not bool or len(shape) < 2:
        return None
    axis %= len(shape)
    if name in _REDUCTIONS:
        found = _reduce(x, _REDUCTIONS[name], axis) if "ddof" not in kwargs else None
    else:
        found = _moment(x, name, axis, ddof)
    if found is None or not keepdims:
        return found
    return found.reshape(*shape[:axis], 1, *shape[axis + 1 :])


def _moment(x: Any, name: str, axis: int, ddof: Any) -> Any:
    """`mean`, `var` and `std` of floats, by the operations that NumPy takes for them."""
    shape = x.shape
    if x.dtype.char not in "fd" or type(ddof) is not int or ddof >= shape[axis]:
        return None
    mean = _reduce(x, _REDUCTIONS["sum"], axis)
    if mean is None:
        return None
    mean /= shape[axis]
    if name == "mean":
        return mean if ddof == 0 else None
    apart = x - mean.reshape(*shape[:axis], 1, *shape[axis + 1 :])
    apart = np.square(apart, out=apart)
    found = _reduce(apart, _REDUCTIONS["sum"], axis)
    if found is None:
        return None
    found /= shape[axis] - ddof
    return found if name == "var" else np.sqrt(found, out=found)


def _reduce(x: Any, reduction: Reduction, axis: int) -> Any:
    """Record the reduction; None: NumPy is to compute it."""
    if not recording() or is_loud(errors()):
        return None
    with TRACER.lock:
        region = region_of(x)
        if region is None or region.buffer.external:
            return None
        kind = _kind(reduction, region.dtype, prod(region.shape[axis + 1 :]) == 1)
        if kind is None or not is_c_order(region.shape, region.strides) or 0 in region.shape:
            return None
        if x.size < LIMITS.most and not region.buffer.pending:
            return None
        shape, strides = region.shape, region.strides
        rest = shape[:axis] + shape[axis + 1 :], strides[:axis] + strides[axis + 1 :]
        layout = layout_of_call((rest,), None, kind.size)
        if layout is None or len(layout.extents) > _MOST_AXES or max(shape) > _MAX_INDEX:
            return None
        if layout.size < LIMITS.costly:
            return None  # each is one iteration: too few for vectors and threads
        return _record(reduction, region, axis, kind, layout)


_MOST_AXES = 3


# law: None
def _kind(reduction: Reduction, own: DType, innermost: bool) -> DType | None:
    """The type of the result, if kernels have NumPy's bits."""
    if own.is_complex or (own.is_float and innermost and not reduction.logical):
        return None
    if reduction.logical:
        return DType.BOOL
    if reduction.name != "sum" or own.is_float:
        return own
    return DType.INT64 if own.is_signed or own is DType.BOOL else DType.UINT64


def _record(reduction: Reduction, region: Region, axis: int, kind: DType, layout: Layout) -> Any:
    frame = program_frame(sys._getframe(4))
    end_trip(frame)
    owner = Owner()
    owner.buffer = buffer = Allocation(layout.size * kind.size, owner)
    target = Region(buffer, 0, layout.strides, layout.shape, kind)
    (form,) = layout.forms
    axes = form.shape if form.axes else ()
    steps = form.strides if form.axes else ()
    operand = Region(
        region.buffer,
        region.offset,
        (*steps, region.strides[axis]),
        (*axes, region.shape[axis]),
        region.dtype,
    )
    unit = _workunit(reduction, region.dtype, kind, form, layout.result, len(layout.extents))
    call = RecordedReduction(
        "for", space_of(layout.extents), unit, (formed(target, layout.result), operand), None,
        None, frame.f_code, ~frame.f_lasti,
    )  # fmt: skip
    call.reduction = reduction
    call.errors = errors()
    call.forms = layout.result, form
    call.caller = caller_of(frame)
    TRACER.record(call)
    return of_region(target, owner)


@cached(1024)
def _workunit(
    reduction: Reduction, own: DType, kind: DType, form: Form, result: Form, rank: int
) -> Workunit:
    indices = tuple(Sym("ijklm"[n], n, DType.INT32) for n in range(rank))
    out, x = Sym("out", rank, kind), Sym("x", rank + 1, own)
    total, k = Sym("total", rank + 2, kind), Sym("n", rank + 3, DType.INT32)
    row = subscripts(indices, form.axes) if form.axes else ()
    nought, one = Const(0, DType.INT32), Const(1, DType.INT32)
    code = Code(rank + 4)
    value = code.let(cast(Load(x, (*row, Read(k))), kind))
    step = reduction.build(code, Read(total), value)
    first = cast(Load(x, (*row, nought)), kind)
    if reduction.name == "sum" and kind.is_float:
        first = Binary("+", Const(0.0, kind), first)  # as NumPy, whose sum of -0.0 is 0.0
    extent = cast(Extent(x, len(row)), DType.INT32)
    return Workunit(
        name=reduction.name,
        indices=indices,
        params=(Param(out, max(len(result.axes), 1)), Param(x, len(row) + 1)),
        body=(
            Declare(total, first),
            For(k, one, extent, one, (*code.statements, Assign(total, step))),
            Store(out, subscripts(indices, result.axes), Read(total)),
        ),
    )
