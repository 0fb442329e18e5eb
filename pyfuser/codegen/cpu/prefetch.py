"""Code that asks for memory before a loop comes to it; see `passes.prefetch`."""

from __future__ import annotations

from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.passes.prefetch import Stream, streams
from pyfuser.ir.nodes import Binary, Body, Load, Read, Stmt
from pyfuser.ir.visit import assigned
from pyfuser.nest.nodes import Loop, Prefetch, number

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


def prefetches(context: Context, found: tuple[Stream, ...], axis: int) -> Body:
    """Before a loop over `count` iterations of an axis from `at`: loops that ask for its lines."""
    at, count, line = (Read(context.local(name)) for name in ("at", "count", "line"))
    body: list[Stmt] = []
    for size in dict.fromkeys(stream.view.dtype.size for stream in found):
        asked = (
            Prefetch(Load(view, indices), DISTANCE // size, written)
            for view, indices, written in found
            if view.dtype.size == size
        )
        trip = (*context.iteration(axis, Binary("+", at, line)), *asked)
        body.append(Loop(line.sym, number(0), count, number(max(LINE // size, 1)), trip))
    return tuple(body)
