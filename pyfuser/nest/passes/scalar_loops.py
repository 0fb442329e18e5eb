"""Loops that g++ 12 makes wrong vectors of make none (see `cost.gcc_inorder_reductions`)."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.nodes import Body, For, Stmt, Sym, While
from pyfuser.ir.visit import map_body
from pyfuser.nest.cost.gcc_inorder_reductions import miscompiled
from pyfuser.nest.nodes import Loop, Nest, NoVectors


def scalar_loops(nest: Nest) -> Nest:
    """The nest with a note at the end of the trips of such loops."""
    functions = tuple(replace(f, body=map_body(f.body, None, _noted)) for f in nest.functions)
    return replace(nest, functions=functions)


def _noted(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, (For, While)):
        return stmt
    if isinstance(stmt, Loop) and (stmt.shared or any(isinstance(s, Loop) for s in stmt.body)):
        return stmt  # its trips are independent, or not those of one loop
    counters: tuple[Sym, ...] = (stmt.sym,) if isinstance(stmt, For) else ()
    body: Body = (*stmt.body, NoVectors())
    return replace(stmt, body=body) if miscompiled(stmt.body, counters) else stmt
