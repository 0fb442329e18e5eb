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
either end; once for all rows of which the same is asked, and if these are short some of them run at
a time. Of loops that have the same trips in all iterations the first and the last are tried.

Which way is inside is a guess from the condition's form: `i > 0`, `i < n - 1` hold there, `i == 0`,
`i < 1`, `i >= n - 1` do not. A wrong one costs no more than the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import TypeAlias

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
    For,
    If,
    Read,
    Select,
    Stmt,
    Sym,
    While,
    Workunit,
)
from pyfuser.ir.visit import assigned, reads, statements
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
from pyfuser.nest.passes.split_guards import AROUND, MIDDLE, inside_of_guards
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
    fresh, tuning = nest.fresh, spec.tuning
    workunit = replace(nest.workunit, body=over.body)
    split = unguarded(workunit)
    if split is not None:
        rest = replace(workunit, body=split.body)
        if interior(rest, axis, fresh, tuning) is None:
            return nest
    found = interior(workunit, axis, fresh, tuning)
    if found is None:
        return nest
    blocks = Blocks(nest, found, (INSIDE, AROUND, MIDDLE))
    parts = over_box(nest, AROUND, over.body), over_box(nest, MIDDLE, found.body)
    low, high = box(nest)
    loop = Function(LOOP, low, high, body=blocks.body((values(low), values(high))))
    return replace(nest, functions=(*blocks.functions, *parts, loop))


def inside_of_sums(nest: Nest, axis: int) -> tuple[Interior | None, str]:
    """How blocks of a sum's terms along an axis run inside, and the pass whose conditions ended
    there; None where they run as they are.
    """
    if nest.spec.checked or nest.serial or _adds_in_branches(nest.workunit):
        return None, ""
    found = None
    if not left_out("split-conditions"):
        found = interior(nest.workunit, axis, nest.fresh, nest.spec.tuning)
    if found is not None or left_out("split-guards"):
        return found, "split-conditions"
    return inside_of_guards(nest.workunit, axis, nest.fresh), "split-guards"


# law: False
def _adds_in_branches(unit: Workunit) -> bool:
    """Whether a loop in an `if` adds terms: in order there, but in blocks once that is gone."""
    sums = {accumulator.sym for accumulator in unit.accumulators}
    return any(
        isinstance(stmt, If)
        and any(
            isinstance(part, (For, While)) and sums & assigned(part.body)
            for part in statements((*stmt.then, *stmt.orelse))
        )
        for stmt in statements(unit.body)
    )


def inside(nest: Nest, found: Interior, axis: int, name: str = INSIDE) -> Function:
    """The function INSIDE, whose last parameters are the counters of other axes, in order."""
    others = [n for n in range(nest.rank) if n != axis]
    return Function(
        name,
        params=(found.first, found.last, *(nest.counters[n] for n in others)),
        body=narrow(nest, others),
        result=reduce(both, found.tests),
        inline=True,
    )


Box: TypeAlias = tuple[tuple[Expr, ...], tuple[Expr, ...]]


class Blocks:
    """Runs the innermost axis of a box, with all but a few iterations at its ends inside, or in
    blocks.

    What is the same of all rows is asked once, and short rows run some at a time. Where tests are
    either of rows or of places in them, the first tell which rows run as the others say.

    functions: those that tell what is inside.
    """

    def __init__(self, nest: Nest, found: Interior, names: tuple[str, str, str]) -> None:
        """names: of the functions that tell what is inside, that run all else, and that."""
        self._inside, self._around, self._middle = names
        self._nest, self._fresh, self._tuning = nest, nest.fresh, nest.spec.tuning
        *outer, self._axis = nest.spec.order.axes
        syms = [{nest.counters[n], nest.workunit.indices[n]} for n in outer]
        of_rows = [test for test in found.tests if reads(test) & {*chain.from_iterable(syms)}]
        of_places = tuple(test for test in found.tests if test not in of_rows)
        self.functions: tuple[Function, ...] = (inside(nest, found, self._axis, self._inside),)
        self._lines = self._places = self._inside
        if of_rows and not reads(*of_rows) & {found.first, found.last}:
            self._lines, self._places = f"{self._inside}_lines", f"{self._inside}_places"
            places = inside(nest, found._replace(tests=of_places), self._axis, self._places)
            lines = replace(places, name=self._lines, params=places.params[2:])
            self.functions += places, replace(lines, result=reduce(both, of_rows))
            of_rows = []
        asked = reads(*of_rows)
        first = max((k + 1 for k, own in enumerate(syms) if own & asked), default=0)
        self._differ, self._alike = outer[:first], outer[first:]

    def body(self, box: Box) -> Body:
        """Runs a box."""
        return self._over(self._differ, box, self._rows)

    def _over(self, axes: Sequence[int], box: Box, body: Callable[[Box], Body]) -> Body:
        """Runs the rows of a box along some axes one by one."""
        if not axes:
            return body(box)
        axis, *others = axes
        counter = self._nest.counters[axis]
        row = _part(box, axis, Read(counter), _plus(Read(counter), 1))
        inner = self._over(others, row, body)
        return (Loop(counter, box[0][axis], box[1][axis], number(1), inner),)

    def _rows(self, box: Box) -> Body:
        """Runs rows that are alike."""
        begin, end = (bound[self._axis] for bound in box)
        inner, tried = self._fresh("inner", DType.BOOL), self._fresh("within", DType.BOOL)
        edge = self._fresh("edge", DType.INT64)
        width = Read(edge)
        second, last = Binary("+", begin, width), Binary("-", end, width)
        whole_row = Compare("==", width, number(0))
        wider = Select(whole_row, number(1), Binary("*", width, number(2)))
        room = Compare(">", Binary("-", last, second), number(0))
        more = (
            self._ask(tried, box, second, last, self._places),
            Assign(inner, Read(tried)),
            If(Read(inner), (Break(),)),
            Assign(edge, wider),
        )

        def trimmed(rows: Box) -> Body:
            return (
                self._run(self._around, rows, begin, second),
                self._run(self._middle, rows, second, last),
                self._run(self._around, rows, last, end),
            )

        return (
            Declare(inner, Const(False, DType.BOOL)),
            Declare(edge, number(0)),
            While(both(room, Compare("<=", width, number(WIDEST))), more),
            If(
                Read(inner),
                self._over(self._alike[:-1], box, lambda rows: self._some(rows, trimmed)),
                self._over(self._alike, box, self._blocks),
            ),
        )

    def _some(self, box: Box, body: Callable[[Box], Body]) -> Body:
        """Runs short rows that are neighbours some at a time."""
        if not self._alike:
            return body(box)
        axis = self._alike[-1]
        if self._lines != self._inside:
            return self._some_lines(box, axis, body)
        here, (low, high) = self._nest.counters[axis], (bound[axis] for bound in box)
        step, until = self._fresh("step", DType.INT64), self._fresh("until", DType.INT64)
        length = Binary("-", box[1][self._axis], box[0][self._axis])
        past = Binary("+", Read(here), Read(step))
        some = (
            Declare(until, Select(Compare("<", past, high), past, high)),
            *body(_part(box, axis, Read(here), Read(until))),
        )
        return (
            Declare(step, _plus(Binary("/", number(self._tuning.together), length), 1)),
            Loop(here, low, high, Read(step), some),
        )

    def _some_lines(self, box: Box, axis: int, body: Callable[[Box], Body]) -> Body:
        """The same of rows that the tests of rows say the same of."""
        low, high = (bound[axis] for bound in box)
        line, until, step = (self._fresh(name, DType.INT64) for name in ("line", "until", "step"))
        yes, same = self._fresh("lined", DType.BOOL), self._fresh("also", DType.BOOL)
        here, there = Read(line), Read(until)
        length = Binary("-", box[1][self._axis], box[0][self._axis])
        few = Compare("<=", Binary("-", there, here), Read(step))
        rows = _part(box, axis, here, there)

        def ask(sym: Sym, place: Expr) -> Stmt:
            at = at_axis(box[0], axis, place)
            return Ask(sym, self._lines, tuple(e for n, e in enumerate(at) if n != self._axis))

        more = (
            ask(same, there),
            If(Compare("!=", Read(same), Read(yes)), (Break(),)),
            Assign(until, _plus(there, 1)),
        )
        lines = (
            ask(yes, here),
            Declare(until, _plus(here, 1)),
            While(both(Compare("<", there, high), few), more),
            If(Read(yes), body(rows), (Run(self._around, *rows),)),
            Assign(line, there),
        )
        return (
            Declare(step, Binary("/", number(self._tuning.together), length)),
            Declare(line, low),
            While(Compare("<", here, high), lines),
        )

    def _ask(self, sym: Sym, box: Box, begin: Expr, end: Expr, function: str = "") -> Stmt:
        others = (bound for n, bound in enumerate(box[0]) if n != self._axis)
        ends = begin, Binary("-", end, number(1))
        return Ask(sym, function or self._inside, (*ends, *others))

    def _run(self, function: str, box: Box, begin: Expr, end: Expr) -> Stmt:
        return Run(function, *_part(box, self._axis, begin, end))

    def _blocks(self, box: Box) -> Body:
        """Runs a row."""
        begin, end = (bound[self._axis] for bound in box)
        names = ("at", "stop", "next")
        at, stop, upto = (self._fresh(name, DType.INT64) for name in names)
        same, whole_block = self._fresh("alike", DType.BOOL), self._fresh("whole", DType.BOOL)
        here, there = Read(at), Read(stop)
        more = (
            *self._end_of(upto, there, end),
            self._ask(same, box, there, Read(upto)),
            If(Compare("!=", Read(same), Read(whole_block)), (Break(),)),
            Assign(stop, Read(upto)),
        )
        block = (
            *self._end_of(stop, here, end),
            self._ask(whole_block, box, here, there),
            While(Compare("<", there, end), more),
            If(
                Read(whole_block),
                (self._run(self._middle, box, here, there),),
                (self._run(self._around, box, here, there),),
            ),
            Assign(at, there),
        )
        return (Declare(at, begin), While(Compare("<", here, end), block))

    def _end_of(self, sym: Sym, begin: Expr, end: Expr) -> Body:
        """Where the block ends that a place is in: all threads cut at the same places."""
        past = Binary("&", begin, number(self._tuning.tried - 1))
        after = Binary("-", _plus(begin, self._tuning.tried), past)
        return (Declare(sym, after), If(Compare(">", Read(sym), end), (Assign(sym, end),)))


def _plus(e: Expr, n: int) -> Expr:
    return Binary("+", e, number(n))


def _part(box: Box, axis: int, begin: Expr, end: Expr) -> Box:
    """A box with other bounds along an axis."""
    return at_axis(box[0], axis, begin), at_axis(box[1], axis, end)
