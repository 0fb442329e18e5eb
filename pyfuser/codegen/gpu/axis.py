"""Which axis of a space the threads of a warp run along."""

from __future__ import annotations

from pyfuser.analysis.sums import contiguous_axis
from pyfuser.nest.spec import KernelSpec


def axes_of(spec: KernelSpec) -> list[int]:
    """The axes of the space, slowest first: the fastest is that of neighbouring threads.

    As given, unless most accesses are contiguous along another axis (LayoutLeft views): a warp
    then reads whole lines of memory. Sums know their axis, which does not depend on what they
    share a loop with. Unlike on the host, it need not be the last one: what a GPU adds up, and
    when, is another order anyway.
    """
    axes = list(range(spec.rank))
    if spec.rank == 1 or spec.serial:
        return axes
    workunit = spec.workunit
    known = [a.along for a in workunit.accumulators if a.along is not None]
    if known:
        best = known[0]
    else:
        views = zip(workunit.params, spec.views, strict=True)
        units = {param.sym: view.unit_axis for param, view in views if view is not None}
        best = contiguous_axis(workunit, {s: axis for s, axis in units.items() if axis is not None})
    return [axis for axis in axes if axis != best] + [best]
