"""Segments: the statements of a body that share a loop, and what passes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Declare, Expr, Stmt, Sym
from pyfuser.ir.visit import expressions, statements, sym_of
from pyfuser.support.records import dataclass

Fresh = Callable[[str, DType], Sym]
"""Makes Syms of a name and a type that no other is equal to."""

MAX_STATEMENTS = 600
"""Dependences are tested in pairs."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Statements that share a loop.

    `arriving` are the locals whose values come from the segments before, `leaving` those that it
    sets and that later ones use. Declarations that are cheaper to repeat than to keep stand in
    every segment that uses them. guard: a local that arrives, and says whether to run the body.
    """

    body: Body
    vector: bool
    arriving: tuple[Sym, ...] = ()
    leaving: tuple[Sym, ...] = ()
    guard: Sym | None = None


def expansion(segments: Sequence[Segment]) -> tuple[Sym, ...]:
    """The locals that become arrays, in order of their first segment."""
    return tuple(dict.fromkeys(s for segment in segments for s in segment.leaving))


def is_zero(value: Expr) -> bool:
    """Whether a value is the constant that `T()` makes."""
    return isinstance(value, nodes.Const) and repr(value.value) in ("0", "0.0", "0j", "False")


def touched(stmt: Stmt) -> tuple[set[Sym], set[Sym]]:
    """The locals and views that a statement reads, and those it writes."""
    reads: set[Sym] = set()
    writes: set[Sym] = set()
    for part in statements((stmt,)):
        sym = sym_of(part)
        if sym is not None:
            writes.add(sym)
        for e in expressions(part):
            if isinstance(e, nodes.Read):
                reads.add(e.sym)
            elif isinstance(e, nodes.Load):
                reads.add(e.view)
            elif isinstance(e, nodes.AtomicFetch):
                writes.add(e.view)
    return reads, writes


def dependences(units: Sequence[Stmt], aliased: frozenset[Sym]) -> list[set[int]]:
    """For each statement those before it that have to stay before it."""

    def places(syms: set[Sym]) -> set[Sym]:
        return (syms - aliased) | {first} if first and syms & aliased else syms

    first = min(aliased, key=lambda sym: sym.uid, default=None)
    accesses = [tuple(map(places, touched(stmt))) for stmt in units]
    result: list[set[int]] = []
    for n, (reads, writes) in enumerate(accesses):
        both = reads | writes
        result.append({m for m, (r, w) in enumerate(accesses[:n]) if w & both or (r & writes)})
    return result


def grouped(kinds: Sequence[bool], before: Sequence[set[int]]) -> list[list[int]]:
    """The fewest groups of one kind each, in an order that respects the dependences."""
    found = [_greedy(kinds, before, kind) for kind in (kinds[0], not kinds[0])]
    return min(found, key=len)


def _greedy(kinds: Sequence[bool], before: Sequence[set[int]], kind: bool) -> list[list[int]]:
    """Take all statements of a kind that can come now, then of the other, in turns."""
    left, done = list(range(len(kinds))), set[int]()
    groups: list[list[int]] = []
    while left:
        group: list[int] = []
        for n in left:
            if kinds[n] == kind and before[n] <= done:
                group.append(n)
                done.add(n)
        if group:
            groups.append(group)
        left = [n for n in left if n not in done]
        kind = not kind
    return groups


def expanded(
    parts: Sequence[Body],
    kinds: Sequence[bool],
    repeated: dict[Sym, Declare],
    arriving: Iterable[Sym] = (),
    leaving: Iterable[Sym] = (),
) -> tuple[Segment, ...]:
    """Segments with what passes between them, `arriving` at the first and `leaving` the last."""
    used = [mentioned(part) for part in parts]
    known, wanted = set(arriving), set(leaving)  # locals declared so far, and used afterwards
    local = known | {
        stmt.sym
        for part in parts
        for stmt in part
        if isinstance(stmt, (nodes.Declare, nodes.DeclareArray, nodes.Scratch))
    }
    segments = []
    for n, part in enumerate(parts):
        reads, writes = used[n]
        later = wanted.union(*(r | w for r, w in used[n + 1 :]))
        before = sorted((reads | writes) & known, key=lambda sym: sym.uid)
        after = sorted(writes & local & later, key=lambda sym: sym.uid)
        known |= writes & local
        body = (*needed(part, repeated), *part)
        segments.append(Segment(body, kinds[n], tuple(before), tuple(after)))
    return tuple(segments)


def mentioned(part: Body) -> tuple[set[Sym], set[Sym]]:
    """The locals and views that a part reads, and those it writes."""
    accesses = [touched(stmt) for stmt in part]
    reads = set[Sym]().union(*(r for r, _ in accesses))
    return reads, set[Sym]().union(*(w for _, w in accesses))


def needed(part: Body, repeated: dict[Sym, Declare]) -> list[Stmt]:
    """The repeated declarations that a part uses, in order."""
    wanted = mentioned(part)[0]
    result: list[Stmt] = []
    for sym, stmt in reversed(repeated.items()):
        if sym in wanted:
            wanted |= touched(stmt)[0]
            result.append(stmt)
    return result[::-1]
