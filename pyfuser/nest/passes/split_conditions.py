"""Conditions that hold the same way for all iterations but those at the edges.

    column = i % width
    if column > 0: v -= p[i - 1]
    if i < total - width: v -= p[i + width]

A condition that compares the index, its remainder or its quotient with what no iteration changes is
monotone, of a remainder within one row: if it holds in the first and in the last iteration of a
block, then in all between. The indices of other axes are the same in all of a block. So a block is
tried at its ends, and where it lies inside, as most do, runs without the conditions: index set
splitting (M. Wolfe, "High Performance Compilers for Parallel Computing", 1996) at places that are
known when the loop runs. First the whole row is tried, then without 1, 2, 4 ... iterations at
either end. Of loops that have the same trips in all iterations the first and the last are tried.

Which way is inside is a guess from the condition's form: `i > 0`, `i < n - 1` hold there, `i == 0`,
`i < 1`, `i >= n - 1` do not. A wrong one costs no more than the tests.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import unguarded
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Break,
    Compare,
    Const,
    Declare,
    Expr,
    If,
    Read,
    Select,
    Stmt,
    Sym,
    While,
)
from pyfuser.nest.build import (
    LOOP,
    at_axis,
    box,
    narrow,
    over_box,
    values,
    whole,
)
from pyfuser.nest.interior import Interior, both, interior
from pyfuser.nest.nodes import Ask, Function, Loop, Nest, Run, number
from pyfuser.nest.passes.split_guards import AROUND, MIDDLE
from pyfuser.support.passes import left_out

WIDEST = 16
"""Iterations at either end of a row that are taken off, at the most, before it is cut to blocks."""

INSIDE = "pf_inside"
"""The function that tells whether the iterations from a first one to a last one all are inside."""


def split_conditions(nest: Nest) -> Nest:
    """The nest with a loop that runs blocks without conditions, where these hold everywhere.

    What is left when guards are split off must have conditions, too: else that is better.
    """
    over, spec = whole(nest), nest.spec
    axis = spec.order.axes[-1]
    if over is None or spec.checked or spec.serial or spec.pattern != "for" or spec.order.block:
        return nest
    fresh, gain = nest.fresh, spec.tuning.condition_gain
    workunit = replace(nest.workunit, body=over.body)
    split = unguarded(workunit)
    if split is not None:
        rest = replace(workunit, body=split.body)
        if interior(rest, axis, fresh, gain) is None:
            return nest
    found = interior(workunit, axis, fresh, gain)
    if found is None:
        return nest
    functions = (
        inside(nest, found, axis),
        over_box(nest, AROUND, over.body),
        over_box(nest, MIDDLE, found.body),
    )
    low, high = box(nest)
    loop = _Blocks(nest, values(low), values(high)).body
    for outer in reversed(nest.spec.order.axes[:-1]):
        loop = (Loop(nest.counters[outer], Read(low[outer]), Read(high[outer]), number(1), loop),)
    return replace(nest, functions=(*functions, Function(LOOP, low, high, body=loop)))


def inside_of_sums(nest: Nest, axis: int) -> Interior | None:
    """How blocks of a sum's terms along an axis run inside; None where they run as they are."""
    if nest.spec.checked or nest.serial or left_out("split-conditions"):
        return None
    return interior(nest.workunit, axis, nest.fresh, nest.spec.tuning.condition_gain)


def inside(nest: Nest, found: Interior, axis: int) -> Function:
    """The function INSIDE, whose last parameters are the counters of other axes, in order."""
    others = [n for n in range(nest.rank) if n != axis]
    return Function(
        INSIDE,
        params=(found.first, found.last, *(nest.counters[n] for n in others)),
        body=narrow(nest, others),
        result=reduce(both, found.tests),
        inline=True,
    )


class _Blocks:
    """Runs the innermost axis of a box, with all but a few iterations at its ends inside, or in
    blocks.
    """

    def __init__(self, nest: Nest, low: tuple[Expr, ...], high: tuple[Expr, ...]) -> None:
        fresh, self._tried = nest.fresh, nest.spec.tuning.tried
        self._fresh = fresh
        axis = nest.spec.order.axes[-1]
        self._axis, outer = axis, nest.spec.order.axes[:-1]
        self._counters = values([nest.counters[n] for n in sorted(outer)])
        for n in outer:
            here = Read(nest.counters[n])
            low, high = at_axis(low, n, here), at_axis(high, n, _plus(here, 1))
        self._low, self._high = low, high
        begin, end = low[axis], high[axis]
        inner, tried = fresh("inner", DType.BOOL), fresh("within", DType.BOOL)
        edge = fresh("edge", DType.INT64)
        width = Read(edge)
        second, last = Binary("+", begin, width), Binary("-", end, width)
        whole_row = Compare("==", width, number(0))
        wider = Select(whole_row, number(1), Binary("*", width, number(2)))
        room = Compare(">", Binary("-", last, second), number(0))
        more = (
            self._ask(tried, second, last),
            Assign(inner, Read(tried)),
            If(Read(inner), (Break(),)),
            Assign(edge, wider),
        )
        self.body: Body = (
            Declare(inner, Const(False, DType.BOOL)),
            Declare(edge, number(0)),
            While(both(room, Compare("<=", width, number(WIDEST))), more),
            If(
                Read(inner),
                (
                    self._run(AROUND, begin, second),
                    self._run(MIDDLE, second, last),
                    self._run(AROUND, last, end),
                ),
                self._blocks(begin, end),
            ),
        )

    def _ask(self, sym: Sym, begin: Expr, end: Expr) -> Stmt:
        return Ask(sym, INSIDE, (begin, Binary("-", end, number(1)), *self._counters))

    def _run(self, function: str, begin: Expr, end: Expr) -> Stmt:
        low, high = (at_axis(b, self._axis, e) for b, e in ((self._low, begin), (self._high, end)))
        return Run(function, low, high)

    def _blocks(self, begin: Expr, end: Expr) -> Body:
        names = ("at", "stop", "next")
        at, stop, upto = (self._fresh(name, DType.INT64) for name in names)
        same, whole_block = self._fresh("alike", DType.BOOL), self._fresh("whole", DType.BOOL)
        here, there = Read(at), Read(stop)
        more = (
            *self._end_of(upto, there, end),
            self._ask(same, there, Read(upto)),
            If(Compare("!=", Read(same), Read(whole_block)), (Break(),)),
            Assign(stop, Read(upto)),
        )
        block = (
            *self._end_of(stop, here, end),
            self._ask(whole_block, here, there),
            While(Compare("<", there, end), more),
            If(
                Read(whole_block),
                (self._run(MIDDLE, here, there),),
                (self._run(AROUND, here, there),),
            ),
            Assign(at, there),
        )
        return (Declare(at, begin), While(Compare("<", here, end), block))

    def _end_of(self, sym: Sym, begin: Expr, end: Expr) -> Body:
        """Where the block ends that a place is in: all threads cut at the same places."""
        past = Binary("&", begin, number(self._tried - 1))
        after = Binary("-", _plus(begin, self._tried), past)
        return (Declare(sym, after), If(Compare(">", Read(sym), end), (Assign(sym, end),)))


def _plus(e: Expr, n: int) -> Expr:
    return Binary("+", e, number(n))
