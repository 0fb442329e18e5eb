"""Which scalar parameters decide which elements a workunit touches: a backward slice."""

from __future__ import annotations

from collections.abc import Iterable

from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses
from pyfuser.ir.nodes import Body, Expr, Sym, Workunit
from pyfuser.ir.visit import all_expressions, reads, statements
from pyfuser.support.caches import cached


@cached(1024)
def structural_scalars(workunit: Workunit) -> frozenset[int]:
    """The positions of the integer scalar parameters that can influence subscripts.

    Through locals, loop bounds and comparisons that also look at an index or a relevant loop
    variable. Calls that differ in another scalar only have the same shape.
    """
    memory = {param.sym for param in workunit.params if param.rank}
    relevant = _in_subscripts(workunit.body, memory)
    indices = set(workunit.indices)
    definitions = _definitions(workunit.body)
    comparisons = _comparisons(workunit.body)
    size = -1
    while size != len(relevant):
        size = len(relevant)
        for sym in tuple(relevant):
            relevant |= definitions.get(sym, set())
        for syms in comparisons:
            if syms & indices or syms & relevant:
                relevant |= syms
    return frozenset(
        position
        for position, param in enumerate(workunit.params)
        if not param.rank and param.sym.dtype.is_integer and param.sym in relevant
    )


def _reads(exprs: Iterable[Expr]) -> set[Sym]:
    """The integer Syms whose value the expressions use."""
    return {sym for sym in reads(*exprs) if sym.dtype.is_integer}


def _in_subscripts(body: Body, memory: set[Sym]) -> set[Sym]:
    """Syms that stand in a subscript of a parameter."""
    indices = (e for a in accesses(body) if a.view in memory for e in a.indices)
    return _reads(indices)


def _definitions(body: Body) -> dict[Sym, set[Sym]]:
    """For each local, the Syms from which its value is computed."""
    found: dict[Sym, set[Sym]] = {}
    sources: tuple[Expr, ...]
    for stmt in statements(body):
        if isinstance(stmt, nodes.Declare):
            sym, sources = stmt.sym, (() if stmt.value is None else (stmt.value,))
        elif isinstance(stmt, nodes.Assign):
            sym, sources = stmt.sym, (stmt.value,)
        elif isinstance(stmt, nodes.For):
            sym, sources = stmt.sym, (stmt.start, stmt.stop, stmt.step)
        else:
            continue
        found.setdefault(sym, set()).update(_reads(sources))
    return found


def _comparisons(body: Body) -> list[set[Sym]]:
    """The Syms of each integer comparison."""
    return [
        _reads((node.left, node.right))
        for node in all_expressions(body)
        if isinstance(node, nodes.Compare) and node.left.dtype.is_integer
    ]
