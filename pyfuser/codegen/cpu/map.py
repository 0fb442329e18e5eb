"""Code for a parallel_for: a loop nest, cut along one axis among the threads."""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, entry
from pyfuser.codegen.cpu.functions import LOCALS as FUNCTION_LOCALS
from pyfuser.codegen.cpu.functions import functions_code
from pyfuser.codegen.cpu.tables import copies_of
from pyfuser.nest.locals import OF_BLOCKS
from pyfuser.nest.shares import Shares, Varying

LOCALS = (
    OF_BLOCKS | FUNCTION_LOCALS | {"threads", "my_begin", "my_end", "order", "axis", "unit", "dim"}
)


def emit(context: Context) -> str:
    """The loops and the entry point."""
    nest, line = context.nest, context.spec.rank == 1
    code = functions_code(context, nest, nest.functions)
    if nest.shares is None:
        run = ", ".join(["begin[0], end[0]" if line else "begin, end", *context.arguments])
        return code + entry(context, [f"pf_loop({run});", "return 0;"])
    return code + entry(context, (_line if line else _box)(context, nest.shares))


def _line(context: Context, shares: Shares) -> list[str]:
    """The entry point for one axis."""
    share = [
        "int64_t my_begin = begin[0], my_end = end[0];",
        f"pf_share(my_begin, my_end, {_together(context, shares)});",
    ]
    team = context.team(shares, "end[0] - begin[0]")
    return [team, *_parallel(context, shares, "begin[0], end[0]", [], share)]


def _parallel(
    context: Context, shares: Shares, box: str, before: list[str], share: list[str]
) -> list[str]:
    """Each thread runs its share, or one thread the box."""
    tail = "".join(", " + a for a in context.arguments)
    alone = [f"pf_loop({box}{tail});", "return 0;"]
    head = ["if (threads == 1) {", *(INDENT + line for line in alone), "}", *before]
    if shares.tables:
        copies = copies_of(context, shares)
        head += copies.before
        run = f"pf_loop({', '.join(['my_begin, my_end', *copies.arguments])});"
        inside = [*share, *copies.begin, run, *copies.end]
    else:
        inside = [*share, f"pf_loop(my_begin, my_end{tail});"]
    head.append("#pragma omp parallel num_threads(threads)")
    return [*head, "{", *(INDENT + line for line in inside), "}", "return 0;"]


def _box(context: Context, shares: Shares) -> list[str]:
    """The entry point for several axes: each thread gets a slice of the box."""
    order = context.spec.order.axes
    rank = len(order)
    context.uses("extent", "axis")
    size = " * ".join(f"pf_extent(begin[{axis}], end[{axis}])" for axis in range(rank))
    before = [
        f"static const int order[] = {{{', '.join(map(str, order))}}};",
        f"const int axis = pf_axis(begin, end, order, {rank}, threads);",
        f"const int64_t unit = axis == {order[-1]} ? {_together(context, shares)} : 1;",
    ]
    share = [
        f"int64_t my_begin[{rank}], my_end[{rank}];",
        f"for (int dim = 0; dim < {rank}; ++dim) {{",
        "    my_begin[dim] = begin[dim];",
        "    my_end[dim] = end[dim];",
        "}",
        "pf_share(my_begin[axis], my_end[axis], unit);",
    ]
    team = context.team(shares, size)
    return [team, *_parallel(context, shares, "begin, end", before, share)]


def _together(context: Context, shares: Shares) -> str:
    """How many neighbouring iterations stay together."""
    if not isinstance(shares.least, Varying):
        return str(shares.together)
    return f"({context.least(shares)} < {shares.together} ? 1 : {shares.together})"
