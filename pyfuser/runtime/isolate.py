"""What can still run where a call of a trace fails: its kernel is rejected, memory is missing.

Calls run one by one, unfused. One that fails is stuck: it stays pending, and so do those that need
what it computes, or must come after it. All others run. A call that failed only because it was
fused does not fail here. What a stuck call reads is copied before a later call overwrites it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.dependences import DependenceGraph, Kind, dependences
from pyfuser.analysis.structural import structural_scalars
from pyfuser.engine.engine import ENGINE
from pyfuser.pipeline import KERNEL_PASSES, run_passes
from pyfuser.plan.plan import Group, Plan
from pyfuser.runtime.execute import execute
from pyfuser.runtime.launch import launch_of
from pyfuser.runtime.program import Program
from pyfuser.support.errors import (
    FAILURES,
    CacheError,
    CompilerError,
    DivisionError,
    KernelError,
    VerificationError,
)
from pyfuser.trace.call import Call, called_as
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Region, region_of
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape, shape_of
from pyfuser.trace.tracer import Tracer
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes


def recover(
    error: Exception, program: Program | None, calls: Sequence[Call], tracer: Tracer
) -> None:
    """After a flush that failed: run those of its calls by themselves that have not run.

    program: what was launched; None where it could not be made. Raises the error if it is not one
    of a kernel then, or says what is wrong with results.
    """
    if isinstance(error, VerificationError) or (
        program is None and not isinstance(error, KernelError)
    ):
        raise error
    left_over = set(map(id, tracer.calls))
    run_each([call for call in calls if id(call) in left_over], tracer)
    if isinstance(error, DivisionError) and error.ran:
        raise error


def run_each(calls: Sequence[Call], tracer: Tracer) -> None:
    """Run pending calls one at a time, in order, but for those that are stuck.

    Raises the first failure of a stuck call, with what became of the calls; it is `tracer.stuck`
    then. A failure that is not the call's (no compiler, a division that ended the trace) is raised
    at once, as it is.
    """
    stuck: dict[int, Exception | None] = {}
    rejected: dict[GroupShape, KernelError] = {}
    for n, call in enumerate(calls):
        if _must_wait(call, [calls[other] for other in stuck], tracer):
            stuck[n] = None
            continue
        try:
            _run_alone(call, rejected, tracer)
        except FAILURES as error:
            general = isinstance(error, (CompilerError, CacheError))
            if (general and not isinstance(error, KernelError)) or call not in tracer.calls:
                raise
            stuck[n] = error
    if stuck:
        tracer.stuck = _stuck_error(calls, stuck)
        raise tracer.stuck


def _run_alone(call: Call, rejected: dict[GroupShape, KernelError], tracer: Tracer) -> None:
    """Run a pending call unfused. rejected: the shapes whose kernels the compiler has rejected."""
    trace = shape_of((call,), structural_scalars)
    (shape,) = group_shapes(trace, [(0,)])
    shape = shape._replace(dead=frozenset())  # who would overwrite it may be stuck
    if shape in rejected:
        raise type(rejected[shape])(str(rejected[shape]))
    try:
        kernel = run_passes(KERNEL_PASSES, fuse(shape))
        (launchable,) = ENGINE.prepare([((ENGINE.final(kernel),), ())])
    except KernelError as error:
        rejected[shape] = error
        raise
    launch = launch_of([(0,)], [kernel], launchable, kernel.space)
    plan = Plan((Group((0,)),), ())
    execute(
        Program(trace, trace, DependenceGraph(1, ()), plan, (kernel,), (launch,)), [call], tracer
    )


def _must_wait(call: Call, stuck: Sequence[Call], tracer: Tracer) -> bool:
    """Whether a call needs one that is stuck, or must come after it."""
    missing = {id(other.result): other for other in stuck if other.result is not None}
    if any(id(argument) in missing for argument in call.arguments):
        return True
    for other in stuck:
        kinds = _conflicts(other, call, missing)
        if kinds and not (kinds == {Kind.ANTI} and _set_aside(other, call, missing, tracer)):
            return True
    return False


def _pair(stuck: Call, call: Call, missing: Mapping[int, Call]) -> TraceShape:
    """The shape of two calls, after those whose results the first has as arguments."""
    before = [missing[id(argument)] for argument in stuck.arguments if id(argument) in missing]
    return shape_of((*before, stuck, call), structural_scalars)


def _conflicts(stuck: Call, call: Call, missing: Mapping[int, Call]) -> set[Kind]:
    """What of memory lies between two calls."""
    trace = _pair(stuck, call, missing)
    last = len(trace.calls) - 1
    return {
        d.kind for d in dependences(trace).dependences if (d.source, d.sink) == (last - 1, last)
    }


def _set_aside(stuck: Call, call: Call, missing: Mapping[int, Call], tracer: Tracer) -> bool:
    """Copy what a stuck call reads and a later one overwrites; whether they are independent now."""
    if USE.devices:
        return False
    first, second = _pair(stuck, call, missing).calls[-2:]
    copied = _written(second) - _written(first)
    arguments = list(stuck.arguments)
    try:
        for n, (argument, shape) in enumerate(zip(arguments, first.arguments, strict=True)):
            if isinstance(shape, RegionShape) and shape.cluster in copied:
                assert isinstance(argument, Region)
                arguments[n] = region_of(argument.array().copy(), argument.dtype)
    except MemoryError:
        return False
    tracer.rebind(stuck, tuple(arguments))
    return not _conflicts(stuck, call, missing)


def _written(call: CallShape) -> set[int]:
    """The clusters that a call writes."""
    found = [call.arguments[a.param] for a in accesses(call) if a.mode is not Mode.READ]
    return {argument.cluster for argument in found if isinstance(argument, RegionShape)}


def _stuck_error(calls: Sequence[Call], stuck: Mapping[int, Exception | None]) -> Exception:
    """The first of the errors, with the calls that have one and what is to be done."""
    first = next(error for error in stuck.values() if error is not None)
    broken = [calls[n] for n, error in stuck.items() if error is not None]
    text = str(first).partition("\n  called as ")[0]
    others = len(stuck) - len(broken)
    waiting = f" and {others} that need{'s' * (others == 1)} it" * bool(others)
    first.args = (
        f"{text}{called_as(broken)}\n{len(broken)} pending call{'s' * (len(broken) > 1)} cannot "
        f"run{waiting}; all others have run. pyfuser.pending() lists them, pyfuser.discard() drops "
        "them",
    )
    return first
