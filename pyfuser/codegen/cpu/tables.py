"""Code for small tables of which each thread has its copy meanwhile (`transform.tables`)."""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.codegen.c.expressions import integer
from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Update
from pyfuser.ir.visit import statements

_NO_MEMORY = -1
_LINE = 64  # bytes of a cache line


class Copies(NamedTuple):
    """What a parallel region needs for its threads' copies, and what it calls them.

    before: statements in front of the region. begin, end: those with which it begins and ends.
    """

    before: tuple[str, ...]
    begin: tuple[str, ...]
    end: tuple[str, ...]
    arguments: tuple[str, ...]


def copies_of(context: Context) -> Copies:
    """The copies of a kernel's tables; there is at least one."""
    context.uses("table", "threads")
    arguments, begin, end, place = list(context.arguments), [], [], 0
    for param, count in context.spec.tables:
        sym = context.spec.workunit.params[param].sym
        name, kind = context.names[sym], sym.dtype.cpp
        own = context.unique.take(f"{name}_own")
        body = statements(context.spec.workunit.body)
        update = next(s for s in body if isinstance(s, Update) and s.target == sym)
        op = "+" if update.op == "-" else update.op
        nothing = _nothing(op, sym.dtype)
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
        place += -(-count * sym.dtype.size // _LINE) * _LINE
    before = (
        f"const pf_copies pf_tables(threads, {place});",
        f"if (!pf_tables.memory) return {_NO_MEMORY};",
    )
    return Copies(before, tuple(begin), ("#pragma omp barrier", *end), tuple(arguments))


def _nothing(op: str, dtype: DType) -> str:
    """The operand that changes nothing."""
    low, high = dtype.range()
    value = {"min": high, "max": low, "&": high if low == 0 else -1}.get(op, 0)
    return f"({dtype.cpp}){integer(int(value), dtype)}"
