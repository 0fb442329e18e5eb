"""How far apart are the iterations of two calls that touch one cell, along the outermost axis?

Bounds on dependence distances from the subscripts alone (U. Banerjee, "Dependence Analysis for
Supercomputing", 1988): equal subscripts c p + f(x) = c q + g(y) give q - p = (f(x) - g(y)) / c,
whose extremes interval arithmetic finds. A bound may be too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyfuser.analysis.affine import Affine, Interval
from pyfuser.analysis.dependences import Touch, conflict_kind, touches
from pyfuser.analysis.layout import address, shift
from pyfuser.analysis.relation import Relation
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape


@cached(16384)
# law: None
def call_distance(first: CallShape, second: CallShape, ring: int = 0) -> Interval | None:
    """Bounds of q - p for the outermost indices p of `first` and q of `second`, over all pairs of
    iterations that touch one byte and must keep their order; None if there is no such pair.

    ring: if it is not 0, the axis is one of so many steps whose end meets its beginning, and the
    distance of two accesses is the way around that is shorter for all their pairs, if one is.
    """
    found: list[Interval] = []
    mine, others = _by_cluster(first), _by_cluster(second)
    for cluster in mine.keys() & others.keys():
        for low, high, region, a in mine[cluster]:
            for other_low, other_high, other, b in others[cluster]:
                if high < other_low or other_high < low:
                    continue
                if conflict_kind(a, region, b, other) is None:
                    continue
                bounds = distance(a.relation, region, b.relation, other)
                if bounds is not None:
                    found.append(_shorter_way(bounds, ring))
    if not found:
        return None
    return min(low for low, _ in found), max(high for _, high in found)


# law
def _shorter_way(bounds: Interval, ring: int) -> Interval:
    """The distances as they are, or all of them the other way around."""
    low, high = bounds
    if 2 * low > ring > 0:
        return low - ring, high - ring
    if 2 * -high > ring > 0:
        return low + ring, high + ring
    return bounds


@cached(4096)
def _by_cluster(call: CallShape) -> dict[int, list[Touch]]:
    """What a call touches, by cluster."""
    found: dict[int, list[Touch]] = {}
    for touch in touches(call):
        found.setdefault(touch.region.cluster, []).append(touch)
    return found


def distance(
    first: Relation, first_region: RegionShape, second: Relation, second_region: RegionShape
) -> Interval | None:
    """Bounds of the distance for two accesses to one cluster; None if they touch no common byte.

    As everywhere in the analysis, subscripts are assumed to stay inside their regions.
    """
    (first_low, first_high), (second_low, second_high) = first.ranges[0], second.ranges[0]
    low, high = second_low - first_high, second_high - first_low
    for equation in _equations(first, first_region, second, second_region):
        bounds = _solve(equation, first, second)
        low, high = max(low, bounds[0]), min(high, bounds[1])
        if low > high:
            return None
    return low, high


class _Equation(NamedTuple):
    """Where both accesses touch one byte, least <= second(q) - first(p) <= greatest."""

    first: Affine
    second: Affine
    least: int
    greatest: int


# law
def _equations(
    first: Relation, first_region: RegionShape, second: Relation, second_region: RegionShape
) -> Iterator[_Equation]:
    shifts = shift(first_region, second_region)
    if shifts is not None:  # equal elements have equal subscripts
        for a, b, s in zip(first.indices, second.indices, shifts, strict=True):
            if a is not None and b is not None:
                yield _Equation(a, b.shifted(s), 0, 0)
    start, other = address(first_region, first.indices), address(second_region, second.indices)
    if start is not None and other is not None:
        yield _Equation(start, other, 1 - second_region.dtype.size, first_region.dtype.size - 1)


# law
def _solve(equation: _Equation, first: Relation, second: Relation) -> Interval:
    """Bounds of q - p from one equation; those of the ranges if it says nothing."""
    p, q = first.ranges[0], second.ranges[0]
    low, high = q[0] - p[1], q[1] - p[0]
    factor, rest = _split(equation.first)
    other_factor, other_rest = _split(equation.second)
    span, other_span = rest.span(first.ranges), other_rest.span(second.ranges)
    # other_factor * q - factor * p lies between least and greatest
    least = equation.least + span[0] - other_span[1]
    greatest = equation.greatest + span[1] - other_span[0]
    excess = factor - other_factor
    # and so does other_factor * (q - p) - excess * p, as does factor * (q - p) - excess * q
    for step, ends in (other_factor, p), (factor, q):
        if step:
            more = sorted(excess * end for end in ends)
            bounds = _quotients(step, least + more[0], greatest + more[1])
            low, high = max(low, bounds[0]), min(high, bounds[1])
    return low, high


# law
def _quotients(factor: int, least: int, greatest: int) -> Interval:
    """Bounds of the d for which factor * d lies between least and greatest."""
    if factor < 0:
        factor, least, greatest = -factor, -greatest, -least
    return -(-least // factor), greatest // factor


def _split(index: Affine) -> tuple[int, Affine]:
    """The coefficient of the outermost iteration index, and everything else."""
    terms = dict(index.terms)
    factor = terms.pop(0, 0)
    return factor, Affine(tuple(terms.items()), index.constant)
