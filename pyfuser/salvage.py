"""What can still run of a trace in which the compiler rejects a kernel, or no GPU can have it.

Each call is compiled alone, unfused. One whose kernel is rejected is stuck, and so are those that
need what it computes, or must come after it: all others run. A kernel that is rejected only because
calls were fused holds nobody up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.engine import ENGINE, Launchable
from pyfuser.errors import KernelError
from pyfuser.trace.call import Call
from pyfuser.trace.shape import FutureShape, TraceShape
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import optimise

SHOWN = 10  # calls that a message names


class Alone(NamedTuple):
    """A call (its position in the trace) that is a kernel of its own."""

    call: int
    kernel: Kernel
    launchable: Launchable


def separate(
    trace: TraceShape, graph: DependenceGraph
) -> tuple[list[Alone], dict[int, KernelError | None]]:
    """The calls that can run, in order, and the stuck ones; with the error of each that has one."""
    ready: list[Alone] = []
    stuck: dict[int, KernelError | None] = {}
    rejected: dict[GroupShape, KernelError] = {}
    needed = _needed(trace, graph)
    for n, shape in enumerate(group_shapes(trace, [(n,) for n in range(len(trace.calls))])):
        shape = shape._replace(dead=frozenset())  # who would overwrite it may be stuck
        if needed[n] & stuck.keys():
            stuck[n] = None
            continue
        try:
            if shape in rejected:
                raise rejected[shape]
            kernel = optimise(fuse(shape))
            (launchable,) = ENGINE.prepare([((kernel,), ())])
        except KernelError as error:
            stuck[n] = rejected[shape] = error
        else:
            ready.append(Alone(n, kernel, launchable))
    return ready, stuck


def _needed(trace: TraceShape, graph: DependenceGraph) -> list[set[int]]:
    """For each call, those that it must follow directly."""
    needed: list[set[int]] = [
        {a.producer for a in call.arguments if isinstance(a, FutureShape)} for call in trace.calls
    ]
    for dependence in graph.dependences:
        needed[dependence.sink].add(dependence.source)
    return needed


def stuck_error(calls: Sequence[Call], stuck: Mapping[int, KernelError | None]) -> KernelError:
    """The first of the errors, with the calls that have one and what is to be done."""
    first = next(error for error in stuck.values() if error is not None)
    lines = [str(first)]
    broken = [calls[n] for n, error in stuck.items() if error is not None]
    lines += [f"  called as {call.name!r} at {call.location}" for call in broken[:SHOWN]]
    if len(broken) > SHOWN:
        lines.append(f"  and {len(broken) - SHOWN} more calls")
    others = len(stuck) - len(broken)
    waiting = f" and {others} that need it" * bool(others)
    lines.append(
        f"{len(broken)} pending call{'s' * (len(broken) > 1)} cannot run{waiting}; all others have "
        "run. pyfuser.pending() lists them, pyfuser.discard() drops them"
    )
    return type(first)("\n".join(lines))
