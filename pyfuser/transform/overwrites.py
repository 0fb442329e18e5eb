"""Find views that a kernel overwrites: fresh memory need not be zero there first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyfuser.ir.accesses import accesses
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.nodes import (
    Cast,
    Expr,
    If,
    Read,
    Stmt,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import assigned
from pyfuser.support.caches import cached
from pyfuser.trace.call import Space
from pyfuser.trace.shape import RegionShape
from pyfuser.transform.kernel import Kernel

_NARROW = 1 << 31
"""Indices below this are the same as 32-bit numbers."""


# law
def mark_overwrites(kernel: Kernel) -> Kernel:
    """The kernel with the places of those parameters in `overwrites`.

    The view is stored at exactly the indices in every iteration, and read nowhere: the box of the
    iteration space is overwritten.
    """
    workunit, space = kernel.workunit, kernel.space
    stored = _stored_only(workunit) - {sym for pair in kernel.overlaps for sym in pair}
    places = [
        place
        for place, (param, shape) in enumerate(zip(workunit.params, kernel.shapes, strict=True))
        if param.sym in stored and isinstance(shape, RegionShape) and holds_box(shape.shape, space)
    ]
    return replace(kernel, overwrites=tuple(places))


# law: True
def holds_box(shape: tuple[int, ...], space: Space) -> bool:
    """Whether the indices of a space are elements of a view of this shape, and 32-bit numbers."""
    return all(begin >= 0 for begin in space.begin) and all(
        end <= min(n, _NARROW) for end, n in zip(space.end, shape, strict=True)
    )


@cached(1024)
# law
def _stored_only(workunit: Workunit) -> frozenset[Sym]:
    """Views that every iteration stores at its indices, and whose elements nothing reads."""
    body = workunit.body
    if not assigned(body).isdisjoint(workunit.indices):
        return frozenset()
    own, stable = tuple(map(Read, workunit.indices)), stable_locals(body)

    def is_own(indices: tuple[Expr, ...]) -> bool:
        return tuple(_without_casts(expand(index, stable)) for index in indices) == own

    stored = {s.view for s in _always(workunit) if isinstance(s, Store) and is_own(s.indices)}
    return frozenset(stored - {access.view for access in accesses(body) if access.reads})


# law
def _always(workunit: Workunit) -> Iterator[Stmt]:
    """The statements that every iteration runs; of a scan's, in the last pass over it."""
    changing = assigned(workunit.body)
    given = (a.last_pass for a in workunit.accumulators)
    flags = [Read(flag) for flag in given if flag is not None and flag not in changing]
    for stmt in workunit.body:
        yield stmt
        if isinstance(stmt, If) and stmt.condition in flags:
            yield from stmt.then


def _without_casts(e: Expr) -> Expr:
    """An index that is below `_NARROW`, without the conversions of C++ between its types."""
    while isinstance(e, Cast) and e.dtype.is_integer and e.dtype.size >= 4:
        e = e.operand
    return e
