"""Builds the report of `pyfuser.explain()` from what the driver ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyfuser.analysis.dependences import Dependence, Kind
from pyfuser.codegen import pykokkos
from pyfuser.codegen.cpp_columns import IF_LONG, columns_of
from pyfuser.codegen.cpp_context import Context
from pyfuser.codegen.cpp_split import MIDDLE
from pyfuser.codegen.order import loop_order, walks
from pyfuser.codegen.spec import spec_of
from pyfuser.driver import FLUSHES, PROGRAMS, UNRECORDED, Flush, Program
from pyfuser.ir.nodes import Load, Store, Sym, Update, Workunit
from pyfuser.ir.visit import all_expressions, statements, sym_of
from pyfuser.launches import Launch
from pyfuser.plan.callsite import argument_text
from pyfuser.plan.explain import (
    CallReport,
    Explanation,
    GroupReport,
    RejectionReport,
    SweepReport,
    describe,
    short_path,
)
from pyfuser.plan.plan import Group, Plan, Rejection, Sweep
from pyfuser.plan.profit import bytes_moved, group_cost, sweep_cost
from pyfuser.trace.call import Space
from pyfuser.trace.shape import RegionShape, TraceShape
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import specialise


def explain(flushes: int = 1, source: bool = False) -> Explanation:
    """The report of the latest flushes.

    flushes: how many of the latest flushes to cover (the newest 64 are kept). source: whether the
    text shows each kernel's PyKokkos source; `groups[k].source` always has it.
    """
    covered = FLUSHES[-flushes:] if flushes > 0 else []
    earlier = len(FLUSHES) - len(covered)
    return replace(explanation(covered, source), covered=len(covered), earlier=earlier)


def explanation(covered: Sequence[Flush], source: bool = False) -> Explanation:
    """The report of some flushes."""
    groups: list[GroupReport] = []
    rejections: list[RejectionReport] = []
    sweeps: list[SweepReport] = []
    for flush in covered:
        calls = [
            CallReport(label or call.workunit.name, f"{short_path(code.co_filename)}:{line}")
            for (label, code, line), call in zip(
                flush.calls, flush.program.trace.calls, strict=True
            )
        ]
        sweeps += _sweeps(flush, len(groups))
        groups += _groups(flush, calls)
        rejections += [_rejection(flush, calls, r) for r in flush.program.plan.rejections]
    recorded = sum(len(flush.calls) for flush in covered)
    to_device, to_host = (sum(flush.copied[k] for flush in covered) for k in (0, 1))
    unrecorded = [
        f"{name} ({short_path(code.co_filename)}:{line}): {why}"
        for (name, code, line), why in UNRECORDED.items()
    ]
    return Explanation(
        tuple(groups),
        tuple(rejections),
        recorded,
        source,
        tuple(sweeps),
        tuple(unrecorded),
        to_device,
        to_host,
        tuple(_asked(covered)),
        tuple(name for flush in covered for name in flush.waiting),
    )


def _asked(covered: Sequence[Flush]) -> Iterable[str]:
    """Where the program waited, and why."""
    for (file, line, why), count in Counter(flush.asked for flush in covered).items():
        where = f"{short_path(file)}:{line}: " if line else ""
        yield f"flushed {f'{count} times, ' if count > 1 else ''}by {where}{why}"


def _groups(flush: Flush, calls: list[CallReport]) -> Iterable[GroupReport]:
    program = flush.program
    trace, groups = program.trace, program.plan.groups
    measured = _measured(flush)
    registers = {launch.calls: _registers(launch) for launch in program.launches}
    strips = {n for launch in program.launches for n in launch.calls if _has_strips(launch)}
    split = {n for launch in program.launches for n in launch.calls if _has_middle(launch)}
    shapes = group_shapes(trace, [group.calls for group in groups])
    given = _given(program)
    boxed = set(program.plan.boxed)
    swept = {place for sweep in program.plan.sweeps for place in sweep.groups}
    pairs = zip(groups, shapes, program.kernels, strict=True)
    for place, (group, shape, kernel) in enumerate(pairs):
        before, ready = fuse(shape), specialise(kernel)
        names = _Names(flush, group.calls, before)
        stores, loads = _stores(before.workunit), _loads(before.workunit)
        stores.subtract(_renamed(_stores(kernel.workunit), kernel, before))
        loads.subtract(_renamed(_loads(kernel.workunit), kernel, before))
        yield GroupReport(
            calls=tuple(calls[position] for position in group.calls),
            source=pykokkos.shown(kernel.workunit),
            contracted=names.of(_contracted(before, kernel, trace, group.calls)),
            removed_stores=names.counts(stores),
            removed_loads=names.counts(loads),
            bytes_moved=int(bytes_moved(trace, group.calls)),
            bytes_unfused=int(sum(bytes_moved(given, (n,)) for n in group.calls)),
            modelled=group_cost(trace, group.calls),
            modelled_unfused=sum(group_cost(given, (n,)) for n in group.calls),
            measured=measured.get(group.calls),
            order=_order(ready, before, names, group.calls[0] in strips),
            coarsened=_coarsened(program.plan, group, calls),
            guarded=_guarded(program.plan, group, calls),
            split=kernel.pattern == "for" and group.calls[0] in split,
            registers=registers.get(group.calls, ""),
            streamed=names.of(_streamed(ready, before)) if place not in swept else (),
            placed={calls[n].name: rows for n, rows in program.plan.placed if n in group.calls},
            boxed=tuple(dict.fromkeys(calls[n].name for n in group.calls if n in boxed)),
            recomputed=_recomputed(program.plan, group, calls),
            vanished=tuple(dict.fromkeys(calls[n].name for n in program.plan.vanished)),
        )


def _given(program: Program) -> TraceShape:
    """The trace in which no call computes again what others store, while it is remembered."""
    if program.plan.recomputed:
        return next((trace for trace, p in PROGRAMS.items() if p is program), program.trace)
    return program.trace


def _streamed(kernel: Kernel, before: Kernel) -> list[Sym]:
    """The views that a specialised kernel stores past the caches, as they were called before."""
    slots = dict(zip(before.slots, before.workunit.params, strict=True))
    spec = spec_of(kernel)
    return [
        slots[slot].sym
        for slot, view in zip(kernel.slots, spec.views, strict=True)
        if view is not None and view.streamed
    ]


def _coarsened(plan: Plan, group: Group, calls: Sequence[CallReport]) -> dict[int, tuple[str, ...]]:
    """The names of a group's coarsened calls, by factor."""
    found: dict[int, dict[str, None]] = {}
    for position, factor in plan.coarsened:
        if position in group.calls:
            found.setdefault(factor, {})[calls[position].name] = None
    return {factor: tuple(names) for factor, names in found.items()}


def _has_middle(launch: Launch) -> bool:
    """Whether loops of a launch are split where guards begin and end."""
    return f"void {MIDDLE}(" in launch.launchable.source


def _has_strips(launch: Launch) -> bool:
    """Whether loops of a launch run trips together that walk along columns."""
    return IF_LONG in launch.launchable.source


def _guarded(plan: Plan, group: Group, calls: Sequence[CallReport]) -> tuple[str, ...]:
    """The names of a group's guarded calls."""
    placed = {call for call, _ in plan.placed}
    guarded = [c for c, _ in plan.guarded if c in group.calls and c not in placed]
    return tuple(dict.fromkeys(calls[call].name for call in guarded))


def _recomputed(
    plan: Plan, group: Group, calls: Sequence[CallReport]
) -> tuple[tuple[str, str, int], ...]:
    """The names of a group's calls that compute others again, of these, and how often."""
    found = {
        (calls[note.call].name, calls[producer].name, times): None
        for note in plan.recomputed
        if note.call in group.calls
        for producer, times in note.producers
    }
    return tuple(found)


def _order(kernel: Kernel, before: Kernel, names: _Names, strips: bool) -> str:
    """What was done to the loops of a kernel; strips: maybe also to those inside an iteration."""
    order = loop_order(kernel)
    text = "" if order.as_given else _interchanged(kernel, before, names)
    if strips and columns_of(Context(spec_of(kernel), ())) is not None:
        last = kernel.workunit.indices[order.axes[-1]].name
        inner = f"inner loops run around strips along {last}, as memory runs along it"
        text = f"{text}; {inner}" if text else inner
    return text


def _interchanged(kernel: Kernel, before: Kernel, names: _Names) -> str:
    """In which order the loops over a space run, and for which views."""
    order = loop_order(kernel)
    indices = kernel.workunit.indices
    syms = {
        slot: param.sym for slot, param in zip(before.slots, before.workunit.params, strict=True)
    }
    across, inner = order.axes[-2:]
    along = {
        axis: " and ".join(
            dict.fromkeys(
                names.of(syms[kernel.slots[w.param]] for w in walks(kernel) if w.unit(axis))
            )
        )
        for axis in (across, inner)
    }
    first, last = indices[across].name, indices[inner].name
    if order.block:
        why = f"{along[inner]} along {last}, {along[across]} along {first}"
        return f"loops blocked by {first} and {last}, as memory runs so: {why}"
    if not along[inner]:
        return f"loops interchanged: {last} innermost, as memory steps least along it"
    return f"loops interchanged: {last} innermost, as memory runs along it: {along[inner]}"


def _sweeps(flush: Flush, before: int) -> Iterable[SweepReport]:
    """The sweeps of a flush, whose groups come after `before` others."""
    trace, plan = flush.program.trace, flush.program.plan
    measured = _measured(flush)
    for sweep in plan.sweeps:
        calls = tuple(n for place in sweep.groups for n in plan.groups[place].calls)
        rolling = frozenset(view.cluster for view in sweep.rolling)
        yield SweepReport(
            tuple(before + place for place in sweep.groups),
            tuple(stage.lag for stage in sweep.stages),
            sweep.wave,
            tuple(dict.fromkeys(_window_names(flush, sweep))),
            int(bytes_moved(trace, calls, rolling)),
            int(sum(bytes_moved(trace, (n,)) for n in calls)),
            sweep_cost(trace, calls, rolling),
            sum(group_cost(trace, (n,)) for n in calls),
            measured.get(calls),
            any(trace.calls[n].pattern == "scan" for n in calls),
        )


def _measured(flush: Flush) -> dict[tuple[int, ...], float]:
    """The mean seconds of the flush's launches, by their calls."""
    launches = flush.program.launches
    return {launch.calls: launch.timing.mean for launch in launches if launch.timing.runs}


def _registers(launch: Launch) -> str:
    """What a GPU's compiler said of a kernel."""
    texts = []
    for used in launch.launchable.registers():
        spilled = f", {used.spilled} bytes of local memory" if used.spilled else ""
        texts.append(f"{used.registers} registers{spilled}")
    return f"a thread has {' and '.join(texts)}" if texts else ""


def _window_names(flush: Flush, sweep: Sweep) -> Iterable[str]:
    """What the program calls the rolling views of a sweep."""
    rolling = {view.cluster for view in sweep.rolling}
    for place in sweep.groups:
        for position in flush.program.plan.groups[place].calls:
            call = flush.program.trace.calls[position]
            _, code, line = flush.calls[position]
            for param, argument in zip(call.workunit.params, call.arguments, strict=True):
                if isinstance(argument, RegionShape) and argument.cluster in rolling:
                    rolling.remove(argument.cluster)
                    yield argument_text(code.co_filename, line, param.sym.name)


class _Names:
    """What the program calls the views of a group's fused kernel."""

    def __init__(self, flush: Flush, group: Sequence[int], kernel: Kernel) -> None:
        self._names: dict[Sym, str] = {}
        given = {note.call: note.sources for note in flush.program.plan.recomputed}
        for param, slot in zip(kernel.workunit.params, kernel.slots, strict=True):
            sources = given.get(group[slot.call], ())
            inside = slot.argument < len(sources)
            origin = sources[slot.argument][0] if inside else group[slot.call]
            _, code, line = flush.calls[origin]
            name = flush.program.trace.calls[group[slot.call]].workunit.params[slot.argument].sym
            self._names[param.sym] = argument_text(code.co_filename, line, name.name)

    def of(self, syms: Iterable[Sym]) -> tuple[str, ...]:
        return tuple(self._names[sym] for sym in syms)

    def counts(self, syms: Counter[Sym]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for sym, count in (+syms).items():
            total[self._names[sym]] += count
        return dict(total)


def _contracted(
    before: Kernel, after: Kernel, trace: TraceShape, group: Sequence[int]
) -> list[Sym]:
    """Temporaries that the group writes and that its kernel has no parameter for."""
    written = _stores(before.workunit)
    gone = []
    for param, slot in zip(before.workunit.params, before.slots, strict=True):
        region = trace.calls[group[slot.call]].arguments[slot.argument]
        if slot in after.slots or param.sym not in written or not isinstance(region, RegionShape):
            continue
        if trace.clusters[region.cluster].temporary:
            gone.append(param.sym)
    return gone


def _renamed(counts: Counter[Sym], kernel: Kernel, before: Kernel) -> Counter[Sym]:
    """Counts by the optimised kernel's parameters, by those of the same slots before."""
    slots = dict(zip(before.slots, before.workunit.params, strict=True))
    after = {
        param.sym: slots[slot].sym
        for param, slot in zip(kernel.workunit.params, kernel.slots, strict=True)
    }
    return Counter({after[sym]: count for sym, count in counts.items()})


def _stores(workunit: Workunit) -> Counter[Sym]:
    """How many places store to each view parameter."""
    views = {param.sym for param in workunit.params if param.rank}
    found: Counter[Sym] = Counter()
    for stmt in statements(workunit.body):
        target = sym_of(stmt) if isinstance(stmt, (Store, Update)) else None
        if target in views:
            found[target] += 1
    return found


def _loads(workunit: Workunit) -> Counter[Sym]:
    """How many places load from each view parameter."""
    views = {param.sym for param in workunit.params if param.rank}
    found = Counter(e.view for e in all_expressions(workunit.body) if isinstance(e, Load))
    for stmt in statements(workunit.body):
        if isinstance(stmt, Update) and not stmt.atomic:
            found[stmt.target] += 1
    return Counter({sym: count for sym, count in found.items() if sym in views})


def _rejection(flush: Flush, calls: list[CallReport], rejection: Rejection) -> RejectionReport:
    dependence = rejection.dependence
    first, second = calls[rejection.first], calls[rejection.second]
    location = None
    detail = ""
    if dependence is not None:
        location = dependence.second_location or dependence.first_location
        detail = _accesses(dependence)
    if rejection.reason == "space":
        detail = _spaces(flush, rejection)
    plan = flush.program.plan
    home = {n: place for place, group in enumerate(plan.groups) for n in group.calls}
    before, after = sorted((home[rejection.first], home[rejection.second]))
    same_sweep = any({before, after} <= {*sweep.groups} for sweep in plan.sweeps)
    message = describe(rejection.reason, detail)
    for declined in plan.declined if rejection.reason in _SWEEPABLE else ():
        if declined.place == after and before in declined.groups:
            message += f"; no sweep: {declined.why}"
    return RejectionReport(first, second, rejection.reason, message, location, same_sweep)


def _spaces(flush: Flush, rejection: Rejection) -> str:
    """The iteration spaces of two calls, or the execution spaces if these differ."""
    one, other = (flush.program.trace.calls[n].space for n in (rejection.first, rejection.second))
    if one.execution != other.execution:
        return f": {one.execution} and {other.execution}"
    return f": {_box(one)} and {_box(other)}"


def _box(space: Space) -> str:
    """An iteration space as intervals."""
    pairs = zip(space.begin, space.end, strict=True)
    return " x ".join(f"[{begin:,}, {end:,})" for begin, end in pairs)


_SWEEPABLE = frozenset({"flow", "anti", "output", "unknown-access", "space", "pattern"})
"""What keeps calls out of one loop but not, of itself, out of one sweep."""

_VERBS = {
    Kind.FLOW: ("writes", "reads"),
    Kind.ANTI: ("reads", "writes"),
    Kind.OUTPUT: ("writes", "writes"),
}


def _accesses(dependence: Dependence) -> str:
    first, second = _VERBS[dependence.kind]
    where = [
        f"{verb} {view} at {short_path(location.file)}:{location.line}"
        if location
        else f"{verb} {view}"
        for verb, view, location in (
            (first, dependence.first_view, dependence.first_location),
            (second, dependence.second_view, dependence.second_location),
        )
    ]
    return f": the first {where[0]}, the second {where[1]}"
