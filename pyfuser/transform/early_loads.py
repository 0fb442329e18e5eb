"""Elements that all iterations of a row share and read under conditions: loaded before.

    if solid[i] == 1:                       turned = back[3]
        p[i] = f[back[3]][i]        ->      if solid[i] == 1:
                                                p[i] = f[turned][i]

g++ makes masked operations of vectors of what is guarded, but has none for one element that all
lanes load: it computes such loops one iteration at a time. Loaded whatever the condition, elements
of tables, coefficients, and values of a row (`s[i]` in a loop over j) are taken out of the loop.

The law. An element that is loaded and not used changes nothing if the view has it, and nothing in
the kernel changes the view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyfuser.analysis.affine import Interval
from pyfuser.analysis.inside import is_element
from pyfuser.ir.canonical import fresh
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Const,
    Declare,
    Expr,
    If,
    Load,
    Logical,
    Read,
    Select,
    Stmt,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import (
    assigned,
    bodies,
    child_expressions,
    expressions,
    map_body,
    reads,
)
from pyfuser.support.caches import cached
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel, Slot
from pyfuser.transform.selects import ARITHMETIC

MOST = 32
"""Elements that a kernel loads early: they take registers, or room on the stack."""


def load_early(kernel: Kernel) -> Kernel:
    """The kernel with such elements loaded first."""
    if kernel.space.execution in GPU_SPACES:
        return kernel
    workunit, ranges = kernel.workunit, kernel.ranges()
    found = {
        load: fresh(load.view.name, load.dtype)
        for load in _guarded(workunit)
        if has_element(load, kernel, ranges) and not may_change(load.view, kernel)
    }
    if not 0 < len(found) <= MOST:
        return kernel

    def known(e: Expr) -> Expr:
        sym = found.get(e) if isinstance(e, Load) else None
        return e if sym is None else Read(sym)

    first = tuple(Declare(sym, load) for load, sym in found.items())
    return replace(
        kernel, workunit=replace(workunit, body=(*first, *map_body(workunit.body, known)))
    )


# law: True
def has_element(load: Load, kernel: Kernel, ranges: Mapping[Sym, Interval]) -> bool:
    """Whether a view of a kernel has the element, whatever the values in their ranges."""
    pairs = zip(kernel.workunit.params, kernel.shapes, strict=True)
    shapes = {param.sym: shape for param, shape in pairs}
    shape = shapes.get(load.view)  # a local array has none
    return isinstance(shape, RegionShape) and is_element(load.indices, shape.shape, ranges)


# law: False
def may_change(view: Sym, kernel: Kernel) -> bool:
    """Whether a kernel may write elements of a view."""
    written = written_views(kernel.workunit)
    return view in written or any(view in pair and pair & written for pair in kernel.overlaps)


# law: not None
def needed(kernel: Kernel) -> tuple[tuple[Slot, tuple[int, ...]], ...] | None:
    """The least extents of views that have what a kernel, after the pass, loads early.

    None: that may depend on the space, too.
    """
    workunit = kernel.workunit
    innermost = {*workunit.indices[-1:]}
    slots = dict(zip([param.sym for param in workunit.params], kernel.slots, strict=True))
    found = []
    for stmt in workunit.body:
        for load in expressions(stmt):
            if not isinstance(load, Load) or load.view not in slots:
                continue
            numbers = [int(e.value) for e in load.indices if isinstance(e, Const)]  # type: ignore[arg-type]
            if len(numbers) == len(load.indices):
                found.append((slots[load.view], tuple(n + 1 for n in numbers)))
            elif not reads(*load.indices) & innermost:
                return None
    return tuple(found)


@cached(1024)
def _guarded(workunit: Workunit) -> tuple[Load, ...]:
    """The loads under conditions whose places no innermost index changes, each once."""
    changing = assigned(workunit.body)
    scalars = {param.sym for param in workunit.params if not param.rank}
    shared = (scalars | {*workunit.indices[:-1]}) - changing
    found = (load for load in _conditional(workunit.body, False) if _is_shared(load, shared))
    return tuple(dict.fromkeys(found))


def _is_shared(load: Load, shared: set[Sym]) -> bool:
    """Whether a place is computed from what a row shares, by what cannot trap."""
    return reads(*load.indices) <= shared and all(
        isinstance(e, (Const, Read, Cast)) or (isinstance(e, Binary) and e.op in ARITHMETIC)
        for index in load.indices
        for e in expressions(index)
    )


def _conditional(body: Body, guarded: bool) -> Iterator[Load]:
    for stmt in body:
        yield from _of_expressions(stmt, guarded)
        for inner in bodies(stmt):
            yield from _conditional(inner, guarded or isinstance(stmt, If))


def _of_expressions(e: Stmt | Expr, guarded: bool) -> Iterator[Load]:
    for child in child_expressions(e):
        inside = guarded or _is_guarded(e, child)
        if inside and isinstance(child, Load):
            yield child
        yield from _of_expressions(child, inside)


def _is_guarded(e: Stmt | Expr, child: Expr) -> bool:
    """Whether an operand is not evaluated every time that its expression is."""
    if isinstance(e, Select):
        return child is not e.condition
    return isinstance(e, Logical) and child is not e.left
