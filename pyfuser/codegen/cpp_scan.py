"""Code for a parallel_scan: two passes over tiles, as Kokkos makes them.

The first pass runs the body with `last_pass` false from zero and gives each tile's total; their
exclusive prefix is where the second pass, with `last_pass` true, starts. The tiles do not depend
on the number of threads, so neither does a floating-point result. Where rounding cannot differ
(integers) or only one thread may run (a serial space) a single pass does.
"""

from __future__ import annotations

from pyfuser.codegen.cpp_context import Context, entry, function, nest
from pyfuser.codegen.cpp_prelude import TILE
from pyfuser.codegen.order import given_order

LOCALS = frozenset(
    {
        "count",
        "tiles",
        "threads",
        "partial",
        "total",
        "tile",
        "own",
        "sum",
        "tile_begin",
        "tile_end",
    }
    | {"is_last"}
)


def emit(context: Context) -> str:
    """The pass over a tile and the entry point."""
    (accumulator,) = context.workunit.accumulators
    kind = accumulator.sym.dtype.cpp
    name = context.names[accumulator.sym]
    last_pass = accumulator.last_pass
    flag = context.names[last_pass] if last_pass is not None else "is_last"
    context.independent = False  # an iteration continues the sum of the one before
    lines = context.guard(f"{kind}()") + nest(context, given_order(1), [("begin", "end")])
    lines.append(f"    return {name};")
    parameters = ["int64_t begin", "int64_t end", f"{kind} {name}", *context.signature]
    code = f"template <bool {flag}>\n" + function(f"{kind} pf_pass", parameters, lines)
    tail = "".join(", " + a for a in context.arguments)
    whole = [f"*({kind}*)results = pf_pass<true>(begin[0], end[0], {kind}(){tail});", "return 0;"]
    if context.spec.serial:
        return code + entry(context, whole)
    exact = accumulator.sym.dtype.is_integer
    single = f"tiles <= 1{' || threads == 1' if exact else ''}"
    lines = [
        "const int64_t count = end[0] - begin[0];",
        f"const int64_t tiles = (count + {TILE - 1}) / {TILE};",
        f"const int64_t threads = pf_team(slot[0], count, {context.grain()});",
        f"if ({single}) {{",
        *("    " + line for line in whole),
        "}",
        f"{kind}* partial = ({kind}*)__builtin_malloc(tiles * sizeof({kind}));",
        "if (!partial) return -1;",
        f"{kind} total = {kind}();",
        "#pragma omp parallel num_threads(threads)",
        "{",
        "    #pragma omp for schedule(static)",
        "    for (int64_t tile = 0; tile < tiles - 1; ++tile) {",
        f"        const int64_t tile_begin = begin[0] + tile * {TILE};",
        f"        partial[tile] = pf_pass<false>(tile_begin, tile_begin + {TILE}, {kind}(){tail});",
        "    }",
        "    #pragma omp single",
        "    for (int64_t tile = 0; tile < tiles; ++tile) {",
        f"        const {kind} own = tile < tiles - 1 ? partial[tile] : {kind}();",
        "        partial[tile] = total;",
        "        total += own;",
        "    }",
        "    #pragma omp for schedule(static)",
        "    for (int64_t tile = 0; tile < tiles; ++tile) {",
        f"        const int64_t tile_begin = begin[0] + tile * {TILE};",
        f"        const int64_t tile_end = tile < tiles - 1 ? tile_begin + {TILE} : end[0];",
        f"        const {kind} sum = pf_pass<true>(tile_begin, tile_end, partial[tile]{tail});",
        f"        if (tile == tiles - 1) *({kind}*)results = sum;",
        "    }",
        "}",
        "__builtin_free(partial);",
        "return 0;",
    ]
    return code + entry(context, lines)
