"""Iterations of one call that certainly touch one element, one of them writing."""

from __future__ import annotations

from collections.abc import Iterator

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.overlap import Verdict, overlap
from pyfuser.ir import nodes
from pyfuser.ir.effects import atomics
from pyfuser.trace.shape import CallShape, RegionShape


def certain_races(call: CallShape) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses (of which both may be one) that certainly race, a writing one first."""
    found = atomics(call.workunit.body)
    fetched = {e.view for e in found if isinstance(e, nodes.AtomicFetch)}  # these do not race
    plain = [
        access
        for access in accesses(call)
        if access.exact and call.workunit.params[access.param].sym not in fetched
    ]
    for place, first in enumerate(plain):
        if first.mode is Mode.READ:
            continue
        for number, second in enumerate(plain):
            both_change = second.mode is not Mode.READ
            if (both_change and number < place) or not _race(first.mode, second.mode):
                continue
            region, other = call.arguments[first.param], call.arguments[second.param]
            assert isinstance(region, RegionShape) and isinstance(other, RegionShape)
            if region.cluster != other.cluster:
                continue
            if overlap(first.relation, region, second.relation, other) is Verdict.CROSS:
                yield first, second


def _race(first: Mode, second: Mode) -> bool:
    return Mode.WRITE in (first, second) or {first, second} == {Mode.READ, Mode.REDUCE}
