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
    """Compare each call with the earlier ones that touch the same memory, latest first."""
    index = _Index()
    found: list[Dependence] = []
    before: list[int] = []  # for each call, a bit set of those it must follow
    apart: list[int] = []  # of those it must not share a loop with, by a path
    kinds: dict[CallShape, int] = {}  # equal calls are compared once
    memo: dict[tuple[int, int], tuple[_Conflict, ...]] = {}
    numbers: list[int] = []
    for sink, call in enumerate(trace.calls):
        number = kinds.setdefault(call, len(kinds))
        numbers.append(number)
        ordered = separate = 0
        candidates = index.candidates(call)
        while candidates:
            source = candidates.bit_length() - 1
            key = (numbers[source], number)
            conflicts = memo.get(key)
            if conflicts is None:
                conflicts = memo[key] = tuple(_conflicts(trace.calls[source], call))
            candidates ^= 1 << source
            if not conflicts:
                continue
            forbids = not all(c.same_iteration for c in conflicts)
            if forbids or not ordered >> source & 1:
                found += (Dependence(c.kind, source, sink, *c[1:]) for c in conflicts)
            ordered |= 1 << source | before[source]
            separate |= apart[source]
            if forbids:
                separate |= 1 << source | before[source]
            candidates &= ~separate
        before.append(ordered)
        apart.append(separate)
        index.add(sink, call)
    found.sort(key=lambda d: (d.source, d.sink))
    return DependenceGraph(len(trace.calls), tuple(found))


class _Span(NamedTuple):
    """Bytes that a call may touch through one argument."""

    low: int
    high: int
    call: int
    writes: bool


class _Index:
    """Finds the earlier calls that touch the same bytes, by cluster."""

    def __init__(self) -> None:
        self._spans: dict[int, list[_Span]] = {}
        self._memo: dict[CallShape, list[tuple[int, _Span]]] = {}

    def _of(self, call: CallShape) -> list[tuple[int, _Span]]:
        known = self._memo.get(call)
        if known is not None:
            return known
        merged: dict[tuple[int, bool], tuple[int, int]] = {}
        for access in accesses(call):
            region = _region(call, access)
            low, high = footprint(region, access.relation)
            if high < low:
                continue
            key = (access.param, access.mode is not Mode.READ)
            old = merged.get(key, (low, high))
            merged[key] = min(low, old[0]), max(high, old[1])
        result = []
        for (param, writes), (low, high) in merged.items():
            argument = call.arguments[param]
            assert isinstance(argument, RegionShape)
            result.append((argument.cluster, _Span(low, high, -1, writes)))
        self._memo[call] = result
        return result

    def candidates(self, call: CallShape) -> int:
        """A bit set of earlier calls of which either one writes where the other touches."""
        calls = 0
        for cluster, (low, high, _, writes) in self._of(call):
            for first, last, number, wrote in self._spans.get(cluster, ()):
                if first <= high and low <= last and (writes or wrote):
                    calls |= 1 << number
        return calls

    def add(self, number: int, call: CallShape) -> None:
        for cluster, span in self._of(call):
            self._spans.setdefault(cluster, []).append(span._replace(call=number))


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
