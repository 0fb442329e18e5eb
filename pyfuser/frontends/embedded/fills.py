"""Fills and copies of whole Views as recorded calls, so that they fuse, or vanish if overwritten.

They are kernels like the user's, made without source. Rows of a few elements are set by one
iteration each, as programs that loop over `range(n)` use such Views; else each element has its own.
"""

from __future__ import annotations

import math
import sys
from types import FrameType

import numpy as np

from pyfuser.frontends.embedded.indexing import is_everything
from pyfuser.frontends.embedded.spaces import ExecutionSpace, resolve_space
from pyfuser.frontends.embedded.view_memory import ATOMIC, READ_ONLY, ViewMemory
from pyfuser.frontends.modes import traced
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Expr, Load, Param, Read, Store, Sym, Workunit
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.trace.call import Argument, Call, Scalar, Space
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Buffer, Region

SHORT_ROW = 8
"""Elements that one iteration sets."""

WORTH = 1 << 16
"""Bytes from which a fill is recorded though nothing is pending on the memory."""

_MAX_RANK = 3
_MAX_INDEX = (1 << 31) - 1
_EXACT = 1 << 53  # integers up to this are doubles
_OURS = "pyfuser.frontends.embedded"


def record_fill(view: ViewMemory, value: object) -> bool:
    """Record that all elements of a View are set to a number.

    False if that is to be done at once: nothing would be gained, or it is not certain that a
    kernel would store what NumPy stores.
    """
    region = view._region
    plain = _plain(value, region.dtype)
    if plain is None or not _recordable(view):
        return False
    buffer = region.buffer
    if not buffer.pending:
        if not buffer.allocated and plain == 0 and math.copysign(1.0, plain) > 0:
            return True  # it will be zero when it comes
        if not _worth(view):
            return False
    _record(view, "fill", plain)
    return True


def record_assignment(view: ViewMemory, key: object, value: object) -> bool:
    """Record `view[key] = value`, if all elements get one number or those of another View."""
    if not is_everything(key, view.ndim):
        return False
    if isinstance(value, ViewMemory):
        return record_copy(view, value)
    return record_fill(view, value)


def record_copy(view: ViewMemory, source: ViewMemory) -> bool:
    """Record that a View takes the elements of another; False if that is to be done at once."""
    region, other = view._region, source._region
    if region.dtype is not other.dtype or region.shape != other.shape:
        return False
    if region.buffer is other.buffer or not (_recordable(view) and _recordable(source)):
        return False
    if not (region.buffer.pending or other.buffer.pending or _worth(view)):
        return False
    _record(view, "copy", other)
    return True


def _plain(value: object, dtype: DType) -> int | float | None:
    """A number as a View of this type stores it; None for all but the simplest cases."""
    if type(value) is float and dtype is DType.FLOAT64:
        return value
    if isinstance(value, (bool, np.bool_)) or dtype is DType.BOOL:
        return None
    if dtype.is_integer:
        if not isinstance(value, (int, np.integer)):
            return None
        least, greatest = dtype.range()
        return int(value) if least <= value <= greatest else None
    if dtype not in (DType.FLOAT32, DType.FLOAT64):
        return None
    if isinstance(value, (int, np.integer)):
        return float(value) if -_EXACT <= value <= _EXACT else None
    if not isinstance(value, (float, np.floating)):
        return None
    wide = float(value)
    if dtype is DType.FLOAT64 or not math.isfinite(wide):
        return wide
    return float(np.float32(wide)) if abs(wide) < np.finfo(np.float32).max else None


def _recordable(view: ViewMemory) -> bool:
    """Whether a kernel may use a View, and nobody but Views reaches its memory."""
    region = view._region
    buffer: Buffer = region.buffer
    return (
        view._handle is not None
        and not buffer.external
        and not USE.devices  # there the host's memory need not be the newest
        and not view._code & (READ_ONLY | ATOMIC)
        and 1 <= len(region.shape) <= _MAX_RANK
        and min(region.shape) > 0  # else there is nothing to do
        and max(region.shape) < _MAX_INDEX
        and (buffer.pending > 0 or traced(False))
    )


def _worth(view: ViewMemory) -> bool:
    """Whether a call without others before it is worth its while."""
    return view.size * view._region.dtype.size >= WORTH


def _record(view: ViewMemory, name: str, source: Scalar | Region) -> None:
    region = view._region
    rows = len(region.shape) == 2 and region.shape[1] <= SHORT_ROW
    workunit = _workunit(name, region.dtype, len(region.shape), region.shape[1] if rows else 0)
    extents = region.shape[:1] if rows else region.shape
    space = _space(extents, resolve_space(ExecutionSpace.Default).value)
    arguments: tuple[Argument, ...] = region, source
    frame = _program(sys._getframe(2))
    TRACER.record(Call("for", space, workunit, arguments, None, None, frame.f_code, ~frame.f_lasti))


@cached(256)
def _space(extents: tuple[int, ...], execution: str) -> Space:
    return Space((0,) * len(extents), extents, execution)


def _program(frame: FrameType) -> FrameType:
    """The innermost frame of the user's program."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return frame


@cached(256)
def _workunit(name: str, dtype: DType, rank: int, row: int) -> Workunit:
    """What one iteration of a fill or a copy does.

    row: how many elements it sets; 0: one, of a space of the View's rank.
    """
    indices = tuple(Sym(index, n, DType.INT32) for n, index in enumerate("ijk"[:rank]))
    indices = indices[:1] if row else indices
    view, source = Sym("view", rank, dtype), Sym("source", rank + 1, dtype)
    own: tuple[Expr, ...] = tuple(map(Read, indices))
    elements = [own]
    if row:
        elements = [(*own, Const(column, DType.INT32)) for column in range(row)]
    return Workunit(
        name=name,
        indices=indices,
        params=(Param(view, rank), Param(source, rank if name == "copy" else 0)),
        body=tuple(
            Store(view, element, Load(source, element) if name == "copy" else Read(source))
            for element in elements
        ),
    )
