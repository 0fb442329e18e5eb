"""What the plans of programs show, out of `features.PLANNED`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyfuser.ir.nodes import For, Store, Update, Workunit
from pyfuser.ir.visit import statements, sym_of
from pyfuser.plan.plan import SCAN_TILE, Plan, Sweep
from pyfuser.plan.rewrites.coarsen import Coarsened
from pyfuser.plan.rewrites.delinearize import Delinearized
from pyfuser.plan.rewrites.embed_boundary import Placed
from pyfuser.plan.rewrites.enlarge_domain import Guarded
from pyfuser.plan.rewrites.recompute import Recomputed, Vanished
from pyfuser.plan.rewrites.sink_axes import Sunk
from pyfuser.plan.rewrites.sink_outer_axis import SunkOuter
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape
from tests.fuzz.choices import LARGER


def features_of(plans: Iterable[Plan]) -> frozenset[str]:
    """What was planned, out of `features.PLANNED`."""
    found = set()
    for plan in plans:
        if any(len(group.calls) > 1 for group in plan.groups):
            found.add("fused loop")
        if any(rejection.reason == "measured" for rejection in plan.rejections):
            found.add("cut group")
        if LARGER in plan.rejections:
            found.add("plan of larger sizes")
        found.update(_coarse(plan))
        found.update(_boxed(plan))
        found.update(_recomputed(plan))
        if plan.of(Placed):
            found.add("edge among rows")
        if any(len(note.rows) > 1 for note in plan.of(Placed)):
            found.add("edges of several rows")
        found.update(*map(_swept, plan.sweeps))
    return frozenset(found)


def _swept(sweep: Sweep) -> Iterator[str]:
    yield "sweep"
    if len(sweep.groups) > 2:
        yield "sweep of 3 or more"
    if any(stage.lag or stage.ahead for stage in sweep.stages):
        yield "sweep with lags"
    if sweep.ring:
        yield "sweep around the ends"
    if sweep.rolling:
        yield "rolling view"
    if sweep.wave == SCAN_TILE:
        yield "scan beside maps"


def inner_loops(workunits: Iterable[Workunit]) -> frozenset[str]:
    """Whether a kernel's inner loop both adds up and stores."""
    loops = (s for w in workunits for s in statements(w.body) if isinstance(s, For))
    for loop in loops:
        inner = [*statements(loop.body)]
        if any(isinstance(s, Update) and not s.indices for s in inner) and any(
            isinstance(s, Store) or (isinstance(s, Update) and s.indices) for s in inner
        ):
            return frozenset({"map and sum in an inner loop"})
    return frozenset()


def guards(trace: TraceShape, plan: Plan) -> frozenset[str]:
    """What guarded calls share loops with."""
    found = set()
    inside = {note.call for note in plan.of(Guarded)}
    for group in plan.groups:
        if len(group.calls) > 1 and inside & {*group.calls}:
            found.add("guarded or split loop")
            if len(trace.calls[group.calls[0]].space.begin) > 1:
                found.add("guarded loop of several axes")
            if any(trace.calls[n].pattern == "reduce" for n in group.calls):
                found.add("guarded loop with a sum")
    return frozenset(found)


def windows(trace: TraceShape, plan: Plan) -> frozenset[str]:
    """Whether several loops of a sweep store to a view that needs no memory of its own."""
    for sweep in plan.sweeps:
        for view in sweep.rolling:
            loops = [plan.groups[place].calls for place in sweep.groups]
            stores = [any(_stores(trace.calls[n], view.cluster) for n in calls) for calls in loops]
            if sum(stores) > 1:
                return frozenset({"rolling view that is changed"})
    return frozenset()


def _stores(call: CallShape, cluster: int) -> bool:
    pairs = zip(call.workunit.params, call.arguments, strict=False)
    views = {p.sym for p, a in pairs if isinstance(a, RegionShape) and a.cluster == cluster}
    stores = (s for s in statements(call.workunit.body) if isinstance(s, (Store, Update)))
    return any(sym_of(stmt) in views for stmt in stores)


def _coarse(plan: Plan) -> Iterator[str]:
    """What coarsening did that shows: a loop that holds both kinds of calls."""
    coarse = {note.call for note in plan.of(Coarsened)}
    for group in plan.groups:
        if coarse & {*group.calls} and {*group.calls} - coarse:
            yield "coarsened loop"


def sunk(trace: TraceShape, plan: Plan) -> frozenset[str]:
    """What of the calls whose short axes are loops."""
    calls = [trace.calls[note.call] for note in plan.of(Sunk)]
    sums = any(call.pattern == "reduce" for call in calls)
    names = ["short axes as loops"] * bool(calls) + ["short axes as loops, with a sum"] * sums
    return frozenset([*names, *["outermost axis as a loop"] * bool(plan.of(SunkOuter))])


def _recomputed(plan: Plan) -> Iterator[str]:
    """What was computed again, and whether it was stored as well."""
    producers = {producer for note in plan.of(Recomputed) for producer, _ in note.producers}
    again = {note.call for note in plan.of(Recomputed)}
    vanished = {note.call for note in plan.of(Vanished)}
    if producers:
        yield "recomputed"
    if producers & vanished:
        yield "recomputed, and not stored"
    if producers - vanished:
        yield "recomputed, and stored"
    if any(len(note.producers) > 1 for note in plan.of(Recomputed)):
        yield "several calls recomputed"
    for group in plan.groups:
        if again & {*group.calls} and {*group.calls} - again - vanished:
            yield "recomputed beside others"


def _boxed(plan: Plan) -> Iterator[str]:
    """Whether calls over one index have become such over two, and share a loop with others."""
    boxed = {note.call for note in plan.of(Delinearized)}
    if boxed:
        yield "flattened call over rows"
    for group in plan.groups:
        if boxed & {*group.calls} and {*group.calls} - boxed:
            yield "flattened call beside MDRange"
