"""Device code for a parallel_scan, in two launches with the same grid.

The first, `pf_totals`, runs the body with `last_pass` false, each thread on neighbouring iterations
and from zero. What came out of each thread, and the prefix sums of what came out of each block (by
the block that finishes last), stay in the workspace; the second launch, with `last_pass` true,
starts every thread from there. Each iteration runs once in each pass, as on other engines, and the
order of additions depends on the number of iterations alone.
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.gpu.context import WORKSPACE_HEAD, GpuContext, indented
from pyfuser.codegen.gpu.map import sequential
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import operations
from pyfuser.ir.nodes import Workunit

TOTALS = "pf_totals"


def is_parallel(workunit: Workunit) -> bool:
    """Whether the body does nothing to the accumulator but add to it (or subtract)."""
    changes = operations(workunit.body)
    return all(changes.get(a.sym, set()) <= {"+", "-"} for a in workunit.accumulators)


def emit(context: GpuContext, entry: str) -> str:
    """Both entry points; one, of one thread, where the sum cannot be cut."""
    if context.spec.serial or not is_parallel(context.workunit):
        return sequential(context, entry)
    context.uses("index", "before", "is_last")
    threads, items = context.spec.tuning.gpu_threads, context.spec.tuning.gpu_items
    context.device.atomics.add(("+", DType.UINT32))  # of is_last.h
    (accumulator,) = context.workunit.accumulators
    kind, name = accumulator.sym.dtype.cpp, context.names[accumulator.sym]
    last_pass = accumulator.last_pass
    flag = context.names[last_pass] if last_pass is not None else context.unique.take("is_last")
    first, last = context.unique.take("first"), context.unique.take("stop")
    own, tile = context.unique.take("own"), context.unique.take("tile")
    before, total = context.unique.take("before"), context.unique.take("total")
    begin, end = context.begin[0], context.end[0]
    places = [
        f"{kind}* const {own} = ({kind}*)((char*)workspace + {WORKSPACE_HEAD});",
        f"{kind}* const {tile} = {own} + pf_blocks(x) * {threads};",
        f"const int64_t {first} = {begin} + pf_first(x) * {items};",
        f"const int64_t {last} = {first} + {items} < {end} ? {first} + {items} : {end};",
    ]
    i = context.counter(0)
    loop = [
        f"for (int64_t {i} = {first}; {i} < {last}; ++{i}) {{",
        *(line[len(INDENT) :] for line in context.narrowed(2)),
        *(line[len(INDENT) :] for line in context.body(2)),
        "}",
    ]
    totals = [
        *places,
        f"const bool {flag} = false;",
        f"(void){flag};",
        f"{kind} {name} = {kind}();",
        *loop,
        f"{own}[pf_first(x)] = {name};",
        f"{kind} {total};",
        f"pf_before<{threads}>({name}, {total});",
        f"if (pf_thread(x) == 0) {tile}[pf_block(x)] = {total};",
        *_prefix(context, kind, tile),
    ]
    sums = [
        *places,
        f"const bool {flag} = true;",
        f"(void){flag};",
        f"{kind} {total};",
        f"const {kind} {before} = pf_before<{threads}>({own}[pf_first(x)], {total});",
        f"{kind} {name} = ({kind})({tile}[pf_block(x)] + {before});",
        *loop,
        f"if ({first} < {last} && {last} == {end}) {context.result(0, name)}",
    ]
    code = ""
    for function, lines in ((TOTALS, totals), (entry, sums)):
        code += context.head(function, threads) + "\n".join(indented(lines)) + "\n}\n\n"
    return code[:-1]


def _prefix(context: GpuContext, kind: str, tile: str) -> list[str]:
    """Replace the blocks' totals by what comes before each, as many at a time as it has threads."""
    take, threads = context.unique.take, context.spec.tuning.gpu_threads
    at, block, mine, before = take("at"), take("block"), take("mine"), take("before")
    carry, total = take("carry"), take("total")
    return [
        "if (!pf_is_last((uint32_t*)workspace)) return;",
        f"{kind} {carry} = {kind}();",
        f"for (int64_t {at} = 0; {at} < pf_blocks(x); {at} += {threads}) {{",
        f"    const int64_t {block} = {at} + pf_thread(x);",
        f"    const {kind} {mine} = {block} < pf_blocks(x) ? {tile}[{block}] : {kind}();",
        f"    {kind} {total};",
        f"    const {kind} {before} = pf_before<{threads}>({mine}, {total});",
        f"    if ({block} < pf_blocks(x)) {tile}[{block}] = ({kind})({carry} + {before});",
        f"    {carry} = ({kind})({carry} + {total});",
        "}",
    ]
