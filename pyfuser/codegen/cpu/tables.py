"""Code for small tables of which each thread has its copy meanwhile (`transform.tables`)."""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.codegen.c.expressions import PRIMARY
from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.ir.nodes import Update
from pyfuser.nest.abi import NO_MEMORY
from pyfuser.nest.shares import Shares


class Copies(NamedTuple):
    """What a parallel region needs for its threads' copies, and what it calls them.

    before: statements in front of the region. begin, end: those with which it begins and ends.
    """

    before: tuple[str, ...]
    begin: tuple[str, ...]
    end: tuple[str, ...]
    arguments: tuple[str, ...]


def copies_of(context: Context, shares: Shares) -> Copies:
    """The copies of a kernel's tables; there is at least one."""
    context.uses("table")
    arguments, begin, end = list(context.arguments), [], []
    for table in shares.tables:
        sym, op, count, place = table.view, table.op, table.count, table.place
        name, kind = context.names[sym], sym.dtype.cpp
        own = context.unique.take(f"{name}_own")
        nothing = f"({kind}){context.expressions.text(table.nothing, PRIMARY)}"
        update = Update(op, sym, (), table.nothing, atomic=True)
        made = f"pf_tables.own<{kind}>(omp_get_thread_num(), {place}, {count}, {nothing})"
        begin.append(f"{kind}* const {own} = {made};")
        change = context.expressions.change(op, sym.dtype)
        apply = context.expressions.atomic_operation(
            op, f"{name}[pf_cell]", sym.dtype, "pf_total", update
        )
        end += [
            f"pf_tables.apply<{kind}>({place}, {count}, {nothing}, {change},",
            f"{INDENT}[&](int64_t pf_cell, {kind} pf_total) {{ {apply}; }});",
        ]
        arguments[arguments.index(name)] = own
    before = (
        f"const pf_copies pf_tables(threads, {shares.bytes});",
        f"if (!pf_tables.memory) return {NO_MEMORY};",
    )
    return Copies(before, tuple(begin), ("#pragma omp barrier", *end), tuple(arguments))
