"""Copies whose elements come from elsewhere along one axis: `roll`, `repeat`, `tile`, `pad`.

The law: element i of the result is element `index(i)` of the operand: a remainder or a quotient of
an affine function of i, or one of a few such functions. What reads the result then reads the
operand instead, so that `roll(u, 1) - roll(u, -1)` is one kernel, and needs no memory for either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.layout import c_strides, is_c_order
from pyfuser.frontends.numpy.memory import is_away, unmade, usable
from pyfuser.frontends.numpy.record import (
    caller_of,
    end_trip,
    is_due,
    joins,
    keep_rows,
    program_frame,
)
from pyfuser.frontends.numpy.switches import recording
from pyfuser.frontends.numpy.workunits import space_of
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
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
from pyfuser.support.records import dataclass
from pyfuser.trace.memory import Array, Region
from pyfuser.trace.pool import most_memory

_MOST_INDEX = 1 << 30  # so that no sum of two overflows
_MOST_AXES = 3


@dataclass(frozen=True, eq=False)
class Map:
    """index: of the operand's element, of the place, the operand's extent and the number `by`.

    copy: the same by NumPy, of the arrays of the result and of the operand, the axis and `by`.
    """

    name: str
    index: Callable[[Expr, Expr, Expr], Expr]
    copy: Callable[[Array, Array, int, int], None]


def _rolled(out: Array, x: Array, axis: int, by: int) -> None:
    """Element i is element i + by, around the end."""
    if by < 0:
        by += x.shape[axis]
    before = (slice(None),) * axis
    length = x.shape[axis]
    for to, source in (
        (slice(None, length - by), slice(by, None)),
        (slice(length - by, None), slice(None, by)),
    ):
        np.copyto(out[before + (to,)], x[before + (source,)])  # noqa: RUF005


def _forward(i: Expr, n: Expr, by: Expr) -> Expr:
    place = Binary("+", i, by)
    return Select(Compare("<", place, n), place, Binary("-", place, n))


def _back(i: Expr, n: Expr, by: Expr) -> Expr:
    place = Binary("-", i, by)
    return Select(Compare("<", place, Const(0, DType.INT32)), Binary("+", place, n), place)


ROLL = Map("roll", _forward, _rolled)
BACK = Map("roll", _back, lambda out, x, axis, by: _rolled(out, x, axis, -by))
REPEAT = Map(
    "repeat",
    lambda i, n, by: Binary("/", i, by),
    lambda out, x, axis, by: np.copyto(out, np.repeat(x, by, axis)),
)
TILE = Map(
    "tile",
    lambda i, n, by: Binary("%", i, n),
    lambda out, x, axis, by: np.copyto(out, np.concatenate([x] * by, axis)),
)


def _outside(i: Expr, n: Expr, by: Expr, below: Expr, above: Expr) -> Expr:
    """Element i - by, or one of others where there is none."""
    place = Binary("-", i, by)
    inside = Select(Compare("<", place, n), place, above)
    return Select(Compare("<", place, Const(0, DType.INT32)), below, inside)


def _twice_less(n: Expr, less: int, place: Expr) -> Expr:
    whole = Binary("-", Binary("+", n, n), Const(less, DType.INT32))
    return Binary("-", whole, place)


def _edge(i: Expr, n: Expr, by: Expr) -> Expr:
    return _outside(i, n, by, Const(0, DType.INT32), Binary("-", n, Const(1, DType.INT32)))


def _mirrored(less: int) -> Callable[[Expr, Expr, Expr], Expr]:
    """Around the first and the last element (2), or around where they end (1)."""

    def index(i: Expr, n: Expr, by: Expr) -> Expr:
        below = Binary("-", by, i)
        if less == 1:
            below = Binary("-", below, Const(1, DType.INT32))
        return _outside(i, n, by, below, _twice_less(n, less, Binary("-", i, by)))

    return index


def _padding(mode: Any, index: Callable[[Expr, Expr, Expr], Expr]) -> Map:
    def copy(out: Array, x: Array, axis: int, by: int) -> None:
        widths = [(0, 0)] * x.ndim
        widths[axis] = by, out.shape[axis] - x.shape[axis] - by
        np.copyto(out, np.pad(x, widths, mode))

    return Map(f"pad_{mode}", index, copy)


PADDINGS = {
    "edge": _padding("edge", _edge),
    "wrap": _padding("wrap", lambda i, n, by: Binary("%", Binary("+", i, Binary("-", n, by)), n)),
    "reflect": _padding("reflect", _mirrored(2)),
    "symmetric": _padding("symmetric", _mirrored(1)),
}
"""By mode; `by` elements come before the first one, at most as many as `may_pad` says."""


# law: True
def may_pad(mode: str, extent: int, most: int) -> bool:
    """Whether the indices of a mode know `most` elements before or after an axis."""
    return mode == "edge" or most <= extent - (mode == "reflect")


class RecordedMap(DirectCall):
    """Such a copy, which NumPy can make, too."""

    __slots__ = ("axis", "caller", "map")

    axis: int
    caller: tuple[int, int]
    map: Map

    def compute(self, step: Step) -> None:
        out, x, by = self.arguments
        assert type(out) is Region and type(x) is Region and type(by) is int
        step(partial(self.map.copy, out.array(), x.array(), self.axis, by))  # may be done again


def mapped(x: Any, how: Map, axis: int, by: int, extent: int) -> Any:
    """Record a copy of an array of ours, which has `extent` elements along the axis.

    None: NumPy is to make it.
    """
    if not recording():
        return None
    with TRACER.lock:
        region = usable(x)
        if region is None or region.dtype.is_complex:
            return None
        shape = (*region.shape[:axis], extent, *region.shape[axis + 1 :])
        if 0 in shape or len(shape) > _MOST_AXES or max(*shape, *region.shape) >= _MOST_INDEX:
            return None
        if not is_c_order(region.shape, region.strides):
            return None
        size, pending = prod(shape), is_away(region.buffer)
        if size * region.dtype.size > most_memory():
            return None  # NumPy's to refuse, at the call
        if not is_due(size, joins(size, pending)):
            return None
        keep_rows(shape)
        frame = program_frame(sys._getframe(2))
        end_trip(frame)
        kind = region.dtype
        target, owner = unmade(shape, c_strides(shape, kind.size), kind)
        unit = _workunit(how, kind, len(shape), axis)
        call = RecordedMap(
            "for", space_of(shape), unit, (target, region, by), None, None, frame.f_code,
            ~frame.f_lasti,
        )  # fmt: skip
        call.axis, call.map, call.caller = axis, how, caller_of(frame)
        TRACER.record(call)
        return of_region(target, owner)


@cached(256)
def _workunit(how: Map, kind: DType, rank: int, axis: int) -> Workunit:
    indices = tuple(Sym("ijk"[n], n, DType.INT32) for n in range(rank))
    out, x, by = Sym("out", rank, kind), Sym("x", rank + 1, kind), Sym("by", rank + 2, DType.INT32)
    extent = Cast(Extent(x, axis), DType.INT32)
    places: list[Expr] = [Read(index) for index in indices]
    places[axis] = how.index(places[axis], extent, Read(by))
    return Workunit(
        name=how.name,
        indices=indices,
        params=(Param(out, rank), Param(x, rank), Param(by, 0)),
        body=(Store(out, tuple(map(Read, indices)), Load(x, tuple(places))),),
    )
