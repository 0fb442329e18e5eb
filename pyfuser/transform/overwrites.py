"""Find views that a kernel overwrites: fresh memory need not be zero there first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

from pyfuser.ir.accesses import accesses
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.nodes import (
    Body,
    Break,
    Cast,
    Const,
    Continue,
    Expr,
    Extent,
    For,
    If,
    Read,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import assigned, contains
from pyfuser.support.caches import cached
from pyfuser.trace.call import Space
from pyfuser.trace.memory import Box
from pyfuser.trace.shape import RegionShape, known_scalars
from pyfuser.transform.kernel import Axes, Kernel

_NARROW = 1 << 31
"""Indices below this are the same as 32-bit numbers."""

ALL_ALONG, _ONE_BY_ONE = -1, -2
"""In place of an index: all subscripts of an axis, by one store; a number, as one of several."""

_Loop: TypeAlias = tuple[Sym, Expr]
"""The variable of a loop that counts from 0, and what it counts to."""

_Part: TypeAlias = tuple[int, tuple[_Loop, ...], tuple[Expr, ...]]
"""A statement of the body by its place; loops in it, and the subscripts of a store that happens in
every trip of them, in every iteration."""

_Read: TypeAlias = tuple[int, tuple[Expr, ...]]
"""A statement of the body by its place, and the subscripts of an element that it may read."""


# law
def mark_overwrites(kernel: Kernel, changing: Collection[int] = ()) -> Kernel:
    """The kernel with the places of those parameters in `overwrites`.

    In every iteration the view is stored at exactly the indices, which are subscripts of some axes,
    and at all subscripts of its other axes: in loops over their whole extents, or one by one. An
    iteration reads it at its own indices only, in statements behind those. changing: arguments
    whose values are not to be relied on.
    """
    workunit, space = kernel.workunit, kernel.space
    stored = _stored(workunit)
    overlapping = {sym for pair in kernel.overlaps for sym in pair}
    shapes = {param.sym: s for param, s in zip(workunit.params, kernel.shapes, strict=True)}
    others = {
        param.sym
        for param, slot in zip(workunit.params, kernel.slots, strict=True)
        if slot.argument in changing
    }
    known: dict[Sym, tuple[int, ...]] = {
        sym: (value,)
        for sym, value in known_scalars(workunit, kernel.shapes).items()
        if sym not in others | assigned(workunit.body)
    }
    known |= {sym: s.shape for sym, s in shapes.items() if isinstance(s, RegionShape)}
    found = {}
    for place, (sym, shape) in enumerate(shapes.items()):
        if sym in stored and sym not in overlapping and isinstance(shape, RegionShape):
            axes = _axes(*stored[sym], workunit.indices, shape.shape, known)
            if axes is not None and holds_box(shape.shape, space, axes):
                found[place] = axes
    return replace(kernel, overwrites=tuple(found), along=tuple(found.values()))


# law: True
def holds_box(shape: tuple[int, ...], space: Space, axes: Axes) -> bool:
    """Whether the indices of a space are subscripts of the axes, and 32-bit numbers."""
    return all(begin >= 0 for begin in space.begin) and all(
        axis < 0 or space.end[axis] <= min(n, _NARROW) for axis, n in zip(axes, shape, strict=True)
    )


# law: True
def is_as_long(kernel: Kernel, arguments: Sequence[Any]) -> bool:
    """Whether views have the extents that a kernel, made for others, overwrites all along."""
    for place, axes in zip(kernel.overwrites, kernel.along, strict=True):
        extents, made = arguments[kernel.slots[place].argument].shape, kernel.shapes[place]
        assert isinstance(made, RegionShape)
        if any(a < 0 and n != m for a, n, m in zip(axes, extents, made.shape, strict=True)):
            return False
    return True


def box_of(axes: Axes, space: Space, shape: tuple[int, ...]) -> Box:
    """What is overwritten of a view of this shape."""
    pairs = list(zip(axes, shape, strict=True))
    return (
        tuple([0 if axis < 0 else space.begin[axis] for axis, _ in pairs]),
        tuple([extent if axis < 0 else space.end[axis] for axis, extent in pairs]),
    )


def boxes_of(kernel: Kernel) -> Iterator[tuple[int, Box]]:
    """The places of the views that a kernel overwrites, and what of them."""
    for place, axes in zip(kernel.overwrites, kernel.along, strict=True):
        shape = kernel.shapes[place]
        if isinstance(shape, RegionShape):
            yield place, box_of(axes, kernel.space, shape.shape)


# law: not None
def _axes(
    parts: Sequence[_Part],
    reads: Sequence[_Read],
    indices: Sequence[Sym],
    shape: tuple[int, ...],
    known: Mapping[Sym, tuple[int, ...]],
) -> Axes | None:
    """Where the indices stand in the subscripts of stores that write all along the other axes.

    reads: of the view. known: scalars, and the extents of views.
    """
    numbers: dict[Expr, int] = {Read(sym): n for n, sym in enumerate(indices)}
    written: dict[Axes, set[tuple[int, ...]]] = {}
    last: dict[Axes, int] = {}  # the place of the last one of these stores
    for place, loops, subscripts in parts:
        trips: dict[Expr, int] = {Read(sym): _value(stop, known) for sym, stop in loops}
        if not all(0 < n <= _NARROW for n in trips.values()):
            continue
        axes, single = [], []
        for index, extent in zip(subscripts, shape, strict=True):
            if index in numbers:
                axes.append(numbers[index])
            elif trips.pop(index, None) == extent:
                axes.append(ALL_ALONG)
            elif isinstance(index, Const) and 0 <= index.value < extent:  # type: ignore[operator]
                axes.append(_ONE_BY_ONE)
                single.append(int(index.value))  # type: ignore[arg-type]
            else:
                break
        else:
            if sorted(axis for axis in axes if axis >= 0) == [*numbers.values()]:
                written.setdefault(tuple(axes), set()).add(tuple(single))
                last[tuple(axes)] = place
    for kinds, singles in written.items():
        wanted = (n for axis, n in zip(kinds, shape, strict=True) if axis == _ONE_BY_ONE)
        if len(singles) == prod(wanted) and _reads_own(reads, last[kinds], kinds, numbers):
            return tuple([max(axis, ALL_ALONG) for axis in kinds])
    return None


# law
def _reads_own(reads: Sequence[_Read], last: int, kinds: Axes, numbers: Mapping[Expr, int]) -> bool:
    """Whether iterations read what they stored themselves alone, behind the last of the stores."""
    return all(
        place > last
        and all(numbers.get(at) == n for at, n in zip(subscripts, kinds, strict=True) if n >= 0)
        for place, subscripts in reads
    )


def _value(e: Expr, known: Mapping[Sym, tuple[int, ...]]) -> int:
    """What the end of a loop is worth; -1: that is not known."""
    match e:
        case Const(int(value)):
            return value
        case Read(sym) if sym in known:
            return known[sym][0]
        case Extent(view, axis) if view in known:
            return known[view][axis]
    return -1


@cached(1024)
# law
def _stored(workunit: Workunit) -> dict[Sym, tuple[list[_Part], list[_Read]]]:
    """Views with the stores to them that always happen, and all reads of them."""
    body = workunit.body
    changing = assigned(body)
    if not changing.isdisjoint(workunit.indices):
        return {}
    stable = stable_locals(body)
    given = (a.last_pass for a in workunit.accumulators)
    flags = [Read(flag) for flag in given if flag is not None and flag not in changing]
    found: dict[Sym, tuple[list[_Part], list[_Read]]] = {}
    for place, stmt in enumerate(body):
        for loops, store in _always((stmt,), flags, (), changing):
            counted = tuple([(loop.sym, _simple(loop.stop, stable)) for loop in loops])
            part = place, counted, tuple([_simple(index, stable) for index in store.indices])
            found.setdefault(store.view, ([], []))[0].append(part)
    for place, stmt in enumerate(body):
        for access in accesses((stmt,)):
            if access.reads and access.view in found:
                subscripts = tuple([_simple(index, stable) for index in access.indices])
                # What a scan stores in its last pass, the one before would read.
                found[access.view][1].append((-1 if flags else place, subscripts))
    return found


# law
def _always(
    body: Body, flags: Sequence[Expr], loops: tuple[For, ...], changing: Collection[Sym]
) -> Iterator[tuple[tuple[For, ...], Store]]:
    """The stores that every iteration runs, with the loops around them; of a scan's, in the last
    pass over it. The loops count from 0 by 1, and nothing leaves a trip of theirs.
    """
    for stmt in body:
        if isinstance(stmt, Store):
            yield loops, stmt
        elif isinstance(stmt, If) and stmt.condition in flags:
            yield from _always(stmt.then, flags, loops, changing)
        elif isinstance(stmt, For) and _counts(stmt) and stmt.sym not in changing:
            yield from _always(stmt.body, flags, (*loops, stmt), changing)


# law: True
def _counts(loop: For) -> bool:
    """Whether a loop has all trips from 0 on, one by one."""
    start, step = _without_casts(loop.start), _without_casts(loop.step)
    by_one = isinstance(step, Const) and step.value == 1
    from_zero = isinstance(start, Const) and start.value == 0
    return by_one and from_zero and not contains(loop.body, Break, Continue)


def _simple(e: Expr, stable: Mapping[Sym, Expr]) -> Expr:
    return _without_casts(expand(e, stable))


def _without_casts(e: Expr) -> Expr:
    """An index that is below `_NARROW`, without the conversions of C++ between its types."""
    while isinstance(e, Cast) and e.dtype.is_integer and e.dtype.size >= 4:
        e = e.operand
    return e
