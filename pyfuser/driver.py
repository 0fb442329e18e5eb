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
from pyfuser.engine.native import Launchable
from pyfuser.errors import KernelError
from pyfuser.launches import (
    Draft,
    Launch,
    LaunchKey,
    give_results,
    launch_of,
    results_of,
    run_launch,
)
from pyfuser.patience import family_of, one_by_one
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Group, Plan
from pyfuser.salvage import separate, stuck_error
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.shape import TraceShape, shape_of
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
WAITING: OrderedDict[TraceShape, Program] = OrderedDict()  # run call by call for now
KERNELS: OrderedDict[GroupShape, Kernel] = OrderedDict()
LAUNCHABLES: OrderedDict[LaunchKey, Launchable] = OrderedDict()
FLUSHES: list[Flush] = []  # the latest last

Key = TypeVar("Key")
Value = TypeVar("Value")


def flush(tracer: Tracer) -> None:
    """Analyse, fuse, compile and launch everything the tracer holds.

    Nothing has run if analysis or compilation raises: the calls stay pending. Calls whose
    kernels have run are forgotten, also when a later kernel fails. If the compiler rejects a
    kernel, the calls that need nothing of it run all the same.
    """
    calls = list(tracer.calls)
    COUNTERS.flushes += 1
    if SETTINGS.check:
        run_all(calls, tracer)
        return
    trace = shape_of(calls, structural_scalars)
    try:
        program = program_for(trace)
    except KernelError:
        _run_what_can(trace, calls, tracer)
        return
    _remember(program, calls)
    if SETTINGS.verify:
        with verified(calls, run):
            _execute(program, calls, tracer)
    else:
        _execute(program, calls, tracer)


def program_for(trace: TraceShape) -> Program:
    """The program of a trace shape, made once; an unfused one until planning pays."""
    program = PROGRAMS.get(trace)
    if program is not None:
        return program
    family = family_of(trace)
    if family.changes:
        program = WAITING.get(trace)
        if program is None:
            program = _unplanned(trace)
            _keep(WAITING, trace, program, MAX_PROGRAMS)
        if not family.pays(program.launches):
            return program
        del WAITING[trace]
    start = time.perf_counter()
    program = build(trace)
    family.planned(time.perf_counter() - start)
    _keep(PROGRAMS, trace, program, MAX_PROGRAMS)
    show_program(program.plan, program.graph, program.kernels, SETTINGS.debug)
    return program


def _unplanned(trace: TraceShape) -> Program:
    plan, kernels, launches = one_by_one(trace)
    return Program(trace, DependenceGraph(len(trace.calls), ()), plan, kernels, launches)


def build(trace: TraceShape) -> Program:
    """Plan a trace and compile those of its kernels that are new."""
    start = time.perf_counter()
    graph = dependences(trace)
    plan = partition(trace, graph)
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    kernels = [KERNELS.get(shape) or optimise(fuse(shape)) for shape in shapes]
    drafts = [Draft(trace, plan, places, shapes, kernels) for places in plan.launches()]
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


def _run_what_can(trace: TraceShape, calls: Sequence[Call], tracer: Tracer) -> None:
    """Run alone the calls that do not need one whose kernel the compiler rejects.

    Raises KernelError if there is such a call.
    """
    graph = dependences(trace)
    ready, stuck = separate(trace, graph)
    plan = Plan(tuple(Group((call,)) for call, _, _ in ready), ())
    launches = [launch_of([(n,)], [kernel], code, kernel.space) for n, kernel, code in ready]
    program = Program(trace, graph, plan, tuple(k for _, k, _ in ready), tuple(launches))
    _execute(program, calls, tracer)
    if stuck:
        raise stuck_error(calls, stuck) from None


def _execute(program: Program, calls: Sequence[Call], tracer: Tracer) -> None:
    """Launch a program's kernels in order on the calls' data."""
    ran: list[Any] = []
    tracer.settle = partial(_settle, program, calls, ran, tracer, tracer.calls)
    before = time.perf_counter()
    try:
        for launch in program.launches:
            run_launch(launch, calls, ran)
            now = time.perf_counter()
            launch.timing.add(now - before)
            before = now
            COUNTERS.launches += 1
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
        results = results_of(launch, calls)
        if results and not all(future.ready for future in results):
            give_results(results, launch.launchable.values(result))
        done += (calls[n] for n in launch.calls)
    if tracer.calls is pending:  # else that much was done before the interruption
        tracer.remove(done)
    tracer.settle = nothing_to_settle


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
