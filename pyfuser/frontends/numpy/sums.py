"""Sums over all elements: recorded, so that what computes the elements needs no memory.

The law: the bits of a float's sum depend on how many elements there are and in which order they lie
in memory, not on who computes it: below `LIMITS.most` elements NumPy, else the tree of additions of
`codegen/cpu/runtime/sum.h`, in a kernel or by `tree_sum`. Floats of 32 bits are added up in 64. A
sum is a read: NumPy's scalar comes back.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.layout import Form, layout_of_call
from pyfuser.frontends.numpy.memory import are_away, host, kernel_dtype, usable
from pyfuser.frontends.numpy.record import end_trip, formed, program_frame
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import LIMITS, recording
from pyfuser.frontends.numpy.workunits import space_of, spread, subscripts
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Cast, Expr, Load, Param, Sym, Update, Workunit
from pyfuser.runtime.first_tier import DirectCall, Step
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.extension import NUMPY
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Array, Region
from pyfuser.tuning.thresholds import Tuning

_MAX_INDEX = (1 << 31) - 1
_TUNING = Tuning()


class RecordedSum(DirectCall):
    """A sum, which NumPy can compute, too, with the same bits."""

    __slots__ = ("form",)

    form: Form

    def compute(self, step: Step) -> None:
        (region,) = self.arguments
        assert type(region) is Region and self.result is not None
        extents = self.space.end
        array = np.broadcast_to(spread(region.array(), self.form, len(extents)), extents)
        step(partial(self.result.give, tree_sum(array, self.result.dtype)))


def total(x: Any, kind: DType) -> Any:
    """The sum of all elements as numbers of a type, as a Python number.

    None: NumPy is to compute it, as there are few elements, or kernels do not know them. Warns, or
    raises, as NumPy does.
    """
    value = _total(x, kind)
    if value is not None and kind.is_float and not SPACE.device:
        own = kernel_dtype(x)
        result = own if own is not None and own.is_float else kind
        if not abs(value) <= np.finfo(result.numpy).max:
            host(x).sum()  # for NumPy's warnings
    return value


def _total(x: Any, kind: DType) -> Any:
    own = kernel_dtype(x)
    if own is None or own.is_complex or x.size < LIMITS.most or (LIMITS.exact and kind.is_float):
        return None
    if x.size < LIMITS.first(False) and not are_away(x):
        return tree_sum(_in_memory_order(host(x)), kind) if kind.is_float else None
    placed = x.shape, x.strides
    layout = layout_of_call((placed,), None, own.size, True)
    region = None if layout is None else usable(x)
    if layout is None or region is None or not recording():
        return tree_sum(_in_memory_order(host(x)), kind) if kind.is_float else None
    (form,) = layout.forms
    unit = _workunit(own, kind, form, len(layout.extents), max(layout.extents) > _MAX_INDEX)
    frame = program_frame(sys._getframe(2))
    end_trip(frame)
    result = Future(kind, TRACER.compute)
    call = RecordedSum(
        "reduce", space_of(layout.extents), unit, (formed(region, form),), result, None,
        frame.f_code, ~frame.f_lasti,
    )  # fmt: skip
    call.form = form
    TRACER.record(call)
    return result.result()


@cached(1024)
def _workunit(own: DType, kind: DType, form: Form, rank: int, wide: bool) -> Workunit:
    index_type = DType.INT64 if wide else DType.INT32
    indices = tuple(Sym("ijklm"[n], n, index_type) for n in range(rank))
    total, x = Sym("total", rank, kind), Sym("x", rank + 1, own)
    value: Expr = Load(x, subscripts(indices, form.axes))
    if own is not kind:
        value = Cast(value, kind)
    return Workunit(
        name="sum",
        indices=indices,
        params=(Param(x, max(len(form.axes), 1)),),
        body=(Update("+", total, (), value),),
        accumulators=(Accumulator(total, flat=rank > 1),),
    )


def _in_memory_order(array: Array) -> Array:
    """An array with its axes in the order in which kernels walk them."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    found: Array = array.transpose(order)
    return found


def tree_sum(array: Array, kind: DType) -> Any:
    """The sum with the bits of a kernel's: see `pf_tiling` and `pf_sum`."""
    terms = array.reshape(-1)
    if not kind.is_float:
        return int(np.add.reduce(terms, dtype=kind.numpy))
    lanes = 256 // kind.size
    size = _tile(terms.size)
    if NUMPY is not None and kind is DType.FLOAT64:
        found = NUMPY.tree_sum(terms, size)
        if found is not None:
            return found
    whole = terms.size // size * size
    with np.errstate(all="ignore"):
        parts = _added(terms[:whole].reshape(-1, size), lanes, kind)
        if whole < terms.size:
            parts = np.append(parts, _added(terms[whole:].reshape(1, -1), lanes, kind))
        return float(np.add.accumulate(np.append(kind.numpy.type(0), parts))[-1])


def _tile(count: int) -> int:
    size = -(-count // _TUNING.tiles)
    size = -(-size // _TUNING.smallest_tile) * _TUNING.smallest_tile
    return min(size, _TUNING.tile)


def _added(tiles: Array, lanes: int, kind: DType) -> Array:
    """The sum of each tile."""
    count, size = tiles.shape
    rows = size // lanes
    sums = np.zeros((count, lanes), kind.numpy)
    if rows:
        blocks = tiles[:, : rows * lanes].reshape(count, rows, lanes)
        for row in range(rows):
            sums += blocks[:, row]
    rest = size - rows * lanes
    if rest:
        sums[:, :rest] += tiles[:, rows * lanes :]
    vector = lanes // 4
    quarters = sums.reshape(count, 4, vector)
    vectors = (quarters[:, 0] + quarters[:, 2]) + (quarters[:, 1] + quarters[:, 3])
    half = vector // 2
    while half:
        vectors = vectors[:, :half] + vectors[:, half : 2 * half]
        half //= 2
    found: Array = vectors[:, 0]
    return found
