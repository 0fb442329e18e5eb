"""For which numbers of a call all its subscripts are inside: linear conditions on them.

`analysis.inside` tells of one call that nothing is wrong with it. Where ranges and integers change
with each call (an anti-diagonal, the rest of a matrix), the same is told of all of them at once: a
subscript is an affine function of begin, end and integers of the call wherever nothing wraps, so
what it must not leave bounds that function, and to test a call is to evaluate a few of them.

The law is that of `inside`: where all conditions hold, each subscript of each access of the code
lies inside its view. The numbers of a call are begin and end of each axis, then
the integers that can influence a subscript, by place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pyfuser.analysis.affine import Affine, Interval, constant, variable
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.guards import bounds
from pyfuser.analysis.inside import Subscripts, may_be_0
from pyfuser.ir.affine import everywhere, linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.nodes import Body, Expr, For, Read, Sym
from pyfuser.ir.visit import statements
from pyfuser.trace.call import Space

Span: TypeAlias = tuple[Affine, Affine]
"""The least and the greatest value of an expression, as functions of the numbers of a call."""


def numbers_of(space: Space, facts: Sequence[object], scalars: Sequence[int]) -> list[int]:
    """The numbers of a call; scalars: the places of those that matter, ascending."""
    ends = [n for axis in zip(space.begin, space.end, strict=True) for n in axis]
    return ends + [int(facts[place]) for place in scalars]  # type: ignore[call-overload]


# law: not None
def conditions(
    subscripts: Subscripts,
    rank: int,
    facts: Sequence[object],
    scalars: Sequence[int],
    box: Sequence[Interval],
) -> list[Affine] | None:
    """Functions of the numbers of a call that are at least 0; None: these cannot tell.

    facts: the shapes of views, by place. box: a range of each number, in which it has to stay.
    """
    workunit, found, stable, _, divisors = subscripts
    numbers = [variable(n) for n in range(2 * rank + len(scalars))]
    spans: dict[Sym, Span] = {}
    ranges: dict[Sym, Interval] = {}
    for axis, sym in enumerate(workunit.indices):
        if sym in stable:
            spans[sym] = numbers[2 * axis], numbers[2 * axis + 1].shifted(-1)
            ranges[sym] = box[2 * axis][0], box[2 * axis + 1][1] - 1
    for n, place in enumerate(scalars, 2 * rank):
        sym = workunit.params[place].sym
        if sym in stable:
            spans[sym] = numbers[n], numbers[n]
            ranges[sym] = box[n]
    ranges |= bounded_locals(workunit.body, ranges)
    if may_be_0(divisors, ranges):
        return None
    values = stable_locals(workunit.body)
    spans = _with_loops(workunit.body, values, spans, ranges)
    result = [
        limit
        for number, (low, high) in zip(numbers, box, strict=True)
        for limit in (number.shifted(-low), number.times(-1).shifted(high))
    ]
    for place, axis, index, guards in found:
        extent = facts[place][axis]  # type: ignore[index]
        known = bounds(index, guards, ranges, extent)
        if known is None:
            return None
        if known[0] >= 0 and known[1] < extent:
            continue
        span = _span(index, spans)
        if span is None:
            return None
        if known[0] < 0:
            result.append(span[0])
        if known[1] >= extent:
            result.append(span[1].times(-1).shifted(extent - 1))
    return list(dict.fromkeys(result))


# law
def _with_loops(
    body: Body,
    values: Mapping[Sym, Expr],
    given: Mapping[Sym, Span],
    ranges: Mapping[Sym, Interval],
) -> dict[Sym, Span]:
    """The spans given, and those of variables of loops; without a trip these have no value."""
    spans = dict(given)
    loops = [stmt for stmt in statements(body) if isinstance(stmt, For)]  # outermost first
    uses = Counter(loop.sym for loop in loops)
    for loop in loops:
        if uses[loop.sym] > 1 or loop.sym not in ranges:
            continue  # it has a range if it counts up, nothing else sets it, and nothing wraps
        first, last = (_span(expand(end, values), spans) for end in (loop.start, loop.stop))
        if first is not None and last is not None:
            spans[loop.sym] = first[0], last[1].shifted(-1)
    return spans


# law: not None
def _span(expr: Expr, spans: Mapping[Sym, Span]) -> Span | None:
    """The span of an expression no part of which wraps; None: it is not affine."""
    form = linear(expr, everywhere)  # conversions keep what does not wrap
    low = high = constant(form.constant)
    for term, factor in form.terms.items():
        known = spans.get(term.sym) if isinstance(term, Read) else None
        if known is None:
            return None
        least, most = _times(known, factor)
        low, high = low.plus(least), high.plus(most)
    return low, high


# law
def _times(span: Span, factor: int) -> Span:
    low, high = span[0].times(factor), span[1].times(factor)
    return (low, high) if factor >= 0 else (high, low)


def hold(rows: Sequence[Affine], numbers: Sequence[int]) -> bool:
    """Whether all functions are at least 0."""
    points = [(n, n) for n in numbers]
    return all(row.span(points)[0] >= 0 for row in rows)


def coefficients(rows: Sequence[Affine], count: int) -> Iterator[int]:
    """The constant and the coefficients of all numbers, row after row."""
    for row in rows:
        factors = dict(row.terms)
        yield row.constant
        yield from (factors.get(number, 0) for number in range(count))
