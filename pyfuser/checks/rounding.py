"""How far two sums of the same terms may differ if the compiler may reorder additions.

Any order of adding n terms gives a result within gamma(n - 1) * sum |t| of the exact sum, where
gamma(n) = n u / (1 - n u) and u is the unit roundoff; a term that takes k roundings to compute from
exact data by +, - and * adds k to n if |t| is computed with absolute values throughout
(N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002, ch. 3.1 and 4.2). Two
computed sums differ by no more than twice that. Both the magnitude of the terms and their number
are found by running the reduction with its terms replaced.

No such bound holds for anything else: x - y of two rounded numbers may be all error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pyfuser.checks.image import Image
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Body, Expr, Sym, Workunit
from pyfuser.ir.visit import all_expressions, map_body, statements
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region

_INNER_ROUNDING = 1 + 1e-9  # of computing the bound itself


class SumBounds:
    """Bounds for the results of calls, which are given in the order in which they run."""

    def __init__(self, run: Callable[[Call], None]) -> None:
        self._run = run
        self._written: list[tuple[int, int, int]] = []  # buffer, first byte, past the last

    def of(self, call: Call) -> float | None:
        """How far two computed results of a call may be apart; None: no bound is known.

        Its memory must be as it is before the call runs.
        """
        result = None
        if call.result is not None and call.result.dtype.is_float and not self._depends(call):
            terms = _terms(call.workunit)
            if terms is not None:
                result = self._bound(call, call.result.dtype, *terms)
        self._written += [_span(a) for a in call.arguments if isinstance(a, Region)]
        return result

    def _depends(self, call: Call) -> bool:
        """Whether a call uses what an earlier one may have computed, and computed differently."""
        for argument in call.arguments:
            if isinstance(argument, Future):
                return True
            if isinstance(argument, Region):
                buffer, low, high = _span(argument)
                if any(b == buffer and low < h and lo < high for b, lo, h in self._written):
                    return True
        return False

    def _bound(self, call: Call, dtype: DType, magnitudes: Workunit, roundings: int) -> float:
        total = self._value(call, magnitudes)
        count = self._value(call, _counting(magnitudes))
        unit = float(np.finfo(dtype.numpy).eps) / 2
        n = (count + roundings) * unit
        return 2 * n / (1 - n) * total * _INNER_ROUNDING if n < 1 else float("inf")

    def _value(self, call: Call, workunit: Workunit) -> float:
        """The sum that a workunit gives on a copy of a call's memory."""
        copied = Image([call]).copy(call)
        copied.workunit = workunit
        copied.result = Future(DType.FLOAT64, lambda _: None)
        self._run(copied)
        value: float = copied.result.result()
        return value


def _span(region: Region) -> tuple[int, int, int]:
    low, high = region.bounds()
    return id(region.buffer), low, high


def _terms(workunit: Workunit) -> tuple[Workunit, int] | None:
    """The workunit with each term replaced by its magnitude, and the most roundings of a term.

    None where a term is not made of memory, constants and indices by +, - and * alone, or where
    the workunit does anything but add terms, in loops or not.
    """
    (accumulator,) = workunit.accumulators
    roundings = 0
    for stmt in statements(workunit.body):
        if isinstance(stmt, nodes.For):
            continue
        if not isinstance(stmt, nodes.Update) or stmt.indices or stmt.op not in ("+", "-"):
            return None
        if magnitude(stmt.value) is None:
            return None
        inner = (e for e in all_expressions((stmt,)) if isinstance(e, (nodes.Binary, nodes.Cast)))
        roundings = max(roundings, sum(1 for _ in inner))
    return _replaced(workunit, accumulator, lambda e: magnitude(e) or e), roundings


def _counting(workunit: Workunit) -> Workunit:
    """The workunit with each term replaced by one."""
    one = nodes.Const(1.0, DType.FLOAT64)
    return _replaced(workunit, workunit.accumulators[0], lambda e: one)


def _replaced(
    workunit: Workunit, accumulator: Accumulator, change: Callable[[Expr], Expr]
) -> Workunit:
    """The workunit with other terms, which it adds up in double precision."""
    wide = Sym(accumulator.sym.name, accumulator.sym.uid, DType.FLOAT64)

    def statement(stmt: nodes.Stmt) -> nodes.Stmt:
        if not isinstance(stmt, nodes.Update):
            return stmt
        value = change(stmt.value)
        if value.dtype is not DType.FLOAT64:
            value = nodes.Cast(value, DType.FLOAT64)
        return nodes.Update("+", wide, (), value)

    body: Body = map_body(workunit.body, None, statement)
    return replace(workunit, body=body, accumulators=(replace(accumulator, sym=wide),))


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


def close(fused: float, unfused: float, bound: float | None) -> bool:
    """Whether a difference is explained by rounding; without a bound it has to be accepted."""
    if bound is None or fused == unfused or not np.isfinite(bound):
        return True
    return abs(fused - unfused) <= bound


__all__: Sequence[str] = ("SumBounds", "close", "magnitude")
