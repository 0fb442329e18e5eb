"""Code for a parallel_scan: one pass, or two over tiles (see `nest.nodes.Scan` and scan.h)."""

from __future__ import annotations

from pyfuser.codegen.cpu.context import Context, entry
from pyfuser.codegen.cpu.functions import functions_code
from pyfuser.nest.nodes import Nest, Scan

LOCALS = frozenset({"threads", "chain", "first", "last", "start", "is_last"})


def emit(context: Context) -> str:
    """The pass over a tile and the entry point."""
    scan, code = passes_code(context, context.nest)
    shares = context.nest.shares
    kind, tail = accumulator_type(context), arguments(context)
    whole = [f"*({kind}*)results = pf_pass<true>(begin[0], end[0], {kind}(){tail});", "return 0;"]
    if not scan.tile:
        return code + entry(context, whole)
    single = f"end[0] - begin[0] <= {scan.tile}{' || threads == 1' if scan.single else ''}"
    context.uses("scan")
    lines = [
        context.team(shares, "end[0] - begin[0]"),
        f"if ({single}) {{",
        *("    " + line for line in whole),
        "}",
        f"pf_chain<{kind}> chain(begin[0], end[0], ({kind}*)results);",
        "if (!chain.memory) return -1;",
        "#pragma omp parallel num_threads(threads)",
        f"chain.run({at_once(scan)}, [](int64_t, int64_t) {{}},",
        "    [&](int64_t first, int64_t last) {",
        f"        return pf_pass<false>(first, last, {kind}(){tail});",
        "    },",
        f"    [&](int64_t first, int64_t last, {kind} start) {{",
        f"        return pf_pass<true>(first, last, start{tail});",
        "    });",
        "return 0;",
    ]
    return code + entry(context, lines)


def passes_code(context: Context, nest: Nest) -> tuple[Scan, str]:
    """How the passes come, and `pf_pass<last_pass>`: a sum after some iterations, continued."""
    (scan,) = nest.functions[-1].body
    assert isinstance(scan, Scan)
    return scan, functions_code(context, nest, nest.functions[:-1])


def accumulator_type(context: Context) -> str:
    """The C++ type of what is summed."""
    return context.workunit.accumulators[0].sym.dtype.cpp


def arguments(context: Context) -> str:
    """What a call of `pf_pass` ends with."""
    return "".join(", " + argument for argument in context.arguments)


def at_once(scan: Scan) -> str:
    """The first argument of `pf_chain::run`."""
    return "true" if scan.at_once else "false"
