"""Rows that are summed in blocks, as C++: see `nest.passes.row_sums`."""

from __future__ import annotations

from collections.abc import Mapping

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.ir.nodes import Body, For, Sym
from pyfuser.ir.visit import all_expressions, declared
from pyfuser.nest.cost.vectorisable import is_covered
from pyfuser.nest.passes.hoist_calls import speculate
from pyfuser.nest.passes.row_sums import SHORTEST, row_sums, totals

LIGHT = 40
"""Expressions in a trip that may be written out for each of four vectors."""

BLOCK = 64
"""Terms that are computed before they are added."""


def total_lines(context: Context, loop: For, depth: int) -> list[str] | None:
    """A loop that sums locals, in blocks if it is long; None for any other loop."""
    accumulators = [a.sym for a in context.workunit.accumulators]
    sums = row_sums(loop, dict.fromkeys(totals(loop, accumulators)))
    return row_lines(context, loop, sums, depth) if sums else None


def row_lines(context: Context, loop: For, sums: list[Sym], depth: int) -> list[str]:
    """The loop in blocks if it is long, else as it was written."""
    text, take = context.expressions.text, context.unique.take
    first, last = take("first"), take("last")
    body = speculate(loop.body, context.nest.fresh)
    if body is not loop.body:  # g++ would take the calls back into their branches
        context.uses("straight")
    for sym in declared(body):
        if sym not in context.names:
            context.names[sym] = take(sym.name)
    rows = {sym: take(f"{context.names[sym]}_row") for sym in sums}
    trip = [
        f"const {loop.sym.dtype.cpp} {context.names[loop.sym]} = at + step;",
        *(f"{s.dtype.cpp} {context.names[s]}{{}};" for s in rows),
        *context.statements.print(body, 0),
    ]
    light = _is_light(body) and len({s.dtype.numpy.itemsize for s in rows}) == 1
    context.uses("lanes" if light else "sum")
    blocks = _lanes if light else _blocks
    lines = [
        f"const int64_t {first} = {text(loop.start)}, {last} = {text(loop.stop)};",
        f"if ({last} - {first} >= {SHORTEST}) {{",
        *(INDENT + line for line in blocks(first, last, trip, rows, context.names)),
        "} else {",
        *context.statements.print((loop,), 1, plain=loop),
        "}",
    ]
    return [INDENT * depth + line for line in lines]


def _blocks(
    first: str, last: str, trip: list[str], rows: Mapping[Sym, str], names: Mapping[Sym, str]
) -> list[str]:
    """The loop, with the terms of a block in memory before they are added."""
    return [
        *(f"pf_sum<{s.dtype.cpp}, {BLOCK}> {row};" for s, row in rows.items()),
        f"for (int64_t at = {first}; at < {last}; at += {BLOCK}) {{",
        f"    const int64_t left = {last} - at, count = left < {BLOCK} ? left : {BLOCK};",
        "    for (int64_t step = 0; step < count; ++step) {",
        *(INDENT * 2 + line for line in trip),
        *(f"        {row}.term[step] = {names[s]};" for s, row in rows.items()),
        "    }",
        *(f"    {row}.add(count);" for row in rows.values()),
        "}",
        *(f"{names[s]} += *{row}.total();" for s, row in rows.items()),
    ]


def _lanes(
    first: str, last: str, trip: list[str], rows: Mapping[Sym, str], names: Mapping[Sym, str]
) -> list[str]:
    """The loop, with each term added to its running sum. They are equally many for all sums."""
    count = f"pf_lanes<{next(iter(rows)).dtype.cpp}>::count"
    trip = [
        *(INDENT + line for line in trip),
        *(f"    {row}.lane[step] += {names[s]};" for s, row in rows.items()),
        "}",
    ]
    return [
        *(f"pf_lanes<{s.dtype.cpp}> {row};" for s, row in rows.items()),
        f"int64_t at = {first};",
        f"for (; at + {count} <= {last}; at += {count}) {{",
        f"    for (int64_t step = 0; step < {count}; ++step) {{",
        *(INDENT + line for line in trip),
        "}",
        f"for (int64_t step = 0; at + step < {last}; ++step) {{",
        *trip,
        *(f"{names[s]} += {row}.total();" for s, row in rows.items()),
    ]


def _is_light(body: Body) -> bool:
    """Whether a trip computes so little that passing its terms through memory shows."""
    found = list(all_expressions(body))
    return len(found) <= LIGHT and not any(map(is_covered, found))
