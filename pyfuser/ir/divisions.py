"""Divisions of integers whose divisor may be 0, and steps of loops, which must not be either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.definitions import stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    AtomicFetch,
    Binary,
    Body,
    Const,
    Expr,
    For,
    Read,
    Sym,
    Update,
    Workunit,
)
from pyfuser.ir.visit import as_written, assigned, expressions, statements
from pyfuser.support.caches import cached

Division: TypeAlias = Binary | Update | AtomicFetch


def may_fail(op: str, dtype: DType, divisor: Expr) -> bool:
    """Whether an operation on numbers of `dtype` divides integers by what may be 0."""
    if op not in ("/", "%") or not (dtype.is_integer and divisor.dtype.is_integer):
        return False
    divisor = as_written(divisor)
    return not (isinstance(divisor, Const) and divisor.value != 0)


def divisor_of(division: Division) -> Expr:
    """What a division divides by, as it was before C++ widened it."""
    return as_written(division.right if isinstance(division, Binary) else division.value)


def divisions(body: Body) -> Iterator[Division]:
    """Every such division of a body, in the order of the code."""
    for stmt in statements(body):
        for e in expressions(stmt):
            if isinstance(e, Binary):
                if may_fail(e.op, e.dtype, e.right):
                    yield e
            elif isinstance(e, AtomicFetch) and may_fail(e.op, e.dtype, e.value):
                yield e
        if isinstance(stmt, Update) and may_fail(stmt.op, stmt.target.dtype, stmt.value):
            yield stmt


@cached(MAX_WORKUNITS)
def scalar_divisors(workunit: Workunit) -> tuple[frozenset[int], bool]:
    """The places of the parameters that integers are divided by or that are steps of loops, and
    whether integers are divided by other things.

    Parameters of functions that are called with such numbers are locals here, and as good.
    """
    stable = stable_locals(workunit.body)
    places = {param.sym: place for place, param in enumerate(workunit.params) if not param.rank}
    unchanged = places.keys() - assigned(workunit.body)
    divisors = [_origin(divisor_of(each), stable) for each in divisions(workunit.body)]
    divisors = [e for e in divisors if not isinstance(e, Const) or e.value == 0]
    loops = [s for s in statements(workunit.body) if isinstance(s, For)]
    steps = [_origin(as_written(s.step), stable) for s in loops]
    found = {e.sym for e in (*divisors, *steps) if isinstance(e, Read) and e.sym in unchanged}
    others = any(not isinstance(e, Read) or e.sym not in found for e in divisors)
    return frozenset([places[sym] for sym in found]), others


# law
def _origin(e: Expr, stable: Mapping[Sym, Expr]) -> Expr:
    """What a local is that keeps its first value, which is another variable's or a constant."""
    while isinstance(e, Read) and e.sym in stable:
        first = as_written(stable[e.sym])
        if not isinstance(first, (Read, Const)) or first.dtype != e.dtype:
            break
        e = first
    return e
