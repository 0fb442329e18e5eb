"""Where the list of recorded calls ends in a long loop: after whole rounds of it.

A trace of 512 calls of a loop with five in its body ends in the middle of a round, so the next one
begins there: five traces of other phases follow each other, and each is planned. With room for a
whole number of rounds, what comes after the first trace is one and the same.

How many calls a trace has changes no result: it is flushed in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.trace.call import Call

LONGEST = 128
"""Calls in a round that is looked for."""


def period_of(calls: Sequence[Call]) -> int:
    """After how many calls the workunits and spaces of the later half repeat; 0 if they do not."""
    units, spaces = [id(call.workunit) for call in calls], [id(call.space) for call in calls]
    half = len(units) // 2
    tails = units[half:], spaces[half:]
    for period in range(1, min(half, LONGEST) + 1):
        before = slice(half - period, len(units) - period)
        if units[half] == units[half - period] and (units[before], spaces[before]) == tails:
            return period
    return 0


def room_for(calls: Sequence[Call], most: int) -> int:
    """How many calls the next trace should have, at most so many.

    An even number of rounds, where they are short, as loops exchange two arrays.
    """
    period = period_of(calls)
    rounds = 2 * period if 4 * period <= most else period
    return most - most % rounds if rounds else most
