"""`x[indices]` along the first axis: recorded, so that what computes `x` need not have run.

The law: indices are looked at when the program asks, so an IndexError comes at once; nobody changes
them before the gather but by calls that are recorded after it. (The indices themselves have run.)
"""

from __future__ import annotations

import sys
from functools import partial
from math import prod
from types import FrameType
from typing import Any

from pyfuser.frontends.numpy.layout import c_strides, is_c_order
from pyfuser.frontends.numpy.memory import host, is_away, unmade, usable
from pyfuser.frontends.numpy.record import caller_of, end_trip, is_due, program_frame
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import recording
from pyfuser.frontends.numpy.workunits import COPYTO, space_of
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Extent,
    Load,
    Param,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Workunit,
)
from pyfuser.runtime.first_tier import DirectCall, Step, is_lost
from pyfuser.runtime.no_gain import GATHER
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.extension import NUMPY
from pyfuser.trace.memory import Region

_MAX_INDEX = (1 << 31) - 1


class RecordedGather(DirectCall):
    """A gather, which NumPy can compute, too."""

    __slots__ = ("caller",)

    caller: tuple[int, int]

    def compute(self, step: Step) -> None:
        out, x, indices = (a.array() for a in self.arguments if type(a) is Region)
        step(partial(COPYTO, out, x[indices]))


def gathered(x: Any, indices: Any) -> Any:
    """`x[indices]`, for two arrays of ours; None: NumPy is to do it now."""
    if not recording() or indices.dtype.kind not in "iu":
        return None
    chosen = host(indices)
    with TRACER.lock:
        source, places = usable(x), usable(indices)
        if source is None or places is None or not _fits(source, places):
            return None
        extents, pending = (chosen.size, *source.shape[1:]), is_away(source.buffer)
        if not is_due(prod(extents), pending):
            return None
        frame = program_frame(sys._getframe(1))
        if not (pending or SPACE.device) and is_lost((frame.f_code, ~frame.f_lasti, extents)):
            return None
        least = 0
        if NUMPY is None or not NUMPY.are_below(chosen, source.shape[0]):
            least, most = int(chosen.min()), int(chosen.max())
            if least < -source.shape[0] or most >= source.shape[0]:
                return None  # NumPy says which
        shape = places.shape + source.shape[1:]
        kind = source.dtype
        target, owner = unmade(shape, c_strides(shape, kind.size), kind)
        _record(frame, extents, target, source, places, least < 0)
        return of_region(target, owner)


def _fits(source: Region, places: Region) -> bool:
    """Whether a kernel gathers from memory laid out like this."""
    if (
        0 in source.shape
        or source.dtype.is_complex
        or not 1 <= len(source.shape) <= 2
        or not places.shape
    ):
        return False
    if places.strides != c_strides(places.shape, places.dtype.size):
        return False
    return is_c_order(source.shape, source.strides) and max(places.shape) < _MAX_INDEX


def _record(
    frame: FrameType,
    extents: tuple[int, ...],
    target: Region,
    source: Region,
    places: Region,
    negative: bool,
) -> None:
    end_trip(frame)
    row, count = extents[1:], extents[:1]
    flat = Region(places.buffer, places.offset, (places.dtype.size,), count, places.dtype)
    strides = c_strides(extents, target.dtype.size)
    out = Region(target.buffer, 0, strides, extents, target.dtype)
    unit = _workunit(source.dtype, places.dtype, len(row), negative)
    call = RecordedGather(
        "for", space_of(extents), unit, (out, source, flat), None, None, frame.f_code,
        ~frame.f_lasti,
    )  # fmt: skip
    call.caller = caller_of(frame)
    TRACER.record(call)


@cached(256)
def _workunit(kind: DType, index: DType, row: int, negative: bool) -> Workunit:
    i, j = Sym("i", 0, DType.INT32), Sym("j", 1, DType.INT32)
    out, x, places = Sym("out", 2, kind), Sym("x", 3, kind), Sym("indices", 4, index)
    at = Sym("at", 5, DType.INT64)
    rest: tuple[Expr, ...] = (Read(j),) if row else ()
    given: Expr = Load(places, (Read(i),))
    if index is not DType.INT64:
        given = Cast(given, DType.INT64)
    body: list[Stmt] = [Declare(at, given)]
    place: Expr = Read(at)
    if negative:
        around = Binary("+", place, Extent(x, 0))
        place = Select(Compare("<", place, Const(0, DType.INT64)), around, place)
    body.append(Store(out, (Read(i), *rest), Load(x, (place, *rest))))
    return Workunit(
        name=GATHER,
        indices=(i, j)[: 1 + row],
        params=(Param(out, 1 + row), Param(x, 1 + row), Param(places, 1)),
        body=tuple(body),
    )
