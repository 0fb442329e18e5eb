"""What expressions of a workunit are worth: affine functions of the iteration, or a few of them.

A local or an expression has one affine function (M. Karr, "Affine relationships among variables of
a program", 1976), or is split into cases: `i + 1 if i < n - 1 else 0` has two functions, each on
its part of the iterations (quasi-affine selection trees of P. Feautrier, "Parametric integer
programming", 1988). So has `(i + 1) % n`, whose quotient is 0 or 1. Where data choose (`i - 1 if
up[i] else i + 1`), each case may hold in every iteration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyfuser.analysis import affine
from pyfuser.analysis.affine import EVERYTHING, Affine, Constraint, Interval, PointSet
from pyfuser.analysis.intervals import fits
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr, Sym, Workunit

Fact = tuple[int, ...] | int | None  # a view's shape, a scalar's value, nothing

MAX_CASES = 9
"""Cases that are told apart: the 3 of a neighbour around the end, along two axes."""


class Case(NamedTuple):
    """A function that an expression has at some points; at no others, if that is `exact`."""

    points: PointSet
    exact: bool
    value: Affine


class Evaluator:
    """The values of locals at one point of a workunit, for one iteration space and set of facts."""

    # law
    def __init__(
        self,
        workunit: Workunit,
        begin: tuple[int, ...],
        end: tuple[int, ...],
        facts: tuple[Fact, ...],
    ) -> None:
        self.begin, self.end = begin, end
        self.workunit = workunit
        self.body = workunit.body
        self.shapes: dict[Sym, tuple[int, ...]] = {}
        self.values: dict[Sym, Affine] = {}
        self.split: dict[Sym, tuple[Case, ...]] = {}  # of locals that are split into cases
        self.ranges: list[Interval] = [(b, e - 1) for b, e in zip(begin, end, strict=True)]
        self.definitions: dict[int, tuple[Constraint, ...]] = {}  # of inner variables
        self.quotients: dict[int, tuple[Affine, int]] = {}  # dividends and divisors
        self.unboxed: set[int] = set()  # inner variables that are not free in their range
        for param, fact in zip(workunit.params, facts, strict=True):
            if isinstance(fact, tuple):
                self.shapes[param.sym] = fact
            elif fact is not None and param.sym.dtype.is_integer:
                self.values[param.sym] = affine.constant(fact)
        for number, sym in enumerate(workunit.indices):
            if fits(self.ranges[number], sym.dtype):
                self.values[sym] = affine.variable(number)

    # ------------------------------------------------------------------ variables

    def _new(self, interval: Interval, *constraints: Constraint) -> int:
        number = len(self.ranges)
        self.ranges.append(interval)
        self.definitions[number] = constraints
        return number

    def _quotient(self, dividend: Affine, divisor: int) -> Affine:
        """floor(dividend / divisor) as a new variable q: 0 <= dividend - divisor q < divisor."""
        number = len(self.ranges)
        self.quotients[number] = dividend, divisor
        self._new(self._span_of_quotient(number))
        rest = dividend.plus(affine.variable(number), -divisor)
        self.definitions[number] = (
            Constraint(rest),
            Constraint(rest.times(-1).shifted(divisor - 1)),
        )
        self.unboxed.add(number)
        return affine.variable(number)

    def _span_of_quotient(self, number: int) -> Interval:
        """A quotient's bounds, from those of its dividend.

        There must be a quotient at all points, also where its expression is not evaluated: a domain
        of several parts has the definitions of all their variables in each.
        """
        dividend, divisor = self.quotients[number]
        low, high = dividend.span(self.ranges)
        return low // divisor, high // divisor

    # ------------------------------------------------------------------ expressions

    def _fits(self, value: Affine, sym: Sym, points: PointSet = EVERYTHING) -> bool:
        span = value.span(affine.narrowed(self.ranges, points))
        return sym.dtype.is_integer and fits(span, sym.dtype)

    def affine(self, expr: Expr) -> Affine | None:  # law: not None
        """The expression as an affine function, if its value certainly is the mathematical one."""
        rule = _EXPRESSIONS.get(type(expr))
        if rule is None or not expr.dtype.is_integer:
            return None
        value = rule(self, expr)
        if value is None or not fits(value.span(self.ranges), expr.dtype):
            return None
        return value

    def _extent(self, expr: nodes.Extent) -> Affine | None:
        shape = self.shapes.get(expr.view)
        return None if shape is None else affine.constant(shape[expr.axis])

    def _cast(self, expr: nodes.Cast) -> Affine | None:
        if expr.dtype is DType.BOOL and expr.operand.dtype is not DType.BOOL:
            return None
        return self.affine(expr.operand)

    def _unary(self, expr: nodes.Unary) -> Affine | None:
        value = self.affine(expr.operand)
        if value is None or expr.op == "+":
            return value
        if expr.op == "-":
            return value.times(-1)
        return value.times(-1).shifted(-1) if expr.op == "~" else None

    def _binary(self, expr: nodes.Binary) -> Affine | None:
        left, right = self.affine(expr.left), self.affine(expr.right)
        if left is None or right is None:
            return None
        if expr.op in "+-":
            return left.plus(right, 1 if expr.op == "+" else -1)
        if expr.op == "*" and not left.terms:
            left, right = right, left
        if right.terms:
            return None
        return self._by_constant(expr.op, left, right.constant)

    def _by_constant(self, op: str, left: Affine, right: int) -> Affine | None:  # law: not None
        if op == "*":
            return left.times(right)
        if op in ("<<", ">>") and not 0 <= right < 63:
            return None
        if op == "<<":
            return left.times(1 << right) if left.span(self.ranges)[0] >= 0 else None
        if op == ">>":
            return self._quotient(left, 1 << right)  # arithmetic: rounds down
        if op == "&":
            if right < 0 or right & (right + 1):
                return None
            return left.plus(self._quotient(left, right + 1), -right - 1)
        # C rounds towards zero; for an operand that is not negative that is down.
        if op not in ("/", "%") or right <= 0:
            return None
        low, high = left.span(self.ranges)
        if low < 0:
            return left if op == "%" and -right < low and high < right else None
        if low // right == high // right:
            quotient = affine.constant(low // right)
        else:
            quotient = self._quotient(left, right)
        return quotient if op == "/" else left.plus(quotient, -right)

    # ------------------------------------------------------------------ cases

    # law: not None
    def cases(self, expr: Expr) -> tuple[Case, ...] | None:
        """The functions of an expression; their points together are all iterations that come here.

        None: it has none, or too many.
        """
        rule = _CASES.get(type(expr))
        found = rule(self, expr) if rule is not None and expr.dtype.is_integer else None
        if found is None:
            value = self.affine(expr)
            return None if value is None else (Case(EVERYTHING, True, value),)
        if len(found) > MAX_CASES or not all(
            fits(value.span(affine.narrowed(self.ranges, points)), expr.dtype)
            for points, _, value in found
        ):
            return None
        return found

    # law: not None
    def _select_cases(self, expr: nodes.Select) -> tuple[Case, ...] | None:
        then = self._under_condition(expr.condition, True, expr.then)
        orelse = self._under_condition(expr.condition, False, expr.orelse)
        return None if then is None or orelse is None else then + orelse

    # law: not None
    def _under_condition(
        self, condition: Expr, positive: bool, expr: Expr
    ) -> tuple[Case, ...] | None:
        points, exact = self.condition(condition, positive)
        found: tuple[Case, ...] | None = ()
        with self.narrowed(points) as reached:
            if reached:
                found = self.cases(expr)
        return None if found is None else self.restricted(found, points, exact)

    # law: not None
    def restricted(
        self, cases: tuple[Case, ...], points: PointSet, exact: bool
    ) -> tuple[Case, ...] | None:
        """The cases at some points only; None if that has too many parts."""
        found = []
        for case in cases:
            both = affine.both(points, case.points)
            if both is None:
                return None
            if both and all(low <= high for low, high in affine.narrowed(self.ranges, both)):
                found.append(Case(both, exact and case.exact, case.value))
        return tuple(found)

    # law: not None
    def _binary_cases(self, expr: nodes.Binary) -> tuple[Case, ...] | None:
        lefts, rights = self.cases(expr.left), self.cases(expr.right)
        if lefts is None or rights is None:
            return None
        found: list[Case] = []
        for left in lefts:
            here = self.restricted(rights, left.points, left.exact)
            if here is None:
                return None
            for right in here:
                with self.narrowed(right.points):
                    values = self._operated(expr.op, left.value, right.value)
                cases = None if values is None else self.restricted(values, *right[:2])
                if cases is None:
                    return None
                found += cases
        return tuple(found)

    # law: not None
    def _operated(self, op: str, left: Affine, right: Affine) -> tuple[Case, ...] | None:
        """The cases of an operation on two functions."""
        if op in "+-":
            return (Case(EVERYTHING, True, left.plus(right, 1 if op == "+" else -1)),)
        if op == "*" and not left.terms:
            left, right = right, left
        if right.terms:
            return None
        if op == "%" and right.constant > 0:
            divisor = right.constant
            low, high = left.span(self.ranges)
            first = low // divisor
            if low >= 0 and high // divisor == first + 1:  # a neighbour around the end
                end = left.shifted(-divisor * (first + 1))
                return (
                    Case(affine.COMPARED_TO_ZERO["<"](end), True, left.shifted(-divisor * first)),
                    Case(affine.at_least_zero(end), True, end),
                )
        value = self._by_constant(op, left, right.constant)
        return None if value is None else (Case(EVERYTHING, True, value),)

    # law
    def _unary_cases(self, expr: nodes.Unary) -> tuple[Case, ...] | None:
        found = self.cases(expr.operand) if expr.op == "-" else None
        return found and tuple(case._replace(value=case.value.times(-1)) for case in found)

    @contextlib.contextmanager
    def narrowed(self, points: PointSet) -> Iterator[bool]:
        """With the bounds of variables at some points; whether there may be any."""
        saved = self.ranges
        self.ranges = affine.narrowed(saved, points)
        try:
            yield bool(points) and all(low <= high for low, high in self.ranges)
        finally:  # variables made meanwhile keep their numbers
            made = self.ranges[len(saved) :]
            self.ranges = saved
            for number, interval in enumerate(made, len(saved)):
                known = number in self.quotients
                saved.append(self._span_of_quotient(number) if known else interval)

    # ------------------------------------------------------------------ conditions

    def condition(self, expr: Expr, positive: bool) -> tuple[PointSet, bool]:  # law
        """Where a condition (or its negation) may hold, and whether that is where it does."""
        if isinstance(expr, nodes.Unary) and expr.op == "!":
            return self.condition(expr.operand, not positive)
        if isinstance(expr, nodes.Logical):
            left, left_exact = self.condition(expr.left, positive)
            right, right_exact = self.condition(expr.right, positive)
            exact = left_exact and right_exact
            if (expr.op == "&&") != positive:
                return affine.either(left, right), exact
            points = affine.both(left, right)
            return (left, False) if points is None else (points, exact)
        if isinstance(expr, nodes.Compare):
            op = expr.op if positive else _NEGATED[expr.op]
            left_value, right_value = self.affine(expr.left), self.affine(expr.right)
            if left_value is None or right_value is None:
                return self._compared(op, expr) or (EVERYTHING, False)
            return affine.COMPARED_TO_ZERO[op](left_value.plus(right_value, -1)), True
        if isinstance(expr, nodes.Cast) and expr.dtype is DType.BOOL:
            if expr.operand.dtype is DType.BOOL:
                return self.condition(expr.operand, positive)
            value = self.affine(expr.operand)
        else:
            value = self.affine(expr)
        if value is None:
            return EVERYTHING, False
        return (affine.not_zero if positive else affine.equal_zero)(value), True

    # law: not None
    def _compared(self, op: str, expr: nodes.Compare) -> tuple[PointSet, bool] | None:
        """Where one of the functions of an operand compares so with one of the other's."""
        lefts, rights = self.cases(expr.left), self.cases(expr.right)
        if lefts is None or rights is None:
            return None
        found, exact = PointSet(), True
        for left in lefts:
            here = self.restricted(rights, left.points, left.exact)
            if here is None:
                return None
            for right in here:
                points = affine.COMPARED_TO_ZERO[op](left.value.plus(right.value, -1))
                both = affine.both(right.points, points)
                if both is None:
                    return None
                found, exact = affine.either(found, both), exact and right.exact
        return found, exact


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_EXPRESSIONS: dict[type, Callable[..., Affine | None]] = {
    nodes.Const: lambda self, expr: affine.constant(int(expr.value)),
    nodes.Read: lambda self, expr: self.values.get(expr.sym),
    nodes.Extent: Evaluator._extent,
    nodes.Cast: Evaluator._cast,
    nodes.Unary: Evaluator._unary,
    nodes.Binary: Evaluator._binary,
}
_CASES: dict[type, Callable[..., tuple[Case, ...] | None]] = {
    nodes.Read: lambda self, expr: self.split.get(expr.sym),
    nodes.Cast: lambda self, expr: None if expr.dtype is DType.BOOL else self.cases(expr.operand),
    nodes.Unary: Evaluator._unary_cases,
    nodes.Binary: Evaluator._binary_cases,
    nodes.Select: Evaluator._select_cases,
}
