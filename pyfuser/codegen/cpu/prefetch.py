"""Code that asks for memory before a loop comes to it; see `passes.prefetch`."""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.passes.prefetch import Stream, streams
from pyfuser.ir.nodes import Load
from pyfuser.ir.visit import assigned

DISTANCE = 4096
"""Bytes from what a block of iterations asks for to what it comes to."""

LINE = 64
"""Bytes that come from memory at once."""

LOCALS = frozenset({"line"})


def streams_of(context: Context) -> tuple[Stream, ...]:
    """What blocks of the context's body, in one loop, ask for."""
    spec, workunit = context.spec, context.workunit
    if not spec.target.intel or spec.target.vector_bytes < 64:
        return ()
    if not context.independent or spec.checked or spec.order.block or not spec.long_rows:
        return ()
    pairs = zip(workunit.params, spec.views, strict=True)
    views = {param.sym: view for param, view in pairs if view is not None}
    scalars = {param.sym for param in workunit.params} - views.keys()
    given = frozenset(scalars.union(workunit.indices) - assigned(workunit.body))
    if not given.issuperset(workunit.indices):
        return ()
    return streams(workunit.body, workunit.indices[spec.order.axes[-1]], given, views)


def ahead_lines(context: Context, found: tuple[Stream, ...], axis: int, depth: int) -> list[str]:
    """Before a loop over `count` iterations of an axis from `at`: loops that ask for its lines."""
    indent, lines = INDENT * depth, []
    for size in dict.fromkeys(stream.view.dtype.size for stream in found):
        lines += [
            f"{indent}for (int64_t line = 0; line < count; line += {max(LINE // size, 1)}) {{",
            f"{indent}{INDENT}const int64_t {context.counter(axis)} = at + line;",
            *context.narrowed(depth + 1),
        ]
        for view, indices, written in found:
            if view.dtype.size == size:
                place = f"&{context.expressions.element(Load(view, indices))} + {DISTANCE // size}"
                lines.append(f"{indent}{INDENT}__builtin_prefetch({place}, {int(written)});")
        lines.append(f"{indent}}}")
    return lines
