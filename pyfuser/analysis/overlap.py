"""The law of fusion for two accesses: which pairs of iterations touch the same byte?

Cheap tests come first; each is exact where it answers. They are those of R. Allen and K. Kennedy,
"Optimizing Compilers for Modern Architectures" (2001), ch. 3: bounds, GCD, and the strong
single-index test on separable subscripts. What they leave open is a question of integer set
emptiness, for isl.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import gcd
from typing import NamedTuple

from pyfuser.analysis import polyhedra
from pyfuser.analysis.affine import Affine, Interval
from pyfuser.analysis.layout import address, shift
from pyfuser.analysis.relation import Relation
from pyfuser.ir.dtypes import DType
from pyfuser.support.caches import cached
from pyfuser.trace.shape import RegionShape


class Verdict(Enum):
    """Which iterations p of the first call and q of the second may touch one byte."""

    NONE = "none"
    SAME = "same"  # only p = q
    CROSS = "cross"  # some p and q that differ, or the calls have different spaces
    UNKNOWN = "unknown"  # not understood: any

    __hash__ = object.__hash__


def overlap(
    first: Relation, first_region: RegionShape, second: Relation, second_region: RegionShape
) -> Verdict:
    """Compare two accesses to one cluster, assuming that subscripts stay inside the regions."""
    offset = second_region.offset - first_region.offset
    return _overlap(first, first_region[2:], second, second_region[2:], offset)


_Layout = tuple[tuple[int, ...], tuple[int, ...], DType]  # of a region: all but where it lies


@cached(16384)
# law: Verdict.NONE
def _overlap(
    first: Relation, layout: _Layout, second: Relation, other_layout: _Layout, offset: int
) -> Verdict:
    first_region = RegionShape(0, 0, *layout)
    second_region = RegionShape(0, offset, *other_layout)
    shifts = shift(first_region, second_region)
    if shifts is not None:
        axes = [
            _Axis(
                a,
                None if b is None else b.shifted(s),
                _bounds(a, first, extent),
                _moved(_bounds(b, second, other), s),
            )
            for a, b, extent, other, s in zip(
                first.indices,
                second.indices,
                first_region.shape,
                second_region.shape,
                shifts,
                strict=True,
            )
        ]
        quick = _by_syntax(first, second, axes)
        if quick is not None:
            return quick
    if None in first.indices or None in second.indices:
        return Verdict.UNKNOWN
    return _by_sets(first, first_region, second, second_region, shifts)


@cached(16384)
# law: True
def never_meet(
    first: Relation,
    first_region: RegionShape,
    second: Relation,
    second_region: RegionShape,
    where: str,
) -> bool:
    """Whether no iterations p and q of two accesses for which `where` holds touch one byte.

    where: in isl's notation, of the indices p0, p1, ... of the first and q0, q1, ... of the second.
    """
    variables, constraints = _describe(first, first_region, "p", "a")
    other_variables, other_constraints = _describe(second, second_region, "q", "b")
    shifts = shift(first_region, second_region)
    constraints += other_constraints
    constraints += _same_cell(first, first_region, second, second_region, shifts)
    return polyhedra.is_empty([*variables, *other_variables], [*constraints, where]) is True


# --------------------------------------------------------------------------- syntax


class _Axis(NamedTuple):
    """The subscripts of two accesses along one dimension of their common grid."""

    first: Affine | None
    second: Affine | None
    first_bounds: Interval
    second_bounds: Interval


def _bounds(index: Affine | None, relation: Relation, extent: int) -> Interval:
    if index is None:
        return 0, extent - 1
    low, high = index.span(relation.ranges)
    return max(low, 0), min(high, extent - 1)


def _moved(bounds: Interval, offset: int) -> Interval:
    return bounds[0] + offset, bounds[1] + offset


# law: True
def _never_meets(axis: _Axis) -> bool:
    """Bounds test and GCD test: the two subscripts are never equal."""
    if max(axis.first_bounds[0], axis.second_bounds[0]) > min(
        axis.first_bounds[1], axis.second_bounds[1]
    ):
        return True
    if axis.first is None or axis.second is None:
        return False
    distance = axis.second.constant - axis.first.constant
    divisor = gcd(*(c for _, c in axis.first.terms), *(c for _, c in axis.second.terms))
    return distance % divisor != 0 if divisor else distance != 0


# law: not None
def _by_syntax(first: Relation, second: Relation, axes: list[_Axis]) -> Verdict | None:
    """The verdict, if it can be read off the subscripts."""
    if any(map(_never_meets, axes)):
        return Verdict.NONE
    same_space = first.begin == second.begin and first.end == second.end
    rank = len(first.begin)
    wide = {d for d in range(rank) if first.end[d] - first.begin[d] > 1}
    distances: dict[int, int] = {}
    if same_space:
        pinned = _pinned(axes, first, second, rank)
        if pinned is None:
            return Verdict.NONE
        distances = pinned
        if any(abs(distances[d]) >= first.end[d] - first.begin[d] for d in distances):
            return Verdict.NONE
        if wide <= distances.keys() and not any(distances.values()):
            return Verdict.SAME
    # Now show that they do meet, at iterations that differ.
    if not (first.box and second.box and _surely_meet(first, second, axes)):
        return None
    if not same_space or any(distances.values()):
        return Verdict.CROSS
    free = set(range(rank)) - _mentioned(axes, rank)
    can_differ = any(_not_one_value(first.ranges[d], second.ranges[d]) for d in free)
    return Verdict.CROSS if can_differ else None


# law: not None
def _pinned(
    axes: list[_Axis], first: Relation, second: Relation, rank: int
) -> dict[int, int] | None:
    """For iteration indices that some pair of subscripts fixes, p - q; None: contradictory.

    In c p + f = c q + g, p - q is (g - f) / c; rows of length c are those of one iteration. What f
    and g are made of does not matter, but for their bounds.
    """
    distances: dict[int, int] = {}
    for axis in axes:
        if axis.first is None or axis.second is None:
            continue
        for number, coefficient in axis.first.terms:
            if number >= rank:
                continue  # an inner variable: each call has its own
            term = Affine(((number, coefficient),), 0)
            low, high = axis.first.plus(term, -1).span(first.ranges)
            other_low, other_high = axis.second.plus(term, -1).span(second.ranges)
            least, greatest = other_low - high, other_high - low
            if least == greatest:
                if least % coefficient:
                    return None
                distance = least // coefficient
            elif -abs(coefficient) < least and greatest < abs(coefficient):
                if not least <= 0 <= greatest:
                    return None
                distance = 0
            else:
                continue
            if distances.setdefault(number, distance) != distance:
                return None
    return distances


def _mentioned(axes: list[_Axis], rank: int) -> set[int]:
    """The iteration indices that stand in some subscript."""
    return {
        number
        for axis in axes
        for index in (axis.first, axis.second)
        if index is not None
        for number, _ in index.terms
        if number < rank
    }


def _not_one_value(first: Interval, second: Interval) -> bool:
    """Whether values of two ranges can be chosen that differ."""
    return first != second or first[0] != first[1]


def _surely_meet(first: Relation, second: Relation, axes: list[_Axis]) -> bool:
    """Whether separable subscripts certainly are equal for some iterations."""
    used: list[set[int]] = [set(), set()]
    for axis in axes:
        for index, seen in zip((axis.first, axis.second), used, strict=True):
            if index is None or len(index.terms) > 1:
                return False
            for number, _ in index.terms:
                if number in seen:
                    return False  # two subscripts depend on each other
                seen.add(number)
    return all(_meets(axis, first, second) for axis in axes)


def _meets(axis: _Axis, first: Relation, second: Relation) -> bool:
    """Whether c x + k = c' y + k' has a solution in the ranges of x and y, for |c| = |c'|."""
    assert axis.first is not None and axis.second is not None
    sizes = {abs(c) for index in (axis.first, axis.second) for _, c in index.terms}
    if len(sizes) > 1:
        return False
    low, high = axis.first.span(first.ranges)
    other_low, other_high = axis.second.span(second.ranges)
    return max(low, other_low) <= min(high, other_high)  # the GCD test holds already


# --------------------------------------------------------------------------- sets


# law: Verdict.NONE
def _by_sets(
    first: Relation,
    first_region: RegionShape,
    second: Relation,
    second_region: RegionShape,
    shifts: tuple[int, ...] | None,
) -> Verdict:
    variables, constraints = _describe(first, first_region, "p", "a")
    other_variables, other_constraints = _describe(second, second_region, "q", "b")
    variables += other_variables
    constraints += other_constraints
    constraints += _same_cell(first, first_region, second, second_region, shifts)
    rank = len(first.begin)
    if first.begin != second.begin or first.end != second.end:
        empty = polyhedra.is_empty(variables, constraints)
        return _VERDICTS[empty]
    differ = " or ".join(f"p{d} != q{d}" for d in range(rank))
    empty = polyhedra.is_empty(variables, [*constraints, f"({differ})"])
    if empty is False and (first.vague or second.vague):
        return Verdict.UNKNOWN  # they may touch the same byte: nobody knows whether they do
    if empty is not True:
        return _VERDICTS[empty]
    equal = [f"p{d} = q{d}" for d in range(rank)]
    empty = polyhedra.is_empty(variables, [*constraints, *equal])
    return Verdict.NONE if empty else Verdict.SAME


_VERDICTS = {None: Verdict.UNKNOWN, True: Verdict.NONE, False: Verdict.CROSS}


def _names(relation: Relation, index: str, inner: str) -> list[str]:
    rank = len(relation.begin)
    return [f"{index if n < rank else inner}{n}" for n in range(len(relation.ranges))]


def _describe(
    relation: Relation, region: RegionShape, index: str, inner: str
) -> tuple[list[str], list[str]]:
    """The variables of an access that is inside its region, and the constraints on them."""
    names = _names(relation, index, inner)
    variables, constraints = variables_of(relation, names)
    for subscript, extent in zip(relation.indices, region.shape, strict=True):
        if subscript is not None:
            constraints.append(f"0 <= {subscript.text(names)} < {extent}")
    return variables, constraints


def variables_of(relation: Relation, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The variables of an access by their names, and the constraints on them, in isl's notation."""
    used = {n for i in relation.indices if i is not None for n, _ in i.terms}
    used |= {n for part in relation.domain for c in part for n, _ in c.expr.terms}
    used |= set(range(len(relation.begin)))
    numbers = sorted(used)
    constraints = [
        f"{relation.ranges[n][0]} <= {names[n]} <= {relation.ranges[n][1]}" for n in numbers
    ]
    if () not in relation.domain:
        parts = [" and ".join(c.text(names) for c in part) for part in relation.domain]
        constraints.append(f"({' or '.join(f'({part})' for part in parts)})")
    return [names[n] for n in numbers], constraints


# law
def _same_cell(
    first: Relation,
    first_region: RegionShape,
    second: Relation,
    second_region: RegionShape,
    shifts: tuple[int, ...] | None,
) -> list[str]:
    """Constraints that say that both accesses touch one byte."""
    names, other_names = _names(first, "p", "a"), _names(second, "q", "b")
    if shifts is not None:
        return [
            f"{a.text(names)} = {b.shifted(s).text(other_names)}"
            for a, b, s in zip(first.indices, second.indices, shifts, strict=True)
            if a is not None and b is not None
        ]
    start, other = address(first_region, first.indices), address(second_region, second.indices)
    if start is None or other is None:
        return []
    size, other_size = first_region.dtype.size, second_region.dtype.size
    unit = gcd(*first_region.strides, *second_region.strides, second_region.offset, size)
    if unit % size == 0 and size == other_size:
        return [f"{start.text(names)} = {other.text(other_names)}"]
    return [
        f"{start.text(names)} < {other.text(other_names)} + {other_size}",
        f"{other.text(other_names)} < {start.text(names)} + {size}",
    ]
