"""Device code for a parallel_reduce (with the maps that were fused into it), in one launch.

Each thread adds up the iterations that are a whole grid apart; the threads of a block join their
sums in halves; and the block that finishes last joins those of all blocks, in the same way. The
grid depends on the number of iterations alone (`gpu_launch.reduction_blocks`), and no step depends
on which thread is faster or how wide a warp is: a result has the same bits on every GPU.
"""

from __future__ import annotations

from pyfuser.codegen.cpp_map import loop_order
from pyfuser.codegen.cpp_statements import INDENT
from pyfuser.codegen.gpu_context import GpuContext, indented
from pyfuser.codegen.gpu_map import sequential, walk
from pyfuser.codegen.gpu_prelude import THREADS, WORKSPACE_HEAD
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Sym, Workunit
from pyfuser.ir.visit import all_expressions, statements

MAX_BLOCKS = 1024
"""Enough to fill every GPU there is; more would only make more partial results."""

_JOINS = {"+": "a + b", "-": "a + b", "|": "a | b", "^": "a ^ b"}
_CHOICES = ("min", "max")


def join(workunit: Workunit, sym: Sym) -> str:
    """How two partial values of an accumulator, both from zero, become one; "" if they cannot."""
    operations: set[str] = set()
    for stmt in statements(workunit.body):
        if isinstance(stmt, nodes.Assign) and stmt.sym == sym:
            return ""
        if isinstance(stmt, nodes.Update) and stmt.target == sym:
            operations.add("+" if stmt.op == "-" else stmt.op)
    if any(isinstance(e, nodes.Read) and e.sym == sym for e in all_expressions(workunit.body)):
        return ""
    operation = operations.pop() if operations else "+"
    if operations or (operation not in _JOINS and operation not in _CHOICES):
        return ""
    kind = sym.dtype.cpp
    if operation in _CHOICES:
        return f"pf_{operation}<{kind}>(a, b)"
    text = _JOINS[operation]
    return f"({kind})({text})" if sym.dtype.size < 4 else text  # arithmetic is in int


def is_parallel(workunit: Workunit) -> bool:
    """Whether every accumulator can be computed in parts."""
    return all(join(workunit, a.sym) for a in workunit.accumulators)


def emit(context: GpuContext, entry: str) -> str:
    """The entry point; of one thread where an accumulator cannot be computed in parts."""
    if context.spec.serial or not is_parallel(context.workunit):
        return sequential(context, entry)
    accumulators = context.workunit.accumulators
    context.device.atomics.add(("+", DType.UINT32))
    lines = [f"{INDENT}{a.sym.dtype.cpp} {context.names[a.sym]}{{}};" for a in accumulators]
    depth = 2
    if context.spec.rank == 1:
        i, first, last = context.counter(0), context.begin[0], context.end[0]
        lines.append(
            f"{INDENT}for (int64_t {i} = {first} + pf_first(x); {i} < {last}; "
            f"{i} += pf_step(x)) {{"
        )
    else:
        lines += walk(context, loop_order(context.spec), "pf_first(x)", "pf_step(x)")
    lines += context.narrowed(depth)
    lines += context.body(depth)
    lines.append(f"{INDENT}}}")
    lines += indented(_end(context))
    return context.head(entry, THREADS) + "\n".join(lines) + "\n}\n"


def _end(context: GpuContext) -> list[str]:
    """Join the threads' values, then the blocks'."""
    lines: list[str] = []
    parts: list[str] = []
    joins: list[str] = []
    offset = f"(char*)workspace + {WORKSPACE_HEAD}"
    for k, a in enumerate(context.workunit.accumulators):
        kind, name = a.sym.dtype.cpp, context.names[a.sym]
        part, total = context.unique.take(f"{name}_parts"), context.unique.take(f"{name}_join")
        # The widest type's alignment holds for every array.
        place = f"{offset} + {16 * k} * pf_blocks(x)" if k else offset
        lines.append(f"{kind}* const {part} = ({kind}*)({place});")
        text = join(context.workunit, a.sym)
        lines.append(f"const auto {total} = []({kind} a, {kind} b) {{ return {text}; }};")
        lines.append(f"{name} = pf_total<{THREADS}>({name}, {total});")
        parts.append(part)
        joins.append(total)
    names = [context.names[a.sym] for a in context.workunit.accumulators]
    lines.append("if (pf_thread(x) == 0) {")
    lines += [f"    {p}[pf_block(x)] = {n};" for p, n in zip(parts, names, strict=True)]
    lines.append("}")
    lines.append("if (!pf_is_last((uint32_t*)workspace)) return;")
    block = context.unique.take("block")
    for k, a in enumerate(context.workunit.accumulators):
        name = names[k]
        lines += [
            f"{name} = {_zero(a)};",
            f"for (int64_t {block} = pf_thread(x); {block} < pf_blocks(x); "
            f"{block} += {THREADS}) {{",
            f"    {name} = {joins[k]}({name}, {parts[k]}[{block}]);",
            "}",
            f"{name} = pf_total<{THREADS}>({name}, {joins[k]});",
            f"if (pf_thread(x) == 0) {context.result(k, name)}",
        ]
    return lines


def _zero(accumulator: Accumulator) -> str:
    return f"{accumulator.sym.dtype.cpp}()"
