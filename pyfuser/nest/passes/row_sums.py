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

from collections.abc import Sequence
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, For, Stmt, Sym
from pyfuser.ir.visit import all_expressions, map_body, substitute_syms
from pyfuser.nest.cost.vectorisable import is_covered
from pyfuser.nest.nodes import Nest, OrderedSum
from pyfuser.nest.passes.hoist_calls import speculate
from pyfuser.nest.sums import SHORTEST, row_sums, totals

LIGHT = 40
"""Expressions in a trip that may be written out for each of four vectors."""

BLOCK = 64
"""Terms that are computed before they are added."""


def order_sums(nest: Nest, body: Body) -> Body:
    """The body with loops in blocks where they sum locals."""
    accumulators = [a.sym for a in nest.workunit.accumulators]

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, OrderedSum):  # its loop was found to be one as well
            (inner,) = stmt.body
            return replace(stmt, body=inner.body) if isinstance(inner, OrderedSum) else stmt
        if type(stmt) is not For:
            return stmt
        sums = row_sums(stmt, dict.fromkeys(totals(stmt, accumulators)))
        return ordered(nest, stmt, sums) if sums else stmt

    return map_body(body, None, change)


def ordered(nest: Nest, loop: For, sums: Sequence[Sym]) -> OrderedSum:
    """A loop that is run in blocks if it is long."""
    body = speculate(loop.body, nest.fresh)
    terms, rows = (
        {sym: nest.fresh(f"{nest.name(sym)}_{what}", sym.dtype) for sym in sums}
        for what in ("term", "row")
    )
    return OrderedSum(
        (loop,),
        tuple(sums),
        substitute_syms(body, terms),
        tuple(terms.values()),
        (nest.fresh("row_first", DType.INT64), nest.fresh("row_last", DType.INT64)),
        tuple(rows.values()),
        0 if _is_light(body) and len({sym.dtype.size for sym in sums}) == 1 else BLOCK,
        SHORTEST,
        straight=body is not loop.body,  # g++ would take the calls back into their branches
    )


def _is_light(body: Body) -> bool:
    """Whether a trip computes so little that passing its terms through memory shows."""
    found = list(all_expressions(body))
    return len(found) <= LIGHT and not any(map(is_covered, found))
