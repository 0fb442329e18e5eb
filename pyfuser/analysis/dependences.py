"""Dependences between the calls of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.layout import footprint
from pyfuser.analysis.overlap import Verdict, overlap
from pyfuser.ir.nodes import SourceLocation
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape


class Kind(Enum):
    FLOW = "flow"  # write, then read
    ANTI = "anti"  # read, then write
    OUTPUT = "output"  # write, then write

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Dependence:
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


def dependences(trace: TraceShape) -> DependenceGraph:
    """Compare each call with the earlier ones that touch the same memory, latest first.

    Sets of calls are bit sets of their positions. Equal calls are of one kind, and kinds are
    compared once.
    """
    found: list[Dependence] = []
    before: list[int] = []  # for each call, those it must follow
    apart: list[int] = []  # those it must not share a loop with, by a path
    history = _History()
    for sink, call in enumerate(trace.calls):
        same, forbid = history.conflicting(call)
        ordered = separate = 0
        while open_ends := same & ~ordered | forbid & ~separate:
            source = open_ends.bit_length() - 1
            conflicts = history.conflicts(source, call)
            found += (Dependence(c.kind, source, sink, *c[1:]) for c in conflicts)
            ordered |= 1 << source | before[source]
            separate |= apart[source]
            if forbid >> source & 1:
                separate |= 1 << source | before[source]
        before.append(ordered)
        apart.append(separate)
        history.add(call)
    found.sort(key=lambda d: (d.source, d.sink))
    return DependenceGraph(len(trace.calls), tuple(found))


class _Span(NamedTuple):
    """Bytes of a cluster that a call may touch through one argument."""

    cluster: int
    low: int
    high: int
    writes: bool


class _History:
    """The calls so far, found by the bytes they touch."""

    def __init__(self) -> None:
        self._kinds: dict[CallShape, int] = {}  # equal calls have one number
        self._calls: list[int] = []  # the kind of each call
        self._members: list[int] = []  # for each kind its calls
        self._shapes: list[CallShape] = []  # of each kind
        self._spans: list[frozenset[_Span]] = []  # of each kind
        self._touched: dict[int, dict[_Span, int]] = {}  # by cluster: who touched a span
        self._conflicts: dict[tuple[int, int], tuple[_Conflict, ...]] = {}

    def _kind(self, call: CallShape) -> int:
        kind = self._kinds.setdefault(call, len(self._kinds))
        if kind == len(self._spans):
            self._spans.append(frozenset(_spans(call)))
            self._shapes.append(call)
            self._members.append(0)
        return kind

    def add(self, call: CallShape) -> None:
        kind = self._kind(call)
        bit = 1 << len(self._calls)
        self._calls.append(kind)
        self._members[kind] |= bit
        for span in self._spans[kind]:
            touched = self._touched.setdefault(span.cluster, {})
            touched[span] = touched.get(span, 0) | bit

    def _overlapping(self, kind: int) -> int:
        """Calls of which either they or a call of this kind write where the other touches."""
        calls = 0
        for cluster, low, high, writes in self._spans[kind]:
            for (_, first, last, wrote), who in self._touched.get(cluster, {}).items():
                if first <= high and low <= last and (writes or wrote):
                    calls |= who
        return calls

    def conflicting(self, call: CallShape) -> tuple[int, int]:
        """Calls that conflict in the same iteration only, and calls that conflict otherwise."""
        kind = self._kind(call)
        same = forbid = 0
        candidates = self._overlapping(kind)
        while candidates:
            source = candidates.bit_length() - 1
            members = self._members[self._calls[source]]
            candidates &= ~members
            conflicts = self.conflicts(source, call)
            if all(c.same_iteration for c in conflicts):
                same |= members if conflicts else 0
            else:
                forbid |= members
        return same, forbid

    def conflicts(self, source: int, call: CallShape) -> tuple[_Conflict, ...]:
        """The conflicts of an earlier call with this one."""
        number = self._calls[source]
        key = number, self._kinds[call]
        known = self._conflicts.get(key)
        if known is None:
            known = self._conflicts[key] = tuple(_conflicts(self._shapes[number], call))
        return known


def _spans(call: CallShape) -> Iterator[_Span]:
    """What a call touches, merged for each argument and mode."""
    merged: dict[tuple[int, bool], tuple[int, int]] = {}
    for access in accesses(call):
        low, high = footprint(_region(call, access), access.relation)
        if high < low:
            continue
        key = (access.param, access.mode is not Mode.READ)
        old = merged.get(key, (low, high))
        merged[key] = min(low, old[0]), max(high, old[1])
    for (param, writes), (low, high) in merged.items():
        region = call.arguments[param]
        assert isinstance(region, RegionShape)
        yield _Span(region.cluster, low, high, writes)


class _Conflict(NamedTuple):
    """A Dependence without the places of its calls."""

    kind: Kind
    same_iteration: bool
    first_view: str
    second_view: str
    first_location: SourceLocation | None
    second_location: SourceLocation | None
    unknown: bool


def _conflicts(first: CallShape, second: CallShape) -> Iterator[_Conflict]:
    """For each kind and pair of arguments the worst conflict between two calls."""
    worst: dict[tuple[Kind, int, int], tuple[int, Verdict, Access, Access]] = {}
    for a in accesses(first):
        region = _region(first, a)
        for b in accesses(second):
            other = _region(second, b)
            if region.cluster != other.cluster:
                continue
            kind = _kind(a, region, b, other)
            if kind is None:
                continue
            verdict = overlap(a.relation, region, b.relation, other)
            key = (kind, a.param, b.param)
            rank = _SEVERITY[verdict]
            if rank and (key not in worst or rank > worst[key][0]):
                worst[key] = rank, verdict, a, b
    for (kind, _, _), (_, verdict, a, b) in worst.items():
        yield _Conflict(
            kind,
            verdict is Verdict.SAME,
            first.workunit.params[a.param].sym.name,
            second.workunit.params[b.param].sym.name,
            a.location,
            b.location,
            verdict is Verdict.UNKNOWN,
        )


_SEVERITY = {Verdict.NONE: 0, Verdict.SAME: 1, Verdict.UNKNOWN: 2, Verdict.CROSS: 3}


def _region(call: CallShape, access: Access) -> RegionShape:
    region = call.arguments[access.param]
    assert isinstance(region, RegionShape)
    return region


def _kind(a: Access, region: RegionShape, b: Access, other: RegionShape) -> Kind | None:
    """How two accesses to one cell depend, or None if their order does not matter."""
    if a.mode is Mode.READ:
        return None if b.mode is Mode.READ else Kind.ANTI
    if b.mode is Mode.READ:
        return Kind.FLOW
    if a.mode is b.mode is Mode.REDUCE and _commute(a.op, region, b.op, other):
        return None
    return Kind.FLOW if b.mode is Mode.REDUCE else Kind.OUTPUT


_COMMUTING = {op: op for op in ("+", "*", "min", "max", "&", "|", "^")} | {"-": "+"}


def _commute(op: str, region: RegionShape, other_op: str, other: RegionShape) -> bool:
    """Whether two atomic updates may come in either order: one operator, whole equal elements."""
    if region.dtype is not other.dtype or op not in _COMMUTING:
        return False
    size = region.dtype.size
    steps = (*region.strides, *other.strides, region.offset - other.offset)
    return _COMMUTING[op] == _COMMUTING.get(other_op) and all(s % size == 0 for s in steps)
