"""How a native kernel is called: the slots that it takes, and what its returned number means."""

from __future__ import annotations

from pyfuser.ir import nodes
from pyfuser.ir.visit import all_expressions
from pyfuser.nest.spec import KernelSpec
from pyfuser.support.records import dataclass

NO_MEMORY = -1
OUTSIDE = -2
DIVIDED = -3

REPORT_HEAD = 4
"""The numbers of a report of `codegen.cpu.checked` before the iteration's indices."""

ROLLING_WORDS = 5  # of a rolling view, see `pf_rolling`


@dataclass(frozen=True, slots=True)
class Slot:
    """One argument slot after those of the space.

    kind: "pointer", "scalar" (complex128 takes two slots), "stride" (of `axis`; in elements, or in
    bytes for a view that is not packed) or "extent". `param` is the position in workunit.params.
    """

    kind: str
    param: int
    axis: int = 0


def abi(spec: KernelSpec) -> tuple[Slot, ...]:
    """The argument slots of a kernel, in order."""
    slots: list[Slot] = []
    seen: set[int] = set()
    used = {
        (e.view, e.axis) for e in all_expressions(spec.workunit.body) if isinstance(e, nodes.Extent)
    }
    for n, (param, view) in enumerate(zip(spec.workunit.params, spec.views, strict=True)):
        if view is None:
            slots.append(Slot("scalar", n))
            continue
        slots.append(Slot("pointer", n))
        for axis, stride in enumerate(view.strides):
            if stride >= 0 and stride not in seen:
                seen.add(stride)
                slots.append(Slot("stride", n, axis))
            if spec.checked or (param.sym, axis) in used:
                slots.append(Slot("extent", n, axis))
    return tuple(slots)
