"""Boxes become loops: one over each axis, in the nest's order, which may cut two axes into blocks.

The innermost loop's trips are iterations of the kernel. They are independent of one another, but in
a serial nest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Body, Compare, Declare, Expr, Read, Select, Stmt
from pyfuser.ir.visit import map_body
from pyfuser.nest.build import noted
from pyfuser.nest.nodes import Kind, Loop, Nest, Over, number
from pyfuser.tuning.thresholds import along


def lower_boxes(nest: Nest) -> Nest:
    """The nest with a loop for each axis in place of every Over."""

    def lower(stmt: Stmt) -> Stmt | Body:
        return loops(nest, stmt) if isinstance(stmt, Over) else stmt

    functions = [replace(f, body=map_body(f.body, None, lower)) for f in nest.functions]
    return replace(nest, functions=tuple(functions))


def loops(nest: Nest, over: Over) -> Stmt:
    """The loops over a box."""
    body = (*noted(nest), *over.body)
    kind = Kind.SEQ if nest.serial or nest.overlapping else Kind.VECTOR
    axis = nest.spec.order.axes[-1]
    return around(nest, over, lambda *bounds: axis_loop(nest, axis, bounds, body, kind))


def around(nest: Nest, over: Over, inner: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """The loops over all axes of a box but the innermost; `inner` makes that of its bounds."""
    spec = nest.spec
    *outer, last = spec.order.axes
    bounds = list(zip(over.low, over.high, strict=True))
    tiles: list[Loop] = []
    if spec.order.block:
        for axis, size in ((outer[-1], spec.order.block), (last, along(spec.target, spec.tuning))):
            tile, bounds[axis] = _tile(nest, axis, bounds[axis], number(size))
            tiles.append(tile)
    stmt = inner(*bounds[last])
    for axis in reversed(outer[-1:] if tiles else outer):
        stmt = axis_loop(nest, axis, bounds[axis], (stmt,))
    for tile in reversed(tiles):
        stmt = replace(tile, body=(*tile.body, stmt))
    for axis in reversed(outer[:-1] if tiles else ()):
        stmt = axis_loop(nest, axis, bounds[axis], (stmt,))
    return stmt


def axis_loop(
    nest: Nest, axis: int, bounds: tuple[Expr, Expr], body: Body, kind: Kind = Kind.SEQ
) -> Loop:
    """The loop over an axis between two bounds."""
    return Loop(nest.counters[axis], *bounds, number(1), body, not nest.serial, kind)


def _tile(
    nest: Nest, axis: int, bounds: tuple[Expr, Expr], size: Expr
) -> tuple[Loop, tuple[Expr, Expr]]:
    """The loop over the blocks of an axis, and the bounds of one block."""
    name = nest.name(nest.workunit.indices[axis])
    at, end = (nest.fresh(f"{name}_{end}", DType.INT64) for end in ("block", "block_end"))
    after = Binary("+", Read(at), size)
    least = Select(Compare("<", after, bounds[1]), after, bounds[1])
    loop = Loop(at, *bounds, size, (Declare(end, least),), not nest.serial)
    return loop, (Read(at), Read(end))
