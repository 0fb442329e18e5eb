"""What arithmetic takes, where a rewrite changes it: the cost model knows bytes only."""

from __future__ import annotations

from pyfuser.ir.weights import arithmetic
from pyfuser.plan.cost_model import machine_for
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import CallShape, TraceShape, known_scalars

OPERATION = 5e-11
"""Seconds of an addition of doubles in vectors, by one thread."""

BALANCE = 2.0
"""Bytes that a GPU moves in the time of an addition, or of half a load from its caches."""


def operations(call: CallShape) -> int:
    """Additions of all iterations."""
    scalars = known_scalars(call.workunit, call.arguments)
    return call.space.size * arithmetic(call.workunit, scalars)


def seconds_of(count: int, trace: TraceShape) -> float:
    """Seconds of so many additions, by all that runs the trace."""
    if on_gpu(trace):
        return count / (BALANCE * machine_for(trace).bandwidth)
    return count * OPERATION / SETTINGS.threads


def on_gpu(trace: TraceShape) -> bool:
    """Whether a GPU runs calls of a trace."""
    return any(call.space.execution in GPU_SPACES for call in trace.calls)
