"""Blocks of a reduction that run without conditions: see `nest.passes.split_conditions`."""

from __future__ import annotations

from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.cpu.functions import functions_code
from pyfuser.nest.passes.split_conditions import Interior, inside, interior
from pyfuser.support.passes import left_out

LOCALS = frozenset({"at", "stop", "next", "whole", "part", "upto", "low", "high"})


def interior_of(context: Context, axis: int) -> Interior | None:
    """How blocks of the context's body run inside; None where they are to run as they are.

    axis: along which blocks lie.
    """
    if context.spec.checked or context.nest.serial or left_out("split-conditions"):
        return None
    return interior(context.workunit, axis, context.nest.fresh)


def inside_code(context: Context, found: Interior, axis: int) -> str:
    """`pf_inside`, which tells whether the iterations from the first to the last all are.

    The indices of other axes come after these two, in their order.
    """
    return functions_code(context, context.nest, (inside(context.nest, found, axis),))
