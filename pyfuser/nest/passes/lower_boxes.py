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
from pyfuser.nest.build import Fresh, fresh_syms, narrow
from pyfuser.nest.nodes import Kind, Loop, Nest, Note, Over, number


def lower_boxes(nest: Nest) -> Nest:
    """The nest with a loop for each axis in place of every Over."""
    fresh = fresh_syms(nest)

    def lower(stmt: Stmt) -> Stmt | Body:
        return loops(nest, stmt, fresh) if isinstance(stmt, Over) else stmt

    functions = [replace(f, body=map_body(f.body, None, lower)) for f in nest.functions]
    return replace(nest, functions=tuple(functions))


def loops(nest: Nest, over: Over, fresh: Fresh, kind: Kind = Kind.VECTOR) -> Stmt:
    """The loops over a box; kind: of the innermost one."""
    noted = (Note(nest.counters),) if nest.checked else ()
    body = (*noted, *narrow(nest, range(nest.rank)), *over.body)
    kind = Kind.SEQ if nest.serial else kind
    axis = nest.order.axes[-1]
    return around(nest, over, fresh, lambda *bounds: _loop(nest, axis, bounds, body, kind))


def around(nest: Nest, over: Over, fresh: Fresh, inner: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """The loops over all axes of a box but the innermost; `inner` makes that of its bounds."""
    *outer, last = nest.order.axes
    bounds = list(zip(over.low, over.high, strict=True))
    tiles: list[Loop] = []
    if nest.order.block:
        for axis, size in ((outer[-1], number(nest.order.block)), (last, nest.along)):
            tile, bounds[axis] = _tile(nest, axis, bounds[axis], size, fresh)
            tiles.append(tile)
    stmt = inner(*bounds[last])
    for axis in reversed(outer[-1:] if tiles else outer):
        stmt = _loop(nest, axis, bounds[axis], (stmt,))
    for tile in reversed(tiles):
        stmt = replace(tile, body=(*tile.body, stmt))
    for axis in reversed(outer[:-1] if tiles else ()):
        stmt = _loop(nest, axis, bounds[axis], (stmt,))
    return stmt


def _loop(
    nest: Nest, axis: int, bounds: tuple[Expr, Expr], body: Body, kind: Kind = Kind.SEQ
) -> Loop:
    return Loop(nest.counters[axis], *bounds, number(1), body, not nest.serial, kind)


def _tile(
    nest: Nest, axis: int, bounds: tuple[Expr, Expr], size: Expr, fresh: Fresh
) -> tuple[Loop, tuple[Expr, Expr]]:
    """The loop over the blocks of an axis, and the bounds of one block."""
    name = nest.name(nest.workunit.indices[axis])
    at, end = fresh(f"{name}_block", DType.INT64), fresh(f"{name}_block_end", DType.INT64)
    after = Binary("+", Read(at), size)
    least = Select(Compare("<", after, bounds[1]), after, bounds[1])
    loop = Loop(at, *bounds, size, (Declare(end, least),), not nest.serial)
    return loop, (Read(at), Read(end))
