"""What PYFUSER_DEBUG=1..5 prints to stderr when a trace is planned for the first time."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.codegen.pykokkos import unit as pykokkos_unit
from pyfuser.ir.printer import show
from pyfuser.plan.plan import Plan
from pyfuser.transform.kernel import Kernel


def show_program(plan: Plan, graph: DependenceGraph, kernels: Sequence[Kernel], level: int) -> None:
    """Levels: 1 plan, 2 rejections, 3 dependences, 4 fused PyKokkos source, 5 ir."""
    if level < 1:
        return
    lines = [f"pyfuser: {graph.size} calls in {len(plan.launches())} kernels"]
    for group, kernel in zip(plan.groups, kernels, strict=True):
        lines.append(f"  {kernel.workunit.name}: calls {', '.join(map(str, group.calls))}")
    for sweep in plan.sweeps:
        loops = ", ".join(
            f"{kernels[place].workunit.name} (lag {stage.lag}, ahead {stage.ahead})"
            for place, stage in zip(sweep.groups, sweep.stages, strict=True)
        )
        lines.append(f"  sweep, {sweep.wave} steps at a time: {loops}")
    if level >= 2:
        lines += [f"  apart: {r.first} and {r.second}: {r.reason}" for r in plan.rejections]
    if level >= 3:
        lines += [
            f"  {d.kind.value}: {d.source} -> {d.sink} ({d.first_view}, {d.second_view})"
            f"{' same iteration' if d.same_iteration else ''}{' unknown' if d.unknown else ''}"
            for d in graph.dependences
        ]
    if level >= 4:
        lines += [pykokkos_unit.emit(kernel.workunit) for kernel in kernels]
    if level >= 5:
        lines += [show(kernel.workunit) for kernel in kernels]
    print("\n".join(lines), file=sys.stderr)
