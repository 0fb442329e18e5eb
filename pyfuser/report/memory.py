"""Why arrays stayed in memory that a fused loop would not need there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.liveness import liveness
from pyfuser.plan.cost_model import CostModel, cost_model, region_of
from pyfuser.report.model import CallReport, Kept
from pyfuser.report.names import cluster_name
from pyfuser.runtime.program import Flush
from pyfuser.support.caches import cached
from pyfuser.trace.shape import RegionShape, TraceShape
from pyfuser.tuning.thresholds import NOW


def bytes_of(trace: TraceShape, cluster: int) -> int:
    """The bytes of memory, as far as calls touch it: its largest region."""
    regions = (a for call in trace.calls for a in call.arguments if isinstance(a, RegionShape))
    sizes = (prod(r.shape) * r.dtype.size for r in regions if r.cluster == cluster)
    return max(sizes, default=0)


def kept(
    flush: Flush, group: Sequence[int], together: Sequence[int], calls: Sequence[CallReport]
) -> Iterator[Kept]:
    """The arrays that a group writes and reads in memory only as others may read them as well.

    together: the calls that share the launch. Only arrays that the flush made count: another one
    may carry values from one flush to the next.
    """
    trace = flush.program.trace
    written = _written(trace, group)
    for cluster in sorted(written):
        size = bytes_of(trace, cluster)
        if size < NOW.running.told_bytes:
            continue
        if trace.clusters[cluster].temporary:
            reader = _reader(trace, cluster, group, together)
            if reader is not None:
                yield Kept(cluster_name(flush, cluster, group), size, calls[reader])
        elif trace.clusters[cluster].fresh and cluster in _avoidable(trace, tuple(group)):
            yield Kept(cluster_name(flush, cluster, group), size)


def _written(trace: TraceShape, group: Sequence[int]) -> set[int]:
    """The clusters that calls write."""
    return {
        region_of(call, access).cluster
        for call in (trace.calls[n] for n in group)
        for access in accesses(call)
        if access.mode is not Mode.READ
    }


def _reader(
    trace: TraceShape, cluster: int, group: Sequence[int], together: Sequence[int]
) -> int | None:
    """The first call outside of a group that reads what it writes, unless it shares the launch."""
    lifetimes = liveness(trace)
    readers = 0
    for n in group:
        readers |= lifetimes.lifetime(n, cluster).readers
    others = [n for n in range(len(trace.calls)) if readers >> n & 1 and n not in group]
    return others[0] if others and others[0] not in together else None


def _avoidable(trace: TraceShape, group: tuple[int, ...]) -> set[int]:
    """The clusters that a group would need no memory for, could only the trace itself read them."""
    model = _forgotten(trace)
    streams = model.contracted(group) - cost_model(trace).contracted(group)
    return {region.cluster for region, stream in model.streams.items() if stream in streams}


@cached(4)
def _forgotten(trace: TraceShape) -> CostModel:
    """The costs of a trace whose memory nobody reads afterwards."""
    clusters = tuple(cluster._replace(temporary=True) for cluster in trace.clusters)
    return CostModel(TraceShape(trace.calls, clusters), cost_model(trace).machine)
