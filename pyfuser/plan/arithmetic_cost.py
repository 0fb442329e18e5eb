"""What arithmetic takes, where a rewrite changes it: the cost model knows bytes only."""

from __future__ import annotations

from pyfuser.ir.weights import arithmetic
from pyfuser.plan.cost_model import machine_for, on_gpu
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import CallShape, TraceShape, known_scalars

OPERATION = 5e-11
"""Seconds of an addition of doubles in vectors, by one thread."""

BALANCE = 2.0
"""Bytes that a GPU moves in the time of an addition, or of half a load from its caches."""


def operations(call: CallShape) -> int:
    """Additions of all iterations."""
    scalars = known_scalars(call.workunit, call.arguments)
    return call.space.size * arithmetic(call.workunit, scalars)


def operation(trace: TraceShape) -> float:
    """Seconds of an addition, by all that runs the trace."""
    if on_gpu(trace):
        return 1.0 / (BALANCE * machine_for(trace).bandwidth)
    return OPERATION / SETTINGS.threads
