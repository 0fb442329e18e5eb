"""Arguments that are parts of another one become that one, whose subscripts say which part.

A row `u[0]` and all of `u`, or `u[:-1]` and `u`, are two arrays that overlap: no value is forwarded
between them, and no compiler makes vectors of a loop that writes one and reads the other. As one
parameter the subscripts tell what is the same element: `u[0][j]` and `u[i][j]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeAlias

from pyfuser.analysis.layout import is_injective
from pyfuser.ir.accesses import with_subscripts
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Binary, Cast, Const, Expr, Extent, Workunit
from pyfuser.ir.visit import contains
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Slot

Part: TypeAlias = tuple[tuple[int, int], ...]
"""Of each axis of a whole: the axis of the part that goes along it (-1: none), and where from."""


MOST = (1 << 31) - 1
"""Elements along an axis of a whole, at most: subscripts have 32 bits."""


def wholes_of(group: GroupShape) -> dict[Slot, tuple[RegionShape, Slot, Part]]:
    """For arguments that are parts of others: the largest, an argument that it is, and the part.

    Of memory that the group writes; what is only read may overlap as it likes.
    """
    if len(group.calls) == 1 or left_out("unite-views"):
        return {}
    arguments: list[tuple[Slot, RegionShape, Workunit]] = []
    first: dict[RegionShape, Slot] = {}
    written: set[int] = set()
    for place, call in enumerate(group.calls):
        changed = written_views(call.workunit)
        for n, (param, shape) in enumerate(zip(call.workunit.params, call.arguments, strict=True)):
            if isinstance(shape, RegionShape):
                arguments.append((Slot(place, n), shape, call.workunit))
                first.setdefault(shape, Slot(place, n))
                if param.sym in changed:
                    written.add(shape.cluster)
    alike: dict[int, list[RegionShape]] = {}
    for shape in first:
        if shape.cluster in written:
            alike.setdefault(shape.cluster, []).append(shape)
    parts: dict[RegionShape, tuple[RegionShape, Slot, Part]] = {}
    for shapes in alike.values():
        wholes = sorted(shapes, key=lambda shape: (-prod(shape.shape), shape[:-1]))
        for shape in shapes if len(shapes) > 1 else ():
            for whole in wholes:
                part = part_of(shape, whole)
                if part is not None:
                    parts[shape] = (whole, first[whole], part)
                    break
    return {
        slot: parts[shape]
        for slot, shape, workunit in arguments
        if shape in parts and not contains(workunit.body, Extent)  # of the view that it was given
    }


# law: not None
def part_of(region: RegionShape, whole: RegionShape) -> Part | None:
    """Where each element of a region is in another one, which has more of them; None: not in it.

    The other has no two elements that share memory. Its axes that the region goes along come in the
    same order; along the others it stays in one place.
    """
    if region.cluster != whole.cluster or region.dtype != whole.dtype:
        return None
    if prod(whole.shape) <= prod(region.shape) or not prod(region.shape):
        return None
    if min(whole.strides, default=0) <= 0 or max(whole.shape) > MOST:
        return None
    if not is_injective(whole.strides, whole.shape, whole.dtype.size):
        return None
    left = region.offset - whole.offset
    if left < 0:
        return None
    begin = [0] * len(whole.shape)
    for axis in sorted(range(len(whole.shape)), key=lambda axis: -whole.strides[axis]):
        begin[axis] = min(left // whole.strides[axis], whole.shape[axis] - 1)
        left -= begin[axis] * whole.strides[axis]
    if left:
        return None
    found, own = [], 0
    for axis, (stride, extent) in enumerate(zip(whole.strides, whole.shape, strict=True)):
        along = own < len(region.shape) and region.strides[own] == stride
        if along and begin[axis] + region.shape[own] > extent:
            return None
        found.append((own if along else -1, begin[axis]))
        own += along
    return tuple(found) if own == len(region.shape) else None


def in_wholes(workunit: Workunit, parts: Sequence[tuple[int, Part]]) -> Workunit:
    """A workunit that is given the wholes of some arguments."""
    if not parts:
        return workunit
    params, body = list(workunit.params), workunit.body
    for argument, part in parts:
        param = params[argument]
        params[argument] = replace(param, rank=len(part))
        body = with_subscripts(body, param.sym, partial(_subscripts, part))
    return replace(workunit, params=tuple(params), body=body)


def _subscripts(part: Part, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple([_subscript(indices, axis, begin) for axis, begin in part])


# law
def _subscript(indices: tuple[Expr, ...], axis: int, begin: int) -> Expr:
    if axis < 0:
        return Const(begin, DType.INT32)
    index = indices[axis]
    if not begin:
        return index
    if index.dtype.size < DType.INT32.size:  # as C++ has it, and `begin` may not fit
        index = Cast(index, DType.INT32)
    return Binary("+", index, Const(begin, index.dtype))
