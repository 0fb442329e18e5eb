"""Stores past the caches: results that are larger than these, and that no later call reads.

A store to memory that is in no cache reads the line first, to change a part of it; a streaming
store of a whole line does not, which saves a third of the traffic of a map. g++ has no such stores
for loops. So a loop runs in blocks, whose results go to an array in the first-level cache, and from
there to memory, line by line (`pf_stream`).
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.blocks import Blocks, array_lines, segment_loops
from pyfuser.codegen.cpu.context import Bounds, Context, closed, outer_loops
from pyfuser.ir.nodes import Read, Store, Sym
from pyfuser.ir.visit import statements

BYTES = 8192
"""What the results of a block may take: a part of the first-level cache."""


def streamed(context: Context) -> list[Sym]:
    """The views whose results take that way. All their stores are at the iteration's indices."""
    own = tuple(Read(sym) for sym in context.workunit.indices)
    stores = [s for s in statements(context.workunit.body) if isinstance(s, Store)]
    return [
        param.sym
        for param, view in zip(context.workunit.params, context.spec.views, strict=True)
        if view is not None
        and view.streamed
        and all(s.indices == own for s in stores if s.view == param.sym)
    ]


def streaming_nest(
    context: Context, blocks: Blocks, views: list[Sym], bounds: list[Bounds]
) -> list[str]:
    """The loops of a map, the innermost in blocks, each with its results' way to memory."""
    order, e = context.spec.order, context.expressions
    context.uses("nontemporal")
    loops, depth, (first, last) = outer_loops(context, order, bounds)
    own = tuple(Read(sym) for sym in context.workunit.indices)
    cells = {sym: e.element(Store(sym, own, own[0])) for sym in views}
    size = blocks.size
    if not blocks.arrays:
        size = max(BYTES // sum(sym.dtype.size for sym in views), 64) // 64 * 64
    e.streamed = {sym: context.unique.take(f"{context.names[sym]}_lines") for sym in views}
    lines = array_lines(blocks, 1)
    lines += [
        f"{INDENT}alignas(64) {sym.dtype.cpp} {name}[{size}];" for sym, name in e.streamed.items()
    ]
    indent, counter = INDENT * depth, context.counter(order.axes[-1])
    lines += [
        *loops,
        f"{indent}for (int64_t at = {first}; at < {last}; at += {size}) {{",
        f"{indent}{INDENT}const int64_t left = {last} - at, count = left < {size} ? left : {size};",
        *segment_loops(context, blocks, order.axes[-1], depth + 1, context.statements.print),
        f"{indent}{INDENT}const int64_t {counter} = at;",
        *context.narrowed(depth + 1),
        *(
            f"{indent}{INDENT}pf_stream(&{cells[sym]}, {name}, count);"
            for sym, name in e.streamed.items()
        ),
        *closed(depth),
        f"{INDENT}pf_streamed();",
    ]
    e.streamed = {}
    return lines
