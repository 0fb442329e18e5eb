"""From recorded calls to launched kernels: the whole flow on one page.

A trace's shape decides everything but the data, so the program made for a shape is kept and run
again when the same shape comes back. So is the kernel of a group, which traces may share.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType
from typing import Any, TypeVar

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.analysis.mistakes import refuse_mistakes
from pyfuser.codegen.cpu.unit import DIVIDED
from pyfuser.engine.engine import ENGINE, ON_DEVICE, Launchable, capabilities, graphs_for
from pyfuser.pipeline import KERNEL_PASSES, kernel_of, run_passes
from pyfuser.plan.changed import what_changed
from pyfuser.plan.plan import Group, Plan
from pyfuser.plan.rewrites.delinearize import planned
from pyfuser.runtime import eager
from pyfuser.runtime.autotune import Referee, cut_plan, doubts, settled
from pyfuser.runtime.autotune_gpu import DeviceReferee, device_doubts
from pyfuser.runtime.checked import run as checked_run
from pyfuser.runtime.checked import run_all
from pyfuser.runtime.debug import show_program
from pyfuser.runtime.isolate import FAILURES, end_trace, run_each
from pyfuser.runtime.launch import (
    Draft,
    Launch,
    LaunchKey,
    forgettable,
    give_results,
    launch_of,
    results_of,
    run_launch,
    run_together,
)
from pyfuser.runtime.partial_flush import DEFERRAL
from pyfuser.runtime.registers import relieved
from pyfuser.runtime.verify import verified
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import (
    CheckError,
    DivisionError,
    KernelError,
    VerificationError,
    WorkunitWarning,
)
from pyfuser.support.progress import listening
from pyfuser.support.settings import SETTINGS
from pyfuser.support.units import count
from pyfuser.trace.asked import Place, asked_for
from pyfuser.trace.call import Call, buffers_of
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE, give_to_host, has_foreign
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.trace.tracer import Tracer, nothing_to_settle
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from pyfuser.transform.kernel import Kernel

__all__ = ["TRACER", "flush", "run"]

MAX_PROGRAMS = 512
MAX_KERNELS = 2048
MAX_FLUSHES = 64


@dataclass(frozen=True)
class Program:
    """What a trace of this shape runs: `kernels[k]` is that of `plan.groups[k]`.

    trace: as it was planned, with some calls coarsened (see `plan.rewrites.coarsen`). referee: what
    tries other plans in its place, until nothing is in doubt. graphs: what launches all kernels
    together, if a device runs them.
    """

    trace: TraceShape
    graph: DependenceGraph
    plan: Plan
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    referee: Referee[Program] | None = None
    graphs: Any = None


@dataclass(frozen=True)
class Flush:
    """One flush that ran, for `explain`: its program, and each call's label, code and line.

    asked: what it ran for. waiting: the names of calls that it left. copied: bytes that it copied
    to GPUs, and back.
    """

    program: Program
    calls: tuple[tuple[str | None, CodeType, int], ...]
    asked: Place
    waiting: tuple[str, ...] = ()
    copied: list[int] = field(default_factory=lambda: [0, 0])


PROGRAMS: OrderedDict[TraceShape, Program] = OrderedDict()
KERNELS: OrderedDict[GroupShape, Kernel] = OrderedDict()
LAUNCHABLES: OrderedDict[LaunchKey, Launchable] = OrderedDict()
FLUSHES: list[Flush] = []  # the latest last
UNRECORDED: OrderedDict[tuple[str, CodeType, int], str] = OrderedDict()  # and why not

Key = TypeVar("Key")
Value = TypeVar("Value")


def flush(tracer: Tracer) -> None:
    """Analyse, fuse, compile and launch what the tracer holds.

    That is everything, but for calls that a result does not need (`tracer.wanted`, see
    `runtime.partial_flush`). Nothing has run if analysis or compilation raises: the calls stay
    pending. Calls whose kernels have run are forgotten, also when a later kernel fails. If a call
    cannot run (its kernel is rejected, memory is missing), those that need nothing of it run all
    the same: see `runtime.isolate`. After a division of integers by 0 what was called later is
    dropped.
    """
    calls = list(tracer.calls)
    COUNTERS.flushes += 1
    one = partial(_run_alone, tracer, {})
    if SETTINGS.check:
        run_all(calls, tracer)
        return
    if tracer.nested:  # planning takes longer than some signal handlers have until the next signal
        run_each(calls, one, tracer)
        return
    trace = shape_of(calls, structural_scalars)
    later = DEFERRAL.later(calls, trace, tracer.wanted)
    left = [calls[n] for n in sorted(later)]
    if later:
        calls = [call for n, call in enumerate(calls) if n not in later]
        trace = shape_of(calls, structural_scalars, left)
        COUNTERS.deferred += len(left)
    program = PROGRAMS.get(trace)
    if program is None:
        _refuse_mistakes(trace, calls, tracer)
        try:
            program = program_for(trace)
        except KernelError:
            run_each(calls, one, tracer)
            return
    DEFERRAL.learn(calls, program.trace, program.plan)
    copied = _remember(program, calls, left).copied
    before = COUNTERS.bytes_to_device, COUNTERS.bytes_to_host
    try:
        with tracer.place or contextlib.nullcontext():
            if SETTINGS.verify and not has_foreign(buffers_of(calls)):
                with verified(calls, run):
                    _execute(program, calls, tracer)
            else:
                _execute(program, calls, tracer)
    except FAILURES as error:
        if isinstance(error, VerificationError):
            raise
        left_over = set(map(id, tracer.calls))
        run_each([call for call in calls if id(call) in left_over], one, tracer)
        if isinstance(error, DivisionError) and error.ran:
            raise
    copied[:] = COUNTERS.bytes_to_device - before[0], COUNTERS.bytes_to_host - before[1]
    if program.referee is not None and program.referee.open:
        following = program.referee.after(program)
        if following is not program:
            PROGRAMS[trace] = following


def _refuse_mistakes(trace: TraceShape, calls: Sequence[Call], tracer: Tracer) -> None:
    """Raise what the analysis finds wrong with a call, where an eager program would have ended.

    The calls before it have run then, and those from it on are forgotten.
    """
    seen: set[int] = set()
    for place, (kind, shape) in enumerate(zip(trace.kinds, trace.calls, strict=True)):
        if kind in seen:
            continue
        seen.add(kind)
        try:
            refuse_mistakes(shape, calls[place])
        except (CheckError, WorkunitWarning) as error:
            with tracer.place or contextlib.nullcontext():
                for call in calls[:place]:
                    run(call)
                    tracer.remove([call])
            tracer.give_up(error, calls[place].position - 1)
            raise


def finish() -> None:
    """Run what is pending, and wait until GPUs have done what they were given."""
    TRACER.flush()
    if USE.devices:
        from pyfuser.engine.gpu import spaces  # only where it is loaded already

        spaces.synchronize()


def program_for(trace: TraceShape) -> Program:
    """The program of a trace shape, made once."""
    program = PROGRAMS.get(trace)
    if program is None:
        before = COUNTERS.analysis_seconds
        program = build(trace)
        log = listening("plan")
        if log is not None:
            seconds = COUNTERS.analysis_seconds - before
            changed = what_changed(trace, reversed(PROGRAMS))
            log.debug(
                "planned %s as %s in %.3f s%s",
                count(len(trace.calls), "call"), count(len(program.launches), "kernel"), seconds,
                f", again, as {changed}" if changed else "",
            )  # fmt: skip
        _keep(PROGRAMS, trace, program, MAX_PROGRAMS)
        show_program(program.plan, program.graph, program.kernels, SETTINGS.debug)
    return program


def build(trace: TraceShape) -> Program:
    """Plan a trace and compile those of its kernels that are new."""
    start = time.perf_counter()
    able = capabilities(call.space.execution for call in trace.calls)
    trace, graph, plan = planned(trace, able)
    COUNTERS.plans += 1
    COUNTERS.analysis_seconds += time.perf_counter() - start
    program = _make(trace, graph, None, plan)
    if able is ON_DEVICE:
        program = relieved(program, lambda other: _make(trace, graph, None, other))
        plan = program.plan
    if not able.timed:
        return program
    open_groups = device_doubts(program) if able is ON_DEVICE else doubts(program)
    for calls, choice in settled(program, open_groups).items():
        open_groups.remove(calls)
        if choice.cuts:
            plan = cut_plan(plan, calls, choice.place)
    if plan is not program.plan:
        program = _make(trace, graph, None, plan)
    if not open_groups:
        return program
    judge: type[Referee[Program]] = DeviceReferee if able is ON_DEVICE else Referee
    referee: Referee[Program] = judge(open_groups, lambda p: _make(trace, graph, referee, p))
    return replace(program, referee=referee)


def _make(
    trace: TraceShape, graph: DependenceGraph, referee: Referee[Program] | None, plan: Plan
) -> Program:
    """The program of a plan, whose kernels are compiled."""
    start = time.perf_counter()
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    made_kernels = {s: KERNELS.get(s) or kernel_of(s) for s in dict.fromkeys(shapes)}
    kernels = [made_kernels[shape] for shape in shapes]
    drafts = [Draft(trace, plan, places, shapes, kernels) for places in plan.launches()]
    new = {draft.key: draft for draft in drafts if draft.key not in LAUNCHABLES}
    wanted = [(draft.kernels, draft.rolling) for draft in new.values()]
    COUNTERS.analysis_seconds += time.perf_counter() - start
    made = dict(zip(new, ENGINE.prepare(wanted), strict=True))
    launches = [draft.launch(made.get(draft.key) or LAUNCHABLES[draft.key]) for draft in drafts]
    for shape, kernel in made_kernels.items():
        _keep(KERNELS, shape, kernel, MAX_KERNELS)
    for key, launchable in made.items():
        _keep(LAUNCHABLES, key, launchable, MAX_KERNELS)
    graphs = graphs_for([launch.launchable for launch in launches])
    return Program(trace, graph, plan, tuple(kernels), tuple(launches), referee, graphs)


def _run_alone(tracer: Tracer, rejected: dict[GroupShape, KernelError], call: Call) -> None:
    """Run a pending call unfused. rejected: the shapes whose kernels the compiler has rejected."""
    trace = shape_of((call,), structural_scalars)
    (shape,) = group_shapes(trace, [(0,)])
    shape = shape._replace(dead=frozenset())  # who would overwrite it may be stuck
    if shape in rejected:
        raise type(rejected[shape])(str(rejected[shape]))
    try:
        kernel = run_passes(KERNEL_PASSES, fuse(shape))
        (launchable,) = ENGINE.prepare([((kernel,), ())])
    except KernelError as error:
        rejected[shape] = error
        raise
    launch = launch_of([(0,)], [kernel], launchable, kernel.space)
    plan = Plan((Group((0,)),), ())
    _execute(Program(trace, DependenceGraph(1, ()), plan, (kernel,), (launch,)), [call], tracer)


def _execute(program: Program, calls: Sequence[Call], tracer: Tracer) -> None:
    """Launch a program's kernels in order on the calls' data."""
    ran = Ran(tracer.gate)
    tracer.settle = partial(_settle, program, calls, ran, tracer)
    before = time.perf_counter()
    try:
        if program.graphs is not None:
            referee = program.referee
            measure = referee.measure() if referee is not None and referee.open else None
            run_together(program.launches, calls, program.graphs, ran, measure)
            COUNTERS.launches += len(program.launches)
            return
        for launch in program.launches:
            run_launch(launch, calls, ran)
            now = time.perf_counter()
            if not launch.launchable.on_device:  # which runs on when a launch returns
                launch.timing.add(now - before)
            before = now
            COUNTERS.launches += 1
    except DivisionError as error:
        if error.ran:
            tracer.settle()
            failed = program.launches[len(ran) - 1]
            end_trace(error, [calls[n] for n in failed.calls], calls, tracer)
        raise
    finally:
        tracer.settle()
        if USE.devices:
            give_to_host(buffers_of(calls))


def _settle(program: Program, calls: Sequence[Call], ran: Ran, tracer: Tracer) -> None:
    """Forget the calls whose kernels are in `ran` (see `make_run`), and see to their results.

    Interrupted by a signal handler, it can be called again.
    """
    done: list[int] = []
    for launch, (status, result) in zip(program.launches, ran, strict=False):
        if status not in (0, DIVIDED):
            break
        results = results_of(launch, calls) if not status else []
        if results and not all(future.ready for future in results):
            give_results(results, launch.launchable.values(result))
        done += launch.calls
    tracer.remove([calls[n] for n in forgettable(program.plan, done)])
    tracer.settle = nothing_to_settle


def _remember(program: Program, calls: Sequence[Call], left: Sequence[Call]) -> Flush:
    """Keep what `explain` tells of this flush; it holds no data."""
    places = tuple([(call.label, call.code, call.line) for call in calls])
    waiting = tuple([call.name for call in left])
    FLUSHES.append(Flush(program, places, asked_for(), waiting))
    if len(FLUSHES) > MAX_FLUSHES:
        del FLUSHES[0]
    log = listening("flush")
    if log is not None:
        file, line, why = FLUSHES[-1].asked
        where = f"{file}:{line}: " if file else ""
        log.debug("flush of %s, %d wait: %s%s", count(len(calls), "call"), len(left), where, why)
    return FLUSHES[-1]


def note_unrecorded(name: str, code: CodeType, line: int, why: str) -> None:
    """Keep for `explain` that a call which was to be fused ran by itself."""
    _keep(UNRECORDED, (name, code, line), why, MAX_FLUSHES)


def _keep(known: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> None:
    known[key] = value
    while len(known) > limit:
        known.popitem(last=False)


#: Runs one call now and alone.
run: Callable[[Call], None] = checked_run if SETTINGS.check else eager.run

#: The process's tracer.
TRACER = Tracer()
TRACER.flush_function = flush
if SETTINGS.sync:
    from pyfuser.checks.sync import install

    install(TRACER)
