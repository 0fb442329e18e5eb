"""Branches that only give locals other values become selections, and integers that choose elements
get a local for each value.

    p = i + k                            p = i + k
    if p < 0: p = 0              ->      p1 = p < 0 ? 0 : p
    if p > n - 1: p = n - 1              p2 = p1 > n - 1 ? n - 1 : p1
    total += x[p]                        total += x[p2]

If-conversion (J. R. Allen, K. Kennedy, C. Porterfield and J. Warren, "Conversion of control
dependence to data dependence", 1983), scalar renaming and privatisation, of what is made of indices
alone. The passes that follow look at locals that keep their first value: they see now by how much
subscripts grow from one iteration to the next, and what they are where conditions hold.

The law. A selection evaluates its condition and then one side, as the branch did. What a branch
changes must be locals that have a value on both ways, and no selection may read what another has
set. A local is renamed where all its assignments are statements of the body that declares it: the
last one in front of a place is then the last that has run. Its declaration moves into a loop that
has all its uses, and to its first assignment, if that comes before anything reads it.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.canonical import MAX_WORKUNITS, fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import evaluates_purely
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Binary,
    Body,
    Call,
    Declare,
    Expr,
    For,
    If,
    Load,
    Read,
    Select,
    Stmt,
    Sym,
    Update,
    While,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    bodies,
    expressions,
    map_body,
    map_expression,
    reads,
    statements,
)
from pyfuser.support.caches import cached
from pyfuser.transform.kernel import Kernel

MAX_PARTS = 16
"""Operations, numbers and locals of a value that may be selected."""


def convert_branches(kernel: Kernel) -> Kernel:
    """The kernel with such selections."""
    return replace(kernel, workunit=_converted(kernel.workunit))


@cached(MAX_WORKUNITS)
def _converted(workunit: Workunit) -> Workunit:
    body = workunit.body
    changing = assigned(body)
    made = _of_indices(workunit) if changing else set()
    choosing = _choosing(body, made)
    if choosing.isdisjoint(changing):
        return workunit
    body = _with_private(body, choosing)
    body = map_body(body, None, _Selecting(body, made, choosing).statement)
    return replace(workunit, body=_renamed(body, choosing))


def _of_indices(workunit: Workunit) -> set[Sym]:
    """The integers that are made of indices, of loops' variables and of scalars, not of data."""
    body = workunit.body
    found = {*workunit.indices, *(p.sym for p in workunit.params if not p.rank)}
    found |= {s.sym for s in statements(body) if isinstance(s, (Declare, For))}
    found -= {s.target for s in statements(body) if isinstance(s, Update)}
    found = {sym for sym in found if sym.dtype.is_integer}
    gives = [s for s in statements(body) if isinstance(s, (Declare, Assign)) and s.value]
    while True:
        other = {s.sym for s in gives if not _is_made_of(s.value, found)} & found
        if not other:
            return found
        found -= other


def _is_made_of(e: Expr | None, syms: set[Sym]) -> bool:
    """Whether an expression is an integer made of these alone."""
    return e is not None and all(
        part.sym in syms
        if isinstance(part, Read)
        else part.dtype.is_integer and not isinstance(part, (Load, AtomicFetch))
        for part in expressions(e)
    )


def _choosing(body: Body, made: set[Sym]) -> set[Sym]:
    """Those of some integers that subscripts read, and that these are made of."""
    found: set[Sym] = set()
    for node in (*statements(body), *all_expressions(body)):
        found |= reads(*getattr(node, "indices", ())) & made
    gives = [s for s in statements(body) if isinstance(s, (Declare, Assign))]
    while True:
        more = {sym for s in gives if s.sym in found for sym in reads(s) & made} - found
        if not more:
            return {sym for sym in found if sym.dtype is not DType.BOOL}
        found |= more


# ------------------------------------------------------------------ privatisation


def _with_private(body: Body, syms: set[Sym]) -> Body:
    """The body with declarations of locals moved to where these are first set."""

    def inside(stmt: Stmt) -> Stmt:
        match stmt:
            case If():
                return replace(stmt, then=moved(stmt.then), orelse=moved(stmt.orelse))
            case For() | While():
                return replace(stmt, body=moved(stmt.body))
        return stmt

    def moved(body: Body) -> Body:
        for place in reversed(range(len(body))):
            if _declares(body[place], syms):
                rest = _declared_later(body[place + 1 :], body[place].sym)  # type: ignore[union-attr]
                body = body if rest is None else (*body[:place], *rest)
        return body

    return moved(map_body(body, None, inside))


# law
def _declares(stmt: Stmt, syms: set[Sym]) -> bool:
    """Whether a statement does nothing but declare one of the locals."""
    return isinstance(stmt, Declare) and stmt.sym in syms and evaluates_purely(stmt)


# law: not None
def _declared_later(body: Body, sym: Sym) -> Body | None:
    """The body with a local declared where it is first set; None: it may be read before."""
    uses = [n for n, s in enumerate(body) if sym in assigned((s,)) | reads(*statements((s,)))]
    if not uses:
        return body  # it gave a value to another local, which is set before that is read
    stmt = body[uses[0]]
    if sym in reads(stmt):
        return None
    new: Stmt | None = None
    match stmt:
        case Assign():
            new = Declare(sym, stmt.value)
        case For() | While() if len(uses) == 1:
            inner = _declared_later(stmt.body, sym)
            new = None if inner is None else replace(stmt, body=inner)
    return None if new is None else (*body[: uses[0]], new, *body[uses[0] + 1 :])


# ------------------------------------------------------------------ selections


class _Selecting:
    """Makes branches that conditions on indices decide into assignments."""

    def __init__(self, body: Body, made: set[Sym], choosing: set[Sym]) -> None:
        declared = {s.sym: s.value for s in statements(body) if isinstance(s, Declare)}
        self._made, self._choosing, self._declared = made, choosing, declared

    # law
    def statement(self, stmt: Stmt) -> Stmt | Body:
        """The assignments that a branch is, or the statement itself."""
        if not isinstance(stmt, If) or not _is_made_of(stmt.condition, self._made):
            return stmt
        then, orelse = _given(stmt.then), _given(stmt.orelse)
        if then is None or orelse is None or self._choosing.isdisjoint({*then, *orelse}):
            return stmt
        syms = list(dict.fromkeys((*then, *orelse)))
        if not all(self._has_value(sym, sym in then and sym in orelse) for sym in syms):
            return stmt
        values = [
            Select(stmt.condition, then.get(sym, Read(sym)), orelse.get(sym, Read(sym)))
            for sym in syms
        ]
        if len(syms) == 1:
            return Assign(syms[0], values[0])
        made = [Declare(fresh(s.name, s.dtype), e) for s, e in zip(syms, values, strict=True)]
        sets = [Assign(sym, Read(new.sym)) for sym, new in zip(syms, made, strict=True)]
        return (*made, *sets)

    # law: True
    def _has_value(self, sym: Sym, anyway: bool) -> bool:
        """Whether something is a local with a value on both ways; anyway: if it is a local."""
        return sym in self._declared and (anyway or self._declared[sym] is not None)


# law: not None
def _given(body: Body) -> dict[Sym, Expr] | None:
    """What a branch gives locals, by what they are before it; None: it does other things, or dear.

    Each value may be computed in several places.
    """
    known: dict[Sym, Expr] = {}
    for stmt in body:
        if not isinstance(stmt, (Declare, Assign)) or stmt.value is None:
            return None
        known[stmt.sym] = map_expression(
            stmt.value, lambda e: known.get(e.sym, e) if isinstance(e, Read) else e
        )
        if not _is_cheap(known[stmt.sym]):
            return None
    own = {stmt.sym for stmt in body if isinstance(stmt, Declare)}
    return {sym: value for sym, value in known.items() if sym not in own}


# law: True
def _is_cheap(e: Expr) -> bool:
    parts = list(expressions(e))
    return len(parts) <= MAX_PARTS and not any(
        isinstance(part, (Load, AtomicFetch, Call))
        or (isinstance(part, Binary) and part.op in ("/", "%"))
        for part in parts
    )


# ------------------------------------------------------------------ renaming


# law
def _renamed(body: Body, choosing: set[Sym]) -> Body:
    """The body with a local for each value that one is given in the body that declares it."""
    renamable = _renamable(body, choosing)
    values = {s.sym for s in statements(body) if isinstance(s, Declare)} - assigned(body)
    names: dict[Sym, Sym] = {}

    def named(e: Expr) -> Expr:
        return Read(names[e.sym]) if isinstance(e, Read) and e.sym in names else e

    def one(stmt: Stmt) -> Stmt | Body:
        if not isinstance(stmt, Assign) or stmt.sym not in renamable:
            return stmt
        if isinstance(stmt.value, Read) and stmt.value.sym in values:
            names[stmt.sym] = stmt.value.sym
            return ()
        names[stmt.sym] = fresh(stmt.sym.name, stmt.sym.dtype)
        return Declare(names[stmt.sym], stmt.value)

    body = map_body(body, named, one)  # in the order of the text
    unread = {*names} - reads(*statements(body))
    return map_body(body, None, lambda s: () if _declares(s, unread) else s)


# law
def _renamable(body: Body, choosing: set[Sym]) -> set[Sym]:
    """Locals all of whose assignments are statements of the body that declares them."""
    inside = [inner for stmt in body for inner in bodies(stmt)]
    found = {s.sym for s in body if isinstance(s, Declare)} & choosing
    found -= assigned(tuple(s for s in body if not isinstance(s, Assign)))
    return found.union(*(_renamable(inner, choosing) for inner in inside))
