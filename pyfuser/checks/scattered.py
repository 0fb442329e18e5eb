"""How far elements that are summed by atomic updates may differ: their additions have no order.

Any order of adding n terms gives a result within gamma(n - 1) * sum |t| of the exact sum, where
gamma(n) = n u / (1 - n u) and u is the unit roundoff; a term that takes k roundings to compute from
exact data by +, - and * adds k to n if |t| is computed with absolute values throughout
(N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002, ch. 3.1 and 4.2). Two
computed sums differ by no more than twice that.

The terms of an element are its value before and what is added to it. The theorem holds where every
access of the trace to that memory is such an update, of a term made of exact data by +, - and *.
The terms' magnitudes and number are found by running the trace on copies, with the terms replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.structural import structural_scalars
from pyfuser.checks.image import Image
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr, Update, Workunit
from pyfuser.ir.visit import all_expressions, map_body, statements
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Array, Region
from pyfuser.trace.shape import RegionShape, shape_of

Bounds = dict[tuple[int, int], Array]
"""By call and argument: how far each element may be from that of another order."""


def scatter_bounds(calls: Sequence[Call], run: Callable[[Call], None]) -> Bounds:
    """The bounds of arguments that are summed so; their memory must be as it is before."""
    found = _scattered(calls)
    if not found:
        return {}
    roundings = sum(max(map(_roundings, _updates(call.workunit)), default=0) for call in calls)
    sizes = _sums(calls, found, run, lambda e: magnitude(e) or e, np.abs)
    counts = _sums(calls, found, run, lambda e: nodes.Const(1.0, e.dtype), np.ones_like)
    bounds = {}
    for place, total in sizes.items():
        unit = np.finfo(total.dtype).eps / 2
        n = (counts[place].astype(np.float64) + roundings) * unit
        wide = 2 * n / (1 - n) * total.astype(np.float64) * (1 + 1e-6)
        bounds[place] = np.where(n < 0.5, wide, np.inf)
    return bounds


def _updates(workunit: Workunit) -> list[Update]:
    """The atomic additions of floating-point numbers to elements."""
    return [
        s
        for s in statements(workunit.body)
        if isinstance(s, Update) and s.atomic and s.op in ("+", "-") and s.target.dtype.is_float
    ]


def _roundings(update: Update) -> int:
    kinds = (nodes.Binary, nodes.Cast)
    return sum(isinstance(e, kinds) for e in all_expressions((update,)))


def _scattered(calls: Sequence[Call]) -> list[tuple[int, int]]:
    """The arguments (call, place) for which the theorem holds."""
    shapes = shape_of(calls, structural_scalars).calls
    bad: set[int] = set()
    places: list[tuple[int, int, int]] = []
    for n, (call, shape) in enumerate(zip(calls, shapes, strict=True)):
        syms = [param.sym for param in call.workunit.params]
        sums = {syms.index(u.target) for u in _updates(call.workunit) if _simple(call, u)}
        for access in accesses(shape):
            argument = shape.arguments[access.param]
            if not isinstance(argument, RegionShape):
                continue
            if access.param in sums and access.mode is Mode.REDUCE and access.op in ("+", "-"):
                places.append((n, access.param, argument.cluster))
            else:
                bad.add(argument.cluster)
    return sorted({(n, k) for n, k, cluster in places if cluster not in bad})


def _simple(call: Call, update: Update) -> bool:
    same = [u for u in _updates(call.workunit) if u.target == update.target]
    return all(magnitude(u.value) is not None for u in same)


def _sums(
    calls: Sequence[Call],
    places: Sequence[tuple[int, int]],
    run: Callable[[Call], None],
    term: Callable[[Expr], Expr],
    start: Callable[[Array], Array],
) -> Bounds:
    """The elements after the trace, with other terms, and other values to begin with."""
    image = Image(calls)
    copies = [image.copy(call) for call in calls]
    arrays = {}
    for n, k in places:
        region = copies[n].arguments[k]
        assert isinstance(region, Region)
        arrays[n, k] = region.array()
    for array in arrays.values():
        array[...] = start(array)
    for n, copied in enumerate(copies):
        changed = {calls[n].workunit.params[k].sym for m, k in places if m == n}

        def statement(s: nodes.Stmt, changed: set[nodes.Sym] = changed) -> nodes.Stmt:
            if isinstance(s, Update) and s.target in changed:
                return replace(s, op="+", value=term(s.value))
            return s

        work = copied.workunit
        copied.workunit = replace(work, body=map_body(work.body, None, statement))
        run(copied)
    return arrays


def magnitude(e: Expr) -> Expr | None:
    """An upper bound of |e| that its roundings are relative to."""
    if isinstance(e, (nodes.Load, nodes.Const, nodes.Read)) or e.dtype.is_integer:
        return _absolute(e)
    if isinstance(e, nodes.Cast) and (e.operand.dtype.is_float or e.operand.dtype.is_integer):
        operand = magnitude(e.operand)
        return None if operand is None else replace(e, operand=operand)
    if isinstance(e, nodes.Unary) and e.op in ("+", "-"):
        return magnitude(e.operand)
    if isinstance(e, nodes.Binary) and e.op in ("+", "-", "*"):
        sides = [magnitude(side) for side in (e.left, e.right)]
        if sides[0] is None or sides[1] is None:
            return None
        return nodes.Binary("*" if e.op == "*" else "+", sides[0], sides[1])
    return None


def _absolute(e: Expr) -> Expr:
    if e.dtype is DType.BOOL or e.dtype.is_complex:
        return e
    zero = nodes.Const(0.0 if e.dtype.is_float else 0, e.dtype)
    return nodes.Select(nodes.Compare("<", e, zero), nodes.Unary("-", e, e.dtype), e)
