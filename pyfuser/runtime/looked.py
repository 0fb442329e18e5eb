"""Which calls were looked at for mistakes, so that others of their workunits need no second look.

What only deserves a warning shows in the first calls of a workunit, or once its numbers grow or
shrink: what overflows, for one, or what is 0. So the first LOOKED shapes of its calls are looked at
for all of it, and others with a number (an end of a range, an extent, a scalar) that is not between
those that were, as powers of two; of the rest it is enough that `analysis.inside` shows that no
mistake ends them. That leaves out what elements of views decide: where these are subscripts, more
calls are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyfuser.analysis.accesses import facts_of
from pyfuser.analysis.affine import Interval
from pyfuser.analysis.outside import is_worth_a_walk
from pyfuser.ir.nodes import Workunit
from pyfuser.support.caches import Table
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape

LOOKED = 2
"""Shapes of a workunit's calls, or traces of a family, that are looked at for all that is wrong."""

WALKED = 16
"""As LOOKED, of workunits whose subscripts may be elements, which are looked at, too."""


class _Seen:
    """Calls of a workunit that were looked at: how many, and between what each number was."""

    __slots__ = ("count", "least", "limits")

    def __init__(self, unit: Workunit) -> None:
        self.count = 0
        self.least = WALKED if is_worth_a_walk(unit) else LOOKED
        self.limits: dict[int, Interval] = {}


_SEEN: Table[Workunit, _Seen] = Table("workunits whose calls were looked at", 1024)


def limits_of(unit: Workunit, count: int) -> list[Interval] | None:
    """Between what each number of calls was that were looked at; None: too few were.

    The numbers: begins, ends, and the arguments in turn, of which a view has its extents.
    """
    seen = _SEEN.get(unit)
    if seen is None or seen.count < seen.least:
        return None
    return [seen.limits.get(place, _NONE) for place in range(count)]


def was_looked_at(unit: Workunit, space: Space, facts: Sequence[Any]) -> bool:
    """Whether calls like this one were looked at for what only deserves a warning.

    facts: the shapes of views, and numbers; None: not known.
    """
    numbers = _numbers(space, facts)
    limits = limits_of(unit, len(numbers))
    return limits is not None and all(
        number is None or low <= number <= high
        for number, (low, high) in zip(numbers, limits, strict=True)
    )


def look_at(unit: Workunit, space: Space, facts: Sequence[Any]) -> None:
    """A call was looked at, and nothing ends it."""
    seen = _SEEN.get(unit) or _SEEN.keep(unit, _Seen(unit))
    seen.count += 1
    for place, number in enumerate(_numbers(space, facts)):
        if number is not None:
            low, high = _of_size(number)
            least, most = seen.limits.get(place, (low, high))
            seen.limits[place] = min(low, least), max(high, most)


_NONE = (0, -1)


def _of_size(number: int) -> Interval:
    """The numbers of its sign and between its powers of two."""
    most = (1 << number.bit_length()) - 1
    least = (most + 1) // 2
    return (least, most) if number >= 0 else (-most, -least)


def _numbers(space: Space, facts: Sequence[Any]) -> list[int | None]:
    found: list[int | None] = [*space.begin, *space.end]
    for fact in facts:
        if isinstance(fact, tuple):
            found += fact
        else:
            found.append(int(fact) if isinstance(fact, int) else None)
    return found


def between_looks(
    unit: Workunit,
    space: Space,
    facts: Sequence[Any],
    scalars: Sequence[int],
    box: Sequence[Interval],
) -> list[Interval]:
    """The part of a box of the numbers of calls (`conditions.numbers_of`) that needs no look."""
    starts = [2 * len(space.begin)]
    for fact in facts:
        starts.append(starts[-1] + (len(fact) if isinstance(fact, tuple) else 1))
    limits = limits_of(unit, starts[-1]) or [_NONE] * starts[-1]
    axes = range(len(space.begin))
    places = [place for axis in axes for place in (axis, len(axes) + axis)]
    places += [starts[place] for place in scalars]
    return [
        (max(low, limits[place][0]), min(high, limits[place][1]))
        for place, (low, high) in zip(places, box, strict=True)
    ]


def facts_with(shape: CallShape, arguments: Sequence[Any]) -> list[Any]:
    """`facts_of` a call, with all integers of its arguments."""
    return [
        argument if isinstance(argument, int) else fact
        for fact, argument in zip(facts_of(shape), arguments, strict=True)
    ]
