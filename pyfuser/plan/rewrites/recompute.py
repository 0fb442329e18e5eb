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

The cost. To what the model says of memory and launches comes what the arithmetic costs that is done
again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pyfuser.analysis.accesses import Mode
from pyfuser.analysis.dependences import DependenceGraph, Kind, Touch, touches
from pyfuser.analysis.layout import byte_range
from pyfuser.analysis.liveness import liveness
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Workunit
from pyfuser.plan.arithmetic_cost import operations
from pyfuser.plan.cost_model import machine_for, operation
from pyfuser.plan.legality import mergeable
from pyfuser.plan.plan import Note, Plan, Told
from pyfuser.plan.rewrite import UNSURE, Change, Changes, Option, Rewrite
from pyfuser.plan.rewrites.recomputed_body import made_by
from pyfuser.plan.rewrites.recomputed_call import computing
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

MAX_CALLS = 128
"""Of a trace that is planned twice: longer ones take long to plan."""


def _candidates(trace: TraceShape, best: Option) -> Changes:
    """The calls that compute again what another launch would have stored for them."""
    launches = _launches(trace, best.plan)
    return rewritten(trace, launches) if _may_gain(trace, best.graph, launches) else {}


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


def rewritten(
    trace: TraceShape, launches: Sequence[int] | None = None, own: bool = False
) -> Changes:
    """The calls that compute again what pays, and those that vanish.

    launches: the number of each call's, without that. If there are none, whatever is legal pays,
    except, unless `own` is set, what the same iteration wrote: a loop can pass that on.
    """
    rewriter = _Rewriter(trace, launches, own)
    for place in range(len(trace.calls)):
        rewriter.visit(place)
    if not rewriter.changed:
        return {}
    changed = trace.with_calls({n: c.call for n, c in rewriter.changed.items()})
    gone = _unread(changed, rewriter.changed)
    made = {n: c for n, c in rewriter.changed.items() if n not in gone}
    found = {}
    for n, c in made.items():
        stored = frozenset(c.producers.keys() - gone.keys())
        note = Recomputed(n, c.sources, tuple(sorted(c.producers.items())), stored)
        found[n] = Change(c.call, note)
    for n, call in gone.items():
        users = tuple(sorted(user for user, c in made.items() if n in c.producers))
        found[n] = Change(call, Vanished(n, users))
    return found


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


class _Rewriter:
    def __init__(self, trace: TraceShape, launches: Sequence[int] | None, own: bool) -> None:
        self.trace = trace
        self.changed: dict[int, _Changed] = {}
        self._launches = launches or ()
        self._free = launches is None
        self._own = own or not self._free
        self._machine = machine_for(trace)
        self._operation = operation(trace)
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
        more = operations(changed) - operations(call)
        less = operations(source) if self.trace.clusters[region.cluster].temporary else 0
        return (more - less) * self._operation < saved


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


# --------------------------------------------------------------------------- should it?


def _work(given: TraceShape, changes: Changes) -> float:
    """Seconds of the arithmetic that is done again."""
    made = given.with_calls({n: change.call for n, change in changes.items()})
    return again(given, made, changes)


def again(given: TraceShape, trace: TraceShape, places: Iterable[int]) -> float:
    """Seconds of the arithmetic that some calls of a trace do beside what they were given."""
    more = sum(operations(trace.calls[n]) - operations(given.calls[n]) for n in places)
    return more * operation(given)


# --------------------------------------------------------------------------- the rewrite


@dataclass(frozen=True, slots=True)
class Recomputed(Note):
    """A call that computes again what others would store for it.

    sources: for each argument that it has now, the call that the program gave it to, and its place
    there. producers: the calls that it computes, and how many of their iterations each. stored:
    those of them that store it as well.
    """

    sources: tuple[tuple[int, int], ...]
    producers: tuple[tuple[int, int], ...]
    stored: frozenset[int]

    def source(self, place: int) -> tuple[int, int] | None:
        """That of the program."""
        return self.sources[place]

    @classmethod
    def lines(cls, notes: Sequence[Note], told: Told) -> Iterator[str]:
        again: dict[str, dict[str, set[int]]] = {}
        stored: dict[str, dict[str, None]] = {}
        for note in notes:
            assert isinstance(note, Recomputed)
            user = told.name(note.call)
            for producer, times in note.producers:
                name = told.name(producer)
                again.setdefault(user, {}).setdefault(name, set()).add(times)
                if producer in note.stored:
                    stored.setdefault(user, {})[name] = None
        for user, producers in again.items():
            texts = [f"{name} ({_often(times)})" for name, times in producers.items()]
            yield f"recomputed where {user} reads it: {', '.join(texts)}"
            if user in stored:
                yield f"and computed by itself as well: {', '.join(stored[user])}"


def _often(times: Iterable[int]) -> str:
    found = sorted(times)
    return "once" if found == [1] else f"{' or '.join(map(str, found))} times"


@dataclass(frozen=True, slots=True)
class Vanished(Note):
    """A call that does nothing, as all that would read what it stores compute that themselves.

    users: these. Should one of them fail, what runs next may read what the call stores.
    """

    users: tuple[int, ...]

    @property
    def until(self) -> tuple[int, ...]:
        """All that compute it must have run."""
        return self.users


REWRITE = Rewrite(
    "recompute",
    "calls compute again what another launch would store for them",
    candidates=_candidates,
    work=_work,
    gain=UNSURE,  # how arithmetic overlaps memory
    renews=True,
)
