"""Loops over all elements of a small matrix become loops over its rows and columns.

    for k in range(12):                     for q in range(3):
        y[k // 4][k % 4] = x[k]                 for r in range(4):
                                                    y[q][r] = x[q * 4 + r]

A flat range is how the threads of a team share a matrix in scratch memory. On a processor, where
one thread has all of it, the divisions keep elements from being side by side in vectors. Quotients
and remainders by several lengths, each a multiple of the one before, take several loops.

The law. Trip k is that of row k // c and column k % c, and c divides the number of trips: each
comes once, and in the same order. No trip leaves the loop, which may leave the outer one only, or
changes its variable.

The cost: none, but where elements lie side by side for the flat index itself: a loop that also
reads it is split if it is short enough to be written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyfuser.ir.affine import number, values_of
from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import Binary, Body, Const, Expr, For, Read, Stmt, Sym
from pyfuser.ir.visit import all_expressions, assigned, breaks_loop, map_body
from pyfuser.trace.call import GPU_SPACES
from pyfuser.transform.kernel import Kernel

SHORT = 64
"""Trips of a loop that is split though it reads the flat index, too."""


def split_flat_loops(kernel: Kernel) -> Kernel:
    """The kernel with a loop over rows and one over columns in place of flat ones.

    Threads of a GPU share the trips of the loop as it is.
    """
    if kernel.space.execution in GPU_SPACES:
        return kernel
    body = split(kernel.workunit.body)
    if body == kernel.workunit.body:
        return kernel
    return replace(kernel, workunit=replace(kernel.workunit, body=body))


def split(body: Body) -> Body:
    """The body with its flat loops split."""
    return map_body(body, None, _by_rows)


def _by_rows(stmt: Stmt) -> Stmt:
    """A loop over rows, if that is what a loop is."""
    length = _row_length(stmt) if isinstance(stmt, For) else None
    if length is None:
        return stmt
    assert isinstance(stmt, For)
    sym, rows = stmt.sym, len(values_of(stmt) or ()) // length
    row, column = (fresh(f"{sym.name}_{part}", sym.dtype) for part in ("row", "column"))

    def change(e: Expr) -> Expr:
        """A quotient or a remainder of the index by row and column."""
        divisor = _divisor(e, sym)
        if divisor is None:
            return e
        assert isinstance(e, Binary)
        more = Const(divisor // length, sym.dtype)  # rows of the longer length
        if e.op == "/":
            return Read(row) if more.value == 1 else Binary("/", Read(row), more)
        if more.value == 1:
            return Read(column)
        part = Binary("*", Binary("%", Read(row), more), Const(length, sym.dtype))
        return Binary("+", part, Read(column))

    def index(e: Expr) -> Expr:
        """The index itself by row and column."""
        if e != Read(sym):
            return e
        begin = Binary("*", Read(row), Const(length, sym.dtype))
        return Binary("+", begin, Read(column))

    def over(own: Sym, trips: int, body: Body) -> For:
        start, stop, step = (Const(n, sym.dtype) for n in (0, trips, 1))
        return For(own, start, stop, step, body)

    inside = over(column, length, map_body(map_body(stmt.body, change), index))
    return _by_rows(over(row, rows, (inside,)))


# law: not None
def _row_length(loop: For) -> int | None:
    """The length of rows that a loop goes over, element by element."""
    trips = values_of(loop)
    if trips is None or trips.start != 0 or trips.step != 1 or loop.sym in assigned(loop.body):
        return None
    divisors = {*_divisors(loop.body, loop.sym)}
    length = min(divisors, default=0)
    if length < 2 or any(divisor % length for divisor in divisors):
        return None
    if len(trips) % length or len(trips) <= length or any(map(breaks_loop, loop.body)):
        return None
    return length if _reads_by_rows(loop, len(trips)) else None


def _reads_by_rows(loop: For, trips: int) -> bool:
    """Whether a loop reads its index in quotients and remainders only, or is short."""
    if trips <= SHORT:
        return True
    parts = [*all_expressions(loop.body)]
    read = sum(e == Read(loop.sym) for e in parts)
    return read == sum(_divisor(e, loop.sym) is not None for e in parts)


def _divisors(body: Body, sym: Sym) -> Iterator[int]:
    """What an index is divided by, if it is."""
    for e in all_expressions(body):
        divisor = _divisor(e, sym)
        if divisor is not None:
            yield divisor


# law: not None
def _divisor(e: Expr, sym: Sym) -> int | None:
    """The constant by which an expression divides an index, which is not negative."""
    divides = isinstance(e, Binary) and e.op in ("/", "%") and e.left == Read(sym)
    return number(e.right) if divides else None  # type: ignore[union-attr]
