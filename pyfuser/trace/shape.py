"""A trace without its data: what analysis, planning and code generation see.

Two traces of equal shape have the same plan, so the shape is the key under which plans are kept.
Buffers are numbered by cluster: a maximal set of arguments whose memory is connected by overlap.
Offsets count from the lowest region of the cluster, so that a part of an array that moves on from
trace to trace is one and the same; not so while something depends on where memory begins, as what
is known of all of it (`ClusterShape`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.trace.call import Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Region


class RegionShape(NamedTuple):
    """Where a view argument lies: byte offset inside its cluster, byte strides, shape."""

    cluster: int
    offset: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType


class ScalarShape(NamedTuple):
    """A scalar argument; `value` only where it matters to the analysis (indices, bounds)."""

    dtype: DType
    value: int | None


class FutureShape(NamedTuple):
    """A scalar argument that an earlier call of the trace computes (its place in the trace)."""

    dtype: DType
    producer: int


ArgumentShape: TypeAlias = RegionShape | ScalarShape | FutureShape


def known_scalars(workunit: Workunit, shapes: Sequence[ArgumentShape]) -> dict[Sym, int]:
    """The scalar parameters of one value, by the shapes of the arguments."""
    return {
        param.sym: shape.value
        for param, shape in zip(workunit.params, shapes, strict=True)
        if isinstance(shape, ScalarShape) and shape.value is not None
    }


class CallShape(NamedTuple):
    pattern: str
    space: Space
    workunit: Workunit
    arguments: tuple[ArgumentShape, ...]

    @property
    def clusters(self) -> set[int]:
        """Those of its arguments."""
        return {a.cluster for a in self.arguments if isinstance(a, RegionShape)}


class ClusterShape(NamedTuple):
    """What is known of a cluster's memory.

    temporary: nothing outside the trace can reach it. fresh: it is not allocated yet, so every
    element is zero before the first call of the trace writes it.
    """

    temporary: bool
    fresh: bool


ANYBODYS = ClusterShape(False, False)


class TraceShape:
    """The calls of a trace, and its clusters by number; `kinds` numbers equal calls alike.

    Hashing and comparing look at each `distinct` call once, as most calls of a long trace repeat.
    """

    __slots__ = ("_hash", "calls", "clusters", "distinct", "kinds")

    def __init__(self, calls: tuple[CallShape, ...], clusters: tuple[ClusterShape, ...]) -> None:
        self.calls = calls
        self.clusters = clusters
        kinds: dict[int, int] = {}  # by id(), of equal calls several
        numbers: dict[CallShape, int] = {}
        self.kinds = tuple(
            [
                kinds[id(call)]
                if id(call) in kinds
                else kinds.setdefault(id(call), numbers.setdefault(call, len(numbers)))
                for call in calls
            ]
        )
        self.distinct = tuple(numbers)
        self._hash = hash((self.kinds, self.distinct, clusters))

    def with_calls(self, changed: Mapping[int, CallShape]) -> TraceShape:
        """The trace with other calls at some places."""
        calls = [changed.get(place, call) for place, call in enumerate(self.calls)]
        return TraceShape(tuple(calls), self.clusters)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TraceShape)
            and self.kinds == other.kinds
            and self.distinct == other.distinct
            and self.clusters == other.clusters
        )

    def __hash__(self) -> int:
        return self._hash


def shape_of(calls: Sequence[Call], structural: Callable[[Workunit], frozenset[int]]) -> TraceShape:
    """The shape of recorded calls.

    `structural(workunit)` gives the positions of the scalar parameters whose value decides which
    elements are touched. Futures that are already known count as scalars.
    """
    clusters = _Clusters(calls)
    producers = {id(c.result): n for n, c in enumerate(calls) if c.result is not None}
    known: dict[tuple[object, ...], CallShape] = {}
    shapes = []
    positions: dict[int, frozenset[int]] = {}  # by id() of the workunit: what matters
    for call in calls:
        number = id(call.workunit)
        if number not in positions:
            positions[number] = structural(call.workunit)
        matters = positions[number]
        key: list[object] = [number, id(call.space)]
        for n, argument in enumerate(call.arguments):
            kind = type(argument)
            if kind is Region:
                key.append(id(argument))
            elif n in matters or kind is Future:
                key.append(_scalar_shape(call, n, matters, producers))
        identity = tuple(key)
        shape = known.get(identity)
        if shape is None:
            shape = known[identity] = _call_shape(call, matters, producers, clusters)
        shapes.append(shape)
    return TraceShape(tuple(shapes), clusters.shapes())


def clusters_of(
    calls: Sequence[Call], buffers: Sequence[Buffer], firsts: Sequence[int]
) -> tuple[object, ...]:
    """What a shape has of buffers: the cluster of each, and the place of its first view there; and
    the clusters. firsts: the offsets of the first views.
    """
    clusters = _Clusters(calls)
    bases = [clusters.base(buffer) for buffer in buffers]
    places = [(number, base + first) for (number, base), first in zip(bases, firsts, strict=True)]
    return *places, *clusters.shapes()


def _call_shape(
    call: Call, matters: frozenset[int], producers: dict[int, int], clusters: _Clusters
) -> CallShape:
    arguments = tuple(
        clusters.shape(argument)
        if isinstance(argument, Region)
        else _scalar_shape(call, n, matters, producers)
        for n, argument in enumerate(call.arguments)
    )
    return CallShape(call.pattern, call.space, call.workunit, arguments)


def _scalar_shape(
    call: Call, n: int, matters: frozenset[int], producers: dict[int, int]
) -> ScalarShape | FutureShape:
    """The shape of argument number `n`, which is a number or a Future."""
    argument = call.arguments[n]
    dtype = call.workunit.params[n].sym.dtype
    if isinstance(argument, Future):
        producer = producers.get(id(argument))
        if producer is not None:
            return FutureShape(dtype, producer)
        if argument.deferred is None or n in matters:
            argument = argument.result()
    return ScalarShape(dtype, int(argument) if n in matters else None)  # type: ignore[arg-type]


class _Clusters:
    """Numbers the memory that calls touch: buffers nobody else can see, then overlapping ranges."""

    # law
    def __init__(self, calls: Sequence[Call]) -> None:
        self._base: dict[int, tuple[int, int]] = {}  # id(buffer) -> (cluster, base address)
        self._known: dict[int, RegionShape] = {}  # by id(region): Views pass one region again
        self._shapes: list[ClusterShape] = []
        external: dict[int, tuple[int, int]] = {}  # id(buffer) -> absolute byte range
        lowest: dict[int, int] = {}  # of memory of ours, known and reachable: the first offset
        seen: set[int] = set()
        for call in calls:
            for argument in call.arguments:
                if type(argument) is not Region or id(argument) in seen:
                    continue
                seen.add(id(argument))
                buffer = argument.buffer
                key = id(buffer)
                if buffer.external:
                    low, high = argument.bounds()
                    low, high = low + buffer.address, high + buffer.address
                    known = external.get(key)
                    if known:
                        low, high = min(low, known[0]), max(high, known[1])
                    external[key] = (low, high)
                    self._base.setdefault(key, (-1, buffer.address))
                elif key not in self._base:
                    shape = ClusterShape(not buffer.reachable, not buffer.allocated)
                    self._base[key] = (len(self._shapes), 0)
                    self._shapes.append(shape)
                    if shape == ANYBODYS:
                        lowest[key] = argument.offset
                elif key in lowest:
                    lowest[key] = min(lowest[key], argument.offset)
        for key, low in lowest.items():
            self._base[key] = (self._base[key][0], -low)
        self._merge(external)

    # law
    def _merge(self, external: dict[int, tuple[int, int]]) -> None:
        """Give overlapping address ranges one cluster, numbered by first use."""
        end = start = -1
        starts: dict[int, int] = {}
        for key, (low, high) in sorted(external.items(), key=lambda item: item[1]):
            if low >= end or start < 0:
                start, end = low, high
            else:
                end = max(end, high)
            starts[key] = start
        numbers: dict[int, int] = {}
        for key in external:
            start = starts[key]
            if start not in numbers:
                numbers[start] = len(self._shapes)
                self._shapes.append(ClusterShape(False, False))
            self._base[key] = (numbers[start], self._base[key][1] - start)

    def base(self, buffer: Buffer) -> tuple[int, int]:
        """A buffer's cluster, and what is added to the offsets of its regions."""
        return self._base[id(buffer)]

    def shape(self, region: Region) -> RegionShape:
        known = self._known.get(id(region))
        if known is None:
            buffer, offset, strides, shape, dtype = region
            cluster, base = self._base[id(buffer)]
            known = RegionShape(cluster, base + offset, strides, shape, dtype)
            self._known[id(region)] = known
        return known

    def shapes(self) -> tuple[ClusterShape, ...]:
        return tuple(self._shapes)
