"""Loops over one index that is divided by a number run as rows, which are divided once.

    for i: y[i] = x[i] * w[i % m]   ->   for row: for i from row * m to (row + 1) * m:
                                             y[i] = x[i] * w[i - row * m]

A table's rows in one array, small problems side by side, fields of records: `i // m` and `i % m`
cost more than what most loops do besides, and g++ sees no neighbours in what they address. Within
a row, the quotient is one number and the remainder a second index: strip-mining by a number that
is known when the loop runs (M. Wolfe, "High Performance Compilers for Parallel Computing", 1996).
Conditions on the remainder are split off as if there were two indices (`passes.split_conditions`).

The law. For i >= 0 and m > 0, i = (i / m) * m + i % m. If m divides M, i / M = row / (M / m) and
i % M = row % (M / m) * m + i % m. All of it is tested when the loop runs, and what is in no whole
row, or in rows that are too short, runs as it was.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyfuser.ir.affine import number as value_of
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Extent,
    For,
    If,
    Load,
    Read,
    Stmt,
    Store,
    Sym,
    Update,
    While,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    expressions,
    map_body,
    map_expression,
    statements,
)
from pyfuser.nest.build import LOOP, box
from pyfuser.nest.cost.work import body_cost
from pyfuser.nest.interior import both, interior
from pyfuser.nest.nodes import Function, Loop, Nest, Over, Run, number, wide
from pyfuser.nest.passes.split_conditions import Blocks
from pyfuser.nest.spec import given_order

FLAT = "pf_flat"
"""The function that runs iterations as they were."""

ROWS, ENDS, INSIDE = "pf_rows", "pf_row_ends", "pf_row_inside"
"""Those that run rows, the iterations at whose ends conditions hold, and what tells of these."""

LAST = (1 << 31) - 1
"""Indices beyond this may be others in 32 bits."""

_WHOLE = (DType.INT32, DType.INT64)


def split_rows(nest: Nest) -> Nest:
    """The nest with loops over rows where its index is divided."""
    spec = nest.spec
    if nest.rank != 1 or spec.checked or nest.serial or spec.pattern != "for":
        return nest
    lengths = _Lengths(nest)
    if lengths.length is None:
        return nest
    table = lengths.table()
    found = interior(table.workunit, 1, nest.fresh, spec.tuning)
    cost = body_cost(table.workunit.body if found is None else found.body)
    gain = (body_cost(nest.workunit.body) - cost) * spec.tuning.condition_gain
    if gain < cost or (found is None and _has_long_loops(nest.workunit.body)):
        return nest
    (low,), (high,) = box(nest)
    first, last = nest.fresh("first_row", DType.INT64), nest.fresh("last_row", DType.INT64)
    rows = ((Read(first), number(0)), (Read(last), Read(lengths.width)))
    if found is None:
        functions: tuple[Function, ...] = (lengths.rows(ROWS, table.workunit.body),)
        run: Body = (Run(ROWS, *rows),)
    else:
        blocks = Blocks(table, found, (INSIDE, ENDS, ROWS))
        parts = lengths.rows(ENDS, table.workunit.body), lengths.rows(ROWS, found.body)
        functions = (*blocks.functions, *parts)
        run = blocks.body(rows)
    *others, flat = nest.functions
    begin, end, width = Read(low), Read(high), Read(lengths.width)
    up = Binary("-", Binary("+", begin, width), number(1))
    body = (
        *lengths.declared,
        Declare(first, number(0)),
        Declare(last, number(0)),
        If(
            lengths.fit(begin, end),
            (Assign(first, Binary("/", up, width)), Assign(last, Binary("/", end, width))),
        ),
        If(
            Compare("<", Read(first), Read(last)),
            (
                Run(FLAT, (begin,), (Binary("*", Read(first), width),)),
                *run,
                Run(FLAT, (Binary("*", Read(last), width),), (end,)),
            ),
            (Run(FLAT, (begin,), (end,)),),
        ),
    )
    whole = (
        *others,
        replace(flat, name=FLAT),
        *functions,
        Function(LOOP, (low,), (high,), body=body),
    )
    return replace(nest, functions=whole)


def _has_long_loops(body: Body) -> bool:
    """Whether an iteration may do much besides."""
    return any(
        isinstance(s, While)
        or (isinstance(s, For) and None in map(value_of, (s.start, s.stop, s.step)))
        for s in statements(body)
    )


class _Place(NamedTuple):
    """row * length + column, for a row."""

    row: Expr


class _Lengths:
    """The length of rows, and what else divides the index or its remainder.

    length: None if nothing does that is the same in all iterations. width: a local for it.
    """

    def __init__(self, nest: Nest) -> None:
        self._nest = nest
        workunit = nest.workunit
        (self._index,) = workunit.indices
        changing = assigned(workunit.body)
        self._stable = stable_locals(workunit.body)
        self._scalars = {p.sym for p in workunit.params if not p.rank} - changing
        self._places: dict[Expr, _Place] = {}
        self._ratios: dict[Expr, Sym] = {}
        self._small = set[Expr]()  # of 32 bits
        self.length = None if self._index in changing else self._finest()
        known = None if self.length is None else value_of(self.length)
        if known is not None and known < nest.spec.tuning.shortest_row:
            self.length = None
        self.width, self._row, self._column = (
            nest.fresh(name, DType.INT64) for name in ("width", "row", "column")
        )

    # law: not None
    def _divisor(self, e: Expr) -> Expr | None:
        """What a division is by, if it is the same in all iterations and not of a row's number."""
        if not (isinstance(e, Binary) and e.op in ("/", "%")):
            return None
        by = expand(e.right, self._stable)
        while isinstance(by, Cast) and by.operand.dtype in _WHOLE:
            by = by.operand  # `fit` sees that it keeps the value
        for part in expressions(by):
            given = isinstance(part, (Const, Extent, Cast)) or (
                isinstance(part, Read) and part.sym in self._scalars
            )
            if not (given or (isinstance(part, Binary) and part.op in "+-*")):  # no trap
                return None
        return Const(by.value, DType.INT64) if isinstance(by, Const) else by

    def _depth(self, e: Expr) -> int | None:
        """Of how many remainders of the index an expression is one; 0: it is the index."""
        e = expand(e, self._stable)
        while isinstance(e, Cast) and e.dtype in _WHOLE and e.operand.dtype in _WHOLE:
            e = e.operand
        if e == Read(self._index):
            return 0
        if isinstance(e, Binary) and e.op == "%" and self._divisor(e) is not None:
            inner = self._depth(e.left)
            return None if inner is None else inner + 1
        return None

    def _finest(self) -> Expr | None:
        """What the index, or its remainder, is divided by last."""
        best, found = (-1, False), None
        for e in all_expressions(self._nest.workunit.body):
            divisor = self._divisor(e)
            if divisor is None:
                continue
            assert isinstance(e, Binary)
            depth = self._depth(e.left)
            if depth is not None and (depth, e.op == "%") > best:
                best, found = (depth, e.op == "%"), divisor
        return found

    # ----------------------------------------------------------------------- rows

    def table(self) -> Nest:
        """The nest over rows and columns, of a body that divides no more."""
        nest, spec = self._nest, self._nest.spec
        body = map_body(nest.workunit.body, self._change, self._at)
        indices = self._row, self._column
        workunit = replace(nest.workunit, indices=indices, body=body)
        spec = replace(spec, workunit=workunit, order=given_order(2))
        return replace(nest, spec=spec, counters=indices)

    # law
    def _change(self, e: Expr) -> Expr:
        """A quotient or a remainder in terms of row and column."""
        if isinstance(e, (Load, AtomicFetch)):
            return replace(e, indices=tuple(map(self._exact, e.indices)))
        if isinstance(e, Cast) and e.dtype is DType.INT64:
            return self._exact(e.operand) if self._exact(e.operand).dtype is e.dtype else e
        divisor = self._divisor(e)
        if divisor is None:
            return e
        assert isinstance(e, Binary)
        place = self._place(e.left)
        if place is None:
            return e
        made: Expr = Read(self._column) if e.op == "%" else place.row
        if divisor != self.length:
            ratio = Read(self._ratio(divisor))
            row = Binary(e.op, place.row, ratio)
            made = row
            if e.op == "%":
                made = Binary("+", Binary("*", row, Read(self.width)), Read(self._column))
        made = made if made.dtype is e.dtype else Cast(made, e.dtype)
        self._small.add(made)
        if e.op == "%" and divisor != self.length:
            self._places[made] = _Place(row)
        return made

    def _at(self, stmt: Stmt) -> Stmt:
        """The same in the subscripts of a statement."""
        if isinstance(stmt, (Store, Update)):
            return replace(stmt, indices=tuple(map(self._exact, stmt.indices)))
        return stmt

    def _exact(self, e: Expr) -> Expr:
        """A quotient or a remainder without a conversion to 32 bits, which keeps it."""
        return e.operand if isinstance(e, Cast) and e in self._small else e

    def _place(self, e: Expr) -> _Place | None:
        """Where in the table an index is."""
        if e in self._places:
            return self._places[e]
        if e == Read(self._index):
            return _Place(Read(self._row))
        if isinstance(e, Cast) and e.dtype in _WHOLE and e.operand.dtype in _WHOLE:
            return self._place(e.operand)
        if isinstance(e, Read) and e.sym in self._stable:
            return self._place(map_expression(self._stable[e.sym], self._change))
        return None

    def _ratio(self, divisor: Expr) -> Sym:
        """A local for the number of rows of which a divisor is the length."""
        if divisor not in self._ratios:
            self._ratios[divisor] = self._nest.fresh("ratio", DType.INT64)
        return self._ratios[divisor]

    def fit(self, begin: Expr, end: Expr) -> Expr:
        """Whether iterations may run as rows, and had better."""
        shortest = number(self._nest.spec.tuning.shortest_row)
        tests: list[Expr] = [
            Compare(">=", Read(self.width), shortest),
            Compare(">=", begin, number(0)),
            Compare("<=", end, number(LAST)),
        ]
        for divisor in self._ratios:
            rest = Binary("%", wide(divisor), Read(self.width))
            tests += [
                Compare(">", wide(divisor), number(0)),
                Compare("<=", wide(divisor), number(LAST)),
                Compare("==", rest, number(0)),
            ]
        return reduce(both, tests)

    @property
    def declared(self) -> Body:
        """The local for the length of rows."""
        assert self.length is not None
        return (Declare(self.width, wide(self.length)),)

    def rows(self, name: str, body: Body) -> Function:
        """A function that runs a body for some rows and columns."""
        nest = self._nest
        ends = [
            tuple(nest.fresh(f"{axis}_{end}", DType.INT64) for axis in ("row", "column"))
            for end in ("begin", "end")
        ]
        base = nest.fresh("base", DType.INT64)
        low, high = (Binary("+", Read(base), Read(columns)) for _, columns in ends)
        (index,) = nest.workunit.indices
        column = Declare(self._column, Binary("-", wide(Read(index)), Read(base)))
        row = (
            Declare(base, Binary("*", Read(self._row), Read(self.width))),
            Over((low,), (high,), (column, *body)),
        )
        ratios = (
            Declare(ratio, Binary("/", wide(divisor), Read(self.width)))
            for divisor, ratio in self._ratios.items()
        )
        loop = Loop(self._row, Read(ends[0][0]), Read(ends[1][0]), number(1), row)
        return Function(name, ends[0], ends[1], body=(*self.declared, *ratios, loop))
