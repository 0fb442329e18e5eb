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
and whose sums have one order. Not where an order of iterations may show (see `order.order_shows`).

What pays is decided by `locality.runs_across`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyfuser.codegen.cpp_cost import body_cost
from pyfuser.codegen.cpp_rows import row_sums, totals
from pyfuser.codegen.locality import runs_across, walked
from pyfuser.codegen.order import order_shows
from pyfuser.codegen.segments import (
    MAX_STATEMENTS,
    Fresh,
    Segment,
    is_zero,
    mentioned,
    needed,
)
from pyfuser.codegen.spec import ViewSpec
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Declare, DeclareArray, Expr, For, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, expressions, leaves_loop, map_expression, statements

_CHEAP = 8
"""Additions of a declaration that each part computes again rather than keeping its value."""

MOST_KEPT = 8192
"""Bytes of the arrays that an iteration keeps between parts."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a loop adds to, in an order of its own if it is long (see `cpp_rows`).

    totals: for each accumulator or local what the trips of a long loop add up to. `added` adds
    that, and `plain` has the loop for its short form.
    """

    totals: tuple[tuple[Sym, Sym], ...]
    added: Segment
    plain: Segment


@dataclass(frozen=True, slots=True)
class Trips:
    """A loop that the iterations of a strip run together; its body is in `parts`."""

    loop: For
    parts: tuple[Part, ...]
    sums: Sums | None = None


Part = Segment | Trips


def columns(
    workunit: Workunit, index: Sym, views: Mapping[Sym, ViewSpec], fresh: Fresh
) -> tuple[Part, ...] | None:
    """The parts that the iterations of a strip along `index` take in turn; None if none pays.

    `fresh(name, dtype)` makes Syms.
    """
    body = workunit.body
    if not any(isinstance(stmt, For) for stmt in body):
        return None
    changing = assigned(body)
    if changing & set(workunit.indices) or order_shows(workunit):
        return None
    if sum(1 for _ in statements(body)) > MAX_STATEMENTS:
        return None
    fixed = frozenset(param.sym for param in workunit.params) - changing
    found = _Finder(workunit, fixed, changing, index, views, fresh)
    parts = found.cut(body, ())
    if not found.any:
        return None
    arrays = frozenset(stmt.sym for stmt in body if isinstance(stmt, DeclareArray))
    if arrays:  # they will have columns as well
        found = _Finder(workunit, fixed, changing, index, views, fresh, arrays)
        parts = found.cut(body, ())
    if found.tears(parts):
        return None
    return _expanded(parts, found.repeated)


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
    ) -> None:
        self.arrays = arrays
        self.own = frozenset(workunit.indices)
        self.accumulators = [accumulator.sym for accumulator in workunit.accumulators]
        self.fresh = fresh
        self.fixed = fixed
        self.changing = changing
        self.index = index
        self.views = views
        self.repeated: dict[Sym, Declare] = {}
        self.any = False
        self.plain: set[Sym] = (
            set()
        )  # the variables of loops with sums, whose parts have them whole

    def cut(self, body: Body, around: tuple[For, ...]) -> tuple[Part, ...]:
        """The parts of the body of the loops `around`."""
        parts: list[Part] = []
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Declare) and self._is_cheap(stmt, around):
                self.repeated[stmt.sym] = stmt
            elif isinstance(stmt, For) and self._pays(stmt, around):
                if run:
                    parts.append(Segment(tuple(run), True))
                    run = []
                self.any = True
                inner = self.cut(stmt.body, (*around, stmt))
                parts.append(Trips(self._head(stmt), inner, self._sums(stmt)))
            else:
                run.append(stmt)
        if run:
            parts.append(Segment(tuple(run), True))
        return tuple(parts)

    def tears(self, parts: Sequence[Part]) -> bool:
        """Whether parts in between separate loops that walk along the same rows."""
        seen: set[Sym] = set()
        for part in parts:
            inside = isinstance(part, Trips)
            for segment in _segments((part,)):
                if any(isinstance(s, For) and s.sym in self.plain for s in segment.body):
                    continue
                rows = walked(segment.body, self.own) & set(self.views)
                if rows & seen or (rows and inside):
                    return True
                seen |= rows
        return False

    def _pays(self, loop: For, around: tuple[For, ...]) -> bool:
        if not self._is_uniform(loop, around):
            return False
        nest = (*around, loop)
        known = self.fixed | self.own
        outside, self.repeated = self.repeated, dict(self.repeated)
        for stmt in loop.body:  # `k = m - 1 - j` is as good a subscript as j
            if isinstance(stmt, Declare) and self._is_cheap(stmt, nest):
                self.repeated[stmt.sym] = stmt
        pays = runs_across(nest, self.index, self.views, self.arrays, known, self.resolved) or any(
            isinstance(stmt, For) and self._pays(stmt, nest) for stmt in loop.body
        )
        self.repeated = outside
        return pays

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
        if free and (around or free != set(self._free_sums(loop))):
            return False
        known = self.fixed.union(outer.sym for outer in around)
        return all(_depends_on(self.resolved(e), known) for e in (loop.start, loop.stop))

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
        self.plain.add(loop.sym)
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
_ARITHMETIC = (nodes.Const, nodes.Read, nodes.Cast, nodes.Unary, nodes.Binary, nodes.Extent)


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


def _segments(parts: Sequence[Part]) -> Iterator[Segment]:
    """The parts that are no loops over trips, in order."""
    for part in parts:
        if isinstance(part, Trips):
            yield from _segments(part.parts)
            if part.sums is not None:
                yield from (part.sums.added, part.sums.plain)
        else:
            yield part


# --------------------------------------------------------------------------- scalar expansion


_ARRAYS = (DeclareArray, nodes.Scratch)
_LOCALS = (Declare, *_ARRAYS)


def _expanded(parts: Sequence[Part], repeated: dict[Sym, Declare]) -> tuple[Part, ...] | None:
    """The parts with the locals that pass between them; None if these cannot be expanded.

    That is scratch memory, and arrays that are large or do not begin with zeros.
    """
    home: dict[Sym, int] = {}
    used: dict[Sym, set[int]] = {}
    for n, segment in enumerate(_segments(parts)):
        for stmt in segment.body:
            if isinstance(stmt, _LOCALS):
                home[stmt.sym] = n
        for sym in set[Sym]().union(*mentioned(segment.body)):
            used.setdefault(sym, set()).add(n)
    kept = {sym for sym, n in home.items() if used[sym] != {n}}
    arrays = [s for part in _segments(parts) for s in part.body if isinstance(s, _ARRAYS)]
    if not _may_expand([stmt for stmt in arrays if stmt.sym in kept]):
        return None
    return _with_kept(parts, kept, repeated)


def _may_expand(arrays: Sequence[DeclareArray | nodes.Scratch]) -> bool:
    size = 0
    for stmt in arrays:
        if not isinstance(stmt, DeclareArray) or not all(map(is_zero, stmt.values)):
            return False
        size += len(stmt.values) * stmt.sym.dtype.size
    return size <= MOST_KEPT


def _with_kept(
    parts: Sequence[Part], kept: set[Sym], repeated: dict[Sym, Declare]
) -> tuple[Part, ...]:
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Segment):
            result.append(_arrived(part, kept, repeated))
            continue
        sums, inside = part.sums, kept
        if sums is not None:
            inside = kept - {sym for sym, _ in sums.totals}  # each trip's own
            added, plain = (_arrived(s, kept, repeated) for s in (sums.added, sums.plain))
            sums = replace(sums, added=added, plain=plain)
        result.append(replace(part, parts=_with_kept(part.parts, inside, repeated), sums=sums))
    return tuple(result)


def _arrived(part: Segment, kept: set[Sym], repeated: dict[Sym, Declare]) -> Segment:
    reads, writes = mentioned(part.body)
    own = {stmt.sym for stmt in part.body if isinstance(stmt, Declare)}
    arriving = sorted(((reads | writes) & kept) - own, key=lambda sym: sym.uid)
    leaving = sorted(writes & kept, key=lambda sym: sym.uid)
    return Segment(
        (*needed(part.body, repeated), *part.body), True, tuple(arriving), tuple(leaving)
    )


def kept_between(parts: Sequence[Part]) -> tuple[Sym, ...]:
    """The locals that become arrays."""
    found = (sym for part in _segments(parts) for sym in (*part.arriving, *part.leaving))
    return tuple(dict.fromkeys(found))


def sums_of(parts: Sequence[Part]) -> Iterator[Sums]:
    """The sums of loops in an order of their own."""
    return (part.sums for part in parts if isinstance(part, Trips) and part.sums is not None)
