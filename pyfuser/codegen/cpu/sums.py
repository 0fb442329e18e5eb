"""What belongs to one accumulator in the code of a reduction."""

from __future__ import annotations

from pyfuser.codegen.cpu.context import Context
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Sym

_PARTS = {DType.COMPLEX64: "float", DType.COMPLEX128: "double"}


def part_of(sym: Sym) -> str:
    """The C++ type of a term's parts."""
    return _PARTS.get(sym.dtype, sym.dtype.cpp)


class SumNames:
    """Its names, and the types of its sums and terms."""

    def __init__(self, context: Context, accumulator: Accumulator, terms: Sym, block: int) -> None:
        """terms: the array for those of a block, which has so many."""
        dtype, take = accumulator.sym.dtype, context.unique.take
        self.kind, self.part, self.wide = dtype.cpp, part_of(terms), dtype.is_complex
        self.term, self.terms = context.names[accumulator.sym], context.names[terms]
        self.sum, self.partial, self.few = (
            take(f"{self.term}_{what}") for what in ("sum", "partial", "few")
        )
        self.type = f"pf_sum<{self.part}, {block}{', 2' * self.wide}>"
        context.expressions.made.add(terms)
        if self.wide:
            context.expressions.pairs.add(terms)

    def times(self, count: str) -> str:
        """The offset of so many terms; a complex one is two numbers."""
        return f" + {'2 * ' * self.wide}{count}" if count else ""
