"""Scalar replacement: an element that one iteration uses again is kept in a local.

This forwards stores to later loads, drops loads already done and stores overwritten later, and
contracts temporaries: a view whose contents nobody reads after the kernel loses its stores, and
with no access left it loses its memory. After Carr and Kennedy, "Scalar replacement in the
presence of conditional control flow" (1994), reduced to what fusion makes: all accesses that may
touch a cell within one iteration have the same subscripts.

A view is eligible if no other parameter may overlap it and its subscripts are built from indices,
scalars and locals that never change. The accesses with equal subscripts then name one cell. In the
innermost body that holds all of them:

* if the first is an unconditional store, it becomes the local's declaration;
* if the first is an unconditional load, the local is declared from a load;
* if it is conditional, the local can only start at zero, for a view that is known to be zero;
* stores become assignments. A dead view needs no more. Otherwise one store follows the last
  write, provided that the iteration writes the cell unconditionally (a store by an iteration that
  did not write before would be a race); else each store stays where it is.

Inside a loop of the workunit a cell may come back in a later trip: there a view counts as dead
only if each trip stores before it loads, and never as zero.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.accesses import Subscripts, accesses
from pyfuser.ir.canonical import fresh
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Const,
    Declare,
    Expr,
    For,
    If,
    Load,
    Logical,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Update,
    While,
)
from pyfuser.ir.visit import (
    all_expressions,
    assigned,
    child_expressions,
    expressions,
    leaves_loop,
    map_body,
    statements,
    sym_of,
)
from pyfuser.support.records import dataclass
from pyfuser.transform.cells import cells_of, is_unread, without_writes, zero
from pyfuser.transform.kernel import Kernel


# law
def replace_scalars(kernel: Kernel) -> Kernel:
    """The kernel with reused elements in locals; `params` are left as they are."""
    workunit = kernel.workunit
    body = workunit.body
    fixed = frozenset((*workunit.indices, *(p.sym for p in workunit.params)))
    overlapping = {sym for pair in kernel.overlaps for sym in pair}
    written = {access.view for access in accesses(body) if access.writes}
    naming = _Naming()
    for param in workunit.params:
        view = param.sym
        if view not in written or view in overlapping:
            continue
        body = _replace_view(body, view, fixed, view in kernel.dead, view in kernel.fresh, naming)
    return replace(kernel, workunit=replace(workunit, body=body))


def forward_elements(kernel: Kernel) -> Kernel:
    """The same of elements that are known by a number since their loops were written out."""
    numbered = (
        a.writes and any(isinstance(index, Const) for index in a.indices)
        for a in accesses(kernel.workunit.body)
    )
    return replace_scalars(kernel) if any(numbered) else kernel


class _Naming:
    """Which Syms each statement names: most of a long body have nothing to do with a view."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Stmt, set[Sym | None]]] = {}  # statements live as long

    def names(self, stmt: Stmt, view: Sym) -> bool:
        found = self._known.get(id(stmt))
        if found is None:
            whole = (stmt,)
            syms = {sym_of(node) for node in (*statements(whole), *all_expressions(whole))}
            found = self._known[id(stmt)] = stmt, syms
        return view in found[1]


def _replace_view(
    body: Body, view: Sym, fixed: frozenset[Sym], dead: bool, zero: bool, naming: _Naming
) -> Body:
    naming_it = tuple(stmt for stmt in body if naming.names(stmt, view))
    if dead and is_unread(naming_it, view):
        return without_writes(body, view)
    stable = stable_locals(body)
    cells = cells_of(naming_it, view, stable, fixed, assigned(body))
    if cells is None:
        return body
    for subscripts in cells:
        cell = _Cell(view, subscripts, stable, dead, zero, naming)
        body = cell.replace_in(body)
    return body


# ----------------------------------------------------------------------------- one cell at a time


@dataclass(frozen=True)
class _Cell:
    view: Sym
    subscripts: Subscripts
    stable: dict[Sym, Expr]
    dead: bool
    zero: bool
    naming: _Naming

    def _is_here(self, indices: Subscripts) -> bool:
        return tuple(expand(index, self.stable) for index in indices) == self.subscripts

    def _reads(self, expr: Expr) -> bool:
        return isinstance(expr, Load) and expr.view == self.view and self._is_here(expr.indices)

    def _writes(self, stmt: Stmt) -> bool:
        if not isinstance(stmt, (Store, Update)) or sym_of(stmt) != self.view:
            return False
        return self._is_here(stmt.indices)

    def _touches(self, stmt: Stmt) -> bool:
        return any(self._is_here(access.indices) for access in accesses((stmt,), self.view))

    def replace_in(self, body: Body, loop: bool = False) -> Body:
        """Find the innermost body that holds all accesses, and replace them there.

        loop: whether the body belongs to a loop of the workunit, or to a branch inside one.
        """
        places = [
            n
            for n, stmt in enumerate(body)
            if self.naming.names(stmt, self.view) and self._touches(stmt)
        ]
        if len(places) == 1:
            only = body[places[0]]
            inner = self._inside(only, loop)
            if inner is not None:
                return (*body[: places[0]], inner, *body[places[0] + 1 :])
        return self._replace_here(body, places, loop) if places else body

    def _inside(self, stmt: Stmt, loop: bool) -> Stmt | None:
        """The statement rewritten inside, if one nested body holds every access of it."""
        if self._loads_in(stmt) or not isinstance(stmt, (If, For, While)):
            return None
        if isinstance(stmt, If):
            in_then = any(map(self._touches, stmt.then))
            if in_then and any(map(self._touches, stmt.orelse)):
                return None
            if in_then:
                return replace(stmt, then=self.replace_in(stmt.then, loop))
            return replace(stmt, orelse=self.replace_in(stmt.orelse, loop))
        return replace(stmt, body=self.replace_in(stmt.body, True))

    # law
    def _replace_here(self, body: Body, places: list[int], loop: bool) -> Body:
        first = body[places[0]]
        stores_first = self._stores_first(first)
        dead = self.dead and (stores_first or not loop)
        if not self._gains(tuple([body[n] for n in places]), dead):
            return body
        local = fresh(self.view.name, self.view.dtype)
        before = self._start(first, local, stores_first, loop)
        if before is None:
            return body
        sink = not dead and self._may_sink(body, places, loop)
        in_place = not dead and not sink
        rewriter = _CellRewriter(self, local, in_place)
        result: list[Stmt] = [*body[: places[0]], *before]
        last_write = max((n for n in places if self._has_write(body[n])), default=-1)
        for n in range(places[0], len(body)):
            new = rewriter.statement(body[n]) if n in places else (body[n],)
            if n == places[0] and not before:
                assert isinstance(new[0], Assign)
                new = (Declare(local, new[0].value), *new[1:])
            result.extend(new)
            if sink and n == last_write:
                result.append(self._final_store(body[n], local))
        return tuple(result)

    # law
    def _start(
        self, first: Stmt, local: Sym, stores_first: bool, loop: bool
    ) -> tuple[Stmt, ...] | None:
        """What declares the local before the first access; nothing if that is a plain store."""
        if stores_first:
            return () if isinstance(first, Store) else (Declare(local, None),)
        if self.zero and not loop:
            return (Declare(local, Const(zero(local.dtype), local.dtype)),)
        if self._loads_always(first):
            return (Declare(local, Load(self.view, self.subscripts)),)
        return None

    def _final_store(self, stmt: Stmt, local: Sym) -> Store:
        original = next(s for s in statements((stmt,)) if self._writes(s))
        assert isinstance(original, (Store, Update))
        return Store(self.view, self.subscripts, Read(local), original.location)

    # --- facts about the body

    def _loads_in(self, stmt: Stmt) -> bool:
        return any(self._reads(e) for e in expressions(stmt))

    def _has_write(self, stmt: Stmt) -> bool:
        return any(self._writes(s) for s in statements((stmt,)))

    def _gains(self, body: Body, dead: bool) -> bool:
        """Whether a local saves a memory access."""
        loads = sum(self._reads(e) for s in statements(body) for e in expressions(s))
        writes = [s for s in statements(body) if self._writes(s)]
        if not writes:
            return False
        return loads + len(writes) > 1 or (dead and isinstance(writes[0], Update))

    # law: True
    def _stores_first(self, stmt: Stmt) -> bool:
        """Whether executing the statement always stores the cell before any load of it."""
        if self._loads_in(stmt):
            return False
        if isinstance(stmt, If):
            return all(
                any(map(self._touches, side))
                and self._stores_first(next(filter(self._touches, side)))
                for side in (stmt.then, stmt.orelse)
            )
        return isinstance(stmt, Store)  # of the cell, which it touches

    def _loads_always(self, stmt: Stmt) -> bool:
        """Whether executing the statement always loads the cell, before it can be written."""
        if isinstance(stmt, Update) and self._writes(stmt):
            return True
        return any(map(self._evaluates, child_expressions(stmt)))

    def _evaluates(self, expr: Expr) -> bool:
        """Whether evaluating the expression always loads the cell."""
        if self._reads(expr):
            return True
        if isinstance(expr, Logical):
            return self._evaluates(expr.left)
        if isinstance(expr, Select):
            return self._evaluates(expr.condition)
        return any(map(self._evaluates, child_expressions(expr)))

    def _writes_always(self, stmt: Stmt) -> bool:
        if isinstance(stmt, If):
            return all(any(map(self._writes_always, side)) for side in (stmt.then, stmt.orelse))
        return self._writes(stmt)

    # law: True
    def _may_sink(self, body: Body, places: list[int], loop: bool) -> bool:
        """Whether one store after the last write can stand for all of them."""
        if not any(self._writes_always(body[n]) for n in places):
            return False
        return not loop or not any(map(leaves_loop, body))


class _CellRewriter:
    """Replaces one cell's accesses by a local, and keeps the stores if `in_place`."""

    def __init__(self, cell: _Cell, local: Sym, in_place: bool) -> None:
        self.cell = cell
        self.local = local
        self.in_place = in_place

    def statement(self, stmt: Stmt) -> Body:
        return map_body((stmt,), self._expression, self._write)

    def _expression(self, expr: Expr) -> Expr:
        return Read(self.local) if self.cell._reads(expr) else expr

    def _write(self, stmt: Stmt) -> Stmt | Body:
        if not self.cell._writes(stmt):
            return stmt
        assert isinstance(stmt, (Store, Update))
        value = stmt.value
        if isinstance(stmt, Update):
            value = Binary(stmt.op, Read(self.local), value)
        assign = Assign(self.local, value)
        if not self.in_place:
            return assign
        store = Store(self.cell.view, stmt.indices, Read(self.local), stmt.location)
        return (assign, store)
