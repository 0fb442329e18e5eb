"""Code for the terms of a reduction's accumulators: one of each, for each iteration of a block."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.codegen.cpu.functions import functions_code
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Sym
from pyfuser.nest.passes.blocks import Blocks, allocs, block_loops, blocks_of
from pyfuser.nest.passes.row_sums import order_sums
from pyfuser.nest.passes.split_conditions import Interior, inside, inside_of_sums
from pyfuser.nest.terms import Terms

INLINE_SUMS = 8
"""With more accumulators the code for full blocks is not compiled apart from that for others."""


def _inside_code(context: Context, found: Interior, axis: int) -> str:
    """`pf_inside`, which tells whether the iterations from the first to the last all are.

    The indices of other axes come after these two, in their order.
    """
    return functions_code(context, context.nest, (inside(context.nest, found, axis),))


class SumNames:
    """The names that belong to one accumulator."""

    def __init__(self, context: Context, accumulator: Accumulator) -> None:
        dtype = accumulator.sym.dtype
        self.kind = dtype.cpp
        self.term = context.names[accumulator.sym]
        self.terms = context.unique.take(f"{self.term}_terms")
        self.sum = context.unique.take(f"{self.term}_sum")
        self.partial = context.unique.take(f"{self.term}_partial")
        self.few = context.unique.take(f"{self.term}_few")
        self.wide = dtype.is_complex
        self.part = {DType.COMPLEX64: "float", DType.COMPLEX128: "double"}.get(dtype, self.kind)
        self.array = context.array(self.terms, dtype)
        context.expressions.made.add(self.array)
        if self.wide:
            context.expressions.pairs.add(self.array)

    def sum_type(self, block: int) -> str:
        """The type of the running sum, which holds the terms of a block."""
        return f"pf_sum<{self.part}, {block}{', 2' * self.wide}>"

    def times(self, count: str) -> str:
        """The offset of so many terms; a complex one is two numbers."""
        return f" + {'2 * ' * self.wide}{count}" if count else ""


def block_terms(context: Context, sums: Sequence[SumNames], blocks: Blocks, kept: int) -> str:
    """`pf_terms`, which computes the terms of a block; inside, without conditions on the index.

    A block at an end of a row has one iteration that is not.

    kept: bytes of the terms of an iteration.
    """
    last = context.spec.rank - 1
    found = inside_of_sums(context.nest, last) if blocks.single else None
    if found is None:
        return _terms_function(context, sums, blocks, "pf_terms")
    code = _inside_code(context, found, last)
    code += _terms_function(context, sums, blocks, "pf_around", rare=True)
    blocks = blocks_of(context.nest.of(found.body), kept, blocks.size)
    code += _terms_function(context.of(blocks.nest), sums, blocks, "pf_middle")
    outer = [context.counter(axis) for axis in range(last)]
    tail = [*outer, *context.arguments]

    def run(name: str, skipped: str, count: str) -> str:
        terms = [s.terms + s.times(skipped) for s in sums]
        begin = f"at + {skipped}" if skipped else "at"
        return f"{INDENT}{name}({', '.join([begin, count, *terms, *tail])});"

    lines = [
        f"if (pf_inside({', '.join(['at, at + count - 1', *tail])})) {{",
        run("pf_middle", "", "count"),
        f"}} else if (count > 2 && pf_inside({', '.join(['at + 1, at + count - 2', *tail])})) {{",
        run("pf_around", "", "1"),
        run("pf_middle", "1", "count - 2"),
        run("pf_around", "(count - 1)", "1"),
        "} else {",
        run("pf_around", "", "count"),
        "}",
    ]
    lines = [INDENT + line for line in lines]
    return code + function("void pf_terms", _parameters(context, sums), lines, True)


def _parameters(context: Context, sums: Sequence[SumNames]) -> list[str]:
    """Of a function for the terms of iterations; the indices of other axes come after them."""
    outer = [f"const int64_t {context.counter(axis)}" for axis in range(context.spec.rank - 1)]
    terms = [f"{s.part}* {s.terms}" for s in sums]
    return ["int64_t at", "int64_t count", *terms, *outer, *context.signature]


def _terms_function(
    context: Context, sums: Sequence[SumNames], blocks: Blocks, name: str, rare: bool = False
) -> str:
    """The loops over the iterations of a block, which give each accumulator's terms.

    A body with a single loop is compiled twice, if it is not rare: for full blocks, and the rest.
    Loops along columns are not: there are many, and they gain nothing.
    """
    last = context.spec.rank - 1
    context.uses(*blocks.straight)
    arrays = arrays_of(context, sums)
    loops = block_loops(blocks, last, lambda: Terms(context.nest, arrays).body)
    lines = context.print(order_sums(context.nest, (*allocs(blocks), *loops)), 1)
    inline = blocks.single and len(sums) <= INLINE_SUMS and not rare
    once = blocks.columns is not None
    return function(f"void {name}", _parameters(context, sums), lines, inline, once)


def arrays_of(context: Context, sums: Sequence[SumNames]) -> dict[Sym, Sym]:
    """The array for the terms of each accumulator."""
    return {a.sym: s.array for a, s in zip(context.workunit.accumulators, sums, strict=True)}
