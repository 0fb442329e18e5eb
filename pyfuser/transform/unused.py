"""Remove what nothing uses: locals that are never read, and parameters no code names.

A view parameter that goes was contracted: the kernel needs none of its memory.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.effects import evaluates_purely
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Declare,
    For,
    If,
    Stmt,
    Sym,
    Update,
)
from pyfuser.ir.visit import (
    all_expressions,
    map_body,
    reads,
    statements,
    sym_of,
)
from pyfuser.transform.kernel import Kernel


def remove_unused(kernel: Kernel) -> Kernel:
    """The kernel without unread locals, and without the parameters that then have no use."""
    workunit = kernel.workunit
    body = without_unread_locals(workunit.body)
    used = {sym_of(node) for node in (*statements(body), *all_expressions(body))}
    kept = [n for n, param in enumerate(workunit.params) if param.sym in used]
    syms = {workunit.params[n].sym for n in kept}
    return replace(
        kernel,
        workunit=replace(workunit, body=body, params=tuple(workunit.params[n] for n in kept)),
        slots=tuple(kernel.slots[n] for n in kept),
        shapes=tuple(kernel.shapes[n] for n in kept),
        overlaps=frozenset(pair for pair in kernel.overlaps if pair <= syms),
        dead=kernel.dead & syms,
        fresh=kernel.fresh & syms,
        overwrites=(),
        along=(),
    )


def without_unread_locals(body: Body) -> Body:
    while True:
        local = {s.sym for s in statements(body) if isinstance(s, Declare)}
        read = reads(*statements(body))
        unread = local - read - _set_by_effects(body)
        new = map_body(body, None, lambda stmt: _drop(stmt, unread))  # noqa: B023
        if new is body:
            return body
        body = new


def _set_by_effects(body: Body) -> set[Sym]:
    """The locals that are set where something else happens too: that, and so they, must stay."""
    found = set()
    for stmt in statements(body):
        sym = sym_of(stmt) if isinstance(stmt, (Declare, Assign, Update)) else None
        if sym is not None and not evaluates_purely(stmt):
            found.add(sym)
    return found


def _drop(stmt: Stmt, unread: set[Sym]) -> Stmt | Body:
    match stmt:
        case Declare() | Assign() if stmt.sym in unread:
            return ()
        case Update(indices=()) if stmt.target in unread:
            return ()
        case If(then=(), orelse=()) | For(body=()) if evaluates_purely(stmt):
            return ()
    return stmt
