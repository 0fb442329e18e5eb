"""Reductions over all elements that have one result in any order: recorded, so that what computes
the elements needs no memory.

That is the greatest and the least element, whether any or all are not 0, and products of integers.
A row, or some thousands of elements of an array that is one row, become one of a few partial
results, which NumPy reduces. The law: of 0.0 and -0.0 NumPy has one or the other as the greatest,
so a 0.0 is computed again by NumPy. A result is a read: NumPy's scalar comes back.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import rows
from pyfuser.frontends.numpy.along import (
    REDUCTIONS,
    RecordedReduction,
    Reduction,
    kind_of,
    of_all,
    term_of,
)
from pyfuser.frontends.numpy.expressions import Code, cast
from pyfuser.frontends.numpy.layout import Form, c_strides, layout_of_call
from pyfuser.frontends.numpy.memory import host, is_away, unmade, usable
from pyfuser.frontends.numpy.record import caller_of, end_trip, formed, program_frame
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import LIMITS, errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import space_of, subscripts
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Compare,
    Expr,
    Extent,
    Load,
    Param,
    Read,
    Select,
    Store,
    Sym,
    Workunit,
)
from pyfuser.runtime.first_tier import DirectCall, Step
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.trace.memory import Region

PART = 4096
"""Elements of an array of one row that have one partial result."""

_LEAST = 64
"""Elements of rows that have one each."""

_PAYS = 4
"""How many times `LIMITS.most` elements on which nothing is pending."""

_MAX_INDEX = (1 << 31) - 1 - PART
_MOST_AXES = 4


class RecordedParts(DirectCall):
    """A reduction of each part of a row, which NumPy can compute, too."""

    __slots__ = ("caller", "reduction")

    caller: tuple[int, int]
    reduction: Reduction

    def compute(self, step: Step) -> None:
        out, x = (a.array() for a in self.arguments if type(a) is Region)
        starts = np.arange(0, x.size, PART)
        with np.errstate(all="ignore"):
            step(partial(self.reduction.ufunc.reduceat, x, starts, out=out))


def extreme(x: Any, name: str, own: DType) -> Any:
    """`x.name()`; None: NumPy is to compute it, on what has run."""
    reduction = REDUCTIONS[name]
    kind = kind_of(reduction, own, False)
    if kind is None or reduction.place or (own.is_float and name == "prod"):
        return None
    if x.size < LIMITS.most or not recording() or is_loud(errors()):
        return None
    if SPACE.device:
        found = of_all(x, reduction)
        return None if found is None else host(found)[0]
    with TRACER.lock:
        region = usable(x)
        layout = layout_of_call(((x.shape, x.strides),), None, own.size, True)
        if region is None or layout is None or not _fits(layout.extents, layout.forms[0]):
            return None
        if x.size < _PAYS * LIMITS.most and not is_away(region.buffer):
            return None
        partial_results = _record(reduction, formed(region, layout.forms[0]), kind)
    found = reduction.numpys(host(partial_results), axis=None)
    if own.is_float and not reduction.logical and found == 0:
        return None
    return found


def _fits(extents: tuple[int, ...], form: Form) -> bool:
    long = len(extents) == 1 or extents[-1] >= _LEAST
    whole = form.axes == tuple(range(len(extents)))
    return long and whole and len(extents) <= _MOST_AXES and max(extents) <= _MAX_INDEX


def _record(reduction: Reduction, x: Region, kind: DType) -> Any:
    frame = program_frame(sys._getframe(4))
    end_trip(frame)
    line = len(x.shape) == 1
    shape = (-(-x.shape[0] // PART),) if line else x.shape[:-1]
    target, owner = unmade(shape, c_strides(shape, kind.size), kind)
    unit = _workunit(reduction, x.dtype, kind, len(shape), line)
    made: Any = RecordedParts if line else RecordedReduction
    call = made("for", space_of(shape), unit, (target, x), None, None, frame.f_code, ~frame.f_lasti)
    call.reduction = reduction
    call.caller = caller_of(frame)
    if not line:
        axes = tuple(range(len(shape)))
        call.errors = errors()
        call.forms = Form(axes, shape, target.strides), Form(axes, shape, x.strides[:-1])
    TRACER.record(call)
    return of_region(target, owner)


@cached(256)
def _workunit(reduction: Reduction, own: DType, kind: DType, rank: int, line: bool) -> Workunit:
    """line: the operand has one axis, and each iteration a part of it."""
    indices = tuple(Sym("ijkl"[n], n, DType.INT32) for n in range(rank))
    out, x = Sym("out", rank, kind), Sym("x", rank + 1, own)
    code = Code(rank + 2)
    places = tuple(range(rank))
    row = () if line else subscripts(indices, places)
    start: Expr = rows.whole(0)
    count = code.let(cast(Extent(x, len(row)), rows.I32), "count")
    if line:
        start = code.let(Binary("*", Read(indices[0]), rows.whole(PART)), "start")
        left = code.let(Binary("-", count, start), "left")
        count = code.let(Select(Compare("<", left, rows.whole(PART)), left, rows.whole(PART)))

    def load(place: Expr) -> Expr:
        return term_of(reduction, Load(x, (*row, place)), kind)

    if kind.is_float:
        body, value = rows.lanes(code, reduction.build, load, start, count)
    else:
        first = load(start)
        body, value = rows.in_order(code, reduction.build, load, count, first, start)
    store = Store(out, subscripts(indices, places), cast(value, kind))
    return Workunit(
        name=reduction.name,
        indices=indices,
        params=(Param(out, rank), Param(x, len(row) + 1)),
        body=(*code.statements, *body, store),
    )
