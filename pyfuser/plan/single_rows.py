"""Calls that store to one row of a view: an edge of a grid, or a copy of one.

A row is along the axis of a region's longest step: what loops over grids walk over outermost.
"""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.plan.cost_model import region_of
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape

REACH = 16
"""Rows that one call may touch apart: sweeps of longer distances do not pay."""


class Row(NamedTuple):
    """A row of a region, along one of its axes."""

    region: RegionShape
    axis: int
    number: int


def stored_rows(call: CallShape) -> list[tuple[RegionShape, Row | None]]:
    """What a call stores to: regions, each with the row of one store if that is always the same."""
    return [
        (region_of(call, access), row_of(call, access))
        for access in accesses(call)
        if access.mode is not Mode.READ
    ]


def row_of(call: CallShape, access: Access) -> Row | None:
    """The row that an access is always in; indices of one value, as in [7, 8), are that value."""
    region = region_of(call, access)
    axis = outermost(region)
    index = access.relation.indices[axis]
    if index is None:
        return None
    begin, end, _ = call.space
    row = index.constant
    for variable, factor in index.terms:
        if variable >= len(begin) or end[variable] - begin[variable] != 1:
            return None
        row += factor * begin[variable]
    return Row(region, axis, row)


@cached(1024)
def far_rows(call: CallShape) -> tuple[int, int] | None:
    """A row that a call stores to, and one that it takes values from, too far away for a sweep."""
    stored = {row.region: row for _, row in stored_rows(call) if row is not None}
    for access in accesses(call) if stored else ():
        row = row_of(call, access)
        near = stored.get(row.region) if row is not None else None
        if row is not None and near is not None and abs(row.number - near.number) > REACH:
            return near.number, row.number
    return None


def outermost(region: RegionShape) -> int:
    """The axis along which a region has its longest step."""
    return max(range(len(region.strides)), key=lambda axis: abs(region.strides[axis]))
