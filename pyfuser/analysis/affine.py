"""Affine functions of integer variables, and the sets that affine constraints describe.

Variables are numbered: 0 to rank - 1 are the iteration indices of a call, the numbers above are
inner variables (loop variables, quotients). A set is a union of conjunctions (disjunctive normal
form); a point is in it if some choice of the inner variables satisfies one conjunction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Interval = tuple[int, int]  # least and greatest value, both included


class Affine(NamedTuple):
    """sum(coefficient * variable) + constant; terms ascend and no coefficient is zero."""

    terms: tuple[tuple[int, int], ...]  # (variable, coefficient)
    constant: int

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """The sum `self + factor * other`."""
        if not other.terms or not factor:
            return Affine(self.terms, self.constant + factor * other.constant)
        total = dict(self.terms)
        for variable, coefficient in other.terms:
            total[variable] = total.get(variable, 0) + factor * coefficient
        terms = tuple(sorted((v, c) for v, c in total.items() if c))
        return Affine(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Affine:
        if not factor:
            return ZERO
        return Affine(tuple((v, c * factor) for v, c in self.terms), self.constant * factor)

    def shifted(self, offset: int) -> Affine:
        return Affine(self.terms, self.constant + offset)

    def span(self, ranges: Sequence[Interval]) -> Interval:
        """The least and greatest value while each variable stays in its range."""
        low = high = self.constant
        for variable, coefficient in self.terms:
            least, greatest = ranges[variable]
            if coefficient > 0:
                low += coefficient * least
                high += coefficient * greatest
            else:
                low += coefficient * greatest
                high += coefficient * least
        return low, high

    def text(self, names: Sequence[str]) -> str:
        """In isl's notation."""
        parts = [f"{coefficient}{names[variable]}" for variable, coefficient in self.terms]
        return " + ".join([*parts, str(self.constant)])


def constant(value: int) -> Affine:
    return Affine((), value)


def variable(number: int) -> Affine:
    return Affine(((number, 1),), 0)


ZERO = constant(0)


class Constraint(NamedTuple):
    """`expr == 0` where `equality`, else `expr >= 0`."""

    expr: Affine
    equality: bool = False

    def text(self, names: Sequence[str]) -> str:
        return f"{self.expr.text(names)} {'=' if self.equality else '>='} 0"


Conjunction = tuple[Constraint, ...]
PointSet = tuple[Conjunction, ...]

EVERYTHING: PointSet = ((),)
NOTHING: PointSet = ()
MAX_DISJUNCTS = 16


def at_least_zero(expr: Affine) -> PointSet:
    if not expr.terms:
        return EVERYTHING if expr.constant >= 0 else NOTHING
    return ((Constraint(expr),),)


def equal_zero(expr: Affine) -> PointSet:
    if not expr.terms:
        return NOTHING if expr.constant else EVERYTHING
    return ((Constraint(expr, True),),)


def not_zero(expr: Affine) -> PointSet:
    return either(at_least_zero(expr.shifted(-1)), at_least_zero(expr.times(-1).shifted(-1)))


#: Where an affine function is equal to 0, less than 0, and so on.
COMPARED_TO_ZERO: dict[str, Callable[[Affine], PointSet]] = {
    "==": equal_zero,
    "!=": not_zero,
    ">=": at_least_zero,
    ">": lambda d: at_least_zero(d.shifted(-1)),
    "<=": lambda d: at_least_zero(d.times(-1)),
    "<": lambda d: at_least_zero(d.times(-1).shifted(-1)),
}


def either(first: PointSet, second: PointSet) -> PointSet:
    if () in first or () in second:
        return EVERYTHING
    return first + tuple(c for c in second if c not in first)


def both(first: PointSet, second: PointSet) -> PointSet | None:
    """The intersection, or None if it has too many parts to be worth its while."""
    if first == EVERYTHING:
        return second
    if second == EVERYTHING:
        return first
    if len(first) * len(second) > MAX_DISJUNCTS:
        return None
    return tuple(
        a + tuple(constraint for constraint in b if constraint not in a)
        for a in first
        for b in second
        if not any(_contradict(one, other) for one in a for other in b)
    )


# law: True
def _contradict(one: Constraint, other: Constraint) -> bool:
    """Whether no point meets two constraints on the same sum, which has other signs in one."""
    if one.expr.constant + other.expr.constant >= 0:
        return False
    return one.expr.terms == other.expr.times(-1).terms


def narrowed(ranges: Sequence[Interval], region: PointSet) -> list[Interval]:
    """The ranges, tightened by what holds at all points of a region.

    A constraint on several variables bounds each by the ranges of the others.
    """
    parts = [_narrowed(ranges, part) for part in region if part]
    if len(parts) < len(region) or not parts:
        return list(ranges)
    parts = [part for part in parts if all(low <= high for low, high in part)] or parts[:1]
    return [
        (min(low for low, _ in ends), max(high for _, high in ends))
        for ends in zip(*parts, strict=True)
    ]


def _narrowed(ranges: Sequence[Interval], part: Conjunction) -> list[Interval]:
    result = list(ranges)
    for expr, equality in part:
        for number, coefficient in expr.terms:
            others = tuple(term for term in expr.terms if term[0] != number)
            least, most = Affine(others, expr.constant).span(result)
            low, high = result[number]
            # coefficient * variable >= -most, and <= -least if the sum is 0
            if coefficient > 0:
                low = max(low, -(most // coefficient))
                if equality:
                    high = min(high, -least // coefficient)
            else:
                high = min(high, most // -coefficient)
                if equality:
                    low = max(low, -(-least // -coefficient))
            result[number] = (low, high)
    return result
