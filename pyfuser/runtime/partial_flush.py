"""Calls that wait for the next launch: where a steady loop reads a result that does not need them.

A solver reads a scalar or two each step: `x += alpha * p`, which no scalar needs, would share its
walk over memory with the next step's calls. What may wait is decided in `plan.dependence_slice`;
whether it should is learned at a *site*: a trace of one shape of which one result is read. When
that has come STEADY times, the calls that could have waited are planned together with those of the
flush that follows. If the model sees a gain, and the loop, should it go on for as long again, will
earn what compiling two more kernels costs, they wait from then on.

A hit is a flush that runs them in one launch with later calls. A miss runs them alone, which costs
a launch. What misses cost is held against what hits have gained: a site that is behind is closed
for good. No call waits for more than one flush: the next one runs all that waited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.engine.engine import capabilities
from pyfuser.pipeline import planned
from pyfuser.plan.dependence_slice import may_wait, needed
from pyfuser.plan.plan import Plan
from pyfuser.plan.search import seconds
from pyfuser.support.counters import COUNTERS
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import TraceShape, shape_of

STEADY = 3
"""Reads of one result after traces of one shape, before anything is tried."""

GAIN = 0.02
"""What must be gained, as a part of what two flushes cost, ..."""

WORTH = 2e-4
"""... and in seconds: what waits takes some microseconds to find, and less is gained in caches."""

PAYBACK = 0.2
"""Seconds that compiling two kernels takes."""

MAX_SITES = 256


class Site:
    """What is known of reading one result after traces of one shape.

    seen: how often. later: the places of the calls that wait. gain, loss: modelled seconds of a
    hit and of a miss. balance: of all hits and misses. closed: nothing waits here any more.
    """

    __slots__ = ("balance", "closed", "gain", "later", "loss", "seen")

    def __init__(self) -> None:
        self.seen = 0
        self.later: frozenset[int] = frozenset()
        self.gain = self.loss = self.balance = 0.0
        self.closed = False

    @property
    def pays(self) -> bool:
        return self.seen * self.gain > PAYBACK

    def judge(self, hit: bool) -> None:
        """Note what became of calls that waited."""
        self.balance += self.gain if hit else -self.loss
        self.closed = self.closed or self.balance < 0.0


class _Trial(NamedTuple):
    """Calls that ran in the last flush and could have waited, and what that would have saved."""

    site: Site
    calls: list[Call]
    saved: float


class Deferral:
    """Decides, flush by flush, which calls wait; used under the tracer's lock."""

    __slots__ = ("__dict__", "_sites", "_trial", "_waiting", "on")

    def __init__(self) -> None:
        self.on = SETTINGS.defer and SETTINGS.engine == "native" and not left_out("partial-flush")
        self.on = self.on and not (SETTINGS.verify or SETTINGS.check or SETTINGS.debug)
        self.forget()

    def forget(self) -> None:
        """Learn anew."""
        self._sites: OrderedDict[tuple[TraceShape, int], Site] = OrderedDict()
        self._due = -1  # the position of the latest call that waited
        self._waiting: Site | None = None  # whose calls wait
        self._arrived: tuple[Site, int] | None = None  # whose calls waited, up to which position
        self._candidate: Site | None = None  # is to be tried in the flush at hand
        self._trial: _Trial | None = None

    @property
    def idle(self) -> bool:
        """Whether no call waits, and none is looked at that could have."""
        return self._waiting is None and self._trial is None

    def closed(self, trace: TraceShape, calls: Sequence[Call], wanted: Future) -> bool:
        """Whether nothing will ever wait where this result is read."""
        place = _place(calls, wanted) if self.on and len(calls) > 1 else -1
        site = self._sites.get((trace, place))
        return place < 0 or (site is not None and site.closed)

    def take(
        self, calls: list[Call], wanted: Future | None
    ) -> tuple[TraceShape, list[Call], list[Call]]:
        """The calls that the flush at hand runs, with their shape, and those that it leaves."""
        trace = shape_of(calls, structural_scalars)
        later = self.later(calls, trace, wanted)
        if not later:
            return trace, calls, []
        left = [calls[n] for n in sorted(later)]
        calls = [call for n, call in enumerate(calls) if n not in later]
        COUNTERS.deferred += len(left)
        return shape_of(calls, structural_scalars, left), calls, left

    def later(
        self, calls: Sequence[Call], trace: TraceShape, wanted: Future | None
    ) -> frozenset[int]:
        """The places of calls that the flush at hand leaves; `wanted` is what it is for."""
        waited, self._waiting = self._waiting, None
        self._arrived = self._candidate = None
        if waited is not None and calls[-1].position <= self._due:
            waited.judge(False)  # nothing came after them
        elif waited is not None:
            self._arrived = waited, self._due
        if wanted is None or not self.on or USE.devices or len(calls) < 2:
            return frozenset()
        place = _place(calls, wanted)
        if place < 0:
            return frozenset()
        site = self._site(trace, place)
        if site.closed:
            return frozenset()
        site.seen += 1
        if site.seen == STEADY:
            self._look(site, calls, trace, place)
        if not site.pays or not all(self._free(calls[n], calls[place]) for n in site.later):
            return frozenset()
        self._waiting, self._candidate = (site, None) if site.later else (None, None)
        if site.later:
            self._due = calls[max(site.later)].position
        return site.later

    def _site(self, trace: TraceShape, place: int) -> Site:
        site = self._sites.get((trace, place))
        if site is None:
            site = self._sites[trace, place] = Site()
            if len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        return site

    def _look(self, site: Site, calls: Sequence[Call], trace: TraceShape, place: int) -> None:
        """Find what may wait at a site."""
        stay = {
            n
            for n, shape in enumerate(trace.calls)
            if not (may_wait(shape) and self._free(calls[n], calls[place]))
        }
        site.later = frozenset(range(len(calls))) - needed(trace, stay | {place})
        if site.later:
            self._candidate = site
        else:
            site.closed = True

    # law: True
    def _free(self, call: Call, wanted: Call) -> bool:
        """Whether a call has not waited yet, and only Views that we watch reach its memory."""
        return (
            call.position > self._due
            and call.space.execution == wanted.space.execution
            and not any(
                argument.buffer.external or argument.buffer.lent
                for argument in call.arguments
                if type(argument) is Region
            )
        )

    def learn(self, calls: Sequence[Call], trace: TraceShape, plan: Plan) -> None:
        """See what was planned for a flush that is about to run; `trace` is as planned."""
        if self._arrived is not None:
            judged, due = self._arrived
            waited = {n for n, call in enumerate(calls) if call.position <= due}
            judged.judge(any(_joins(launch, waited) for launch in _launched(plan)))
        trial, self._trial = self._trial, None
        if trial is not None:
            _weigh(trial, calls, seconds(trace, plan))
        site, self._candidate = self._candidate, None
        if site is not None:
            left = [call for n, call in enumerate(calls) if n in site.later]
            now = [call for n, call in enumerate(calls) if n not in site.later]
            self._trial = _Trial(site, left, seconds(trace, plan) - _modelled(now, left))


def _place(calls: Sequence[Call], wanted: Future) -> int:
    """The place of the call that computes a result; -1 if it is none of these."""
    return next((n for n, call in enumerate(calls) if call.result is wanted), -1)


def _weigh(trial: _Trial, calls: Sequence[Call], apart: float) -> None:
    """Find what a site gains, now that the calls which follow it are known.

    apart: seconds that these take by themselves.
    """
    site, left, saved = trial
    together = _modelled([*left, *calls])
    gain = saved + apart - together
    if gain < max(WORTH, GAIN * (saved + apart)):
        site.closed = True
    else:
        site.gain, site.loss = gain, max(0.0, _modelled(left) - saved)


def _modelled(calls: Sequence[Call], others: Sequence[Call] = ()) -> float:
    """Seconds that a flush of calls would take, while others wait."""
    trace = shape_of(calls, structural_scalars, others)
    trace, _, plan = planned(trace, capabilities(call.space.execution for call in trace.calls))
    return seconds(trace, plan)


def _launched(plan: Plan) -> list[set[int]]:
    """The calls of each launch."""
    return [{n for place in places for n in plan.groups[place].calls} for places in plan.launches()]


def _joins(launch: set[int], waited: set[int]) -> bool:
    return bool(launch & waited and launch - waited)
