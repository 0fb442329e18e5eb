"""Groups whose kernel asks more registers than a GPU has for it are cut in two.

A fused kernel keeps the values of all its calls at once. Once a thread needs so many registers that
few threads fit a multiprocessor, or that values are spilled to memory, sharing the loop costs what
it was to save. How many it needs only the compiler knows, so this looks at what it made: if the
halves cost less, with the same prices for registers, they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyfuser.plan.cost_model import group_cost
from pyfuser.plan.plan import Plan
from pyfuser.runtime.autotune import Measured, best_cut, cut_plan
from pyfuser.runtime.launch import Launch
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning import gpu as tuning_gpu

MAX_CUTS = 8
"""Of one plan: each is compiled to be looked at."""

Program = TypeVar("Program", bound=Measured)


def relieved(program: Program, make: Callable[[Plan], Program]) -> Program:
    """The program, or one that `make` makes of a plan with more groups, if that costs less."""
    refused: set[tuple[int, ...]] = set()
    for _ in range(MAX_CUTS):
        crowded = [
            launch
            for launch in program.launches
            if len(launch.calls) > 1 and launch.calls not in refused and is_crowded(launch)
        ]
        if not crowded:
            break
        calls = crowded[0].calls
        place, _ = best_cut(program.trace, calls)
        other = make(cut_plan(program.plan, calls, place, "registers"))
        parts = [launch for launch in other.launches if set(launch.calls) <= set(calls)]
        if cost(program.trace, parts) < cost(program.trace, crowded[:1]):
            program = other
        else:
            refused.add(calls)
    return program


def is_crowded(launch: Launch) -> bool:
    """Whether the registers of a kernel cost it time."""
    return any(
        used.spilled or tuning_gpu.slowdown(used.registers) > 1.0
        for used in launch.launchable.registers()
    )


def cost(trace: TraceShape, launches: Sequence[Launch]) -> float:
    """Seconds that launches take, with what their registers cost."""
    machine = tuning_gpu.known().machine
    total = 0.0
    for launch in launches:
        used = launch.launchable.registers()
        slower = max((tuning_gpu.slowdown(entry.registers) for entry in used), default=1.0)
        traffic = group_cost(trace, launch.calls) - machine.launch
        iterations = trace.calls[launch.calls[0]].space.size
        spilled = 2.0 * iterations * max((entry.spilled for entry in used), default=0)
        total += machine.launch + slower * traffic + spilled / machine.bandwidth
    return total
