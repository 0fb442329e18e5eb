"""Regions of memory: which bytes they cover, and whether two lie on one grid of elements."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.analysis.affine import Affine, Interval
from pyfuser.analysis.relation import Relation
from pyfuser.support.caches import cached
from pyfuser.trace.shape import RegionShape


def byte_range(region: RegionShape) -> Interval:
    """First and last byte that a region covers; an empty interval for an empty region."""
    low = high = region.offset
    for extent, stride in zip(region.shape, region.strides, strict=True):
        if extent <= 0:
            return region.offset, region.offset - 1
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high + region.dtype.size - 1


# law
def footprint(region: RegionShape, relation: Relation) -> Interval:
    """First and last byte that an access may touch, from the bounds of its subscripts."""
    low = high = region.offset
    for index, extent, stride in zip(relation.indices, region.shape, region.strides, strict=True):
        first, last = 0, extent - 1
        if index is not None:
            bounds = index.span(relation.ranges)
            first, last = max(first, bounds[0]), min(last, bounds[1])
        if last < first:
            return region.offset, region.offset - 1
        low += stride * (first if stride > 0 else last)
        high += stride * (last if stride > 0 else first)
    return low, high + region.dtype.size - 1


# law: True
def is_injective(strides: tuple[int, ...], shape: tuple[int, ...], size: int) -> bool:
    """Whether two different elements of a box surely share no byte.

    Sufficient: each stride steps over all that the smaller ones can reach.
    """
    reach = size
    for stride, extent in sorted(
        (abs(stride), extent) for stride, extent in zip(strides, shape, strict=True) if extent > 1
    ):
        if stride < reach:
            return False
        reach += stride * (extent - 1)
    return True


@cached(4096)
# law: not None
def shift(first: RegionShape, second: RegionShape) -> tuple[int, ...] | None:
    """The s for which second[i] and first[j] share a byte iff i + s = j, for elements of both.

    None if there is no such s, or it is not obvious. The regions then are boxes of one grid that
    is injective over the smallest box that holds them both.
    """
    size = first.dtype.size
    if first.strides != second.strides or second.dtype.size != size:
        return None
    rest = second.offset - first.offset
    shifts = [0] * len(first.strides)
    for axis in sorted(range(len(shifts)), key=lambda axis: -abs(first.strides[axis])):
        stride = first.strides[axis]
        if stride:  # the next smaller ones must be able to make up for the remainder
            shifts[axis] = _nearest(rest, stride)
            rest -= shifts[axis] * stride
    if rest:
        return None
    hull = tuple(
        max(a, b + s) - min(0, s) for a, b, s in zip(first.shape, second.shape, shifts, strict=True)
    )
    return tuple(shifts) if is_injective(first.strides, hull, size) else None


def _nearest(value: int, step: int) -> int:
    """The integer next to value / step; halves go down."""
    return -((step - 2 * value) // (2 * step)) if step > 0 else -_nearest(value, -step)


def address(region: RegionShape, indices: Sequence[Affine | None]) -> Affine | None:
    """The first byte of an element as a function of the variables; None if a subscript is not."""
    total = Affine((), region.offset)
    for index, stride in zip(indices, region.strides, strict=True):
        if index is None:
            return None
        total = total.plus(index, stride)
    return total
