"""Code for sums that are computed a few at a time, see `passes.split_accumulators`."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import Statements
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.codegen.cpu.terms import SumNames
from pyfuser.nest.nodes import Function, RunningSums

VECTORS = 4
"""Of a `pf_sum`."""


def run_function(context: Context, f: Function, sums: Sequence[SumNames], block: int) -> str:
    """The function, which adds to `pf_running`. block: terms of a `pf_sum`."""
    lines = _Sums(context, sums, block).print(f.body, 1)
    first, count, *outer = map(context.names.__getitem__, f.params)
    parameters = ["pf_running& running", f"int64_t {first}", f"int64_t {count}"]
    parameters += [f"const int64_t {name}" for name in outer]
    return function(f"void {f.name}", [*parameters, *context.signature], lines)


class _Sums(Statements):
    def __init__(self, context: Context, sums: Sequence[SumNames], block: int) -> None:
        super().__init__(context.expressions, context.workunit.body, context.statements.apart)
        self.take = context.unique.take
        self.sums = {s.array: (s.sum, s.sum_type(block)) for s in sums}

    def running(self, s: RunningSums, depth: int) -> None:
        """With the running sums in locals, which stay in registers."""
        done, names = self.names[s.sym], self.names
        sums = [(array, *self.sums[array]) for array in s.terms]
        vectors = [
            (array, kind, f"running.{name}.sum[{v}]", self.take(f"{name}_{v}"), v)
            for array, name, kind in sums
            for v in range(VECTORS)
        ]
        self.emit(depth, "{")
        for _, kind, place, vector, _ in vectors:
            self.emit(depth + 1, f"{kind}::vector {vector} = {place};")
        more = f"{done} < {self.text(s.count)}"
        self.emit(depth + 1, f"for (int64_t {done} = 0; {more}; {done} += {s.lanes}) {{")
        self.body(s.allocs, depth + 2)
        self.body(s.body, depth + 2)
        for array, kind, _, vector, v in vectors:
            self.emit(depth + 2, f"{vector} += ((const {kind}::vector*){names[array]})[{v}];")
        self.emit(depth + 1, "}")
        for _, _, place, vector, _ in vectors:
            self.emit(depth + 1, f"{place} = {vector};")
        self.emit(depth, "}")


_Sums.statements = {**Statements.statements, RunningSums: _Sums.running}
