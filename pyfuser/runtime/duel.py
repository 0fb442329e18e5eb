"""Two programs of a trace that take turns: which of their launches are faster in the second.

A trial costs what the slower side loses, so it ends as soon as it is clear: where, of runs whose
first are left out as they pay for new memory, all of one side were faster than all of the other.
Where a trial is close it goes on for as long again, and what then is a draw goes to the first
program: that moves less memory, and each process decides as the others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pyfuser.runtime.launch import Launch

ROUNDS = 5
"""Runs of each side, of which the first does not count."""

FEWEST = 3
"""Runs of each side before it may be clear which is faster."""

MARGIN = 0.95
"""The second program's launches win if they take at most this part of what the first's do."""

CLOSE = 0.06
"""Trials that end so near to MARGIN take as many rounds again."""

AGREE = 1.25
"""Times that a side's slowest run may take of its fastest where it is clear: others disturb it."""

HOPELESS = 1.5
"""What takes so many times as long as the best so far, in the first FEWEST runs, gets no more."""

Calls = tuple[int, ...]


class Measured(Protocol):
    """What takes part in a duel."""

    @property
    def launches(self) -> tuple[Launch, ...]: ...


Program = TypeVar("Program", bound=Measured)


class Duel(Generic[Program]):
    """Two programs of a trace that take turns; subjects: calls whose times are compared.

    doubting: whether the second has to win over as many rounds as if it were close.
    """

    def __init__(
        self,
        programs: tuple[Program, Program],
        subjects: Sequence[Calls],
        doubting: bool = False,
    ) -> None:
        self.programs = programs
        self.subjects = subjects
        self._doubting = doubting
        self._times: tuple[list[list[float]], list[list[float]]] = ([], [])

    def add(self, program: Program, seconds: list[float]) -> Program | None:
        """Note what a run's launches took; the program that runs next, None when it is over."""
        self._times[program is self.programs[1]].append(seconds)
        first, second = map(len, self._times)
        if first == second and self._is_over(first):
            return None
        return self.programs[second <= first]

    def _is_over(self, rounds: int) -> bool:
        if rounds < FEWEST:
            return False
        if rounds == FEWEST and self._hopeless():
            return True
        clear = all(map(self._is_clear, self.subjects))
        return clear or rounds == 2 * ROUNDS or (rounds == ROUNDS and not self._close())

    def _hopeless(self) -> bool:
        best, other = (min(map(sum, times[1:])) for times in self._times)
        return other > HOPELESS * best

    def _is_clear(self, calls: Calls) -> bool:
        """Whether all runs of one side, which agree, were faster than all of the other."""
        first, second = sides = [self._runs(side, calls) for side in (0, 1)]
        if any(max(runs) > AGREE * min(runs) for runs in sides):
            return False
        wins = max(second) <= (MARGIN - CLOSE) * min(first) and not self._doubting
        return wins or min(second) > MARGIN * max(first)

    def _close(self) -> bool:
        close = any(abs(self.ratio(calls) - MARGIN) <= CLOSE for calls in self.subjects)
        return close or (self._doubting and bool(self.lost()))

    def _runs(self, side: int, calls: Calls) -> list[float]:
        """What the launches of some calls took in each run that counts."""
        inside = {*calls}
        launches = self.programs[side].launches
        at = [n for n, la in enumerate(launches) if inside.issuperset(la.calls)]
        return [sum(times[n] for n in at) for times in self._times[side][1:]]

    def seconds(self, side: int) -> dict[Calls, float]:
        """What each launch of a side took at best, the first runs apart."""
        best = (min(times) for times in zip(*self._times[side][1:], strict=True))
        return {la.calls: t for la, t in zip(self.programs[side].launches, best, strict=True)}

    def taken(self, side: int, calls: Calls) -> float:
        """What the launches of some calls took at best."""
        return total(self.seconds(side), calls)

    def ratio(self, calls: Calls) -> float:
        """What calls take in the second program, as a part of what they take in the first."""
        first, second = (self.taken(side, calls) for side in (0, 1))
        return second / first if first > 0.0 else 1.0

    def lost(self) -> list[Calls]:
        """The subjects that are slower in the first program."""
        return [calls for calls in self.subjects if self.ratio(calls) <= MARGIN]


def total(seconds: dict[Calls, float], calls: Calls) -> float:
    """What launches that have nothing but these calls took together."""
    inside = {*calls}
    return sum(t for part, t in seconds.items() if inside.issuperset(part))


def latest(program: Measured) -> list[float]:
    """What the latest launches of a program took."""
    return [launch.timing.latest for launch in program.launches]
