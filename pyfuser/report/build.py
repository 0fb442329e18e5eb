"""Builds the report of `pyfuser.explain()` from what ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyfuser.codegen.pykokkos import unit as pykokkos_unit
from pyfuser.engine.launchable import Launchable
from pyfuser.ir.affine import values_of
from pyfuser.ir.nodes import For, While
from pyfuser.ir.visit import statements
from pyfuser.ir.weights import arithmetic
from pyfuser.plan.cost_model import bytes_moved, group_cost, sweep_cost
from pyfuser.plan.plan import Note, Sweep, Told
from pyfuser.report import loops
from pyfuser.report.explanation import Explanation
from pyfuser.report.memory import bytes_of, kept
from pyfuser.report.model import Asked, CallReport, Cost, GroupReport, SweepReport, Vectors
from pyfuser.report.names import Names, contracted, removed, window_names
from pyfuser.report.rejections import rejection_report
from pyfuser.report.vectors import vectors_of
from pyfuser.runtime.launch import Launch
from pyfuser.runtime.lifetimes import at_once
from pyfuser.runtime.program import Flush
from pyfuser.runtime.session import SESSION
from pyfuser.support.places import short_path
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import line_at
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from pyfuser.transform.kernel import Kernel


def explain(flushes: int = 1, source: bool = False) -> Explanation:
    """The report of the latest flushes.

    flushes: how many of the latest flushes to cover (the newest 64 are kept). source: whether the
    text shows each kernel's PyKokkos source; `groups[k].source` always has it.
    """
    covered = SESSION.flushes[-flushes:] if flushes > 0 else []
    return explanation(covered, source, len(SESSION.flushes) - len(covered))


def since(before: Sequence[Flush]) -> list[Flush]:
    """The flushes after the one given (none: all), of those that are kept."""
    for place, flush in enumerate(SESSION.flushes):
        if before and flush is before[0]:
            return SESSION.flushes[place + 1 :]
    return list(SESSION.flushes)


def explanation(covered: Sequence[Flush], source: bool = False, earlier: int = 0) -> Explanation:
    """The report of some flushes; earlier: how many came before them."""
    groups: list[GroupReport] = []
    rejections = []
    sweeps: list[SweepReport] = []
    ends = []
    known: dict[Kernel, tuple[tuple[str, ...], Vectors]] = {}
    for flush in covered:
        told = _Told(flush, known)
        sweeps += [told.sweep(sweep, len(groups)) for sweep in flush.program.plan.sweeps]
        groups += told.groups()
        found = flush.program.plan.rejections
        rejections += [rejection_report(flush, told.calls, rejection) for rejection in found]
        ends.append(len(groups))
    made = [at_once(f.program.given, f.program.launches) for f in covered]
    return Explanation(
        groups=tuple(groups),
        rejections=tuple(rejections),
        recorded=sum(len(flush.program.given.calls) for flush in covered),
        show_source=source,
        sweeps=tuple(sweeps),
        unrecorded=tuple(
            f"{name} ({short_path(code.co_filename)}:{line}): {why}"
            for (name, code, line), why in SESSION.unrecorded.items()
        ),
        apart=tuple(
            f"{name} ({short_path(code.co_filename)}:{line_at(code, at)})"
            for (name, code), at in SESSION.apart.items()
        ),
        copied_to_device=sum(flush.copied[0] for flush in covered),
        copied_to_host=sum(flush.copied[1] for flush in covered),
        asked=tuple(
            Asked(*place, times) for place, times in Counter(f.asked for f in covered).items()
        ),
        covered=len(covered),
        earlier=earlier,
        ends=tuple(ends),
        checked=bool(SETTINGS.check),
        bytes_at_once=max((fused for fused, _ in made), default=0),
        bytes_at_once_unfused=max((unfused for _, unfused in made), default=0),
        waiting=max((getattr(flush, "waiting", 0) for flush in covered), default=0),
        banded=sum(cut.last - cut.first for flush in covered for cut in flush.program.cuts),
    )


class _Told:
    """What there is to tell of one flush; known: what was found of the kernels of a report."""

    def __init__(self, flush: Flush, known: dict[Kernel, tuple[tuple[str, ...], Vectors]]) -> None:
        self.flush, self._known = flush, known
        self.program = program = flush.program
        self.trace, self.plan = program.trace, program.plan
        self.given = program.given
        self.launches = {launch.calls: launch for launch in program.launches}
        self.calls = [
            CallReport(
                label or call.workunit.name, code.co_filename, line, call.workunit.location, n
            )
            for n, ((label, code, line), call) in enumerate(
                zip(flush.calls, self.given.calls, strict=True)
            )
        ]
        self._final = {
            place: kernel
            for places, launch in zip(self.plan.launches(), program.launches, strict=True)
            for place, kernel in zip(places, launch.kernels, strict=True)
        }
        self._launch_of = {n: launch for launch in program.launches for n in launch.calls}

    def groups(self) -> Iterator[GroupReport]:
        """The loops, in order."""
        plan = self.plan
        shapes = group_shapes(self.trace, [group.calls for group in plan.groups])
        swept = {place for sweep in plan.sweeps for place in sweep.groups}
        pairs = zip(plan.groups, shapes, self.program.kernels, strict=True)
        for place, (group, shape, kernel) in enumerate(pairs):
            ready = self._final.get(place, kernel)
            yield self._fused(group.calls, shape, kernel, ready, place in swept)

    def _fused(
        self,
        group: tuple[int, ...],
        shape: GroupShape,
        kernel: Kernel,
        ready: Kernel,
        swept: bool,
    ) -> GroupReport:
        """What became of the calls of a group in their kernel; `ready` is what was printed."""
        before = fuse(shape)
        names = Names(self.flush, group, before)
        gone = contracted(before, kernel, self.flush, group)
        stores, loads = removed(before, kernel)
        launch = self._launch_of.get(group[0])
        on_host = launch is not None and isinstance(launch.launchable, Launchable)
        together = launch.calls if launch is not None else group
        passes, vectors = self._loops_of(ready) if on_host else ((), None)
        return GroupReport(
            calls=tuple(self.calls[position] for position in group),
            source=pykokkos_unit.shown(kernel.workunit),
            generated="" if swept or launch is None else launch.launchable.source,
            contracted=names.of(gone),
            bytes_avoided=sum(bytes_of(self.trace, cluster) for cluster in {*gone.values()}),
            kept=tuple(kept(self.flush, group, together, self.calls)),
            removed_stores=names.counts(stores),
            removed_loads=names.counts(loads),
            cost=self._cost(group, [kernel]),
            vectors=vectors,
            order=loops.order_text(ready, before, names.of, passes),
            rewritten=self._rewritten(group, not loops.SPLITS.isdisjoint(passes)),
            registers="" if swept or launch is None else _registers(launch),
        )

    def _loops_of(self, kernel: Kernel) -> tuple[tuple[str, ...], Vectors]:
        """What was done to the loops of a kernel of the host, and whether they are vectors.

        To find it takes as long as to print the kernel, and steps of a program have the same.
        """
        key = replace(kernel, slots=())  # wherever its arguments are
        if key not in self._known:
            nest = loops.loops_of(kernel)
            self._known[key] = nest.passes, vectors_of(kernel, nest)
        return self._known[key]

    def _rewritten(self, group: tuple[int, ...], split: bool) -> tuple[str, ...]:
        """What the plan made of the calls of a group."""
        told = Told(lambda n: self.calls[n].name, split)
        found: dict[type[Note], list[Note]] = {}
        for note in self.plan.notes:
            if note.call in group:
                found.setdefault(type(note), []).append(note)
        return tuple(line for kind, notes in found.items() for line in kind.lines(notes, told))

    def sweep(self, sweep: Sweep, before: int) -> SweepReport:
        """A sweep, whose groups come after `before` others."""
        plan, trace = self.plan, self.trace
        calls = tuple(n for place in sweep.groups for n in plan.groups[place].calls)
        launch = self.launches.get(calls)
        return SweepReport(
            groups=tuple(before + place for place in sweep.groups),
            lags=tuple(stage.lag for stage in sweep.stages),
            wave=sweep.wave,
            windows=window_names(self.flush, sweep),
            cost=self._cost(calls, [self.program.kernels[n] for n in sweep.groups], sweep),
            scan=any(trace.calls[n].pattern == "scan" for n in calls),
            generated=launch.launchable.source if launch is not None else "",
            ring=sweep.ring,
        )

    def _cost(
        self, calls: tuple[int, ...], kernels: Sequence[Kernel], sweep: Sweep | None = None
    ) -> Cost:
        """What a launch of these calls, in so many loops, moves and takes."""
        rolling = frozenset(view.cluster for view in sweep.rolling) if sweep else frozenset[int]()
        launch = self.launches.get(calls)
        timing = launch.timing if launch is not None and launch.timing.runs else None
        return Cost(
            bytes_moved=int(bytes_moved(self.trace, calls, rolling)),
            bytes_unfused=int(sum(bytes_moved(self.given, (n,)) for n in calls)),
            modelled=sweep_cost(self.trace, calls, rolling)
            if sweep
            else group_cost(self.trace, calls),
            modelled_unfused=sum(group_cost(self.given, (n,)) for n in calls),
            operations=_operations(kernels),
            measured=timing.mean if timing is not None else None,
            launches=timing.runs if timing is not None else 0,
        )


def _operations(kernels: Sequence[Kernel]) -> float | None:
    """What all iterations compute, in additions, if that is known before they run."""
    for stmt in (stmt for kernel in kernels for stmt in statements(kernel.workunit.body)):
        if isinstance(stmt, While) or (isinstance(stmt, For) and not values_of(stmt) is not None):
            return None
    return float(sum(arithmetic(kernel.workunit, {}) * kernel.space.size for kernel in kernels))


def _registers(launch: Launch) -> str:
    """What a GPU's compiler said of a kernel."""
    texts = []
    for used in launch.launchable.registers(launch.space):
        spilled = f", {used.spilled} bytes of local memory" if used.spilled else ""
        texts.append(f"{used.registers} registers{spilled}")
    return f"a thread has {' and '.join(texts)}" if texts else ""
