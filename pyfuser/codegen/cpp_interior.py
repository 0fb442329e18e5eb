"""Code for loops whose blocks run without conditions where these hold; see `interior`."""

from __future__ import annotations

from dataclasses import replace

from pyfuser.codegen.cpp_context import Context, fresh_syms, function
from pyfuser.codegen.cpp_statements import INDENT
from pyfuser.codegen.interior import Interior, interior
from pyfuser.ir.nodes import Body

BLOCK = 128
"""Iterations that are tried together; neighbours that go the same way run as one loop."""

LOCALS = frozenset({"at", "stop", "next", "whole"})


def interior_of(context: Context, inner: Body = ()) -> Interior | None:
    """How blocks of the context's body run inside; None where they are to run as they are.

    inner: what else the loop runs in a part of its own, if it does: that then must ask, too.
    """
    spec = context.spec
    if spec.checked or not context.independent or spec.rank > 1:
        return None
    fresh = fresh_syms(context)
    if inner and interior(replace(context.workunit, body=inner), fresh) is None:
        return None
    found = interior(context.workunit, fresh)
    if found is not None:
        for sym in (found.first, found.last):
            context.names[sym] = context.unique.take(sym.name)
    return found


def inside_code(context: Context, found: Interior) -> str:
    """`pf_inside`, which tells whether the iterations from the first to the last all are."""
    tests = f"\n{INDENT * 2}&& ".join(f"({context.expressions.text(t)})" for t in found.tests)
    ends = [f"int64_t {context.names[sym]}" for sym in (found.first, found.last)]
    return function(
        "bool pf_inside", [*ends, *context.signature], [f"{INDENT}return {tests};"], True
    )


def blocks_code(context: Context) -> str:
    """`pf_loop`, which runs blocks as `pf_middle` or as `pf_around`."""
    tail = "".join(", " + a for a in context.arguments)

    def end_of(at: str) -> str:
        return f"{at} + {BLOCK} - ({at} & {BLOCK - 1})"

    lines = [
        "for (int64_t at = begin; at < end;) {",
        f"    int64_t stop = {end_of('at')};",
        "    if (stop > end) stop = end;",
        f"    const bool whole = pf_inside(at, stop - 1{tail});",
        "    for (int64_t next; stop < end; stop = next) {",
        f"        next = {end_of('stop')};",
        "        if (next > end) next = end;",
        f"        if (pf_inside(stop, next - 1{tail}) != whole) break;",
        "    }",
        f"    if (whole) pf_middle(at, stop{tail});",
        f"    else pf_around(at, stop{tail});",
        "    at = stop;",
        "}",
    ]
    parameters = ["int64_t begin", "int64_t end", *context.signature]
    return function("void pf_loop", parameters, [INDENT + line for line in lines])
