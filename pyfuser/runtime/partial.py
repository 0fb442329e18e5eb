"""Launches that lose against their calls, or nearly: which calls to split off, and what that gave.

The times of the calls are known from the trial that was lost. The first to go is that which takes
longest, less what the model says that the others save by sharing its loop: what is left of it is
arithmetic, or memory of its own, and so nothing that fusing could gain. A wavefront becomes its
loops first. Parts that still take longer than their calls are taken apart, too.
"""

from __future__ import annotations

from collections.abc import Container

from pyfuser.plan.cost_model import group_cost
from pyfuser.runtime.autotune import missing_kernels
from pyfuser.runtime.duel import MARGIN, Calls, Duel, total
from pyfuser.runtime.program import Program

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


class Partial:
    """What is tried of a program's launches after a trial of their calls.

    program: as it was planned; duel: that trial. missing: the kernels for what is tried.
    """

    def __init__(self, program: Program, duel: Duel[Program]) -> None:
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

    def better(self, best: Parts, duel: Duel[Program]) -> Parts:
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
