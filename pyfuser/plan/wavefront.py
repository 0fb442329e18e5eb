"""Which loops may share a launch as a wavefront, though they may not share iterations.

A stencil reads neighbours of what the loop before it wrote. Where the distances of all dependences
between two loops are bounded along the outermost axis, the second can run a fixed number of steps
behind the first, over data that is still in cache: shift-and-peel (N. Manjikian and
T. Abdelrahman, "Fusion of Loops for Parallelism and Locality", 1997). Every iteration runs once,
after everything it depends on, so flow, anti and output dependences are all kept and no value
changes.

The law. Let d = q - p be the distance of a dependence of iteration q of loop m on iteration p of an
earlier loop k, with least <= d <= greatest for all of them. Then

    lag[m]   >= lag[k] - least      what q needs lies behind the front of k, and
    ahead[m] >= ahead[k] + greatest inside the share of the thread that runs q,

where a thread whose share is [first, last) runs loop k over [first + ahead[k], last - lag[k]); the
steps between the shares, [last - lag[k], last + ahead[k]), run loop by loop after a barrier.

Where the space is periodic along that axis (the neighbour of the last row is row 0) the steps are a
ring: q and p may be near each other across its end, d is the shorter way around, the first thread's
share has a neighbour, the last one's, and what lies between the two runs after the barrier as well.
All loops then run over the same steps. A pair that is far apart either way forbids the sweep.

A scan walks over each of its tiles twice, and the tiles come in any order: maps over its space go
with it where lags and aheads are all zero, so that no iteration needs another one of any loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.distances import call_distance
from pyfuser.ir.dtypes import DType
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.legality import is_scan, mergeable
from pyfuser.plan.plan import Declined, Group, Rolling, Stage, Sweep
from pyfuser.plan.rounds import MAX_CALLS, cuts_of
from pyfuser.plan.single_rows import far_rows
from pyfuser.plan.storage_folding import rolling_views
from pyfuser.plan.tile_size import NoSweep, tile_of, wave_of
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import CallShape, FutureShape, TraceShape
from pyfuser.tuning.thresholds import NOW

CLEARLY = 1.01  # how much more one choice saves than another, to be taken for it


def search(
    trace: TraceShape, groups: Sequence[Group], model: CostModel
) -> tuple[tuple[Sweep, ...], tuple[Declined, ...]]:
    """Join neighbouring groups into sweeps where that is legal and saves time; and why not."""
    if left_out("wavefront"):
        return (), ()
    found: list[Sweep] = []
    declined: list[Declined] = []
    facts = _Facts(trace)
    current = _Open(trace, groups, model, 0, facts)
    for place in range(1, len(groups)):
        try:
            if current.had_better_leave(place):
                raise NoSweep("one launch with the scan after it saves more")
            current.take(place)
        except NoSweep as no:
            after = groups[place].calls
            before = frozenset(current.calls)
            declined.append(Declined(after[0], before, frozenset(after), str(no)))
            found += current.close()
            current = _Open(trace, groups, model, place, facts)
    return (*found, *(current.close() if groups else ())), tuple(declined)


def sweeps(trace: TraceShape, groups: Sequence[Group], model: CostModel) -> tuple[Sweep, ...]:
    """The sweeps alone."""
    return search(trace, groups, model)[0]


class _TooFar(NoSweep):
    """Two loops depend on each other over too many steps."""


class _Facts:
    """What is known of the calls of a trace, by kind: most come again."""

    def __init__(self, trace: TraceShape) -> None:
        self._trace = trace
        self._distances: dict[tuple[int, int, int], Interval | None] = {}
        self._sweepable: dict[int, bool] = {}
        self.cuts = cuts_of(trace)

    def sweepable(self, place: int) -> bool:
        """See `sweepable`."""
        kind = self._trace.kinds[place]
        if kind not in self._sweepable:
            self._sweepable[kind] = sweepable(self._trace.calls[place])
        return self._sweepable[kind]

    def distance(self, first: int, second: int, ring: int) -> Interval | None:
        """See `call_distance`."""
        key = self._trace.kinds[first], self._trace.kinds[second], ring
        if key not in self._distances:
            calls = self._trace.calls
            self._distances[key] = call_distance(calls[first], calls[second], ring)
        return self._distances[key]


class _Open:
    """A sweep that may still grow."""

    def __init__(
        self,
        trace: TraceShape,
        groups: Sequence[Group],
        model: CostModel,
        place: int,
        facts: _Facts,
    ) -> None:
        self._trace = trace
        self._groups = groups
        self._model = model
        self._facts = facts
        self.places = [place]
        self.stages = [Stage(0, 0)]
        self.calls = list(groups[place].calls) if groups else []
        self.wave = 0
        self.rolling: tuple[Rolling, ...] = ()
        self.ring = 0  # the steps of the outermost axis, if it is taken as one

    def take(self, place: int) -> None:
        """Append a group to the sweep. Raises NoSweep if it may not or should not follow."""
        around = self._steps_around(place)
        if self.ring and not around:
            raise NoSweep("the loops before go around the ends of another range")
        try:
            self._take(place, self.ring)
        except _TooFar:
            if self.ring or not around:
                raise
            self._take(place, around)

    def _steps_around(self, place: int) -> int:
        """The steps of the outermost axis, if all loops run over the same and it may be a ring."""
        calls = [self._trace.calls[n] for n in (*self.calls, *self._groups[place].calls)]
        spaces = {(c.space.begin[0], c.space.end[0], c.space.execution) for c in calls}
        if left_out("ring") or len(spaces) > 1:
            return 0
        ((begin, end, execution),) = spaces
        return 0 if execution == "Serial" else end - begin

    def _take(self, place: int, ring: int) -> None:
        group = self._groups[place].calls
        calls = [*self.calls, *group]
        if len(calls) > MAX_CALLS:
            raise NoSweep(f"it would have more than {MAX_CALLS} calls")
        if not self._facts.cuts.isdisjoint(range(min(self.calls) + 1, max(group) + 1)):
            raise NoSweep("after so many rounds of a loop, the same kernel runs again")
        stages = [*self._stages(ring), self._stage(group, self._stages(ring), ring)]
        loops = [self._groups[n] for n in (*self.places, place)]
        if any(self._trace.calls[n].pattern == "scan" for n in calls):
            wave = self._tile(loops, stages)
            rolling: tuple[Rolling, ...] = ()
        else:
            wave = self._wave(loops, stages, ring)
            folds = not (ring or left_out("storage-folding"))
            rolling = rolling_views(self._trace, loops, stages) if folds else ()
        alone = sum(self._model.cost(loop.calls) for loop in loops)
        if self._model.sweep_cost(calls, frozenset(view.cluster for view in rolling)) >= alone:
            raise NoSweep("it would not save time")
        self.places.append(place)
        self.stages, self.calls, self.wave, self.rolling = stages, calls, wave, rolling
        self.ring = ring

    def had_better_leave(self, place: int) -> bool:
        """Whether a group saves more with the scan behind it, with which these loops cannot go."""
        groups, calls = self._groups, self._trace.calls
        if place + 1 == len(groups) or calls[groups[place + 1].calls[0]].pattern != "scan":
            return False
        here, there = self._copy(), _Open(self._trace, groups, self._model, place, self._facts)
        try:
            there.take(place + 1)
            here.take(place)
        except NoSweep:
            return False
        alone = self._model.cost(groups[place].calls)
        saved = self._seconds() + alone - here._seconds()
        try:
            here.take(place + 1)
        except NoSweep:
            other = self._model.cost(groups[place + 1].calls)
            return alone + other - there._seconds() > CLEARLY * saved
        return False

    def _copy(self) -> _Open:
        other = _Open(self._trace, self._groups, self._model, self.places[0], self._facts)
        other.places, other.stages, other.calls = [*self.places], self.stages, self.calls
        other.wave, other.rolling, other.ring = self.wave, self.rolling, self.ring
        return other

    def _seconds(self) -> float:
        """What the loops take."""
        if len(self.places) == 1:
            return self._model.cost(self.calls)
        return self._model.sweep_cost(self.calls, frozenset(view.cluster for view in self.rolling))

    def close(self) -> tuple[Sweep, ...]:
        """The sweep, if it has become one."""
        if len(self.places) == 1:
            return ()
        places, stages = tuple(self.places), tuple(self.stages)
        return (Sweep(places, stages, self.wave, self.rolling, self.ring > 0),)

    def _stages(self, ring: int) -> list[Stage]:
        """The loops' lags, with the axis taken as a ring of so many steps, or as it is (0)."""
        if ring == self.ring:
            return self.stages
        stages = [Stage(0, 0)]
        for number in range(1, len(self.places)):
            stages.append(self._stage(self._calls_of(number), stages, ring))
        return stages

    # law
    def _stage(self, group: Sequence[int], before: Sequence[Stage], ring: int) -> Stage:
        """The least lags with which a group may follow loops. Raises NoSweep if it may not."""
        trace = self._trace
        if not all(self._facts.sweepable(n) for n in (*group, *self._calls_of(0))):
            raise NoSweep("only a parallel_for, a sum or a scan can be a part of one")
        inside = {n for number in range(len(before)) for n in self._calls_of(number)}
        for position in group:
            for argument in trace.calls[position].arguments:
                if isinstance(argument, FutureShape) and argument.producer in inside:
                    raise NoSweep("it needs a number that the loops before compute")
        if trace.calls[group[0]].space.execution != trace.calls[self.calls[0]].space.execution:
            raise NoSweep("the execution spaces differ")
        lag = ahead = 0
        for number, stage in enumerate(before):
            for p in self._calls_of(number):
                for q in group:
                    bounds = self._facts.distance(p, q, ring)
                    if bounds is not None:
                        lag = max(lag, stage.lag - bounds[0])
                        ahead = max(ahead, stage.ahead + bounds[1])
        return Stage(lag, ahead)

    def _calls_of(self, number: int) -> tuple[int, ...]:
        """The calls of one of the sweep's loops."""
        return self._groups[self.places[number]].calls

    # law
    def _tile(self, loops: Sequence[Group], stages: Sequence[Stage]) -> int:
        """A wave of loops that share the tiles of a scan. Raises NoSweep if they had better not."""
        calls = [self._trace.calls[n] for loop in loops for n in loop.calls]
        if sum(call.pattern == "scan" for call in calls) > 1:
            raise NoSweep("it would have two scans")
        if any(call.pattern == "reduce" for call in calls):
            raise NoSweep("only a parallel_for can go with a scan")
        if any(call.space != calls[0].space for call in calls):
            raise NoSweep("only a parallel_for over the same range can go with a scan")
        if any(stage.lag or stage.ahead for stage in stages):
            raise NoSweep("beside a scan, no iteration can use values of another")
        return tile_of(self._trace, loops, self._model)

    # law
    def _wave(self, loops: Sequence[Group], stages: Sequence[Stage], ring: int) -> int:
        """How many steps the front may move at a time. Raises NoSweep if the sweep does not fit."""
        spaces = [self._trace.calls[loop.calls[0]].space for loop in loops]
        length = max(s.end[0] for s in spaces) - min(s.begin[0] for s in spaces)
        lag, ahead = max(s.lag for s in stages), max(s.ahead for s in stages)
        if length < NOW.tuning.sweep_shares * (lag + ahead) or 0 < ring < 2 * (lag + ahead) + 1:
            self._refuse_far_rows((loops[-1], loops[-2]))
            if lag + ahead >= length:
                raise _TooFar("dependences reach over any distance along the outermost axis")
            reach = f"dependences reach over up to {lag + ahead} steps of the outermost axis"
            raise _TooFar(f"{reach}, too far for one of {length}")
        return wave_of(self._trace, loops, lag, self._model)

    def _refuse_far_rows(self, loops: Sequence[Group]) -> None:
        """Raise NoSweep if it is a periodic copy that has dependences so far apart."""
        for call in (self._trace.calls[n] for loop in loops for n in loop.calls):
            rows = far_rows(call)
            if rows is not None:
                what = f"{call.workunit.name} copies to row {rows[0]} from row {rows[1]}"
                raise NoSweep(f"{what}, too far for a sweep")


# law: True
def sweepable(call: CallShape) -> bool:
    """Whether a call may be part of a sweep at all."""
    return (
        (mergeable(call) or is_scan(call))
        and call.space.size > 0
        and all(a.sym.dtype is not DType.BOOL for a in call.workunit.accumulators)
    )
