"""How g++ may compute: products that it could contract, and exp and log in vectors."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.nodes import Body, Call, For, While
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.nest.cost.fp_contraction import may_contract
from pyfuser.nest.cost.gathers import apart
from pyfuser.nest.nodes import Nest
from pyfuser.nest.segments import mentioned

INLINED = frozenset({"exp", "log"})
"""Functions that are computed in the loop (see `codegen.c.maths.inline`)."""


def round_products(nest: Nest) -> Nest:
    """The nest whose products are rounded before they are added to, where g++ might not do so."""
    return replace(nest, rounded=True) if may_contract(nest.spec.workunit.body) else nest


def double_vectors(nest: Nest) -> Nest:
    """The nest whose exp and log take two vectors at a time, see `codegen.c.maths.inline`.

    Where they may stand in a loop of few trips, these would be trips of its remainder. Loops over
    4-byte elements take two vectors of doubles anyway, without converting exponents.
    """
    unit = nest.spec.workunit
    if nest.spec.target.avx512_of_intel or nest.rank > 1 or not _calls(unit.body):
        return nest
    elsewhere = apart(unit.body)  # in another loop of a block
    reads, writes = mentioned(tuple(stmt for stmt in unit.body if not elsewhere(stmt)))
    views = {param.sym for param in unit.params if param.rank}
    if any(view.dtype.size < 8 for view in (reads | writes) & views):
        return nest
    loops = (stmt for stmt in statements(unit.body) if isinstance(stmt, (For, While)))
    return nest if any(_calls(loop.body) for loop in loops) else replace(nest, doubled=True)


def _calls(body: Body) -> bool:
    return any(isinstance(e, Call) and e.name in INLINED for e in all_expressions(body))
