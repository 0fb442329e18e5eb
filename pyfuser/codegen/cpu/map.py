"""Code for a parallel_for: a loop nest, cut along one axis among the threads."""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, entry
from pyfuser.codegen.cpu.functions import LOCALS as FUNCTION_LOCALS
from pyfuser.codegen.cpu.functions import functions_code
from pyfuser.codegen.cpu.tables import copies_of
from pyfuser.nest.passes.blocks import LOCALS as BLOCK_LOCALS
from pyfuser.pipeline import lowered

CACHE_LINE = 64
"""Elements of an innermost axis that stay with one thread (a cache line of the smallest type)."""

LOCALS = (
    BLOCK_LOCALS
    | FUNCTION_LOCALS
    | {"threads", "my_begin", "my_end", "order", "axis", "unit", "dim"}
)


def emit(context: Context) -> str:
    """The loops and the entry point."""
    nest = lowered(context.nest)
    code = functions_code(context, nest, nest.functions)
    return code + (_line(context) if context.spec.rank == 1 else _box(context))


def _line(context: Context) -> str:
    """The entry point for one axis."""
    tail = "".join(", " + a for a in context.arguments)
    if context.spec.serial:
        return entry(context, [f"pf_loop(begin[0], end[0]{tail});", "return 0;"])
    context.uses("threads")
    share = [
        "int64_t my_begin = begin[0], my_end = end[0];",
        f"pf_share(my_begin, my_end, {_unit(context)});",
    ]
    lines = [
        f"const int64_t threads = pf_team(slot[0], end[0] - begin[0], {context.grain()});",
        *_parallel(context, "begin[0], end[0]", [], share),
    ]
    return entry(context, lines)


def _parallel(context: Context, box: str, before: list[str], share: list[str]) -> list[str]:
    """Each thread runs its share, or one thread the box."""
    if context.spec.tables:
        copies = copies_of(context)
        head = [
            *before,
            *copies.before,
            "#pragma omp parallel if (threads > 1) num_threads(threads)",
        ]
        run = f"pf_loop({', '.join(['my_begin, my_end', *copies.arguments])});"
        inside = [*share, *copies.begin, run, *copies.end]
    else:
        tail = "".join(", " + a for a in context.arguments)
        alone = [f"pf_loop({box}{tail});", "return 0;"]
        head = ["if (threads == 1) {", *(INDENT + line for line in alone), "}", *before]
        head.append("#pragma omp parallel num_threads(threads)")
        inside = [*share, f"pf_loop(my_begin, my_end{tail});"]
    return [*head, "{", *(INDENT + line for line in inside), "}", "return 0;"]


def _box(context: Context) -> str:
    """The entry point for several axes: each thread gets a slice of the box."""
    order = context.spec.order.axes
    rank = len(order)
    tail = "".join(", " + a for a in context.arguments)
    if context.spec.serial:
        return entry(context, [f"pf_loop(begin, end{tail});", "return 0;"])
    context.uses("extent", "threads", "axis")
    size = " * ".join(f"pf_extent(begin[{axis}], end[{axis}])" for axis in range(rank))
    before = [
        f"static const int order[] = {{{', '.join(map(str, order))}}};",
        f"const int axis = pf_axis(begin, end, order, {rank}, threads);",
        f"const int64_t unit = axis == {order[-1]} ? {_unit(context)} : 1;",
    ]
    share = [
        f"int64_t my_begin[{rank}], my_end[{rank}];",
        f"for (int dim = 0; dim < {rank}; ++dim) {{",
        "    my_begin[dim] = begin[dim];",
        "    my_end[dim] = end[dim];",
        "}",
        "pf_share(my_begin[axis], my_end[axis], unit);",
    ]
    lines = [
        f"const int64_t threads = pf_team(slot[0], {size}, {context.grain()});",
        *_parallel(context, "begin, end", before, share),
    ]
    return entry(context, lines)


def _unit(context: Context) -> str:
    """How many neighbouring iterations stay together: few long ones have to be shared evenly."""
    grain = context.grain()
    if grain.isdecimal():
        return str(CACHE_LINE if int(grain) >= CACHE_LINE else 1)
    return f"({grain} < {CACHE_LINE} ? 1 : {CACHE_LINE})"
