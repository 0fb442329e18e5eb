"""What was done to the loops of a kernel, as code generation decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.nodes import Sym
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Nest
from pyfuser.nest.passes.loop_order import loop_order, walks
from pyfuser.pipeline import lowered
from pyfuser.transform.kernel import Kernel

NamesOf = Callable[[Iterable[Sym]], Iterable[str]]
"""What the program calls views of the kernel before specialisation."""


SPLITS = frozenset({"split-guards", "split-conditions"})
"""The passes that split a loop where guards begin and end."""


def loops_of(kernel: Kernel) -> Nest:
    """The loops of a kernel of the host, with all that was decided about them."""
    return lowered(nest_of(spec_of(kernel)))


def order_text(kernel: Kernel, before: Kernel, names: NamesOf, passes: tuple[str, ...]) -> str:
    """What was done to the order of the loops; empty if they run as the program nests them."""
    order = loop_order(kernel)
    text = "" if order.as_given else _interchanged(kernel, before, names)
    if "strip-mine" in passes:
        last = kernel.workunit.indices[order.axes[-1]].name
        inner = f"inner loops run for several {last} at a time, as memory is contiguous along it"
        text = f"{text}; {inner}" if text else inner
    return text


def _interchanged(kernel: Kernel, before: Kernel, names: NamesOf) -> str:
    """In which order the loops over a space run, and for which views."""
    order = loop_order(kernel)
    indices = kernel.workunit.indices
    syms = {
        slot: param.sym for slot, param in zip(before.slots, before.workunit.params, strict=True)
    }
    across, inner = order.axes[-2:]
    along = {
        axis: " and ".join(
            dict.fromkeys(
                name
                for walk in walks(kernel)
                if walk.unit(axis)
                for name in names([syms[kernel.slots[walk.param]]])
            )
        )
        for axis in (across, inner)
    }
    first, last = indices[across].name, indices[inner].name
    if order.block:
        return (
            f"loops blocked by {first} and {last}: memory is contiguous along {last} in "
            f"{along[inner]}, along {first} in {along[across]}"
        )
    if not along[inner]:
        return f"loops interchanged: {last} is innermost, as its steps in memory are smallest"
    why = f"as memory is contiguous along it in {along[inner]}"
    return f"loops interchanged: {last} is innermost, {why}"
