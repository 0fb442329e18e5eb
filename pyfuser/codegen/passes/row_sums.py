"""Sums inside an iteration: a row loop that adds to an accumulator.

    for j in range(columns):
        acc += a[i][j] * b[i][j]

The additions wait for each other, and the loop does not vectorise. As the order of a reduction's
additions is ours to choose, long rows are summed as the iterations themselves are: terms of a
block first, then `pf_sum`. Where computing a term is little work, they go to the running sums at
once (`pf_lanes`: the same additions), which stay in registers. Short rows are summed in order, as
are loops that were unrolled. What decides is the number of trips, so the bits do not depend on what
else is fused.

The same holds for the sums of nested parallel_reduce: locals with an Update (see `ir.nodes`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cost.vectorisable import is_covered
from pyfuser.codegen.cpu.context import Context, fresh_syms
from pyfuser.codegen.passes.hoist_calls import speculate
from pyfuser.ir import nodes
from pyfuser.ir.affine import values_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import operations
from pyfuser.ir.nodes import Body, Expr, For, Stmt, Sym
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    contains,
    declared,
    expressions,
    reads,
    statements,
)

LIGHT = 40
"""Expressions in a trip that may be written out for each of four vectors."""

BLOCK = 64
"""Terms that are computed before they are added."""

SHORTEST = 24
"""Trips of a loop that is run in blocks; unrolled loops are shorter (see `transform.unroll`)."""


def row_sums(stmt: Stmt, accumulators: Mapping[Sym, object]) -> list[Sym]:
    """The accumulators that a loop adds to, if the loop may be run in blocks."""
    if not isinstance(stmt, For) or not isinstance(stmt.step, nodes.Const) or stmt.step.value != 1:
        return []
    if _is_short(stmt):
        return []
    changed = assigned(stmt.body)
    if stmt.sym in changed or _leaves(stmt.body):
        return []
    if any(_may_change(bound, changed) for bound in (stmt.start, stmt.stop)):
        return []
    return [sym for sym in accumulators if sym in changed and not sym.dtype.is_complex]


def totals(stmt: Stmt, accumulators: Collection[Sym]) -> list[Sym]:
    """The locals that a loop does nothing with but add to them, in a free order."""
    if not isinstance(stmt, For):
        return []
    other = reads(*statements(stmt.body)) | {*declared(stmt.body), *accumulators}
    return [
        sym
        for sym, changes in operations(stmt.body).items()
        if changes == {"+"} and sym not in other and sym.dtype is not DType.BOOL
    ]


def total_lines(context: Context, loop: For, depth: int) -> list[str] | None:
    """A loop that sums locals, in blocks if it is long; None for any other loop."""
    accumulators = [a.sym for a in context.workunit.accumulators]
    sums = row_sums(loop, dict.fromkeys(totals(loop, accumulators)))
    return row_lines(context, loop, sums, depth) if sums else None


def row_lines(context: Context, loop: For, sums: list[Sym], depth: int) -> list[str]:
    """The loop in blocks if it is long, else as it was written."""
    text, take = context.expressions.text, context.unique.take
    first, last = take("first"), take("last")
    body = speculate(loop.body, fresh_syms(context))
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


def _is_short(loop: For) -> bool:
    """Whether the trips are known to be too few for blocks."""
    values = values_of(loop)
    return values is not None and len(values) < SHORTEST


def _may_change(bound: Expr, changed: set[Sym]) -> bool:
    return any(
        isinstance(e, (nodes.Load, nodes.AtomicFetch))
        or (isinstance(e, nodes.Read) and e.sym in changed)
        for e in expressions(bound)
    )


def _leaves(body: Body) -> bool:
    """Whether a trip may end early, do what must keep its order among all trips, or loop itself.

    Around a loop a sum costs nothing, and code that is there twice compiles twice as long.
    """
    return contains(body, *_APART)


_APART = (
    *(nodes.Break, nodes.Continue, nodes.For, nodes.While),
    *(nodes.Eval, nodes.AtomicFetch),
)
