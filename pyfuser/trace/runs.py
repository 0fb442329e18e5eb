"""Runs: rounds of calls that are the same, but for parts of arrays that move on.

A program that walks along an array has one call, or a few, for each row of it: the same workunits
over the same spaces, on views that begin a step further on in each round, with integers that count.

    parallel_for(n, forward, x=a[k - 1], y=a[k])        for k in range(1, rows)

What such calls have in common is a run. What may be made of it is for `plan.rewrites.roll` to say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from pyfuser.support.extension import HOT
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region

LONGEST = 8
"""Calls in a round that is looked for."""

Steps: TypeAlias = tuple[int, ...]
"""Of the arguments of a call, by how much each moves on in a round: bytes of views, or integers."""


class Run(NamedTuple):
    """So many rounds of calls[first : first + period]; steps: those of each call of a round."""

    first: int
    period: int
    rounds: int
    steps: tuple[Steps, ...]

    @property
    def last(self) -> int:
        """The first place behind it."""
        return self.first + self.period * self.rounds


def runs_of(calls: list[Call], least: int) -> list[Run]:
    """The runs of at least so many rounds, in order; what is in one is in no other."""
    if max(Counter([id(call.workunit) for call in calls]).values(), default=0) < least:
        return []
    kinds = [_kind(call) for call in calls]
    often = Counter(kinds)
    found: list[Run] = []
    place = 0
    while place + least <= len(calls):
        run = _run_at(calls, kinds, place, least) if often[kinds[place]] >= least else None
        if run is not None:
            found.append(run)
        place = place + 1 if run is None else run.last
    return found


def _kind(call: Call) -> tuple[int, ...]:
    """What the calls have in common that stand at one place of all rounds."""
    buffers = [id(a.buffer) for a in call.arguments if type(a) is Region]
    return (id(call.workunit), *buffers)


def _run_at(calls: list[Call], kinds: Sequence[object], first: int, least: int) -> Run | None:
    for period in range(1, min(LONGEST, (len(calls) - first) // least) + 1):
        end = first + period * least
        if kinds[first : end - period] != kinds[first + period : end]:
            continue
        steps = tuple(_round(calls, first, period))
        if not any(map(any, steps)):
            continue  # nothing moves: they are what they are
        rounds = ROUNDS(calls, first, steps)
        if rounds >= least:
            return Run(first, period, rounds, steps)
    return None


def _round(calls: Sequence[Call], first: int, period: int) -> list[Steps]:
    """By how much each call of a round moves on; empty if one does not move by steps."""
    found: list[Steps] = []
    for n in range(first, first + period):
        steps = _steps(calls[n], calls[n + period])
        if steps is None:
            return []
        found.append(steps)
    return found


# law
def _rounds(calls: Sequence[Call], first: int, steps: Sequence[Steps]) -> int:
    """How many rounds there are in which the calls move by these steps each."""
    period = len(steps)
    place = first + period
    while place < len(calls) and (
        _steps(calls[place - period], calls[place]) == steps[(place - first) % period]
    ):
        place += 1
    return (place - first) // period


ROUNDS: Callable[[list[Call], int, tuple[Steps, ...]], int]
ROUNDS = _rounds if HOT is None else HOT.rounds
"""Counts rounds (see `_rounds`)."""


# law: not None
def _steps(call: Call, following: Call) -> Steps | None:
    """By how much the arguments of a call differ from those of the one before; None: otherwise."""
    if (
        call.workunit is not following.workunit
        or (call.space is not following.space and call.space != following.space)
        or call.pattern != "for"
        or following.pattern != "for"
        or type(call) is not Call
        or type(following) is not Call
    ):
        return None
    steps = []
    for one, other in zip(call.arguments, following.arguments, strict=True):
        step = _step(one, other)
        if step is None:
            return None
        steps.append(step)
    return tuple(steps)


# law: not None
def _step(one: Argument, other: Argument) -> int | None:
    if isinstance(one, Future):
        return None  # the value may not be known yet
    if one is other:
        return 0
    if isinstance(one, Region):
        if not isinstance(other, Region):
            return None
        same = one.buffer is other.buffer and one[2:] == other[2:]
        return other.offset - one.offset if same else None
    if type(one) is int and type(other) is int:
        return other - one
    if type(one) is float and type(other) is float:  # 0.0 == -0.0, and NaN has many values
        same = one == other and math.copysign(1.0, one) == math.copysign(1.0, other)
        return 0 if same else None
    return None
