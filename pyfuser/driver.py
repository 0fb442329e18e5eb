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
from pyfuser.engine.native import Launchable
from pyfuser.errors import PyFuserError
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Plan
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
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
    """What a trace of this shape runs: `kernels[k]` and `launchables[k]` for `plan.groups[k]`."""

    trace: TraceShape
    graph: DependenceGraph
    plan: Plan
    kernels: tuple[Kernel, ...]
    launchables: tuple[Launchable, ...]


@dataclass(frozen=True)
class Flush:
    """One flush that ran, for `explain`: its program, and each call's label, code and line."""

    program: Program
    calls: tuple[tuple[str | None, CodeType, int], ...]


PROGRAMS: OrderedDict[TraceShape, Program] = OrderedDict()
KERNELS: OrderedDict[GroupShape, tuple[Kernel, Launchable]] = OrderedDict()
FLUSHES: list[Flush] = []  # the latest last

Key = TypeVar("Key")
Value = TypeVar("Value")


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
    new = {shape: optimise(fuse(shape)) for shape in shapes if shape not in KERNELS}
    wide = [specialise(kernel) for kernel in new.values()]
    COUNTERS.plans += 1
    COUNTERS.analysis_seconds += time.perf_counter() - start
    made = dict(zip(new, zip(new.values(), native.prepare(wide), strict=True), strict=True))
    pairs = [made.get(shape) or KERNELS[shape] for shape in shapes]
    for shape, pair in made.items():
        _keep(KERNELS, shape, pair, MAX_KERNELS)
    return Program(
        trace, graph, plan, tuple(kernel for kernel, _ in pairs), tuple(code for _, code in pairs)
    )


def _execute(program: Program, calls: Sequence[Call], tracer: Tracer) -> None:
    """Launch a program's kernels in order on the calls' data."""
    ran: list[Any] = []
    tracer.settle = partial(_settle, program, calls, ran, tracer, tracer.calls)
    try:
        for group, kernel, launchable in zip(
            program.plan.groups, program.kernels, program.launchables, strict=True
        ):
            _launch(kernel, launchable, [calls[position] for position in group.calls], ran)
    finally:
        tracer.settle()


def _settle(
    program: Program, calls: Sequence[Call], ran: list[Any], tracer: Tracer, pending: list[Call]
) -> None:
    """Forget the calls whose kernels are in `ran` (see `make_run`), and see to their results.

    Interrupted by a signal handler, it can be called again.
    """
    done: list[Call] = []
    for group, kernel, launchable, (status, result) in zip(
        program.plan.groups, program.kernels, program.launchables, ran, strict=False
    ):
        if status:
            break
        members = [calls[position] for position in group.calls]
        if kernel.results and not all(_result(members[n]).ready for n in kernel.results):
            _give_results(kernel, members, launchable.values(result))
        done += members
    if tracer.calls is pending:  # else that much was done before the interruption
        tracer.remove(done)
    tracer.settle = nothing_to_settle


def _launch(kernel: Kernel, launchable: Launchable, calls: Sequence[Call], ran: list[Any]) -> None:
    """Run one kernel on its calls' arguments, and give the calls their results."""
    arguments: list[Argument] = []
    for slot in kernel.slots:
        argument = calls[slot.call].arguments[slot.argument]
        arguments.append(argument.result() if isinstance(argument, Future) else argument)
    try:
        for place in kernel.overwrites:
            arguments[place].allocate(kernel.space[:2])  # type: ignore[union-attr]
        values = launchable.run(kernel.space, arguments, ran)
    except (PyFuserError, MemoryError, OverflowError) as error:
        lines = "".join(f"\n  called as {call.name!r} at {call.location}" for call in calls)
        error.args = (f"{error}{lines}",)
        raise
    COUNTERS.launches += 1
    _give_results(kernel, calls, values)


def _give_results(kernel: Kernel, calls: Sequence[Call], values: Sequence[Number]) -> None:
    for place, value in zip(kernel.results, values, strict=True):
        _result(calls[place]).set(value)


def _result(call: Call) -> Future:
    assert call.result is not None
    return call.result


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
