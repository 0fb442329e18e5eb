"""From recorded calls to launched kernels: the whole flow on one page.

A trace's shape decides everything but the data, so the program made for a shape is kept and run
again when the same shape comes back.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.dependences import DependenceGraph, dependences
from pyfuser.counters import COUNTERS
from pyfuser.debug import show_program
from pyfuser.eager import run
from pyfuser.engine import native
from pyfuser.engine.native import Launchable
from pyfuser.plan.partition import partition
from pyfuser.plan.plan import Plan
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Argument, Call
from pyfuser.trace.future import Future
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.trace.tracer import Tracer
from pyfuser.transform.fuse import fuse
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import optimise
from pyfuser.transform.widen import widen
from pyfuser.verify import verified

MAX_PROGRAMS = 512


@dataclass(frozen=True)
class Program:
    """What a trace of this shape runs: `kernels[k]` and `launchables[k]` for `plan.groups[k]`."""

    trace: TraceShape
    graph: DependenceGraph
    plan: Plan
    kernels: tuple[Kernel, ...]
    launchables: tuple[Launchable, ...]


@dataclass(slots=True)
class Flush:
    """One flush that ran, for `explain`: the program and the calls' names and source lines."""

    program: Program
    calls: list[tuple[str, str]] = field(default_factory=list)


__all__ = ["TRACER", "flush", "run"]

PROGRAMS: OrderedDict[TraceShape, Program] = OrderedDict()
FLUSHES: list[Flush] = []  # the latest last
MAX_FLUSHES = 64


def flush(tracer: Tracer) -> None:
    """Analyse, fuse, compile and launch everything the tracer holds.

    Nothing has run if analysis or compilation raises: the calls stay pending. A call is forgotten
    as soon as its kernel has run.
    """
    calls = list(tracer.calls)
    COUNTERS.flushes += 1
    program = program_for(shape_of(calls, structural_scalars))
    remember(program, calls)
    if SETTINGS.verify:
        with verified(calls, run):
            execute(program, calls, tracer)
    else:
        execute(program, calls, tracer)


def program_for(trace: TraceShape) -> Program:
    """The program of a trace shape, made once."""
    program = PROGRAMS.get(trace)
    if program is None:
        program = PROGRAMS[trace] = build(trace)
        if len(PROGRAMS) > MAX_PROGRAMS:
            PROGRAMS.popitem(last=False)
    return program


def build(trace: TraceShape) -> Program:
    """Plan a trace and compile its kernels."""
    start = time.perf_counter()
    graph = dependences(trace)
    plan = partition(trace, graph)
    kernels = tuple(optimise(fuse(trace, group.calls)) for group in plan.groups)
    wide = [widen(kernel) for kernel in kernels]
    COUNTERS.plans += 1
    COUNTERS.analysis_seconds += time.perf_counter() - start
    program = Program(trace, graph, plan, kernels, tuple(native.prepare(wide)))
    show_program(program.plan, program.graph, program.kernels, SETTINGS.debug)
    return program


def execute(program: Program, calls: Sequence[Call], tracer: Tracer) -> None:
    """Launch a program's kernels in order on the calls' data."""
    for group, kernel, launchable in zip(
        program.plan.groups, program.kernels, program.launchables, strict=True
    ):
        launch(kernel, launchable, calls)
        tracer.remove([calls[position] for position in group.calls])


def launch(kernel: Kernel, launchable: Launchable, calls: Sequence[Call]) -> None:
    """Run one kernel on the calls' arguments, and give the calls their results."""
    arguments: list[Argument] = []
    for slot in kernel.slots:
        argument = calls[slot.call].arguments[slot.argument]
        arguments.append(argument.result() if isinstance(argument, Future) else argument)
    values = launchable.run(kernel.space, arguments)
    COUNTERS.launches += 1
    for position, value in zip(kernel.results, values, strict=True):
        result = calls[position].result
        assert result is not None
        result.set(value)


def remember(program: Program, calls: Sequence[Call]) -> None:
    """Keep what `explain` tells of this flush; it holds no data."""
    FLUSHES.append(Flush(program, [(call.name, str(call.location)) for call in calls]))
    if len(FLUSHES) > MAX_FLUSHES:
        del FLUSHES[0]


#: The process's tracer.
TRACER = Tracer()
TRACER.flush_function = flush
