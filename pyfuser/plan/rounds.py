"""Where the calls of a long loop are cut: after whole rounds, so that its kernels are the same.

A kernel takes so many calls and no more, as compile time grows with them. A loop with seven calls
in its body then fills kernels of 64 with nine rounds and a bit: each kernel begins in another
phase, has a text of its own and is compiled. Cut after nine rounds each, all are one; after fewer
where nothing is left over then.

A cut keeps calls apart that could share a kernel, and no more: they run in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import TraceShape

MAX_CALLS = 64
"""Of a kernel or a sweep: compile time grows with it."""


def cuts_of(trace: TraceShape) -> frozenset[int]:
    """The places of calls that share no kernel with any before them."""
    if len(trace.calls) <= MAX_CALLS or left_out("whole-rounds"):
        return frozenset()
    kinds = [(call.workunit.name, call.space) for call in trace.calls]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return _cuts(tuple([numbers[kind] for kind in kinds]))


@cached(256)
def _cuts(kinds: tuple[int, ...]) -> frozenset[int]:
    """Where loops begin of which there are two parts or more, and where their parts end."""
    often = Counter(kinds)
    found: list[int] = []
    place = 0
    while place < len(kinds):
        period, last = _loop_at(kinds, place) if often[kinds[place]] > 1 else (1, place + 1)
        rounds, most = (last - place) // period, MAX_CALLS // period
        if rounds >= 2 * most:
            even = (n for n in range(most, most * 3 // 4, -1) if rounds % n == 0)
            found += range(place, last + 1, period * next(even, most))
            place = last
        else:
            place += 1
    return frozenset(found)


def _loop_at(kinds: Sequence[int], first: int) -> tuple[int, int]:
    """After how many calls those from here on repeat for longest, and where that ends."""
    best = 1, first + 1
    for period in range(1, MAX_CALLS + 1):
        last = first + period
        while last < len(kinds) and kinds[last] == kinds[last - period]:
            last += 1
        if last > max(best[1], first + period):
            best = period, last
    return best
