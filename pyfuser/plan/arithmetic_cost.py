"""What arithmetic takes, where a rewrite changes it: the cost model knows bytes only."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.nodes import For
from pyfuser.ir.visit import statements
from pyfuser.ir.weights import arithmetic, trips
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import CallShape, known_scalars
from pyfuser.tuning.thresholds import NOW

OPERATION = 5e-11
"""Seconds of an addition of doubles in vectors, by one thread."""


def operations(call: CallShape) -> int:
    """Additions of all iterations."""
    scalars = known_scalars(call.workunit, call.arguments)
    return call.space.size * arithmetic(call.workunit, scalars)


def long_loops(call: CallShape) -> float:
    """Seconds of the arithmetic of inner loops of many trips, which no condition guards."""
    workunit = call.workunit
    scalars = known_scalars(workunit, call.arguments)
    body = tuple(stmt for stmt in workunit.body if isinstance(stmt, For))
    loops = (stmt for stmt in statements(body) if isinstance(stmt, For))
    if all(trips(loop, scalars) <= NOW.tuning.unrolled_trips for loop in loops):
        return 0.0
    additions = arithmetic(replace(workunit, body=body), scalars)
    return call.space.size * additions * OPERATION / SETTINGS.threads
