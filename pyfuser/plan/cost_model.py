"""Should calls share a loop? A cost model: launches and bytes that must move.

The roofline view (S. Williams, A. Waterman and D. Patterson, 2009) of a kernel without reuse
between iterations: its time is that of the memory traffic, plus a constant for the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, Relation, accesses
from pyfuser.analysis.affine import Affine
from pyfuser.analysis.layout import byte_range
from pyfuser.analysis.liveness import liveness
from pyfuser.ir.nodes import For, While
from pyfuser.plan.arithmetic_cost import OPERATION, long_loops
from pyfuser.support.caches import cached
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape
from pyfuser.tuning import gpu as tuning_gpu
from pyfuser.tuning.host import Machine, known

BALANCE = 2.0
"""Bytes that a GPU moves in the time of an addition, or of half a load from its caches."""


class _Touch(NamedTuple):
    """What one call does with one stream; the cells are empty unless a value can be kept."""

    stream: int
    read: float  # bytes
    written: float
    cells_read: _Cells
    cells_written: _Cells


class CostModel:
    """The costs of groups of a trace's calls.

    A stream is memory that is walked through together: a region, or regions of which each
    overlaps the last by more than half.
    """

    def __init__(self, trace: TraceShape, machine: Machine | None = None) -> None:
        self.machine = machine or machine_for(trace)
        self.streams = streams = _streams(trace)
        self._liveness = liveness(trace)
        self._costs: dict[tuple[int, ...], float] = {}
        first = dict(zip(trace.kinds, trace.calls, strict=True))
        touches = {kind: tuple(_touches(call, streams)) for kind, call in first.items()}
        self._calls = [touches[kind] for kind in trace.kinds]
        used = {kind: frozenset(touch.stream for touch in each) for kind, each in touches.items()}
        self._used = [used[kind] for kind in trace.kinds]
        loops = {
            kind: max(0.0, long_loops(call) - self._seconds(touches[kind]))
            for kind, call in first.items()
        }
        self._long_loops = [loops[kind] for kind in trace.kinds]
        gathering = {kind for kind, call in first.items() if _gathers(call)}
        self._gathering = {n for n, kind in enumerate(trace.kinds) if kind in gathering}
        members: dict[int, set[int]] = {}
        for region, stream in streams.items():
            members.setdefault(region.cluster, set()).add(stream)
        # Only memory that is always named in one way can be kept in registers.
        self._clusters = {s.pop(): cluster for cluster, s in members.items() if len(s) == 1}

    @cached_property
    def total(self) -> float:
        """The bytes of all memory that the trace touches."""
        streams: dict[int, float] = {}
        for touches in self._calls:
            for touch in touches:
                size = max(touch.read, touch.written)
                streams[touch.stream] = max(streams.get(touch.stream, 0.0), size)
        return sum(streams.values())

    def traffic(
        self, positions: Sequence[int], rolling: frozenset[int] = frozenset()
    ) -> tuple[float, int]:
        """The bytes that calls move together, and in how many streams.

        rolling: clusters that need no memory of their own.
        """
        read: dict[int, float] = {}
        written: dict[int, float] = {}
        touched: dict[int, list[int]] = {}
        for position in positions:
            for stream, reads, writes, _, _ in self._calls[position]:
                if stream in touched:
                    touched[stream].append(position)
                else:
                    touched[stream] = [position]
                if reads and stream not in written and reads > read.get(stream, 0.0):
                    read[stream] = reads
                if writes > written.get(stream, 0.0):
                    written[stream] = writes
        for stream in [stream for stream in written if stream in self._clusters]:
            if self._clusters[stream] in rolling or self._stays_inside(stream, touched[stream]):
                del written[stream]
                read.pop(stream, None)
        # A store to a line that is not in cache reads it first.
        stores = self.machine.stores
        total = sum(read.values()) + sum(
            size if stream in read else stores * size for stream, size in written.items()
        )
        return total, len(read.keys() | written.keys())

    def contracted(self, positions: Sequence[int]) -> set[int]:
        """The streams for which a group needs no memory."""
        touched: dict[int, list[int]] = {}
        written: set[int] = set()
        for position in positions:
            for touch in self._calls[position]:
                touched.setdefault(touch.stream, []).append(position)
                if touch.written:
                    written.add(touch.stream)
        return {
            stream
            for stream in self._clusters.keys() & written
            if self._stays_inside(stream, touched[stream])
        }

    def _stays_inside(self, stream: int, positions: list[int]) -> bool:
        """Whether a stream needs no memory: its values are read, if at all, where they are made.

        `positions` are those calls of the group that touch it.
        """
        if not self._liveness.is_dead_after(self._clusters[stream], positions):
            return False
        touches = [t for p in positions for t in self._calls[p] if t.stream == stream]
        if not any(touch.read for touch in touches):
            return True
        cells: _Cells = frozenset()
        for touch in touches:
            if touch.read and not touch.cells_read & cells:
                return False
            if touch.written:
                cells = touch.cells_written & cells if cells else touch.cells_written
                if not cells:
                    return False
        return True

    def share(self, position: int, others: Sequence[int]) -> bool:
        """Whether a call touches memory that others touch."""
        streams = self._used[position]
        return not all(streams.isdisjoint(self._used[n]) for n in others)

    def gathers(self, positions: Sequence[int]) -> bool:
        """Whether a call of the group loops over gathered elements."""
        return not self._gathering.isdisjoint(positions)

    def cost(self, positions: Sequence[int]) -> float:
        """Seconds that one kernel of these calls (ascending) takes."""
        key = tuple(positions)
        known = self._costs.get(key)
        if known is None:
            known = self._costs[key] = self._cost(key)
        return known

    def _cost(self, positions: tuple[int, ...]) -> float:
        moved, streams = self.traffic(positions)
        crowded = 1.0 + self.machine.crowding * max(0, streams - self.machine.streams)
        if len(positions) > 1 and self.gathers(positions):
            crowded += self.machine.gathering
        return (
            self.machine.launch + crowded * moved / self.machine.bandwidth + self.slowed(positions)
        )

    def _seconds(self, touches: Iterable[_Touch]) -> float:
        """Seconds to move what a call touches."""
        return sum(max(touch.read, touch.written) for touch in touches) / self.machine.bandwidth

    def slowed(self, positions: Sequence[int]) -> float:
        """Seconds that inner loops of many trips lose where they share iterations, or a sweep.

        Those that wait for memory lose nothing.
        """
        if len(positions) == 1:
            return 0.0
        return self.machine.looping * sum(self._long_loops[n] for n in positions)

    def sweep_cost(self, positions: Sequence[int], rolling: frozenset[int]) -> float:
        """Seconds that one sweep of these calls (in the order of its loops) takes.

        Each loop walks through its own arrays only, so there is no crowding.
        """
        seconds = self.traffic(positions, rolling)[0] / self.machine.bandwidth
        return self.machine.launch + seconds + self.slowed(positions)


def cost_model(trace: TraceShape, machine: Machine | None = None) -> CostModel:
    """The cost model of a trace on this machine, or on another one."""
    return _cost_model(trace, machine or machine_for(trace))


def machine_for(trace: TraceShape) -> Machine:
    """What runs a trace: the GPU, if any call does."""
    return tuning_gpu.known().machine if on_gpu(trace) else known().machine


def on_gpu(trace: TraceShape) -> bool:
    """Whether a GPU runs calls of a trace."""
    return any(call.space.execution in GPU_SPACES for call in trace.distinct)


@cached(4)
def _cost_model(trace: TraceShape, machine: Machine) -> CostModel:
    return CostModel(trace, machine)


def operation(trace: TraceShape) -> float:
    """Seconds of an addition, by all that runs the trace."""
    if on_gpu(trace):
        return 1.0 / (BALANCE * machine_for(trace).bandwidth)
    return OPERATION / SETTINGS.threads


def surely_cheaper(trace: TraceShape, positions: Sequence[int], seconds: float) -> bool:
    """Whether a kernel of these calls certainly costs less than that, without a closer look."""
    machine = known().machine
    regions = {a for n in positions for a in trace.calls[n].arguments if isinstance(a, RegionShape)}
    most = sum(3 * prod(region.shape) * region.dtype.size for region in regions)
    crowded = 1.0 + machine.crowding * len(regions) + machine.gathering
    return machine.launch + crowded * most / machine.bandwidth < seconds


def group_cost(trace: TraceShape, positions: Sequence[int]) -> float:
    """Seconds that one kernel of these calls takes."""
    return cost_model(trace).cost(positions)


def sweep_cost(
    trace: TraceShape, positions: Sequence[int], rolling: frozenset[int] = frozenset()
) -> float:
    """Seconds that one sweep of these calls takes; `rolling` clusters need no memory."""
    return cost_model(trace).sweep_cost(positions, rolling)


def bytes_moved(
    trace: TraceShape, positions: Sequence[int], rolling: frozenset[int] = frozenset()
) -> float:
    """Bytes that one kernel of these calls moves; `rolling` clusters need no memory."""
    return cost_model(trace).traffic(positions, rolling)[0]


def _gathers(call: CallShape) -> bool:
    """Whether a call reads elements, in an inner loop, that other elements name."""
    return any(isinstance(stmt, (For, While)) for stmt in call.workunit.body) and any(
        access.mode is Mode.READ and None in access.relation.indices for access in accesses(call)
    )


def _streams(trace: TraceShape) -> dict[RegionShape, int]:
    """Number the regions of a trace by stream."""
    regions = {a for call in trace.calls for a in call.arguments if isinstance(a, RegionShape)}
    numbers: dict[RegionShape, int] = {}
    number = -1
    cluster, low, high = -1, 0, -1
    for region in sorted(regions, key=lambda r: (r.cluster, *byte_range(r))):
        first, last = byte_range(region)
        common = min(high, last) - max(low, first) + 1
        if region.cluster != cluster or 2 * common <= last - first + 1:
            number += 1
            cluster, low, high = region.cluster, first, last
        numbers[region] = number
    return numbers


def _touches(call: CallShape, streams: dict[RegionShape, int]) -> Iterable[_Touch]:
    by_stream: dict[int, list[Access]] = {}
    for access in accesses(call):
        by_stream.setdefault(streams[region_of(call, access)], []).append(access)
    for stream, found in by_stream.items():
        reads = [a for a in found if a.mode is not Mode.WRITE]
        writes = [a for a in found if a.mode is not Mode.READ]
        yield _Touch(
            stream,
            max((touched_bytes(region_of(call, a), a.relation) for a in reads), default=0.0),
            max((touched_bytes(region_of(call, a), a.relation) for a in writes), default=0.0),
            _cells(reads, call, certain=False),
            _cells(writes, call),
        )


def region_of(call: CallShape, access: Access) -> RegionShape:
    region = call.arguments[access.param]
    assert isinstance(region, RegionShape)
    return region


_Cells = frozenset[frozenset[tuple[Affine | None, ...]]]
"""What an iteration uses of a stream: certain elements, or the row or tile they are in, or both."""

MAX_ROW = 2048
"""Bytes of a row that an iteration may keep to itself; `transform.rows` proves that it may."""


def _cells(found: list[Access], call: CallShape, certain: bool = True) -> _Cells:
    """The elements that an iteration uses, if they are its own; none if that is not known.

    The subscripts, if each names one known element (in every iteration, if that is to be certain),
    and those of the first element of the iteration's row.
    """
    if not found or any(access.mode is Mode.REDUCE for access in found):
        return frozenset()
    relations = [access.relation for access in found]
    every = all(r.everywhere or not certain for r in relations)
    elements = frozenset(r.indices for r in relations)
    rows = frozenset(_row(region_of(call, access), access.relation) for access in found)
    cells: set[frozenset[tuple[Affine | None, ...]]] = set()
    if every and all(map(_names_one, relations)):
        cells.add(elements)
    if None not in rows:
        cells.add(frozenset(row for row in rows if row is not None))
    return frozenset(cells)


def _names_one(relation: Relation) -> bool:
    rank = len(relation.begin)
    return all(
        index is not None and all(number < rank for number, _ in index.terms)
        for index in relation.indices
    )


def _row(region: RegionShape, relation: Relation) -> tuple[Affine | None, ...] | None:
    """The first element of the row that an iteration of one index stays in: x[i, :], x[C i + ...].

    Or of its tile, x[i, :, :], or its column, x[:, i]. None if it does not stay there, or if these
    are long.
    """
    if len(relation.begin) != 1 or None in relation.indices:
        return None
    first, *others = (_parted(index) for index in relation.indices if index is not None)
    if others == [(1, Affine((), 0))] and not first[0]:
        fits = 2 <= region.shape[0] <= MAX_ROW // region.dtype.size
        return (None, Affine(((0, 1),), 0)) if fits else None
    factor, rest = first
    if factor < 1 or any(step for step, _ in others):
        return None
    low, high = rest.span(relation.ranges)
    length = prod(region.shape[1:]) if others else factor
    if not 2 <= length <= MAX_ROW // region.dtype.size:
        return None
    if low < 0 or high >= factor or (others and factor != 1):
        return None
    return (Affine(((0, factor),), 0), *(None for _ in others))


def _parted(index: Affine) -> tuple[int, Affine]:
    """The factor of the iteration's index, and the rest."""
    terms = dict(index.terms)
    factor = terms.pop(0, 0)
    return factor, Affine(tuple(terms.items()), index.constant)


def touched_bytes(region: RegionShape, relation: Relation) -> float:
    """An estimate of the bytes that an access touches: each element once."""
    total = 1.0
    points: set[int] = set(range(len(relation.begin)))
    for index, extent, stride in zip(relation.indices, region.shape, region.strides, strict=True):
        if not stride:
            continue
        count = extent
        if index is not None:
            width = 1
            for number, _ in index.terms:
                width *= max(0, relation.ranges[number][1] - relation.ranges[number][0] + 1)
                points.add(number)
            count = min(extent, width)
        total *= count
    return total * region.dtype.size
