"""Code for loops whose blocks run without conditions: see `passes.split_conditions`."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, fresh_syms, function
from pyfuser.codegen.passes.split_conditions import Interior, interior
from pyfuser.ir.nodes import Body

BLOCK = 128
"""Iterations that are tried together; neighbours that go the same way run as one loop."""

LOCALS = frozenset({"at", "stop", "next", "whole", "part", "upto", "low", "high"})


def interior_of(context: Context, axis: int, inner: Body = ()) -> Interior | None:
    """How blocks of the context's body run inside; None where they are to run as they are.

    axis: along which blocks lie. inner: what else the loop runs in a part of its own, if it does:
    that then must ask, too.
    """
    if context.spec.checked or not context.independent:
        return None
    fresh = fresh_syms(context)
    if inner and interior(replace(context.workunit, body=inner), axis, fresh) is None:
        return None
    found = interior(context.workunit, axis, fresh)
    if found is not None:
        for sym in (found.first, found.last):
            context.names[sym] = context.unique.take(sym.name)
    return found


def inside_code(context: Context, found: Interior, axis: int) -> str:
    """`pf_inside`, which tells whether the iterations from the first to the last all are.

    The indices of other axes come after these two, in their order.
    """
    tests = f"\n{INDENT * 2}&& ".join(f"({context.expressions.text(t)})" for t in found.tests)
    ends = [f"int64_t {context.names[sym]}" for sym in (found.first, found.last)]
    others = [n for n in range(context.spec.rank) if n != axis]
    outer = [f"const int64_t {context.counter(n)}" for n in others]
    lines = [
        *(line for n in others for line in context.narrowed_axis(n, 1)),
        f"{INDENT}return {tests};",
    ]
    return function("bool pf_inside", [*ends, *outer, *context.signature], lines, inline=True)


def blocks_code(context: Context) -> str:
    """`pf_loop`, which runs blocks along the innermost axis as `pf_middle` or as `pf_around`."""
    *outer, axis = context.spec.order.axes
    counters = [context.counter(n) for n in sorted(outer)]
    tail = "".join(", " + a for a in context.arguments)
    lines, depth = [], 0
    first, last = "begin", "end"
    if outer:
        rank = context.spec.rank
        lines.append(f"int64_t part[{rank}], upto[{rank}];")
        first, last = f"begin[{axis}]", f"end[{axis}]"
    for n in outer:
        i = context.counter(n)
        lines.append(f"{INDENT * depth}for (int64_t {i} = begin[{n}]; {i} < end[{n}]; ++{i}) {{")
        depth += 1
        lines.append(f"{INDENT * depth}part[{n}] = {i}, upto[{n}] = {i} + 1;")

    def end_of(at: str) -> str:
        return f"{at} + {BLOCK} - ({at} & {BLOCK - 1})"

    def inside(at: str, end: str) -> str:
        return f"pf_inside({', '.join([at, end + ' - 1', *counters])}{tail})"

    def run(name: str, at: str, end: str) -> str:
        if not outer:
            return f"{name}({at}, {end}{tail});"
        return f"part[{axis}] = {at}, upto[{axis}] = {end}, {name}(part, upto{tail});"

    body = [
        f"const int64_t low = {first}, high = {last};",
        f"if (high - low > 2 && {inside('low + 1', 'high - 1')}) {{",
        f"    {run('pf_around', 'low', 'low + 1')}",
        f"    {run('pf_middle', 'low + 1', 'high - 1')}",
        f"    {run('pf_around', 'high - 1', 'high')}",
        f"    {'continue' if outer else 'return'};",
        "}",
        "for (int64_t at = low; at < high;) {",
        f"    int64_t stop = {end_of('at')};",
        "    if (stop > high) stop = high;",
        f"    const bool whole = {inside('at', 'stop')};",
        "    for (int64_t next; stop < high; stop = next) {",
        f"        next = {end_of('stop')};",
        "        if (next > high) next = high;",
        f"        if ({inside('stop', 'next')} != whole) break;",
        "    }",
        "    if (whole) {",
        f"        {run('pf_middle', 'at', 'stop')}",
        "    } else {",
        f"        {run('pf_around', 'at', 'stop')}",
        "    }",
        "    at = stop;",
        "}",
    ]
    lines += [INDENT * depth + line for line in body]
    lines += [INDENT * level + "}" for level in reversed(range(depth))]
    pointer = "const int64_t* " if outer else "int64_t "
    parameters = [f"{pointer}begin", f"{pointer}end", *context.signature]
    return function("void pf_loop", parameters, [INDENT + line for line in lines])
