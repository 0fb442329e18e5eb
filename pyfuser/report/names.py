"""What the program calls the views of fused kernels, and what became of their accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pyfuser.ir.accesses import ElementAccess, accesses
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.plan.plan import Sweep
from pyfuser.report.callsite import argument_text
from pyfuser.runtime.program import Flush
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel


class Names:
    """What the program calls the views of a group's kernel, as fused and before any pass."""

    def __init__(self, flush: Flush, group: Sequence[int], kernel: Kernel) -> None:
        self._names: dict[Sym, str] = {}
        given = flush.program.plan.sources()
        for param, slot in zip(kernel.workunit.params, kernel.slots, strict=True):
            call = group[slot.call]
            origin, _ = given.of(call, slot.argument) or (call, 0)
            made = flush.program.trace.calls[call]
            region = made.arguments[slot.argument]
            if made.workunit.location is None and isinstance(region, RegionShape):
                self._names[param.sym] = cluster_name(flush, region.cluster, group)
                continue
            name = made.workunit.params[slot.argument].sym.name
            self._names[param.sym] = given_name(flush, origin, name)

    def of(self, syms: Iterable[Sym]) -> tuple[str, ...]:
        return tuple(self._names[sym] for sym in syms)

    def counts(self, syms: Counter[Sym]) -> dict[str, int]:
        """Positive counts by name."""
        total: Counter[str] = Counter()
        for sym, count in (+syms).items():
            total[self._names[sym]] += count
        return dict(total)


def given_name(flush: Flush, call: int, param: str) -> str:
    """What the program gives to a parameter of a call (its place in the flush)."""
    _, code, line = flush.call(call)
    return argument_text(code.co_filename, line, param)


def cluster_name(flush: Flush, cluster: int, calls: Iterable[int]) -> str:
    """What the first of some calls that takes memory calls it; empty if none does.

    Workunits that are nobody's text, as those of `pk.ones`, come last.
    """
    trace = flush.program.trace
    for position in sorted(calls, key=lambda n: trace.calls[n].workunit.location is None):
        call = trace.calls[position]
        # Arguments may follow that the program did not give (see `plan.Note.source`).
        for param, argument in zip(call.workunit.params, call.arguments, strict=True):
            if isinstance(argument, RegionShape) and argument.cluster == cluster:
                return given_name(flush, position, param.sym.name)
    return ""


def window_names(flush: Flush, sweep: Sweep) -> tuple[str, ...]:
    """What the program calls the rolling views of a sweep."""
    groups = flush.program.plan.groups
    calls = [n for place in sweep.groups for n in groups[place].calls]
    rolling = {view.cluster for view in sweep.rolling}
    first: dict[int, int] = {}
    for n in calls:
        for argument in flush.program.trace.calls[n].arguments:
            if isinstance(argument, RegionShape) and argument.cluster in rolling:
                first.setdefault(argument.cluster, n)
    return tuple(dict.fromkeys(cluster_name(flush, c, [n]) for c, n in first.items()))


# --------------------------------------------------------------------------- accesses


def contracted(before: Kernel, after: Kernel, flush: Flush, group: Sequence[int]) -> dict[Sym, int]:
    """Temporaries that a group writes and its kernel has no parameter for, by cluster."""
    trace = flush.program.trace
    written = stores(before.workunit)
    gone = {}
    for param, slot in zip(before.workunit.params, before.slots, strict=True):
        region = trace.calls[group[slot.call]].arguments[slot.argument]
        if slot in after.slots or param.sym not in written or not isinstance(region, RegionShape):
            continue
        if trace.clusters[region.cluster].temporary:
            gone[param.sym] = region.cluster
    return gone


def removed(before: Kernel, after: Kernel) -> tuple[Counter[Sym], Counter[Sym]]:
    """How many places of a fused kernel stored and loaded, less those that still do."""
    slots = dict(zip(before.slots, before.workunit.params, strict=True))
    earlier = {
        param.sym: slots[slot].sym
        for param, slot in zip(after.workunit.params, after.slots, strict=True)
    }
    found = []
    for count in (stores, loads):
        left = count(before.workunit)
        left.subtract({earlier[sym]: n for sym, n in count(after.workunit).items()})
        found.append(left)
    return found[0], found[1]


def stores(workunit: Workunit) -> Counter[Sym]:
    """How many places store to each view parameter."""
    return _places(workunit, lambda access: access.writes)


def loads(workunit: Workunit) -> Counter[Sym]:
    """How many places load from each view parameter."""
    return _places(workunit, lambda access: access.reads and not access.atomic)


def _places(workunit: Workunit, counts: Callable[[ElementAccess], bool]) -> Counter[Sym]:
    views = {param.sym for param in workunit.params if param.rank}
    found = (access for access in accesses(workunit.body) if counts(access))
    return Counter(access.view for access in found if access.view in views)
