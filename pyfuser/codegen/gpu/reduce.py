"""Device code for a parallel_reduce (with the maps that were fused into it), in one launch.

Each thread adds up the iterations that are a whole grid apart; the threads of a block join their
sums in halves; and the block that finishes last joins those of all blocks, in the same way. The
grid depends on the number of iterations alone (`gpu.grid.GpuKernel`), and no step depends
on which thread is faster or how wide a warp is: a result has the same bits on every GPU.
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.gpu.axis import axes_of
from pyfuser.codegen.gpu.context import WORKSPACE_HEAD, GpuContext, indented
from pyfuser.codegen.gpu.map import sequential, walk
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import only_combines
from pyfuser.ir.nodes import Sym, Workunit

MANY = 4
"""With more accumulators the code that joins a block's values is not repeated for each."""

_JOINS = {
    ("+", "-"): "pf_plus",
    ("|",): "pf_or",
    ("^",): "pf_xor",
    ("min",): "pf_least",
    ("max",): "pf_most",
}


def join(workunit: Workunit, sym: Sym) -> str:
    """What makes one of two partial values of an accumulator, both from zero; "" if nothing can."""
    body = workunit.body
    return next((j for ops, j in _JOINS.items() if only_combines(body, (sym,), ops)), "")


def is_parallel(workunit: Workunit) -> bool:
    """Whether every accumulator can be computed in parts."""
    return all(join(workunit, a.sym) for a in workunit.accumulators)


def emit(context: GpuContext, entry: str) -> str:
    """The entry point; of one thread where an accumulator cannot be computed in parts."""
    if context.spec.serial or not is_parallel(context.workunit):
        return sequential(context, entry)
    accumulators = context.workunit.accumulators
    context.uses("index")
    lines = [f"{INDENT}{a.sym.dtype.cpp} {context.names[a.sym]}{{}};" for a in accumulators]
    depth = 2
    if context.spec.rank == 1:
        i, first, last = context.counter(0), context.begin[0], context.end[0]
        lines.append(
            f"{INDENT}for (int64_t {i} = {first} + pf_first(x); {i} < {last}; {i} += pf_step(x)) {{"
        )
    else:
        lines += walk(context, axes_of(context.spec), "pf_first(x)", "pf_step(x)")
    lines += context.narrowed(depth)
    lines += context.body(depth)
    lines.append(f"{INDENT}}}")
    threads = context.spec.tuning.gpu_threads
    lines += indented(joined(context, threads))
    return context.head(entry, threads) + "\n".join(lines) + "\n}\n"


def joined(context: GpuContext, threads: int) -> list[str]:
    """Join the threads' values, then the blocks'; of blocks of so many threads."""
    context.uses("total", "joins", "is_last")
    context.device.atomics.add(("+", DType.UINT32))  # of is_last.h
    lines: list[str] = []
    parts: list[str] = []
    offset = f"(char*)workspace + {WORKSPACE_HEAD}"
    accumulators = context.workunit.accumulators
    names = [context.names[a.sym] for a in accumulators]
    totals = [f"pf_total<{threads}, {join(context.workunit, a.sym)}>" for a in accumulators]
    for k, (a, name) in enumerate(zip(accumulators, names, strict=True)):
        kind, part = a.sym.dtype.cpp, context.unique.take(f"{name}_parts")
        place = f"{offset} + {16 * k} * pf_blocks(x)" if k else offset
        lines.append(f"{kind}* const {part} = ({kind}*)({place});")
        lines.append(f"{name} = {totals[k]}({name});")
        parts.append(part)
    lines.append("if (pf_thread(x) == 0) {")
    lines += [f"    {p}[pf_block(x)] = {n};" for p, n in zip(parts, names, strict=True)]
    lines.append("}")
    lines.append("if (!pf_is_last((uint32_t*)workspace)) return;")
    block = context.unique.take("block")
    for k, (a, name) in enumerate(zip(accumulators, names, strict=True)):
        one = f"{join(context.workunit, a.sym)}::join({name}, {parts[k]}[{block}])"
        lines += [
            f"{name} = {a.sym.dtype.cpp}();",
            f"for (int64_t {block} = pf_thread(x); {block} < pf_blocks(x); "
            f"{block} += {threads}) {{",
            f"    {name} = {one};",
            "}",
            f"{name} = {totals[k]}({name});",
            f"if (pf_thread(x) == 0) {context.result(k, name)}",
        ]
    return lines
