"""Copied rows: what many trips read again along a row of its own is copied, side by side.

    for j in range(m):                          for c in range(d): row[c] = x[i][c]
        total = 0.0                             for j in range(m):
        for c in range(d):               ->         total = 0.0
            step = x[i][c] - y[j][c]                for c in range(d):
            total += step * step                        step = row[c] - y[j][c]; ...

The sum keeps its order, so lanes of vectors can only be iterations; but neighbours' elements of x
are a row apart, and to gather them in every trip takes longer than to add one by one. The rows of a
strip of iterations are copied once, transposed as a strip's arrays are (see `passes.strip_mine`),
and read m times (packing: K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", 2008).

Of a box of several axes the same rows are read for each place along the second innermost axis, if
none depends on it: then the loop over that axis runs inside of strips, after the copies.

The law. Nothing overlaps the view, no atomic update changes it, and the outermost loop around does
not write it, so an element is the same in all its trips: other iterations do not race. (Rows that
an axis shares nothing in the kernel writes.) Only what each iteration reads anyway is copied: the
loop over the row is reached in every trip of loops that all make one, nothing leaves them early,
and its trips read the element unconditionally. Bounds and subscripts depend on arguments, the
indices and the loop's variable alone. That the loops have trips, and the row enough room, is asked
when the kernel runs (`fits`); where it does not hold, the body runs as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain as joined

from pyfuser.ir import nodes
from pyfuser.ir.affine import number as constant
from pyfuser.ir.affine import values_of
from pyfuser.ir.definitions import expand, of_scalars, stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import atomics
from pyfuser.ir.nodes import Body, Compare, Expr, For, Load, Logical, Read, Stmt, Sym
from pyfuser.ir.visit import (
    assigned,
    child_expressions,
    leaves_loop,
    map_body,
    reads,
    substitute_syms,
    written,
)
from pyfuser.nest.cost.cache_lines import growth
from pyfuser.nest.cost.vectorisable import unconditional
from pyfuser.nest.nodes import Nest, number, wide
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

ROW = 256
"""Elements of all rows that are copied, at the most: those of a strip of 64 then fill a quarter of
a second-level cache. Products of rows of 256 and of 128 take half the time so, on Zen 3."""

SHORT = 64
"""Elements that each may have, however many there are: products of so few do not gain so much."""

AGAIN = 16
"""Trips that read a copied row, at least: with four, kernels/naive_bayes.py takes 1.4 times as long
as without, on Zen 4, as its rows come from memory."""

_SIGNED = (DType.INT32, DType.INT64)


@dataclass(frozen=True, slots=True)
class Copied:
    """A body that reads copies, after what makes these for all iterations of an axis.

    rows: the copies, each with its view. fits: when the body may run. outer: the axis whose
    iterations share the copies, which must be so many at least (`AGAIN`); None where each makes its
    own, in the body.
    """

    ahead: Body
    body: Body
    rows: dict[Sym, Sym]
    fits: Expr
    outer: int | None


def copied_rows(nest: Nest, index: Sym) -> Copied | None:
    """The body with copies of rows that neighbours along an index have elsewhere; None if none."""
    if left_out("copy-rows") or nest.spec.checked:
        return None
    rows = _Rows(nest, index)
    found = [
        (stmt, chain, load)
        for stmt in nest.workunit.body
        for chain in _chains((stmt,))
        for load in rows.of(chain)
    ]
    outer = rows.outer([load for *_, load in found])
    if outer is None:
        found = [each for each in found if rows.has_trips(*each)]
    return _copied(nest, rows, found, outer) if found else None


def _copied(
    nest: Nest, rows: _Rows, found: Sequence[tuple[Stmt, tuple[For, ...], Load]], outer: int | None
) -> Copied:
    copies: dict[tuple[Stmt, Sym, Sym, tuple[Expr, ...]], Sym] = {}
    ahead: dict[Stmt, Body] = {}
    tests: dict[Expr, None] = {}
    keys = [(stmt, chain[-1].sym, load.view, load.indices) for stmt, chain, load in found]
    rows.room = max(ROW // len({*keys}), SHORT)
    for key, (stmt, chain, load) in zip(keys, found, strict=True):
        if key not in copies:
            copies[key] = nest.fresh(f"{nest.name(load.view)}_row", load.view.dtype)
            ahead[stmt] = (*ahead.get(stmt, ()), *rows.copy(chain[-1], load, copies[key]))
        tests |= dict.fromkeys(rows.tests(chain))
        if outer is None:
            tests[rows.trips(">=", chain[-2], AGAIN)] = None

    def read(stmt: Stmt) -> Body:
        def change(inner: Stmt) -> Stmt:
            if not isinstance(inner, For):
                return inner

            def copied(e: Expr) -> Expr:
                key = (stmt, inner.sym, e.view, e.indices) if isinstance(e, Load) else None
                row = copies.get(key) if key is not None else None
                return e if row is None else Load(row, (Read(inner.sym),))

            return replace(inner, body=map_body(inner.body, copied))

        return map_body((stmt,), None, change)

    body: list[Stmt] = []
    for stmt in nest.workunit.body:
        own = ahead.get(stmt, ()) if outer is None else ()
        body += (*own, *(read(stmt) if stmt in ahead else (stmt,)))
    first = tuple(joined.from_iterable(ahead.values())) if outer is not None else ()
    fits = reduce(partial(Logical, "&&"), tests)
    views = {row: view for (_, _, view, _), row in copies.items()}
    return Copied(first, tuple(body), views, fits, outer)


# law
def _chains(body: Body, around: tuple[For, ...] = ()) -> Iterator[tuple[For, ...]]:
    """Loops that every trip of those around them reaches, each with these."""
    for stmt in body:
        if isinstance(stmt, For) and not any(map(leaves_loop, stmt.body)):
            chain = (*around, stmt)
            yield chain
            yield from _chains(stmt.body, chain)


class _Rows:
    """What may be copied of a nest's body, for strips of iterations along an index."""

    def __init__(self, nest: Nest, index: Sym) -> None:
        self.nest, self.index = nest, index
        self.room = ROW  # elements that each row may have
        workunit, body = nest.workunit, nest.workunit.body
        changing = assigned(body)
        params = frozenset(param.sym for param in workunit.params) - changing
        self.fixed = params | frozenset(workunit.indices) - changing
        self.uniform = params - nest.views.keys()
        self.stable = stable_locals(body)
        self.views = nest.views.keys() - _updated(body) - nest.overlapping

    # law
    def of(self, chain: tuple[For, ...]) -> list[Load]:
        """The loads of the innermost loop of a chain that may read copies, if that pays."""
        *_, loop = chain
        if not all(map(self._counts, chain)) or constant(loop.start) != 0:
            return []
        found = {
            e: None
            for stmt in loop.body
            for child in child_expressions(stmt)
            for e in unconditional(child)
            if isinstance(e, Load) and e.view in self.views and _has_zero(e.dtype)
        }
        return [e for e in found if self._is_row(e, loop) and self._is_apart(e)]

    # law: not None
    def outer(self, found: Sequence[Load]) -> int | None:
        """The second innermost axis, if its iterations all read the same rows."""
        order, workunit = self.nest.spec.order, self.nest.workunit
        if len(order.axes) < 2 or order.block or workunit.accumulators:
            return None
        axis = order.axes[-2]
        read = reads(*(self._expanded(index) for load in found for index in load.indices))
        changed = written(workunit.body) & {load.view for load in found}
        return None if workunit.indices[axis] in read or changed else axis

    # law
    def has_trips(self, stmt: Stmt, chain: tuple[For, ...], e: Load) -> bool:
        """Whether trips of a loop read rows again, which nothing in the statement changes."""
        if len(chain) < 2 or e.view in written((stmt,)):
            return False
        trips = values_of(chain[-2])
        return trips is None or len(trips) >= AGAIN

    # law: True
    def _counts(self, loop: For) -> bool:
        """Whether a loop counts up from and to what is the same for all iterations."""
        ends = (loop.start, loop.stop)
        return (
            constant(loop.step) == 1
            and loop.sym not in assigned(loop.body)
            and {loop.sym.dtype, *(e.dtype for e in ends)} <= {*_SIGNED}
            and all(of_scalars(self._expanded(e)) for e in ends)
            and reads(*map(self._expanded, ends)) <= self.uniform
        )

    # law: True
    def _is_row(self, e: Load, loop: For) -> bool:
        """Whether an element's place depends on the iteration and the loop's variable alone."""
        at = [self._expanded(index) for index in e.indices]
        return all(map(of_scalars, at)) and loop.sym in reads(*at) <= self.fixed | {loop.sym}

    def _is_apart(self, e: Load) -> bool:
        """Whether neighbouring iterations have elements that are no neighbours."""
        unit = self.nest.views[e.view].unit_axis
        along = [growth(self._expanded(index), self.index, set()) for index in e.indices]
        return any(steps for axis, steps in enumerate(along) if axis != unit)

    def _expanded(self, e: Expr) -> Expr:
        return expand(e, self.stable)

    def copy(self, loop: For, e: Load, row: Sym) -> Body:
        """The declaration of a row, and the loop that copies it."""
        zero = nodes.Const(0.0 if row.dtype.is_float else 0, row.dtype)
        place = self.nest.fresh(self.nest.name(loop.sym), loop.sym.dtype)
        at = tuple(map(self._expanded, e.indices))
        stored = nodes.Store(row, (Read(loop.sym),), Load(e.view, at))
        (here,) = substitute_syms((stored,), {loop.sym: place})
        start, stop = self._expanded(loop.start), self._expanded(loop.stop)
        copying = replace(loop, sym=place, start=start, stop=stop, body=(here,))
        return (nodes.DeclareArray(row, (zero,) * self.room), copying)

    # law
    def tests(self, chain: tuple[For, ...]) -> Iterator[Expr]:
        """That the loops around have trips, and the row room."""
        *around, row = chain
        for loop in around:
            yield self.trips(">=", loop, 1)
        yield self.trips("<=", row, self.room)

    def trips(self, op: str, loop: For, number_of: int) -> Expr:
        """The trips of a loop, compared."""
        start, stop = (wide(self._expanded(e)) for e in (loop.start, loop.stop))
        return Compare(op, nodes.Binary("-", stop, start), number(number_of))


def _updated(body: Body) -> set[Sym]:
    """The views that iterations change by atomic updates, for others to see."""
    return {node.target if isinstance(node, nodes.Update) else node.view for node in atomics(body)}


def _has_zero(dtype: DType) -> bool:
    """Whether rows of a type may begin as zeros, as local arrays do: not pairs and bools."""
    return not dtype.is_complex and dtype is not DType.BOOL
