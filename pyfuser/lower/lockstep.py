"""Teams of several threads, run by one: between two barriers, one thread after the other.

A body is what every thread of a team does. It is cut into regions at what the threads do together:
barriers, loops they share, scratch memory. Each region becomes a loop over the ranks (deep fission
after Stratton, Stone and Hwu, "MCUDA: An efficient implementation of CUDA kernels for multi-core
CPUs", 2008). A local whose value cannot depend on the rank is kept once, and computed once, outside
of these loops; any other that one region leaves to the next becomes an array, an element a thread.

What is done together has to be reached by all threads or none: where the condition of a branch or
loop around it may depend on the rank, the program is refused.

The threads of a shared loop get equal parts, in order, as Kokkos's do; that shows only where the
body knows its thread. Any order of the threads between barriers is one that a team may take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Body,
    Break,
    Call,
    Cast,
    Compare,
    Const,
    Continue,
    Declare,
    DeclareArray,
    Expr,
    For,
    If,
    Load,
    Read,
    Scratch,
    Select,
    Stmt,
    Store,
    Sym,
    Update,
    While,
)
from pyfuser.ir.visit import (
    assigned,
    child_expressions,
    declared,
    expressions,
    leaves_loop,
    map_body,
    statements,
    substitute_syms,
    sym_of,
)
from pyfuser.lower import convert
from pyfuser.lower.expand import expanded
from pyfuser.lower.team import Place, Shared, Team, barrier_mark
from pyfuser.lower.team_races import warn_of_lost_changes

_ZERO, _ONE = Const(0, DType.INT32), Const(1, DType.INT32)


def in_lockstep(body: Body, team: Team, accumulators: set[Sym]) -> Body:
    """The body of a whole team, from the body of each of its threads.

    Raises WorkunitError where some threads might miss what all have to do together.
    """
    body = _by_rank(body, team.rank)
    uniform = _Uniformity(team, accumulators)
    uniform.settle(body)
    warn_of_lost_changes(body, team, uniform.own)
    fission = _Fission(team, uniform)
    result = expanded(fission.body(body), fission.ranks, uniform.own, team.size)
    return map_body(result, None, lambda stmt: _only_thread(stmt, fission.ranks))


def _by_rank(body: Body, rank: Sym) -> Body:
    """The body with the rank itself for locals that are names of it."""
    changing = assigned(body)
    names = {
        s.sym: rank
        for s in statements(body)
        if isinstance(s, Declare) and s.value == Read(rank) and s.sym not in changing
    }
    body = map_body(body, None, lambda s: () if isinstance(s, Declare) and s.sym in names else s)
    return substitute_syms(body, names)


class _Uniformity:
    """Which locals have the same value in all threads: those that are not in `own`."""

    def __init__(self, team: Team, accumulators: set[Sym]) -> None:
        self.team = team
        self.own: set[Sym] = {team.rank, *accumulators}
        self.totals = {loop.total for loop in team.loops.values()}

    def settle(self, body: Body) -> None:
        """Find them: assume that all are uniform until nothing contradicts."""
        size = -1
        while size != len(self.own):
            size = len(self.own)
            self._visit(body, False)

    def expr(self, expr: Expr) -> bool:
        """Whether an expression has one value in all threads (that wait for each other's writes).

        An atomic gives each its own old value.
        """
        for e in expressions(expr):
            if isinstance(e, AtomicFetch) or (isinstance(e, Read) and e.sym in self.own):
                return False
            if isinstance(e, Load) and e.view in self.own:
                return False
            if isinstance(e, Call) and e.name == "printf":
                return False
        return True

    def control(self, stmt: Stmt) -> bool:
        """Whether all threads take the same way through a branch or loop."""
        if not all(map(self.expr, child_expressions(stmt))):
            return False
        return not (isinstance(stmt, (For, While)) and self._leaves_apart(stmt.body))

    def knows_thread(self, loop: For) -> bool:
        """Whether the trips of a shared loop depend on the thread that makes them."""
        inside = set(declared((loop,)))
        for stmt in statements((loop,)):
            for e in expressions(stmt):
                sym = e.sym if isinstance(e, Read) else e.view if isinstance(e, Load) else None
                if sym in self.own and sym not in inside:
                    return True
            if isinstance(stmt, (Store, Update)) and stmt.indices:
                array = sym_of(stmt)
                if array in self.own and array not in inside:
                    return True
        return False

    def _leaves_apart(self, body: Body) -> bool:
        return any(
            leaves_loop(stmt) and (not self.control(stmt) or self._leaves_apart(_branches(stmt)))
            for stmt in body
            if isinstance(stmt, If)
        )

    def _visit(self, body: Body, apart: bool) -> None:
        """`apart`: whether only some threads may get here."""
        for stmt in body:
            if isinstance(stmt, DeclareArray):
                self.own.add(stmt.sym)
            elif isinstance(stmt, (Declare, Assign)):
                if apart or not (stmt.value is None or self.expr(stmt.value)):
                    self._mark(stmt.sym)
            elif isinstance(stmt, Update) and not stmt.indices:
                if apart or not self.expr(stmt.value):
                    self._mark(stmt.target)
            elif isinstance(stmt, (If, For, While)):
                inner = apart or not self.control(stmt)
                if isinstance(stmt, For) and inner:
                    self._mark(stmt.sym)
                self._visit(_branches(stmt), inner)

    def _mark(self, sym: Sym) -> None:
        if sym not in self.totals:  # of which all threads get the same, whoever added to it
            self.own.add(sym)


def _branches(stmt: Stmt) -> Body:
    if isinstance(stmt, If):
        return (*stmt.then, *stmt.orelse)
    return stmt.body if isinstance(stmt, (For, While)) else ()


class _Fission:
    """Cuts a body into regions; `ranks` are the variables of the loops over a region's threads."""

    def __init__(self, team: Team, uniform: _Uniformity) -> None:
        self.team = team
        self.uniform = uniform
        self.ranks: set[Sym] = set()

    def body(self, body: Body) -> Body:
        """A body that all threads reach together."""
        result: list[Stmt] = []
        region: list[Stmt] = []
        for stmt in body:
            if not self._together(stmt):
                region.append(stmt)
            elif _may_go_ahead(stmt):
                result.append(stmt)
            else:
                result.extend(self._region(region))
                region = []
                result.extend(self._for_all(stmt))
        result.extend(self._region(region))
        return tuple(result)

    def _together(self, stmt: Stmt) -> bool:
        """Whether the team does a statement as one, instead of each thread for itself."""
        if isinstance(stmt, (If, For, While)):
            if isinstance(stmt, For) and stmt.sym in self.team.loops:
                loop = self.team.loops[stmt.sym]
                return loop.total is not None or not self.uniform.knows_thread(stmt)
            if not self.uniform.control(stmt):
                return False
            own = set(declared((stmt,)))
            return leaves_loop(stmt) or any(
                self._done_once(s, own) for s in statements(_branches(stmt))
            )
        return isinstance(stmt, (Break, Continue)) or self._done_once(stmt, set())

    def _done_once(self, stmt: Stmt, local: set[Sym]) -> bool:
        """Whether a statement is no thread's own; `local`: what it may set all the same."""
        if isinstance(stmt, Scratch) or barrier_mark(stmt) is not None:
            return True
        if isinstance(stmt, For):
            return stmt.sym in self.team.loops
        if isinstance(stmt, (Declare, Assign)):
            sym = stmt.sym
        elif isinstance(stmt, Update) and not stmt.indices:
            sym = stmt.target
        else:
            return False
        return sym not in self.uniform.own and sym not in local

    def _for_all(self, stmt: Stmt) -> Body:
        """A statement of the whole team."""
        if barrier_mark(stmt) is not None:
            return ()
        if isinstance(stmt, For) and stmt.sym in self.team.loops:
            return self._shared(stmt, self.team.loops[stmt.sym])
        if isinstance(stmt, If):
            return (replace(stmt, then=self.body(stmt.then), orelse=self.body(stmt.orelse)),)
        if isinstance(stmt, (For, While)):
            return (replace(stmt, body=self.body(stmt.body)),)
        return (stmt,)

    def _shared(self, loop: For, shared: Shared) -> Body:
        if not self.uniform.control(loop):
            raise shared.place.error("the threads of a team may disagree about this range")
        self._check(loop.body, inside=True)
        if self.uniform.knows_thread(loop):
            return self._threads(_part(loop, self.team))
        return (loop,)

    def _region(self, region: list[Stmt]) -> Body:
        if not region:
            return ()
        self._check(tuple(region))
        return self._threads(map_body(tuple(region), None, self._divided))

    def _divided(self, stmt: Stmt) -> Stmt | Body:
        if isinstance(stmt, For) and stmt.sym in self.team.loops:
            return _part(stmt, self.team)
        return stmt

    def _threads(self, body: Body) -> Body:
        """A loop over the ranks of a team, unless all do nothing."""
        rank = fresh(self.team.rank.name, self.team.rank.dtype)
        self.ranks.add(rank)
        size = Const(self.team.size, DType.INT32)
        return (For(rank, _ZERO, size, _ONE, substitute_syms(body, {self.team.rank: rank}), True),)

    def _check(self, body: Body, inside: bool = False) -> None:
        """Refuse what all threads have to do where only some may get; `inside` a shared loop."""
        where = "inside a loop that they share" if inside else "where only some of them may get"
        for place, what in self._joint(body, inside):
            raise place.error(
                f"{what} needs all {self.team.size} threads of a team, and stands {where}: "
                "write it outside, so that every thread gets there"
            )

    def _joint(self, body: Body, inside: bool) -> Iterator[tuple[Place, str]]:
        for stmt in statements(body):
            mark = barrier_mark(stmt)
            if mark is not None:
                yield self.team.barriers[mark], "a barrier"
            elif isinstance(stmt, Scratch):
                yield self.team.scratch[stmt.sym], "scratch memory"
            elif isinstance(stmt, For) and stmt.sym in self.team.loops:
                shared = self.team.loops[stmt.sym]
                if shared.total is not None or inside:
                    yield shared.place, "a nested pattern"


def _may_go_ahead(stmt: Stmt) -> bool:
    """Whether a declaration may be done before what precedes it: no memory decides its value."""
    if not isinstance(stmt, Declare):
        return False
    return stmt.value is None or all(isinstance(e, (Const, Read)) for e in expressions(stmt.value))


def _part(loop: For, team: Team) -> Body:
    """The part of a shared loop that one thread runs: as long as that of the others, or the rest.

    In 64 bits, in which no sum of 32-bit numbers overflows.
    """
    wide = DType.INT64
    begin, end = convert.cast(loop.start, wide), convert.cast(loop.stop, wide)
    count = end if _is_zero(loop.start) else convert.binary("-", end, begin)
    padded = convert.binary("+", count, Const(team.size - 1, wide))
    chunk, first, last = fresh("chunk", wide), fresh("first", wide), fresh("last", wide)

    def place(rank: Expr) -> Expr:
        steps = convert.binary("*", rank, Read(chunk))
        return steps if _is_zero(loop.start) else convert.binary("+", begin, steps)

    after = convert.binary("+", Read(first), Read(chunk))
    return (
        Declare(chunk, convert.binary("/", padded, Const(team.size, wide))),
        Declare(first, place(Read(team.rank))),
        Declare(last, _least(after, end)),
        replace(
            loop, start=convert.cast(_least(Read(first), end), loop.sym.dtype), stop=Read(last)
        ),
    )


def _least(a: Expr, b: Expr) -> Expr:
    return Select(Compare("<", a, b), a, b)


def _is_zero(expr: Expr) -> bool:
    while isinstance(expr, Cast):
        expr = expr.operand
    return isinstance(expr, Const) and expr.value == 0


def _only_thread(stmt: Stmt, ranks: set[Sym]) -> Stmt | Body:
    """`for rank: if rank == 0: ...` without the loop."""
    if not isinstance(stmt, For) or stmt.sym not in ranks:
        return stmt
    result: list[Stmt] = []
    for inner in stmt.body:
        if not isinstance(inner, If) or inner.orelse or not isinstance(inner.condition, Compare):
            return stmt
        test, limit = inner.condition, stmt.stop
        assert isinstance(limit, Const)
        if test.op != "==" or test.left != Read(stmt.sym) or not isinstance(test.right, Const):
            return stmt
        if not 0 <= int(test.right.value) < int(limit.value):  # type: ignore[arg-type]
            return stmt
        first = test.right
        result += map_body(inner.then, lambda e: first if e == Read(stmt.sym) else e)  # noqa: B023
    return tuple(result)
