"""Memory that a loop asks for a block of iterations before it comes to it (software prefetching).

A processor sees that a loop walks along memory, and fetches the next lines, some of each array it
walks along. Of three arrays or more that keeps memory busy. Of one or two it does not: while an
iteration computes a sine there is time for more, and lines that are only stored to are fetched one
by one. So a loop over few arrays asks for lines itself. D. Callahan, K. Kennedy and A. Porterfield,
"Software prefetching" (1991).

On two cores of a Xeon with AVX-512, y = sin^2 x + cos^2 x took 0.65 of its time, maps of 16 and 40
multiplications 0.8 and 0.6, a copy 0.9, all of arrays larger than a core's caches; a sweep that
stores the result of a stencil 0.9. Of arrays in these caches nothing changed. With four arrays or
more, loops took up to 1.2 of their time, as what is asked for at once has to wait. On two cores of
a Zen 4, which fetches more by itself, babelstream took 1.7 times as long, and nothing took less:
there loops ask for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.nodes import Body, Expr, Sym
from pyfuser.ir.visit import assigned, contains, declared, expressions
from pyfuser.nest.build import iteration, local
from pyfuser.nest.cost.cache_lines import Layout, growth
from pyfuser.nest.nodes import Loop, Nest, Prefetch, number
from pyfuser.support.passes import left_out

MOST = 3
"""Arrays that a loop walks along."""

DISTANCE = 4096
"""Bytes from what a block of iterations asks for to what it comes to."""

LINE = 64
"""Bytes that come from memory at once."""

_KNOWN = (nodes.Const, nodes.Extent, nodes.Cast, nodes.Binary)

_SIZE = 1000
"""Stands for arguments where the farthest of several elements is looked for."""

Subscripts = tuple[Expr, ...]


class Stream(NamedTuple):
    """An array that a loop walks along: the element farthest ahead, and whether it is stored to."""

    view: Sym
    indices: Subscripts
    written: bool


def streams(
    body: Body, index: Sym, given: frozenset[Sym], views: Mapping[Sym, Layout]
) -> tuple[Stream, ...]:
    """What a loop over an index should ask for ahead; nothing if it need not.

    given: the index, those of other axes and the scalar arguments. `views` are the parameters.
    """
    if left_out("prefetch"):
        return ()
    if contains(body, nodes.For, nodes.While, nodes.Scratch):
        return ()
    moving, stable = assigned(body) | set(declared(body)), stable_locals(body)
    farthest: dict[Sym, Subscripts] = {}
    written: set[Sym] = set()
    loads_first = sorted(accesses(body), key=lambda access: access.writes)  # stores wait for none
    for view, subscripts, _, stores, *_ in loads_first:
        if view not in views:
            continue  # an iteration's own array
        at = tuple(expand(e, stable) for e in subscripts)
        steps = [growth(e, index, moving) for e in at]
        unit = views[view].unit_axis
        if stores:
            written.add(view)
        if not any(steps):
            continue
        if unit is None or steps[unit] != 1 or any(steps[:unit] + steps[unit + 1 :]):
            return ()
        if not all(_is_known(part, given - moving) for e in at for part in expressions(e)):
            return ()
        if view not in farthest or _place(at) > _place(farthest[view]):
            farthest[view] = at
    if len(farthest) > MOST:
        return ()
    return tuple(Stream(view, at, view in written) for view, at in farthest.items())


def streams_of(nest: Nest) -> tuple[Stream, ...]:
    """What blocks of a nest's body, in one loop, ask for."""
    spec, workunit = nest.spec, nest.workunit
    if not spec.target.avx512_of_intel:
        return ()
    if nest.serial or spec.checked or spec.order.block or not spec.long_rows:
        return ()
    scalars = {param.sym for param in workunit.params} - nest.views.keys()
    given = frozenset(scalars.union(workunit.indices) - assigned(workunit.body))
    if not given.issuperset(workunit.indices):
        return ()
    return streams(workunit.body, workunit.indices[spec.order.axes[-1]], given, nest.views)


def prefetches(nest: Nest, found: tuple[Stream, ...], axis: int, at: Expr, count: Expr) -> Body:
    """Before a loop over `count` iterations of an axis from `at`: loops that ask for its lines."""
    line = local("line")
    body: list[nodes.Stmt] = []
    for size in dict.fromkeys(stream.view.dtype.size for stream in found):
        asked = (
            Prefetch(nodes.Load(view, indices), DISTANCE // size, written)
            for view, indices, written in found
            if view.dtype.size == size
        )
        trip = (*iteration(nest, axis, nodes.Binary("+", at, line)), *asked)
        body.append(Loop(line.sym, number(0), count, number(max(LINE // size, 1)), trip))
    return tuple(body)


def _is_known(part: Expr, given: frozenset[Sym]) -> bool:
    return part.sym in given if isinstance(part, nodes.Read) else isinstance(part, _KNOWN)


def _place(at: Subscripts) -> list[int]:
    """About how far ahead an element is."""
    return [_value(e) for e in at]


def _value(e: Expr) -> int:
    if isinstance(e, nodes.Const):
        return int(e.value) if isinstance(e.value, int) else 0
    if isinstance(e, nodes.Cast):
        return _value(e.operand)
    if not isinstance(e, nodes.Binary):
        return _SIZE
    left, right = _value(e.left), _value(e.right)
    return {"+": left + right, "-": left - right, "*": left * right}.get(e.op, _SIZE)
