"""Elements at places that were loaded: what they keep from becoming vectors.

    if inside[i] == 1: target[place[i] - 1] = source[i]

Where processors cannot store the lanes of a vector to such places (AVX2), that keeps vectors from
the whole loop. And elements that are fetched from anywhere come the faster the more of them are
under way: long functions in between keep the next ones waiting. AVX2 does not convert 8-byte
integers, such as those of `pk.rand`, to floating-point numbers either.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Expr, Stmt, Sym
from pyfuser.ir.visit import all_expressions, assigned, expressions, reads, statements, sym_of
from pyfuser.nest.cost.vectorisable import is_covered, local_arrays

_WIDE = (DType.INT64, DType.UINT64)
_WHOLE = (DType.INT32, DType.INT64)


def apart(body: Body) -> Callable[[Stmt], bool]:
    """Which statements of a body, without an inner loop, belong into a loop without maths.

    Those that store to places that were loaded and, where the maths have vector versions, those
    with `slow_operands`.
    """
    loaded, arrays = loaded_locals(body), local_arrays(body)
    maths, slow = any(map(is_covered, all_expressions(body))), slow_operands(body)

    def belongs(stmt: Stmt) -> bool:
        found = list(statements((stmt,)))
        if any(isinstance(part, (nodes.For, nodes.While)) for part in found):
            return False
        return any(_scatters(part, loaded, arrays) for part in found) or (
            maths and any(slow(e) for part in found for e in expressions(part))
        )

    return belongs


def slow_operands(body: Body) -> Callable[[Expr], bool]:
    """Which expressions of a body load from places that were loaded, or convert 8-byte integers."""
    loaded, arrays = loaded_locals(body), local_arrays(body)

    def slow(e: Expr) -> bool:
        if isinstance(e, nodes.Cast):
            kinds = (e.dtype, e.operand.dtype)
            return any(k.is_float for k in kinds) and any(k in _WIDE for k in kinds)
        if not isinstance(e, nodes.Load) or e.view in arrays:
            return False
        return any(depends(index, loaded) for index in e.indices)

    return slow


def _scatters(stmt: Stmt, loaded: set[Sym], arrays: frozenset[Sym]) -> bool:
    return (
        isinstance(stmt, (nodes.Store, nodes.Update))
        and sym_of(stmt) not in arrays
        and any(depends(index, loaded) for index in stmt.indices)
    )


def loaded_locals(body: Body) -> set[Sym]:
    """The locals whose values depend on what is loaded, or on conditions that do."""
    found: set[Sym] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for stmt in statements(body):
            if isinstance(stmt, (nodes.Declare, nodes.Assign)) and stmt.value is not None:
                found |= {stmt.sym} if depends(stmt.value, found) else set()
            elif isinstance(stmt, (nodes.If, nodes.While)) and depends(stmt.condition, found):
                found |= assigned((stmt,))
    return found


def depends(e: Expr, loaded: set[Sym]) -> bool:
    """Whether a value depends on what is loaded; loaded: `loaded_locals`."""
    return any(
        isinstance(part, nodes.Load) or (isinstance(part, nodes.Read) and part.sym in loaded)
        for part in expressions(e)
    )


def chosen(body: Body, index: Sym) -> int:
    """Loads whose places the index chooses, or its remainders: a vector of them is gathered."""
    made, places = {index}, set[Sym]()

    def chooses(e: Expr) -> bool:
        if not reads(e).isdisjoint(places):
            return True
        parts = (
            p for p in expressions(e) if isinstance(p, nodes.Select) or getattr(p, "op", "") == "%"
        )
        return any(not reads(part).isdisjoint(made) for part in parts)

    for stmt in statements(body):
        if not isinstance(stmt, (nodes.Declare, nodes.Assign)) or stmt.value is None:
            continue
        if stmt.sym.dtype not in _WHOLE:
            continue
        if chooses(stmt.value):
            places.add(stmt.sym)
        elif not reads(stmt.value).isdisjoint(made):
            made.add(stmt.sym)
    loads = (e for e in all_expressions(body) if isinstance(e, nodes.Load))
    return sum(any(map(chooses, load.indices)) for load in loads)
