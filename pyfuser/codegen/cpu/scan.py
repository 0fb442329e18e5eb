"""Code for a parallel_scan: two passes over tiles, as Kokkos makes them.

The first pass runs the body with `last_pass` false from zero and gives each tile's total; their
exclusive prefix is where the second pass, with `last_pass` true, starts. The tiles do not depend
on the number of threads, so neither does a floating-point result. Where rounding cannot differ
(integers) or only one thread may run (a serial space) a single pass does.

A tile's second pass comes as soon as the totals before it are known, while its data is in cache
(see scan.h), if no iteration reads what another one writes; else after all first ones.
"""

from __future__ import annotations

from pyfuser.codegen.cpu.context import Context, entry, function
from pyfuser.codegen.cpu.functions import loop_lines, summing
from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses
from pyfuser.ir.visit import assigned
from pyfuser.nest.spec import KernelSpec

LOCALS = frozenset({"threads", "chain", "first", "last", "start", "is_last"})


def emit(context: Context) -> str:
    """The pass over a tile and the entry point."""
    kind = accumulator_type(context)
    code = pass_code(context)
    tail = arguments(context)
    whole = [f"*({kind}*)results = pf_pass<true>(begin[0], end[0], {kind}(){tail});", "return 0;"]
    if context.spec.serial:
        return code + entry(context, whole)
    tile = context.spec.tuning.scan_tile
    single = f"end[0] - begin[0] <= {tile}{' || threads == 1' if is_exact(context) else ''}"
    context.uses("scan", "threads")
    lines = [
        f"const int64_t threads = pf_team(slot[0], end[0] - begin[0], {context.grain()});",
        f"if ({single}) {{",
        *("    " + line for line in whole),
        "}",
        f"pf_chain<{kind}> chain(begin[0], end[0], ({kind}*)results);",
        "if (!chain.memory) return -1;",
        "#pragma omp parallel num_threads(threads)",
        f"chain.run({at_once(context.spec)}, [](int64_t, int64_t) {{}},",
        "    [&](int64_t first, int64_t last) {",
        f"        return pf_pass<false>(first, last, {kind}(){tail});",
        "    },",
        f"    [&](int64_t first, int64_t last, {kind} start) {{",
        f"        return pf_pass<true>(first, last, start{tail});",
        "    });",
        "return 0;",
    ]
    return code + entry(context, lines)


def pass_code(context: Context) -> str:
    """`pf_pass<last_pass>`: the sum after the iterations from begin to end, continued."""
    (accumulator,) = context.workunit.accumulators
    kind, name = accumulator_type(context), context.names[accumulator.sym]
    last_pass = accumulator.last_pass
    flag = context.names[last_pass] if last_pass is not None else "is_last"
    context = summing(context.in_order())  # an iteration continues the sum of the one before
    lines = context.guard(f"{kind}()") + loop_lines(context, [("begin", "end")])
    lines.append(f"    return {name};")
    parameters = ["int64_t begin", "int64_t end", f"{kind} {name}", *context.signature]
    return f"template <bool {flag}>\n" + function(f"{kind} pf_pass", parameters, lines)


def accumulator_type(context: Context) -> str:
    """The C++ type of what is summed."""
    return context.workunit.accumulators[0].sym.dtype.cpp


def is_exact(context: Context) -> bool:
    """Whether sums do not depend on the order of additions."""
    return context.workunit.accumulators[0].sym.dtype.is_integer


def arguments(context: Context) -> str:
    """What a call of `pf_pass` ends with."""
    return "".join(", " + argument for argument in context.arguments)


def at_once(spec: KernelSpec) -> str:
    """Whether, in C++, a tile's last pass may come before the first pass over other tiles.

    It may if no iteration reads, in either pass, what another one writes in its last. That is so
    where whatever is written is never read, or is always named by the iteration's own index.
    """
    body = spec.workunit.body
    (index,) = spec.workunit.indices
    own = nodes.Read(index)
    if index in assigned(body):
        return "false"
    for param, view in zip(spec.workunit.params, spec.views, strict=True):
        if view is None or not view.written:
            continue
        mine = list(accesses(body, param.sym))
        if not any(access.reads for access in mine):
            if view.restrict:
                continue
            return "false"
        axes = [{n for n, at in enumerate(access.indices) if at == own} for access in mine]
        if not view.restrict or not set.intersection(*axes):
            return "false"
    return "true"
