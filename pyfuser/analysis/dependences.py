"""Dependences between the calls of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.layout import footprint
from pyfuser.analysis.overlap import Verdict, overlap
from pyfuser.ir.nodes import SourceLocation, Workunit
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape


class Kind(Enum):
    FLOW = "flow"  # write, then read
    ANTI = "anti"  # read, then write
    OUTPUT = "output"  # write, then write

    __hash__ = object.__hash__


class Dependence(NamedTuple):
    """Two calls (positions in the trace) of which the second must not overtake the first.

    same_iteration: every pair of iterations that touch one cell is p = q, so a shared loop keeps
    the order. `first_view` / `second_view` are the user's argument names, with the locations of
    the accesses that conflict; `unknown` says that an access could not be analysed.
    """

    kind: Kind
    source: int
    sink: int
    same_iteration: bool
    first_view: str = ""
    second_view: str = ""
    first_location: SourceLocation | None = None
    second_location: SourceLocation | None = None
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class DependenceGraph:
    """The dependences of a trace, by (source, sink) with source < sink.

    Left out are pairs of calls whose dependences follow from others: those that only keep an
    order that a path keeps too, and those that forbid a shared loop where a path with a link that
    forbids one leads from source to sink (no group can hold both ends of such a path and be run
    as a whole; K. Kennedy and K. McKinley, 1993, call it a bad path).
    """

    size: int
    dependences: tuple[Dependence, ...]


# law
def dependences(trace: TraceShape) -> DependenceGraph:
    """Compare each call with the earlier ones that touch the same memory, latest first.

    Sets of calls are bit sets of their positions.
    """
    if len(trace.calls) < 2:
        return DependenceGraph(len(trace.calls), ())  # without a look at what it touches
    found: list[Dependence] = []
    before: list[int] = []  # for each call, those it must follow
    apart: list[int] = []  # those it must not share a loop with, by a path
    history = _History()
    for sink, (kind, call) in enumerate(zip(trace.kinds, trace.calls, strict=True)):
        history.meet(kind, call)
        ordered = separate = 0
        candidates = history.overlapping(kind)
        while candidates:
            source = candidates.bit_length() - 1
            bit = 1 << source
            conflicts = history.conflicts(source, kind)
            if not conflicts:
                candidates &= ~history.alike(source)
                continue
            forbids = not all(c.same_iteration for c in conflicts)
            if forbids or not ordered & bit:
                found += (Dependence(c.kind, source, sink, *c[1:]) for c in conflicts)
                ordered |= bit | before[source]
                separate |= apart[source]
            if forbids:
                separate |= bit | before[source]
            else:
                candidates &= ~(bit | history.alike(source) & ordered)
            candidates &= ~separate
        before.append(ordered)
        apart.append(separate)
        history.add(kind)
    found.sort(key=lambda d: (d.source, d.sink))
    return DependenceGraph(len(trace.calls), tuple(found))


class Touch(NamedTuple):
    """An access with its memory: the bytes low to high of a cluster, both included."""

    low: int
    high: int
    region: RegionShape
    access: Access


class _Span(NamedTuple):
    """Bytes of a cluster that a call may touch through one argument."""

    cluster: int
    low: int
    high: int
    writes: bool


class _History:
    """The calls so far, found by the bytes they touch. Equal calls are of one kind."""

    def __init__(self) -> None:
        self._shapes: list[CallShape] = []  # of each kind
        self._touches: list[tuple[Touch, ...]] = []  # of each kind
        self._spans: list[frozenset[_Span]] = []  # of each kind
        self._members: list[int] = []  # of each kind: its calls
        self._own: list[list[int]] = []  # of each kind: the numbers of its spans
        self._calls: list[int] = []  # the kind of each call
        self._spans_of: dict[int, dict[_Span, int]] = {}  # by cluster: the spans' numbers
        self._users: list[int] = []  # of each span: the calls that touch it
        self._near: dict[int, tuple[int, list[int]]] = {}  # see `overlapping`
        self._conflicts: dict[tuple[int, int], tuple[_Conflict, ...]] = {}

    def meet(self, kind: int, call: CallShape) -> None:
        """Look at what a call touches, if it is the first of its kind; kinds count up from 0."""
        if kind == len(self._shapes):
            found = tuple(touches(call))
            self._shapes.append(call)
            self._touches.append(found)
            self._spans.append(_spans(found))
            self._members.append(0)
            self._own.append([])

    def add(self, kind: int) -> None:
        """Append a call of a kind."""
        bit = 1 << len(self._calls)
        self._calls.append(kind)
        self._members[kind] |= bit
        own = self._own[kind]
        if not own:
            for span in self._spans[kind]:
                numbers = self._spans_of.setdefault(span.cluster, {})
                number = numbers.setdefault(span, len(self._users))
                if number == len(self._users):
                    self._users.append(0)
                own.append(number)
        for number in own:
            self._users[number] |= bit

    def alike(self, source: int) -> int:
        """The calls of the same kind."""
        return self._members[self._calls[source]]

    def overlapping(self, kind: int) -> int:
        """Calls of which either they or a call of this kind write where the other touches."""
        count, near = self._near.get(kind, (-1, []))
        if count != len(self._users):  # there are new spans
            near = [
                number
                for cluster, low, high, writes in self._spans[kind]
                for (_, first, last, wrote), number in self._spans_of.get(cluster, {}).items()
                if first <= high and low <= last and (writes or wrote)
            ]
            self._near[kind] = len(self._users), near
        calls = 0
        for number in near:
            calls |= self._users[number]
        return calls

    def conflicts(self, source: int, kind: int) -> tuple[_Conflict, ...]:
        """The conflicts of an earlier call with a call of a kind."""
        key = self._calls[source], kind
        known = self._conflicts.get(key)
        if known is None:
            first, second = key
            worst = _worst_conflicts(self._touches[first], self._touches[second])
            a, b = self._shapes[first].workunit, self._shapes[second].workunit
            known = self._conflicts[key] = tuple(_conflict(a, b, pair) for pair in worst)
        return known


def touches(call: CallShape) -> Iterator[Touch]:
    """A call's accesses, each with the memory it touches."""
    for access in accesses(call):
        region = call.arguments[access.param]
        assert isinstance(region, RegionShape)
        low, high = footprint(region, access.relation)
        if low <= high:
            yield Touch(low, high, region, access)


def _spans(touches: tuple[Touch, ...]) -> frozenset[_Span]:
    """What a call touches, merged for each argument and mode."""
    merged: dict[tuple[int, bool], _Span] = {}
    for low, high, region, access in touches:
        writes = access.mode is not Mode.READ
        key = access.param, writes
        old = merged.get(key)
        if old is not None:
            low, high = min(low, old.low), max(high, old.high)
        merged[key] = _Span(region.cluster, low, high, writes)
    return frozenset(merged.values())


class _Conflict(NamedTuple):
    """A Dependence without the places of its calls."""

    kind: Kind
    same_iteration: bool
    first_view: str
    second_view: str
    first_location: SourceLocation | None
    second_location: SourceLocation | None
    unknown: bool


_Pair = tuple[Kind, Verdict, Access, Access]


# law
def _worst_conflicts(first: tuple[Touch, ...], second: tuple[Touch, ...]) -> Iterator[_Pair]:
    """For each kind and pair of arguments the worst conflict between two calls."""
    worst: dict[tuple[Kind, int, int], _Pair] = {}
    for low, high, region, a in first:
        for other_low, other_high, other, b in second:
            if region.cluster != other.cluster or high < other_low or other_high < low:
                continue
            kind = conflict_kind(a, region, b, other)
            if kind is None:
                continue
            key = (kind, a.param, b.param)
            old = worst.get(key)
            if old is not None and old[1] is Verdict.CROSS:
                continue
            verdict = overlap(a.relation, region, b.relation, other)
            if _SEVERITY[verdict] > (_SEVERITY[old[1]] if old else 0):
                worst[key] = kind, verdict, a, b
    yield from worst.values()


def _conflict(first: Workunit, second: Workunit, pair: _Pair) -> _Conflict:
    kind, verdict, a, b = pair
    return _Conflict(
        kind,
        verdict is Verdict.SAME,
        first.params[a.param].sym.name,
        second.params[b.param].sym.name,
        a.location,
        b.location,
        verdict is Verdict.UNKNOWN,
    )


_SEVERITY = {Verdict.NONE: 0, Verdict.SAME: 1, Verdict.UNKNOWN: 2, Verdict.CROSS: 3}


# law: None
def conflict_kind(a: Access, region: RegionShape, b: Access, other: RegionShape) -> Kind | None:
    """How two accesses to one cell depend, or None if their order does not matter."""
    if a.mode is Mode.READ:
        return None if b.mode is Mode.READ else Kind.ANTI
    if b.mode is Mode.READ:
        return Kind.FLOW
    if a.mode is b.mode is Mode.REDUCE and _commute(a.op, region, b.op, other):
        return None
    return Kind.FLOW if b.mode is Mode.REDUCE else Kind.OUTPUT


_COMMUTING = {op: op for op in ("+", "*", "min", "max", "&", "|", "^")} | {"-": "+"}


# law: True
def _commute(op: str, region: RegionShape, other_op: str, other: RegionShape) -> bool:
    """Whether two atomic updates may come in either order: one operator, whole equal elements."""
    if region.dtype is not other.dtype or op not in _COMMUTING:
        return False
    size = region.dtype.size
    steps = (*region.strides, *other.strides, region.offset - other.offset)
    return _COMMUTING[op] == _COMMUTING.get(other_op) and all(s % size == 0 for s in steps)
