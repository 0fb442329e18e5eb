"""Remainders of what wraps at most once become a compare and a select.

    left = (j + n - 1) % n       ->      left = j - 1 >= 0 ? j - 1 : j - 1 + n
    right = (j + 1) % n          ->      right = j + 1 < n ? j + 1 : j + 1 - n
    near = (j + k + n) % n       ->      both

A remainder takes a division, and its subscripts are no neighbours for a compiler: each is fetched
by itself. The selections are what `nest.passes.split_conditions` splits loops at, so that all but
the edge runs with `j - 1` and `j + 1`.

The law. For 0 <= x < 2 m, `x % m` is x or x - m; for 0 <= x < 3 m it is that or x - 2 m; for
-m < x < m it is x, as the language rounds quotients to zero. Interval arithmetic shows it for the
bounds and scalars of one trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.intervals import Interval, interval
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    Read,
    Select,
    Workunit,
)
from pyfuser.ir.visit import (
    all_expressions,
    expressions,
    map_body,
    map_expression,
)
from pyfuser.support.caches import cached
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel

_WHOLE = (DType.INT32, DType.INT64)


def reduce_remainders(kernel: Kernel) -> Kernel:
    """The kernel with selections for the remainders of integers that wrap at most once."""
    workunit = kernel.workunit
    if not has_remainders(workunit):
        return kernel
    pairs = zip(workunit.params, kernel.shapes, strict=True)
    sizes = {p.sym: shape.shape for p, shape in pairs if isinstance(shape, RegionShape)}

    def sized(e: Expr) -> Expr:
        return Const(sizes[e.view][e.axis], e.dtype) if isinstance(e, Extent) else e

    known = kernel.ranges()
    ranges = {**known, **bounded_locals(map_body(workunit.body, sized), known)}

    def bounds(e: Expr) -> Interval | None:
        return interval(map_expression(e, sized), ranges)

    body = map_body(workunit.body, lambda e: _reduced(e, bounds))
    return replace(kernel, workunit=replace(workunit, body=body))


@cached(1024)
def has_remainders(workunit: Workunit) -> bool:
    return any(
        isinstance(e, Binary) and e.op == "%" and e.dtype in _WHOLE
        for e in all_expressions(workunit.body)
    )


# law
def _reduced(e: Expr, bounds: Callable[[Expr], Interval | None]) -> Expr:
    """`x % m` without a division, of a cheap x; others as they are."""
    if not isinstance(e, Binary) or e.op != "%" or e.dtype not in _WHOLE:
        return e
    x, m = e.left, e.right
    if x.dtype is not e.dtype or m.dtype is not e.dtype or not (_is_cheap(x) and _is_cheap(m)):
        return e
    known, least = bounds(x), bounds(m)
    if known is None or least is None or least[0] <= 0:
        return e
    if -least[0] < known[0] and known[1] < least[0]:
        return x
    below = _without(x, m)
    if below is None or bounds(below) is None:
        if known[0] < 0 or known[1] >= 2 * least[0]:
            return e
        return Select(Compare("<", x, m), x, Binary("-", x, m))
    if known[0] < 0 or known[1] >= 3 * least[0]:
        return e
    inside: Expr = below
    if known[1] >= 2 * least[0]:
        inside = Select(Compare("<", below, m), below, Binary("-", below, m))
    return Select(Compare(">=", below, Const(0, e.dtype)), inside, Binary("+", below, m))


def _is_cheap(e: Expr) -> bool:
    """Whether it may be computed three times."""
    parts = list(expressions(e))
    return len(parts) <= 9 and all(
        isinstance(part, (Const, Read, Cast, Extent))
        or (isinstance(part, Binary) and part.op in ("+", "-"))
        for part in parts
    )


# law
def _without(x: Expr, m: Expr) -> Expr | None:
    """What x is without m, if m is added in it."""
    if not isinstance(x, Binary) or x.dtype is not m.dtype:
        return None
    if x.op == "+" and x.right == m:
        return x.left
    if x.op == "+" and x.left == m:
        return x.right
    if x.left.dtype is not x.dtype or x.right.dtype is not x.dtype:
        return None
    left = _without(x.left, m)
    if left is not None:
        return replace(x, left=left)
    right = _without(x.right, m) if x.op == "+" else None
    return None if right is None else replace(x, right=right)
