"""Which calls compute again what others would have stored for them.

A stencil or a gather reads elements that other iterations of an earlier call wrote, so the two
share no loop, and all that passes between them travels to memory. If what the first stores is cheap
to compute, the second computes it again wherever it reads it (see `plan.rewrites.recomputed_body`),
as compilers of image pipelines do (J. Ragan-Kelley et al., "Halide", 2013). The trace then is
another program with the same results, for which the law of fusion answers as for any other.

The law of recomputing itself. The first call is a map that stores elements of a view, one an
iteration, each to a place of its own; it is the last to write them before the second; and no call
from it to the second, both included, writes what it reads. Every element that the second reads is
one that the first surely stored. Then the expression has the value that memory had, as both have
the types, and so the roundings, of the store. Calls of which nothing is read any more do nothing.

The cost. Both plans are made, and the new one is taken if it is cheaper by GAIN of what differs:
what the model says of memory and launches, and what the arithmetic costs that is done again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.affine import Interval
from pyfuser.analysis.dependences import DependenceGraph, Kind, Touch, touches
from pyfuser.analysis.layout import byte_range, is_injective
from pyfuser.analysis.liveness import liveness
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.ir.weights import arithmetic
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.cost_model import machine_for, region_of
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Plan, Recomputed
from pyfuser.plan.rewrites import coarsen, embed_boundary
from pyfuser.plan.rewrites.coarsen import Planned
from pyfuser.plan.rewrites.recomputed_body import Axis, Made, made_by, recomputed
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape, TraceShape

GAIN = 0.1
"""What of the cost must be saved: the model does not know how arithmetic overlaps memory."""

OPERATION = 5e-11
"""Seconds of an addition of doubles in vectors, by one thread."""

BALANCE = 2.0
"""Bytes that a GPU moves in the time of an addition, or of half a load from its caches."""

MAX_CALLS = 128
"""Of a trace that is planned twice: longer ones take long to plan."""

MAX_ARGUMENTS = 40
"""Of a call that computes again."""


def planned(trace: TraceShape, capabilities: Capabilities) -> Planned:
    """The plan of a trace, with the trace as planned: some calls may compute again."""
    fine = embed_boundary.planned(trace, capabilities)
    _, graph, before = fine
    if not capabilities.recompute or left_out("recompute"):
        return fine
    launches = _launches(trace, before)
    if not _may_gain(trace, graph, launches):
        return fine
    made = rewritten(trace, launches)
    if made is None:
        return fine
    changed, graph, plan = embed_boundary.planned(made.trace, capabilities)
    plan = replace(plan, recomputed=made.notes, vanished=made.vanished)
    return (changed, graph, plan) if _pays(trace, fine, made, (changed, graph, plan)) else fine


def _may_gain(trace: TraceShape, graph: DependenceGraph, launches: Sequence[int]) -> bool:
    """Whether a call reads what another launch wrote whose values are expressions."""
    return len(trace.calls) <= MAX_CALLS and any(
        d.kind is Kind.FLOW
        and launches[d.source] != launches[d.sink]
        and made_by(trace.calls[d.source].workunit)
        for d in graph.dependences
    )


def _launches(trace: TraceShape, plan: Plan) -> list[int]:
    """The number of each call's launch."""
    found = [0] * len(trace.calls)
    for number, places in enumerate(plan.launches()):
        for place in places:
            for call in plan.groups[place].calls:
                found[call] = number
    return found


class Rewritten(NamedTuple):
    """A trace of which some calls compute again, and what `Plan` tells of them."""

    trace: TraceShape
    notes: tuple[Recomputed, ...]
    vanished: tuple[int, ...]


def rewritten(
    trace: TraceShape, launches: Sequence[int] | None = None, own: bool = False
) -> Rewritten | None:
    """The trace with calls that compute again what pays; None if there are none.

    launches: the number of each call's, without that. If there are none, whatever is legal pays,
    except, unless `own` is set, what the same iteration wrote: a loop can pass that on.
    """
    rewriter = _Rewriter(trace, launches, own)
    for place in range(len(trace.calls)):
        rewriter.visit(place)
    if not rewriter.changed:
        return None
    changed = trace.with_calls({n: c.call for n, c in rewriter.changed.items()})
    gone = _unread(changed, rewriter.changed)
    made = {n: c for n, c in rewriter.changed.items() if n not in gone}
    notes = tuple(
        Recomputed(n, c.sources, tuple(sorted(c.producers.items()))) for n, c in made.items()
    )
    return Rewritten(changed.with_calls(gone), notes, tuple(sorted(gone)))


# law
def _unread(trace: TraceShape, changed: Mapping[int, _Changed]) -> dict[int, CallShape]:
    """Calls of which nothing is read any more: each does nothing, in a loop that needs it not."""
    found: dict[int, CallShape] = {}
    live = liveness(trace)
    producers = {producer for call in changed.values() for producer in call.producers}
    for producer in sorted(producers, reverse=True):
        call = trace.calls[producer]
        users = [n for n, c in changed.items() if producer in c.producers and n not in found]
        if users and all(live.is_dead_after(c, (producer,)) for c in _written(call)):
            user = trace.calls[users[0]]
            workunit = Workunit(call.workunit.name, user.workunit.indices, (), ())
            found[producer] = CallShape("for", user.space, workunit, ())
            live = liveness(trace.with_calls(found))
    return found


def _written(call: CallShape) -> set[int]:
    return {touch.region.cluster for touch in touches(call) if touch.access.mode is not Mode.READ}


# --------------------------------------------------------------------------- may it?


@dataclass(slots=True)
class _Changed:
    """A call that computes again. sources: the call and place that each argument is from.

    producers: the calls whose values it computes, and how often for an iteration.
    """

    call: CallShape
    sources: tuple[tuple[int, int], ...]
    producers: dict[int, int] = field(default_factory=dict)


class _Stored(NamedTuple):
    """What a call certainly stores: to the elements between bounds, along each axis of a view."""

    made: Made
    axes: tuple[Axis, ...]
    bounds: tuple[Interval, ...]


class _Rewriter:
    def __init__(self, trace: TraceShape, launches: Sequence[int] | None, own: bool) -> None:
        self.trace = trace
        self.changed: dict[int, _Changed] = {}
        self._launches = launches or ()
        self._free = launches is None
        self._own = own or not self._free
        self._machine = machine_for(trace)
        self._operation = _operation(trace)
        self._touches = {
            kind: tuple(touches(call))
            for kind, call in dict(zip(trace.kinds, trace.calls, strict=True)).items()
        }
        self._writers: dict[int, list[int]] = {}  # of each cluster, ascending
        for place, kind in enumerate(trace.kinds):
            for cluster in {t.region.cluster for t in self._touches[kind] if _writes(t)}:
                self._writers.setdefault(cluster, []).append(place)

    def _call(self, place: int) -> CallShape:
        known = self.changed.get(place)
        return self.trace.calls[place] if known is None else known.call

    def visit(self, place: int) -> None:
        """Let a call compute what it reads, as far as that is legal and cheap."""
        if not mergeable(self._call(place)) or effects(self._call(place).workunit).fetches:
            return
        while any(self._recompute(place, region) for region in _read(self._call(place))):
            pass

    # law: True
    def _recompute(self, place: int, region: RegionShape) -> bool:
        """Let a call compute what it reads of a region; whether it does."""
        call = self._call(place)
        producer = self._last_writer(place, region)
        if producer is None:
            return False
        if not self._free and not self._near(place, producer, region):
            return False
        source = self._call(producer)
        made = computing(call, source, region)
        if made is None or not self._undisturbed(source, producer, place):
            return False
        changed, given, times, own = made
        if own and not self._own:
            return False
        if not self._free and not self._cheap(call, changed, source, region):
            return False
        before = self.changed.get(place) or _Changed(call, _own(place, call))
        from_ = self.changed.get(producer) or _Changed(source, _own(producer, source))
        producers = dict(before.producers)
        for other, count in {producer: 1, **from_.producers}.items():
            producers[other] = producers.get(other, 0) + count * times
        sources = (*before.sources, *(from_.sources[n] for n in given))
        self.changed[place] = _Changed(changed, sources, producers)
        return True

    def _last_writer(self, place: int, region: RegionShape) -> int | None:
        """The last call before `place` that may write a byte of a region."""
        low, high = byte_range(region)
        writers = self._writers.get(region.cluster, [])
        for writer in reversed(writers[: bisect_left(writers, place)]):
            for touch in self._touches[self.trace.kinds[writer]]:
                if _writes(touch) and _meet(touch, region.cluster, low, high):
                    return writer
        return None

    # law: True
    def _undisturbed(self, source: CallShape, producer: int, place: int) -> bool:
        """Whether what a call reads keeps its values from there to the end of another call.

        And what it writes, which the other would read.
        """
        for touch in touches(source):
            writers = self._writers.get(touch.region.cluster, [])
            first = bisect_left(writers, producer + (touch.access.mode is not Mode.READ))
            for writer in writers[first : bisect_left(writers, place + 1)]:
                for other in self._touches[self.trace.kinds[writer]]:
                    if _writes(other) and _meet(other, touch.region.cluster, touch.low, touch.high):
                        return False
        return True

    # law: True
    def _near(self, place: int, producer: int, region: RegionShape) -> bool:
        """Whether there may be something to gain: memory, between two launches."""
        if not self.trace.clusters[region.cluster].temporary:
            return False  # it is stored all the same
        return self._launches[place] != self._launches[producer]

    def _cheap(
        self, call: CallShape, changed: CallShape, source: CallShape, region: RegionShape
    ) -> bool:
        """Whether what is done again may cost less than what it saves: memory and, once, itself."""
        low, high = byte_range(region)
        machine = self._machine
        saved = machine.launch + (1 + machine.stores) * (high - low + 1) / machine.bandwidth
        more = arithmetic(changed.workunit) - arithmetic(call.workunit)
        less = arithmetic(source.workunit) if self.trace.clusters[region.cluster].temporary else 0
        operations = call.space.size * more - source.space.size * less
        return operations * self._operation < saved


def _own(place: int, call: CallShape) -> tuple[tuple[int, int], ...]:
    return tuple((place, n) for n in range(len(call.arguments)))


def _read(call: CallShape) -> list[RegionShape]:
    """The regions that a call reads, each once."""
    found = (touch.region for touch in touches(call) if touch.access.mode is Mode.READ)
    return list(dict.fromkeys(found))


def _writes(touch: Touch) -> bool:
    return touch.access.mode is not Mode.READ


def _meet(touch: Touch, cluster: int, low: int, high: int) -> bool:
    return touch.region.cluster == cluster and touch.low <= high and low <= touch.high


@cached(1024)
# law: not None
def stored_by(call: CallShape, region: RegionShape) -> _Stored | None:
    """What a call stores to a region, if that can be computed again; None if not."""
    places = [n for n, argument in enumerate(call.arguments) if argument == region]
    if call.pattern != "for" or len(places) != 1 or not mergeable(call):
        return None
    made = made_by(call.workunit).get(call.workunit.params[places[0]].sym)
    if made is None or not is_injective(region.strides, region.shape, region.dtype.size):
        return None
    writes = [a for a in accesses(call) if a.mode is not Mode.READ]
    mine = [a for a in writes if a.param == places[0]]
    same = [a for a in writes if region_of(call, a).cluster == region.cluster]
    if not mine or len(same) != len(mine):
        return None  # written by another name, too
    relation = mine[0].relation
    if any(a.relation.indices != relation.indices for a in mine):
        return None
    ranges = [(begin, end - 1) for begin, end in zip(relation.begin, relation.end, strict=True)]
    if not made.always:
        if len(mine) > 1 or not (mine[0].exact and relation.box):
            return None
        ranges = list(relation.ranges)
    axes: dict[int, Axis] = {}
    bounds = []
    for subscript, index in enumerate(relation.indices):
        if index is None or len(index.terms) != 1 or abs(index.terms[0][1]) != 1:
            return None
        number, sign = index.terms[0]
        if number >= len(relation.begin) or number in axes:
            return None
        axes[number] = Axis(subscript, sign, index.constant)
        bounds.append(index.span(ranges))
    if len(axes) != len(relation.begin):
        return None
    return _Stored(made, tuple(axes[n] for n in range(len(axes))), tuple(bounds))


# law: True
def _inside(access: Access, region: RegionShape, bounds: tuple[Interval, ...]) -> bool:
    """Whether an access reads nothing but elements between bounds."""
    if access.mode is not Mode.READ:
        return False
    relation = access.relation
    for index, extent, (low, high) in zip(relation.indices, region.shape, bounds, strict=True):
        first, last = (0, extent - 1) if index is None else index.span(relation.ranges)
        if max(first, 0) < low or min(last, extent - 1) > high:
            return False
    return True


def _own_iterations(
    call: CallShape, reads: list[Access], source: CallShape, region: RegionShape
) -> bool:
    """Whether each iteration reads what the same one wrote."""
    (write,) = {
        a.relation.indices
        for a in accesses(source)
        if a.mode is not Mode.READ and source.arguments[a.param] == region
    }
    return all(a.relation.indices == write for a in reads) and len(call.space.begin) == len(
        source.space.begin
    )


class _Computing(NamedTuple):
    """A call that computes what it would read of a region.

    given: the places of the other call's arguments that it has for that. times: how many elements
    it computes. own: whether each is one that the same iteration wrote.
    """

    call: CallShape
    given: tuple[int, ...]
    times: int
    own: bool


@cached(1024)
def computing(call: CallShape, source: CallShape, region: RegionShape) -> _Computing | None:
    """The call with what another stored to a region computed again; None if it may not be.

    Whether memory is as it was is not asked here.
    """
    if source.space.execution != call.space.execution:
        return None
    stored = stored_by(source, region)
    reads = [a for a in accesses(call) if call.arguments[a.param] == region]
    if stored is None or not all(_inside(a, region, stored.bounds) for a in reads):
        return None
    syms: dict[ArgumentShape, Sym] = {}
    views = set()
    for param, argument in zip(call.workunit.params, call.arguments, strict=True):
        if isinstance(argument, RegionShape):
            syms.setdefault(argument, param.sym)
            if argument == region:
                views.add(param.sym)
    same = {
        param.sym: syms[argument]
        for param, argument in zip(source.workunit.params, source.arguments, strict=True)
        if argument in syms
    }
    found = recomputed(
        call.workunit, frozenset(views), source.workunit, stored.made, stored.axes, same
    )
    if found is None:
        return None
    arguments = (*call.arguments, *(source.arguments[n] for n in found.given))
    if len(arguments) > MAX_ARGUMENTS:
        return None
    made = call._replace(workunit=found.workunit, arguments=arguments)
    own = _own_iterations(call, reads, source, region)
    return _Computing(made, found.given, found.times, own)


# --------------------------------------------------------------------------- should it?


def _pays(trace: TraceShape, fine: Planned, made: Rewritten, new: Planned) -> bool:
    """Whether the trace that computes again is cheaper by enough."""
    operation = _operation(trace)
    old_seconds, seconds = coarsen.compared(fine, new[0], new[2])
    for before, after in zip(trace.calls, made.trace.calls, strict=True):
        if after is not before:
            more = after.space.size * arithmetic(after.workunit)
            seconds += (more - before.space.size * arithmetic(before.workunit)) * operation
    return seconds <= (1.0 - GAIN) * old_seconds


def _operation(trace: TraceShape) -> float:
    """Seconds of an addition, by all that runs the trace."""
    if any(call.space.execution in GPU_SPACES for call in trace.calls):
        return 1.0 / (BALANCE * machine_for(trace).bandwidth)
    return OPERATION / SETTINGS.threads
