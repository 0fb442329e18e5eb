"""Columns: loops of an iteration that walk across memory, run trip by trip for many iterations.

    for j in range(rows):
        total += x[j][i]

Each trip is in another row of x, and takes one element of a line whose others belong to the next
iterations, which come when the line is gone. So a strip of iterations makes the first trip
together, then the second, ...: the loop over j becomes the outer one, and that over the strip runs
along memory, in vectors (loop interchange after strip mining: R. Allen and K. Kennedy, "Optimizing
Compilers for Modern Architectures" (2001), sections 5.2 and 9.3). What an iteration keeps from trip
to trip has an element for each iteration of the strip (scalar expansion), and so has each element
of an array that it keeps.

The law. Iterations of a parallel pattern are unordered and do not race, so those of a strip may
take turns at any point. Each does what it did in the order it did: its statements stay as they
are, and each loop keeps its trips. That takes loops whose trips are the same for all iterations
(their bounds depend on arguments and on the loops around them alone), that nothing leaves early,
and whose sums have one order. Not where an order of iterations may show (see
`ir.effects`).

Loops under a condition do so as well. If it is the same for all iterations, they all branch. If it
is not, each finds out whether to take the branch before anything in it changes, and what the strip
then runs together has that as its guard (if-conversion: J. R. Allen et al., "Conversion of control
dependence to data dependence", 1983). The bounds of loops inside are computed only if an iteration
takes the branch.

What pays is decided by `cost.cache_lines.runs_across`. Loops stay as they are between statements
that walk along one row, which would not stay in cache, or that share an array that cannot be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Body, Declare, DeclareArray, Expr, For, If, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, expressions, leaves_loop, map_expression, statements
from pyfuser.nest.cost.cache_lines import runs_across, walked
from pyfuser.nest.cost.pipeline import keeps_busy
from pyfuser.nest.cost.vectorisable import is_window, local_arrays, takes_lanes, vectorises
from pyfuser.nest.cost.work import body_cost
from pyfuser.nest.passes.scalar_expansion import (
    Branch,
    Part,
    Sums,
    Trips,
    expanded,
    has_trips,
    segments_of,
    sums_of,
    unfit,
)
from pyfuser.nest.segments import MAX_STATEMENTS, Fresh, Segment, mentioned
from pyfuser.nest.spec import ViewSpec
from pyfuser.nest.sums import row_sums, totals
from pyfuser.support.passes import left_out

_CHEAP = 8
"""Additions of a declaration that each part computes again rather than keeping its value."""


def columns(
    workunit: Workunit,
    index: Sym,
    views: Mapping[Sym, ViewSpec],
    fresh: Fresh,
    copies: Mapping[Sym, Sym],
) -> tuple[Part, ...] | None:
    """The parts that the iterations of a strip along `index` take in turn; None if none pays.

    `fresh(name, dtype)` makes Syms. copies: local arrays that are copies of views' rows (see
    `passes.copy_rows`), for whose sake alone loops may do so; such rows are short, and stay near.
    """
    found = _columns(workunit, index, views, fresh, copies, alone=True)
    if found is None or _has_vectors(found):
        return found
    return _columns(workunit, index, views, fresh, copies, alone=False)


def _has_vectors(parts: Sequence[Part]) -> bool:
    """Whether all loops over a strip make vectors, and no sum has an order of its own."""
    return not any(sums_of(parts)) and all(
        vectorises(stmt, local_arrays(segment.body))
        for segment in segments_of(parts, plain=False)
        for stmt in segment.body
    )


def _columns(
    workunit: Workunit,
    index: Sym,
    views: Mapping[Sym, ViewSpec],
    fresh: Fresh,
    copies: Mapping[Sym, Sym],
    *,
    alone: bool,
) -> tuple[Part, ...] | None:
    """See `columns`; alone: loops pay, too, that load what iterations share, or nothing."""
    body = workunit.body
    if left_out("strip-mine") or not any(isinstance(stmt, (For, If)) for stmt in body):
        return None
    changing = assigned(body)
    if changing & set(workunit.indices) or effects(workunit).observable:
        return None
    if sum(1 for _ in statements(body)) > MAX_STATEMENTS:
        return None
    fixed = frozenset(param.sym for param in workunit.params) - changing
    own = frozenset(stmt.sym for stmt in body if isinstance(stmt, DeclareArray))
    arrays, whole = own if copies else frozenset[Sym](), frozenset[int]()
    near = set(copies.values())
    while True:
        found = _Finder(workunit, fixed, changing, index, views, fresh, arrays, alone=alone)
        parts = found.cut_whole(whole)
        if not has_trips(parts):
            return None
        if own and not arrays:  # they will have columns as well
            arrays = own
            continue
        more = whole.union(
            _between(body, unfit(parts), _mentions),
            _between(body, found.torn(parts) - near, found.rows),
        )
        if more == whole:
            break
        whole = more
    if unfit(parts) or found.torn(parts) - near:
        return None
    return expanded(parts, found.repeated)


def _mentions(body: Body) -> set[Sym]:
    return set[Sym]().union(*mentioned(body))


def _between(body: Body, syms: Iterable[Sym], uses: Callable[[Body], set[Sym]]) -> Iterator[int]:
    """The places of the statements from the first one that uses one of some Syms to the last."""
    used = [uses((stmt,)) for stmt in body]
    for sym in syms:
        places = [place for place, found in enumerate(used) if sym in found]
        if places:
            yield from range(places[0], places[-1] + 1)


class _Finder:
    """Cuts a body at the loops that walk along columns."""

    def __init__(
        self,
        workunit: Workunit,
        fixed: frozenset[Sym],
        changing: set[Sym],
        index: Sym,
        views: Mapping[Sym, ViewSpec],
        fresh: Fresh,
        arrays: frozenset[Sym] = frozenset(),
        *,
        alone: bool,
    ) -> None:
        self.alone = alone
        self.arrays = arrays
        self.own = frozenset(workunit.indices)
        self.accumulators = [accumulator.sym for accumulator in workunit.accumulators]
        self.fresh = fresh
        self.fixed = fixed
        self.changing = changing
        self.index = index
        self.views = views
        self.body = workunit.body
        self.repeated: dict[Sym, Declare] = {}

    def cut_whole(self, whole: frozenset[int]) -> tuple[Part, ...]:
        """The parts of the body; loops in the statements of these places stay as they are."""
        return self.cut(self.body, (), None, whole)

    def cut(
        self,
        body: Body,
        around: tuple[For, ...],
        guard: Sym | None,
        whole: frozenset[int] = frozenset(),
    ) -> tuple[Part, ...]:
        """The parts of the body of the loops `around`; a condition around it adds to no sum."""
        parts: list[Part] = []
        run: list[Stmt] = []

        def end_run() -> None:
            if run:
                parts.append(Segment(tuple(run), True, guard=guard))
                run.clear()

        for place, stmt in enumerate(body):
            if isinstance(stmt, Declare) and self._is_cheap(stmt, around):
                self.repeated[stmt.sym] = stmt
                continue
            if place not in whole and self._pays(stmt, around):
                if isinstance(stmt, For):
                    inner = self.cut(stmt.body, (*around, stmt), guard)
                    if around or not self._tears_inside(inner):
                        end_run()
                        parts.append(Trips(self._head(stmt), inner, self._sums(stmt)))
                        continue
                elif isinstance(stmt, If):
                    sides = self._sides(stmt, around, run)
                    end_run()
                    parts += (self._side(*side, around, guard) for side in sides)
                    continue
            run.append(stmt)
        end_run()
        return tuple(parts)

    def _sides(
        self, stmt: If, around: tuple[For, ...], run: list[Stmt]
    ) -> list[tuple[Body, Expr | None, Sym | None]]:
        """The sides of an If that do anything: each a body, and its test or its guard.

        Statements that find the guards go to `run`.
        """
        both = (stmt.then, stmt.orelse)
        if self._is_known(stmt.condition, around):
            test = self.resolved(stmt.condition)
            tests = (test, nodes.Unary("!", test, DType.BOOL))
            return [(body, test, None) for body, test in zip(both, tests, strict=True) if body]
        taken, other = (self.fresh(name, DType.BOOL) for name in ("taken", "other"))
        run.append(Declare(taken, stmt.condition))
        if stmt.orelse:
            run.append(Declare(other, nodes.Unary("!", nodes.Read(taken), DType.BOOL)))
        guards = (taken, other)
        return [(body, None, sym) for body, sym in zip(both, guards, strict=True) if body]

    def _side(
        self,
        body: Body,
        test: Expr | None,
        taken: Sym | None,
        around: tuple[For, ...],
        guard: Sym | None,
    ) -> Part:
        parts = self.cut(body, around, taken or guard)
        if taken is None:
            return Branch(test, None, parts, None)
        if not has_trips(parts) and len(parts) == 1 and isinstance(parts[0], Segment):
            return parts[0]
        return Branch(None, taken, parts, Segment((If(nodes.Read(taken), body),), True))

    def _tears_inside(self, parts: Sequence[Part]) -> bool:
        """Whether loops that stay as they are walk through memory in the trips of another."""
        return any(
            walked(segment.body, self.own) & set(self.views)
            for segment in segments_of(parts, plain=False)
        )

    def torn(self, parts: Sequence[Part]) -> set[Sym]:
        """The views whose rows several parts walk along, with loops over trips in between."""
        seen: set[Sym] = set()
        again: set[Sym] = set()
        for part in parts:
            rows = set[Sym]()
            for segment in segments_of((part,), plain=False):
                rows |= self.rows(segment.body)
            again |= rows & seen
            seen |= rows
        return again

    def rows(self, body: Body) -> set[Sym]:
        """The views along whose rows the loops of some statements walk."""
        return walked(body, self.own, self.views)

    def _pays(self, stmt: Stmt, around: tuple[For, ...]) -> bool:
        """Whether a statement has loops that had better run trip by trip."""
        if isinstance(stmt, If):
            sums = assigned((stmt,)) & set(self.accumulators)
            inside = (*stmt.then, *stmt.orelse)
            return not sums and any(self._pays(inner, around) for inner in inside)
        if not isinstance(stmt, For) or not self._is_uniform(stmt, around):
            return False
        nest = (*around, stmt)
        known = self.fixed | self.own
        lanes = not around and takes_lanes(stmt, self.index, known, self.arrays)
        if lanes and (is_window(stmt) or keeps_busy(stmt.body)):
            return False
        outside, self.repeated = self.repeated, dict(self.repeated)
        for inner in stmt.body:  # `k = m - 1 - j` is as good a subscript as j
            if isinstance(inner, Declare) and self._is_cheap(inner, nest):
                self.repeated[inner.sym] = inner
        what = nest, self.index, self.views, self.arrays, known, self.resolved
        pays = runs_across(*what, beside=not self.alone) or any(
            self._pays(inner, nest) for inner in stmt.body
        )
        self.repeated = outside
        return pays

    # law: True
    def _is_uniform(self, loop: For, around: tuple[For, ...]) -> bool:
        """Whether all iterations make the same trips, each of them whole."""
        if not isinstance(loop.step, nodes.Const) or not loop.step.value:
            return False
        if loop.sym in self.changing or any(map(leaves_loop, loop.body)):
            return False
        if not {e.dtype for e in (loop.sym, loop.start, loop.stop)} <= _SIGNED:
            return False
        free = {
            stmt.target
            for stmt in statements(loop.body)
            if isinstance(stmt, nodes.Update) and not stmt.indices
        }
        if free and free != set(self._free_sums(loop)):  # a loop around others has none
            return False
        return self._is_known(loop.start, around) and self._is_known(loop.stop, around)

    def _is_known(self, e: Expr, around: tuple[For, ...]) -> bool:
        """Whether an expression has one value for all iterations."""
        known = self.fixed.union(outer.sym for outer in around)
        return _depends_on(self.resolved(e), known)

    def _free_sums(self, loop: For) -> list[Sym]:
        """What a loop adds to in blocks, if it is long."""
        sums = row_sums(loop, dict.fromkeys(self.accumulators))
        return sums + row_sums(loop, dict.fromkeys(totals(loop, self.accumulators)))

    def _sums(self, loop: For) -> Sums | None:
        found = {sym: self.fresh("total", sym.dtype) for sym in self._free_sums(loop)}
        if not found:
            return None
        added = (nodes.Update("+", sym, (), nodes.Read(total)) for sym, total in found.items())
        plain = Segment((loop,), True)
        return Sums(tuple(found.items()), Segment(tuple(added), True), plain)

    def _is_cheap(self, stmt: Declare, around: tuple[For, ...]) -> bool:
        """Whether a declaration is made again wherever it is used."""
        if stmt.value is None or stmt.sym in self.changing or body_cost((stmt,)) > _CHEAP:
            return False
        known = self.fixed.union(self.own, (loop.sym for loop in around), self.repeated)
        return _depends_on(stmt.value, known)

    def resolved(self, e: Expr) -> Expr:
        """An expression in indices, arguments and loop variables, as far as it is one."""

        def change(part: Expr) -> Expr:
            if isinstance(part, nodes.Read) and part.sym in self.repeated:
                value = self.repeated[part.sym].value
                assert value is not None
                same = value.dtype is part.dtype
                return self.resolved(value if same else nodes.Cast(value, part.dtype))
            return part

        return map_expression(e, change)

    def _head(self, loop: For) -> For:
        start, stop = self.resolved(loop.start), self.resolved(loop.stop)
        return replace(loop, start=start, stop=stop, body=())


_SIGNED = frozenset({DType.INT32, DType.INT64})  # they compare alike in 64 bits
_ARITHMETIC = (
    *(nodes.Const, nodes.Read, nodes.Cast, nodes.Unary, nodes.Binary, nodes.Extent),
    *(nodes.Compare, nodes.Logical, nodes.Select),
)


def _depends_on(e: Expr, known: frozenset[Sym]) -> bool:
    """Whether an expression is arithmetic on what is known, views' extents included."""
    for part in expressions(e):
        if not isinstance(part, _ARITHMETIC):
            return False
        if isinstance(part, nodes.Read) and part.sym not in known:
            return False
        if isinstance(part, nodes.Extent) and part.view not in known:
            return False
    return True
