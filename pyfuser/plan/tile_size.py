"""How far the front of a sweep moves at a time: what lies between its loops must stay in cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.layout import address
from pyfuser.analysis.relation import Relation
from pyfuser.ir.nodes import For
from pyfuser.ir.visit import assigned, declared
from pyfuser.plan.cost_model import CostModel, region_of, touched_bytes
from pyfuser.plan.plan import SCAN_TILE, STRIP, Group
from pyfuser.support.units import size
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape
from pyfuser.tuning.thresholds import NOW

SHARE = 0.6
"""The part of the cache that may be filled; the rest is for what the loops walk through once."""

SMALLEST = 16384
"""Bytes that a wave brings in at least; below, starting loops costs more than their work."""

BEYOND = 4
"""Data of so many caches' size does not stay there from one launch to the next."""

VECTOR = 64
"""Steps of a wave over an innermost axis come in multiples of this."""


_LINE = 64  # bytes


class NoSweep(Exception):
    """Loops had better not sweep; its text says why."""


def wave_of(trace: TraceShape, loops: Sequence[Group], lag: int, model: CostModel) -> int:
    """Steps of the outermost index by which the front moves at a time.

    lag: how far the last loop is behind the first. Raises NoSweep if it is not worth it.
    """
    cache = model.machine.cache
    calls = [trace.calls[n] for loop in loops for n in loop.calls]
    if model.total < BEYOND * cache:  # of the whole trace: no need to look closer
        step, fixed, total = 0.0, 0.0, model.total
    else:
        step, fixed, total = _bytes(trace, loops, model)
    if total < BEYOND * cache or not step:
        raise NoSweep(_stay(total, cache))
    if _walks_badly(calls, model):
        raise NoSweep("memory does not run on across the outermost axis")
    wave = int((SHARE * cache - fixed) / step) - lag
    lines = all(len(call.space.begin) == 1 for call in calls)
    unit = VECTOR if lines and wave > VECTOR else STRIP if any(map(_waits, calls)) else 1
    if wave > unit:
        wave -= wave % unit
    if 0 < wave < NOW.tuning.wave_columns and _walks_columns(calls, model):
        raise NoSweep(f"loops walk along columns, for which waves of {wave} steps are too few")
    if wave <= 0 or wave * step < SMALLEST:
        between = size(fixed + (lag + 1) * step)
        raise NoSweep(f"the {between} between the first and the last loop do not fit in cache")
    return wave


def _stay(total: float, cache: int) -> str:
    """Why loops over so many bytes need no sweep."""
    if total <= cache:
        return f"the {size(total)} stay in the cache ({size(cache)}) between the loops anyway"
    if total < BEYOND * cache:
        return f"the {size(total)} are less than {BEYOND} times the cache ({size(cache)})"
    return "each step touches the same memory"


def _waits(call: CallShape) -> bool:
    """Whether steps of the outermost axis are rows whose trips wait for one another.

    Neighbouring iterations then run side by side (see `nest.passes.unroll_and_jam`).
    """
    return len(call.space.begin) == 1 and any(
        isinstance(stmt, For) and not assigned(stmt.body) <= {*declared(stmt.body)}
        for stmt in call.workunit.body
    )


def tile_of(trace: TraceShape, loops: Sequence[Group], model: CostModel) -> int:
    """The tile of a scan, whose two passes and the maps beside it go over it in turn.

    Raises NoSweep if what they share would not stay in cache; what one of them alone touches may
    come and go.
    """
    cache = model.machine.cache
    once: set[int] = set()
    again: set[int] = set()
    for loop in loops:
        mine = set(_streams(trace, loop, model))
        again |= mine & once
        once |= mine
        if any(trace.calls[n].pattern == "scan" for n in loop.calls):
            again |= mine
    step, fixed, _ = _bytes(trace, loops, model, again)
    total = _bytes(trace, loops, model)[2]
    if total < BEYOND * cache:
        raise NoSweep(_stay(total, cache))
    if fixed + SCAN_TILE * step > SHARE * cache:
        between = size(fixed + SCAN_TILE * step)
        raise NoSweep(f"the {between} of a tile do not fit in cache")
    return SCAN_TILE


def _streams(trace: TraceShape, loop: Group, model: CostModel) -> Iterator[int]:
    """The streams that a loop touches in memory."""
    calls = dict.fromkeys(trace.calls[n] for n in loop.calls)
    for region, _ in _touched(calls, model, model.contracted(loop.calls)):
        yield model.streams[region]


def _bytes(
    trace: TraceShape, loops: Iterable[Group], model: CostModel, only: set[int] | None = None
) -> tuple[float, float, float]:
    """Bytes that each step brings in, that are needed all the time, and that there are in all.

    only: the streams that count, if not all do.
    """
    steps: dict[int, float] = {}
    fixed: dict[int, float] = {}
    total: dict[int, float] = {}
    for loop in loops:
        contracted = model.contracted(loop.calls)
        calls = dict.fromkeys(trace.calls[n] for n in loop.calls)
        for region, relation in _touched(calls, model, contracted):
            stream, count = model.streams[region], touched_bytes(region, relation)
            if only is not None and stream not in only:
                continue
            total[stream] = max(total.get(stream, 0.0), count)
            low, high = relation.ranges[0]
            if low == high:
                continue  # of one step: others bring it in, or it comes and goes
            if any(i is not None and 0 in dict(i.terms) for i in relation.indices):
                count /= max(1, high - low + 1)
                steps[stream] = max(steps.get(stream, 0.0), count)
            else:
                fixed[stream] = max(fixed.get(stream, 0.0), count)
    return sum(steps.values()), sum(fixed.values()), sum(total.values())


def _touched(
    calls: Iterable[CallShape], model: CostModel, contracted: set[int]
) -> Iterator[tuple[RegionShape, Relation]]:
    """The accesses of calls to memory that is not contracted."""
    for call in calls:
        for access in accesses(call):
            region = region_of(call, access)
            if model.streams[region] not in contracted:
                yield region, access.relation


def _walks_badly(calls: Iterable[CallShape], model: CostModel) -> bool:
    """Whether neighbours in memory are neighbours along the outermost axis, for most accesses.

    One is enough if its array does not stay in cache: each step then takes an element of every
    line. Loops that run block by block (see `nest.passes.loop_order`) can do better alone.
    """
    votes = 0
    for call in dict.fromkeys(calls):
        rank = len(call.space.begin)
        for access in accesses(call) if rank > 1 else ():
            index = address(region_of(call, access), access.relation.indices)
            if index is None:
                continue
            terms = dict(index.terms)
            outer = abs(terms.pop(0, 0))
            inner = max((abs(c) for n, c in terms.items() if n < rank), default=0)
            votes += (inner > outer > 0) - (outer > inner)
            if inner > outer > 0:
                array = touched_bytes(region_of(call, access), access.relation)
                if array > model.machine.cache:
                    return True
    return votes > 0


def _walks_columns(calls: Iterable[CallShape], model: CostModel) -> bool:
    """Whether trips of a step are far apart in memory, and neighbouring steps beside each other."""
    for call in dict.fromkeys(calls):
        for access in accesses(call) if len(call.space.begin) == 1 else ():
            region = region_of(call, access)
            index = address(region, access.relation.indices)
            terms = dict(index.terms) if index is not None else {}
            beside = abs(terms.pop(0, 0)) == region.dtype.size
            across = any(abs(c) > _LINE for c in terms.values())
            array = touched_bytes(region, access.relation)
            if beside and across and array > model.machine.cache:
                return True
    return False
