"""Which axis of a space the threads of a warp run along."""

from __future__ import annotations

from collections import Counter

from pyfuser.codegen.spec import KernelSpec, accesses
from pyfuser.ir import nodes
from pyfuser.ir.visit import expressions, sym_of


def axes_of(spec: KernelSpec) -> list[int]:
    """The axes of the space, slowest first: the fastest is that of neighbouring threads.

    As given, unless most accesses are contiguous along another axis (LayoutLeft views): a warp
    then reads whole lines of memory. Unlike `codegen.order` it decides for reductions, too: what a
    GPU adds up, and when, is another order anyway.
    """
    axes = list(range(spec.rank))
    if spec.rank == 1 or spec.serial:
        return axes
    votes = _contiguous_axes(spec)
    best = max(axes, key=lambda axis: (votes[axis], axis))
    return [axis for axis in axes if axis != best] + [best]


def _contiguous_axes(spec: KernelSpec) -> Counter[int]:
    """For each axis of the space, how many accesses move by one element along it."""
    workunit = spec.workunit
    units = {
        param.sym: view.unit_axis
        for param, view in zip(workunit.params, spec.views, strict=True)
        if view is not None
    }
    axes = {sym: axis for axis, sym in enumerate(workunit.indices)}
    votes: Counter[int] = Counter()
    for access in accesses(workunit.body):
        view = sym_of(access)
        unit = units.get(view) if view is not None else None
        if unit is None:
            continue
        for e in expressions(access.indices[unit]):
            if isinstance(e, nodes.Read) and e.sym in axes:
                votes[axes[e.sym]] += 1
    return votes
