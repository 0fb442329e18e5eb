"""Launches that lose against their calls, or nearly: which calls to split off, and what that gave.

The times of the calls are known from the trial that was lost. The first to go is that which takes
longest, less what the model says that the others save by sharing its loop: what is left of it is
arithmetic, or memory of its own, and so nothing that fusing could gain. A wavefront becomes its
loops first. Parts that still take longer than their calls are taken apart, too.

Where a trial is close it goes on for as long again, and what then is a draw stays fused: that moves
less memory, and each process decides as the others do.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from pyfuser.plan.cost_model import group_cost
from pyfuser.runtime.autotune import MARGIN, Calls, missing_kernels
from pyfuser.runtime.program import Program

ROUNDS = 5
"""Runs of each side, of which the first pays for new memory."""

CLOSE = 0.06
"""Trials that end so near to MARGIN take as many rounds again."""

HOPELESS = 2.0
"""What takes so many times as long as the best so far, in the first FEWEST runs, gets no more."""

FEWEST = 3

NEAR = 1.1
"""Launches whose calls take at most so many times as long are tried in part, too."""

SPLITS = 2
"""Trials of parts."""

FEW = 8
"""Launches that are tried in part, those that take longest ..."""

LONGEST = 16
"""... and calls of each that may be split off."""

NEW = 3
"""Kernels that these trials may compile in all."""

Parts = dict[Calls, tuple[Calls, ...]]
"""What launches, by their calls, become."""


class Duel:
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
        if first == second:
            hopeless = first == FEWEST and self._hopeless()
            if hopeless or first == 2 * ROUNDS or (first == ROUNDS and not self._close()):
                return None
        return self.programs[second <= first]

    def _hopeless(self) -> bool:
        best, other = (min(map(sum, times[1:])) for times in self._times)
        return other > HOPELESS * best

    def _close(self) -> bool:
        close = any(abs(self.ratio(calls) - MARGIN) <= CLOSE for calls in self.subjects)
        return close or (self._doubting and bool(self.lost()))

    def seconds(self, side: int) -> dict[Calls, float]:
        """What each launch of a side took at best, the first runs apart."""
        best = (min(times) for times in zip(*self._times[side][1:], strict=True))
        return {la.calls: t for la, t in zip(self.programs[side].launches, best, strict=True)}

    def ratio(self, calls: Calls) -> float:
        """What calls take in the second program, as a part of what they take in the first."""
        first, second = (total(self.seconds(side), calls) for side in (0, 1))
        return second / first if first > 0.0 else 1.0

    def lost(self) -> list[Calls]:
        """The subjects that are slower in the first program."""
        return [calls for calls in self.subjects if self.ratio(calls) <= MARGIN]


class Partial:
    """What is tried of a program's launches after a trial of their calls.

    program: as it was planned; duel: that trial. missing: the kernels for what is tried.
    """

    def __init__(self, program: Program, duel: Duel) -> None:
        self._program = program
        near = [calls for calls in duel.subjects if duel.ratio(calls) <= NEAR]
        self._fused = duel.seconds(0)
        self._alone = duel.seconds(1)
        self._near = sorted(near, key=lambda calls: -self._fused[calls])[:FEW]
        self._kept: Parts = {
            calls: (calls,) for calls in self._near
        }  # the best of those not all apart
        self._ranked = {calls: self._ranking(calls) for calls in self._near}
        self.missing = 0
        self._left = NEW
        self._trials = SPLITS

    def _ranking(self, calls: Calls) -> list[int]:
        """Calls in the order in which they are split off."""
        trace = self._program.trace
        scores = {}
        for call in sorted(calls, key=lambda call: -self._alone[(call,)])[:LONGEST]:
            at = calls.index(call)
            parts = [part for part in (calls[:at], (call,), calls[at + 1 :]) if part]
            lost = sum(group_cost(trace, part) for part in parts) - group_cost(trace, calls)
            scores[call] = self._alone[(call,)] - lost
        return sorted(scores, key=lambda call: -scores[call])

    def following(self, best: Parts) -> Parts:
        """What is tried next, none if nothing is; best: what is best so far."""
        tried: Parts = {}
        self._left -= self.missing
        self.missing = 0
        for calls in self._near if self._trials else ():
            parts = self._split(calls)
            if len(parts) < len(calls) and parts not in (best.get(calls), self._kept[calls]):
                made = [part for each in (*tried.values(), parts) for part in each]
                missing = missing_kernels(self._program.trace, [p for p in made if len(p) > 1])
                if missing <= self._left:
                    tried[calls], self.missing = parts, missing
        self._trials -= 1
        return tried

    def _split(self, calls: Calls) -> tuple[Calls, ...]:
        """The calls of a launch with the next one split off, or a wavefront's loops."""
        kept = self._kept[calls]
        plan = self._program.plan
        loops = {group.calls[0] for group in plan.groups if not {*group.calls}.isdisjoint(calls)}
        if len(kept) == 1 and len(loops) > 1:
            return cut_before(calls, loops)
        starts = {part[0] for part in kept}
        ranked = self._ranked[calls]
        while ranked:
            at = calls.index(ranked.pop(0))
            if calls[at : at + 1] not in kept:
                return cut_before(calls, starts | {*calls[at : at + 2]})
        return kept

    def better(self, best: Parts, duel: Duel) -> Parts:
        """What a trial found better than what was best so far."""
        found: Parts = {}
        first, second = duel.seconds(0), duel.seconds(1)
        for calls in duel.subjects:
            parts: tuple[Calls, ...] = ()
            seconds = 0.0
            for part in (la for la in second if {*la} <= {*calls}):
                alone = total(self._alone, part)
                if len(part) > 1 and alone <= MARGIN * second[part]:
                    parts, seconds = (*parts, *((n,) for n in part)), seconds + alone
                else:
                    parts, seconds = (*parts, part), seconds + second[part]
            apart = len(best.get(calls, ())) == len(calls)
            if seconds <= (1.0 if apart else MARGIN) * total(first, calls):
                found[calls] = self._kept[calls] = parts
        return found


def cut_before(calls: Calls, starts: Container[int]) -> tuple[Calls, ...]:
    """Calls, cut before each that is in starts."""
    at = [n for n, call in enumerate(calls) if n and call in starts]
    return tuple(calls[b:e] for b, e in zip([0, *at], [*at, len(calls)], strict=True))


def total(seconds: dict[Calls, float], calls: Calls) -> float:
    """What launches that have nothing but these calls took together."""
    inside = {*calls}
    return sum(t for part, t in seconds.items() if inside.issuperset(part))
