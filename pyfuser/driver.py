"""From recorded calls to launched kernels: the whole flow on one page.

A trace's shape decides everything but the data, so the program made for a shape is kept and run
again when the same shape comes back. So is the kernel of a group, which traces may share.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, TypeVar

from pyfuser import eager
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.dependences import DependenceGraph, dependences
from pyfuser.checks.run import run as checked_run
from pyfuser.checks.run import run_all
from pyfuser.counters import COUNTERS
from pyfuser.debug import show_program
from pyfuser.engine import native
from pyfuser.engine.marshal import Number
from pyfuser.engine.native import Launchable, RollingParams
from pyfuser.errors import PyFuserError
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Plan
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import RegionShape, TraceShape, shape_of
from pyfuser.trace.tracer import Tracer, nothing_to_settle
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import optimise, specialise
from pyfuser.verify import verified

__all__ = ["TRACER", "flush", "run"]

MAX_PROGRAMS = 512
MAX_KERNELS = 2048
MAX_FLUSHES = 64


@dataclass(frozen=True)
class Launch:
    """One launch: kernels[k] does what the calls groups[k] (places in the trace) ask for.

    space: the iteration space, or what `make_run` wants to know of a sweep. overwrites: for each
    kernel those places of its arguments that need no zeroed memory.
    """

    groups: tuple[tuple[int, ...], ...]
    kernels: tuple[Kernel, ...]
    launchable: Launchable
    space: tuple[Any, ...]
    overwrites: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Program:
    """What a trace of this shape runs: `kernels[k]` is that of `plan.groups[k]`."""

    trace: TraceShape
    graph: DependenceGraph
    plan: Plan
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Flush:
    """One flush that ran, for `explain`: its program, and each call's label, code and line."""

    program: Program
    calls: tuple[tuple[str | None, CodeType, int], ...]


PROGRAMS: OrderedDict[TraceShape, Program] = OrderedDict()
Key = TypeVar("Key")
Value = TypeVar("Value")
LaunchKey = tuple[tuple[GroupShape, ...], RollingParams]

KERNELS: OrderedDict[GroupShape, Kernel] = OrderedDict()
LAUNCHABLES: OrderedDict[LaunchKey, Launchable] = OrderedDict()
FLUSHES: list[Flush] = []  # the latest last


def flush(tracer: Tracer) -> None:
    """Analyse, fuse, compile and launch everything the tracer holds.

    Nothing has run if analysis or compilation raises: the calls stay pending. Calls whose
    kernels have run are forgotten, also when a later kernel fails.
    """
    calls = list(tracer.calls)
    COUNTERS.flushes += 1
    if SETTINGS.check:
        run_all(calls, tracer)
        return
    program = program_for(shape_of(calls, structural_scalars))
    _remember(program, calls)
    if SETTINGS.verify:
        with verified(calls, run):
            _execute(program, calls, tracer)
    else:
        _execute(program, calls, tracer)


def program_for(trace: TraceShape) -> Program:
    """The program of a trace shape, made once."""
    program = PROGRAMS.get(trace)
    if program is None:
        program = build(trace)
        _keep(PROGRAMS, trace, program, MAX_PROGRAMS)
        show_program(program.plan, program.graph, program.kernels, SETTINGS.debug)
    return program


def build(trace: TraceShape) -> Program:
    """Plan a trace and compile those of its kernels that are new."""
    start = time.perf_counter()
    graph = dependences(trace)
    plan = partition(trace, graph)
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    kernels = [KERNELS.get(shape) or optimise(fuse(shape)) for shape in shapes]
    drafts = [_Draft(trace, plan, places, shapes, kernels) for places in plan.launches()]
    new = {draft.key: draft for draft in drafts if draft.key not in LAUNCHABLES}
    wide = [([specialise(k) for k in draft.kernels], draft.rolling) for draft in new.values()]
    COUNTERS.plans += 1
    COUNTERS.analysis_seconds += time.perf_counter() - start
    made = dict(zip(new, native.prepare_launches(wide), strict=True))
    launches = [draft.launch(made.get(draft.key) or LAUNCHABLES[draft.key]) for draft in drafts]
    for shape, kernel in zip(shapes, kernels, strict=True):
        _keep(KERNELS, shape, kernel, MAX_KERNELS)
    for key, launchable in made.items():
        _keep(LAUNCHABLES, key, launchable, MAX_KERNELS)
    return Program(trace, graph, plan, tuple(kernels), tuple(launches))


class _Draft:
    """A launch that is not compiled yet: the groups of a plan at `places`, one or a sweep."""

    def __init__(
        self,
        trace: TraceShape,
        plan: Plan,
        places: tuple[int, ...],
        shapes: Sequence[GroupShape],
        kernels: Sequence[Kernel],
    ) -> None:
        self.groups = tuple(plan.groups[place].calls for place in places)
        self.kernels = tuple(kernels[place] for place in places)
        self.sweep = next((sweep for sweep in plan.sweeps if sweep.groups == places), None)
        views = self.sweep.rolling if self.sweep else ()
        self.rolling = tuple(self._params(trace, view.cluster) for view in views)
        self.key: LaunchKey = tuple(shapes[place] for place in places), self.rolling

    def _params(self, trace: TraceShape, cluster: int) -> tuple[tuple[int, int], ...]:
        """The parameters, as (kernel, place), that stand for the views of a cluster."""
        found = []
        for loop, (group, kernel) in enumerate(zip(self.groups, self.kernels, strict=True)):
            for place, slot in enumerate(kernel.slots):
                argument = trace.calls[group[slot.call]].arguments[slot.argument]
                if isinstance(argument, RegionShape) and argument.cluster == cluster:
                    found.append((loop, place))
        return tuple(found)

    def launch(self, launchable: Launchable) -> Launch:
        """The launch of its code."""
        space: tuple[Any, ...] = self.kernels[0].space
        if self.sweep:
            stages = zip(self.sweep.stages, self.kernels, strict=True)
            space = (
                self.sweep.wave,
                *(view[1:] for view in self.sweep.rolling),
                *((stage.lag, stage.ahead, *kernel.space[:2]) for stage, kernel in stages),
            )
        without = {param for params in self.rolling for param in params}
        overwrites = tuple(
            tuple(place for place in kernel.overwrites if (loop, place) not in without)
            for loop, kernel in enumerate(self.kernels)
        )
        return Launch(self.groups, self.kernels, launchable, space, overwrites)


def _execute(program: Program, calls: Sequence[Call], tracer: Tracer) -> None:
    """Launch a program's kernels in order on the calls' data."""
    ran: list[Any] = []
    tracer.settle = partial(_settle, program, calls, ran, tracer, tracer.calls)
    try:
        for launch in program.launches:
            _launch(launch, calls, ran)
    finally:
        tracer.settle()


def _settle(
    program: Program, calls: Sequence[Call], ran: list[Any], tracer: Tracer, pending: list[Call]
) -> None:
    """Forget the calls whose kernels are in `ran` (see `make_run`), and see to their results.

    Interrupted by a signal handler, it can be called again.
    """
    done: list[Call] = []
    for launch, (status, result) in zip(program.launches, ran, strict=False):
        if status:
            break
        results = _results(launch, calls)
        if results and not all(future.ready for future in results):
            _give_results(results, launch.launchable.values(result))
        done += (calls[position] for group in launch.groups for position in group)
    if tracer.calls is pending:  # else that much was done before the interruption
        tracer.remove(done)
    tracer.settle = nothing_to_settle


def _launch(launch: Launch, calls: Sequence[Call], ran: list[Any]) -> None:
    """Run one launch on its calls' arguments, and give the calls their results."""
    arguments: list[Argument] = []
    try:
        for group, kernel, places in zip(
            launch.groups, launch.kernels, launch.overwrites, strict=True
        ):
            first = len(arguments)
            for slot in kernel.slots:
                argument = calls[group[slot.call]].arguments[slot.argument]
                arguments.append(argument.result() if isinstance(argument, Future) else argument)
            _allocate(kernel, places, arguments, first)
        values = launch.launchable.run(launch.space, arguments, ran)
    except (PyFuserError, MemoryError, OverflowError) as error:
        members = (calls[position] for group in launch.groups for position in group)
        lines = "".join(f"\n  called as {call.name!r} at {call.location}" for call in members)
        error.args = (f"{error}{lines}",)
        raise
    COUNTERS.launches += 1
    _give_results(_results(launch, calls), values)


def _allocate(
    kernel: Kernel, places: Sequence[int], arguments: Sequence[Argument], first: int
) -> None:
    """Allocate what a kernel overwrites without zeroing it, unless an earlier loop may read it.

    places: of the views among the kernel's own arguments, which start at `first`; those before are
    of loops that run first.
    """
    for place in places:
        region = arguments[first + place]
        assert isinstance(region, Region)
        earlier = any(a.buffer is region.buffer for a in arguments[:first] if type(a) is Region)
        if not earlier:
            region.allocate(kernel.space[:2])


def _results(launch: Launch, calls: Sequence[Call]) -> list[Future]:
    """The Futures of a launch, in the order of its values."""
    found = []
    for group, kernel in zip(launch.groups, launch.kernels, strict=True):
        for place in kernel.results:
            future = calls[group[place]].result
            assert future is not None
            found.append(future)
    return found


def _give_results(results: Sequence[Future], values: Sequence[Number]) -> None:
    for future, value in zip(results, values, strict=True):
        future.set(value)


def _remember(program: Program, calls: Sequence[Call]) -> None:
    """Keep what `explain` tells of this flush; it holds no data."""
    FLUSHES.append(Flush(program, tuple([(call.label, call.code, call.line) for call in calls])))
    if len(FLUSHES) > MAX_FLUSHES:
        del FLUSHES[0]


def _keep(known: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> None:
    known[key] = value
    while len(known) > limit:
        known.popitem(last=False)


#: Runs one call now and alone.
run: Callable[[Call], None] = checked_run if SETTINGS.check else eager.run

#: The process's tracer.
TRACER = Tracer()
TRACER.flush_function = flush
