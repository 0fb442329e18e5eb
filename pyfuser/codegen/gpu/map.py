"""Device code for a parallel_for: one thread for each iteration.

The threads of a warp are neighbours along the axis that is contiguous in memory. A thread that
stands for more than one iteration (a grid has limits) takes them a whole grid apart.
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import closed
from pyfuser.codegen.cpu.functions import loop_lines
from pyfuser.codegen.gpu.axis import axes_of
from pyfuser.codegen.gpu.context import GpuContext


def emit(context: GpuContext, entry: str) -> str:
    """The entry point; of one thread where the space is serial."""
    if context.spec.serial:
        return sequential(context, entry)
    context.uses("index")
    lines, depth = rows(context)
    axis = axes_of(context.spec)[-1]
    i, first, last = context.counter(axis), context.begin[axis], context.end[axis]
    lines.append(
        f"{INDENT * depth}for (int64_t {i} = {first} + pf_first(x); {i} < {last}; "
        f"{i} += pf_step(x)) {{"
    )
    lines += context.narrowed(depth + 1)
    lines += context.body(depth + 1)
    lines += closed(depth)
    return context.head(entry, context.spec.tuning.gpu_threads) + "\n".join(lines) + "\n}\n"


def rows(context: GpuContext) -> tuple[list[str], int]:
    """The loops over all axes but the fastest, and the depth of what is in them."""
    *outer, _ = axes_of(context.spec)
    lines: list[str] = []
    depth = 1
    if len(outer) > 1:
        lines = walk(context, outer[:-1], "pf_first(z)", "pf_step(z)")
        depth = 2
    for axis in outer[-1:]:
        i, first, last = context.counter(axis), context.begin[axis], context.end[axis]
        lines.append(
            f"{INDENT * depth}for (int64_t {i} = {first} + pf_first(y); {i} < {last}; "
            f"{i} += pf_step(y)) {{"
        )
        depth += 1
    return lines, depth


def walk(context: GpuContext, axes: list[int], first: str, step: str) -> list[str]:
    """The head of a loop over several axes taken together, the last one fastest."""
    context.uses("walk")
    place = context.unique.take("place")
    begin, end = context.unique.take("place_begin"), context.unique.take("place_end")
    firsts = ", ".join(context.begin[axis] for axis in axes)
    lasts = ", ".join(context.end[axis] for axis in axes)
    lines = [
        f"{INDENT}const int64_t {begin}[] = {{{firsts}}}, {end}[] = {{{lasts}}};",
        f"{INDENT}for (pf_walk<{len(axes)}> {place}({begin}, {end}, {first}, {step}); "
        f"{place}.more(); {place}.next()) {{",
    ]
    for n, axis in enumerate(axes):
        lines.append(f"{INDENT * 2}const int64_t {context.counter(axis)} = {place}.index({n});")
    return lines


def sequential(context: GpuContext, entry: str) -> str:
    """One thread runs all iterations, in ascending order; accumulators start at zero."""
    context = context.in_order()
    accumulators = context.workunit.accumulators
    lines = []
    for a in accumulators:
        lines.append(f"{INDENT}{a.sym.dtype.cpp} {context.names[a.sym]}{{}};")
        if a.last_pass is not None:
            lines.append(f"{INDENT}const bool {context.names[a.last_pass]} = true;")
    bounds = list(zip(context.begin, context.end, strict=True))
    lines += loop_lines(context, bounds)
    for k, a in enumerate(accumulators):
        lines.append(INDENT + context.result(k, context.names[a.sym]))
    return context.head(entry, 1) + "\n".join(lines) + "\n}\n"
